//! `events`: prints what happened.

use crate::daemon::Daemon;
use crate::doing::Asks;
use crate::global::Global;
use crate::long_list::{self, Last};
use crate::output::{Failure, Kind, moment, say, talk};
use clap::Args;
use pinfold_api::endpoint::{self, Call, ListEvents};
use pinfold_api::object::Event;
use pinfold_api::{Client, ClientError, Rest, query, time, units};

/// A person who asks for no number sees so many.
const SHOWN: u32 = 50;

/// Which events.
#[derive(Debug, Clone, Args)]
pub(crate) struct Events {
    /// Follow events as they come
    #[arg(short, long)]
    follow: bool,
    /// Only this session's
    #[arg(long, value_name = "S")]
    session: Option<String>,
    /// Since: a duration (5m), a moment (RFC 3339) or a number
    #[arg(long, value_name = "T")]
    since: Option<String>,
    /// Only the last N; `all` for all of them. On a terminal the last 50 unless it says so
    #[arg(short = 'n', value_name = "N|all")]
    last: Option<Last>,
}

impl Asks for Events {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let (client, global) = (daemon.client()?, &daemon.global);
        let which = self.which(global)?;
        let call = endpoint::ListEvents::call(&which);
        if self.follow {
            return follow(&client, &call, global);
        }
        let (mut shown, mut first) = (0, None);
        let rest = if global.json {
            long_list::pass_on(&client, &call)?
        } else {
            client.each(&call, |event: Event| {
                shown += 1;
                first.get_or_insert(event.seq);
                say(&sentence(&event));
            })?
        };
        let hidden = match (global.json, rest.total) {
            (true, _) => which.last.is_some(),
            (false, total) => total.or(rest.more_than).is_some_and(|total| total > shown),
        };
        if !global.json {
            long_list::say_how_many_more(&rest, shown, "events", global);
        }
        if let Some(gap) = gap(&rest, &which, first, hidden).filter(|_| !global.quiet) {
            talk(&gap);
        }
        Ok(())
    }
}

/// From where on every event is there, if what was asked for goes further back than that.
fn gap(rest: &Rest, which: &query::Events, first: Option<u64>, hidden: bool) -> Option<String> {
    let (from, since) = (rest.complete_from?, rest.complete_since.as_deref()?);
    let goes_back = match (which.since_ms, which.since) {
        (Some(asked), _) => time::moment(since).is_some_and(|at| asked < at),
        (None, 0) => !hidden,
        (None, after) => after + 1 < from,
    };
    let goes_back = goes_back || first.is_some_and(|first| first < from);
    let at = moment(since);
    (from > 1 && goes_back).then(|| {
        format!("every event from {from} on is there ({at}); of earlier ones, each session's newest are")
    })
}

impl Events {
    fn which(&self, global: &Global) -> Result<query::Events, Failure> {
        let since = self.since.as_deref().map(since_of).transpose()?.unwrap_or_default();
        // Whoever says from where on wants all of it.
        let usual = if self.since.is_some() || self.follow { Last::All } else { Last::Some(SHOWN) };
        Ok(query::Events {
            follow: Some(self.follow),
            session: self.session.clone(),
            last: long_list::last(self.last, usual, global),
            ..since
        })
    }
}

/// From where on.
fn since_of(text: &str) -> Result<query::Events, Failure> {
    let from = |since_ms| query::Events { since_ms: Some(since_ms), ..query::Events::default() };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(since) = text.parse().ok().filter(|_| is_number) {
        return Ok(query::Events { since, ..query::Events::default() });
    }
    if let Ok(ago) = units::duration(text) {
        let since = pinfold_kernel::clock::wall().saturating_sub(ago);
        return Ok(from(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)));
    }
    time::moment(text).map(from).ok_or_else(|| {
        Failure::new(Kind::Usage, format!("`{text}` is not a duration, time or sequence number"))
            .hint("--since 5m, --since 2026-11-15T18:00:00Z or --since 120")
    })
}

fn follow(client: &Client, call: &Call<ListEvents>, global: &Global) -> Result<(), Failure> {
    for line in client.lines(call)? {
        let line = line.map_err(ClientError::from)?;
        let Some(data) = line.strip_prefix("data:") else { continue };
        if global.json {
            say(&data.trim_start());
        } else if let Ok(event) = serde_json::from_str::<Event>(data.trim_start()) {
            say(&sentence(&event));
        }
    }
    Ok(())
}

/// Who asked for it, where that was not a person.
fn by(event: &Event) -> Option<String> {
    let by = event.by.as_ref().filter(|by| by["kind"] == "session")?;
    Some(match by["session"].as_str() {
        Some(session) => format!(" (asked for by session {session})"),
        None => " (asked for by a run of another home)".to_owned(),
    })
}

/// One event for people: when, whose, what, why.
fn sentence(event: &Event) -> String {
    let at = moment(&event.at);
    let session = event.session.as_deref().unwrap_or("-");
    let why = event.why.as_deref().unwrap_or("");
    let by = by(event).unwrap_or_default();
    format!("{:>6}  {at}  {session:<16}  {:<18}  {why}{by}", event.seq, event.kind).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_to_whoever_asks_for_it() {
        let rest = |from| Rest {
            complete_from: Some(from),
            complete_since: Some("2026-11-15T18:00:00.000Z".into()),
            ..Rest::default()
        };
        let text = Some(
            "every event from 7 on is there (2026-11-15 18:00:00); of earlier ones, each session's newest are"
                .to_owned(),
        );
        let (all, at) = (query::Events::default(), time::moment("2026-11-15T18:00:00.000Z").unwrap());
        let since = |since| query::Events { since, ..query::Events::default() };
        let since_ms = |ms| query::Events { since_ms: Some(ms), ..query::Events::default() };
        for (which, first, hidden, said) in [
            (all.clone(), Some(7), false, true),
            (all.clone(), Some(3), true, true),
            (all.clone(), Some(7), true, false),
            (since(5), Some(7), false, true),
            (since(6), Some(7), false, false),
            (since_ms(at - 1), Some(7), false, true),
            (since_ms(at), None, false, false),
        ] {
            let expected = text.clone().filter(|_| said);
            assert_eq!(gap(&rest(7), &which, first, hidden), expected, "{which:?} {first:?} {hidden}");
        }
        assert_eq!(gap(&rest(1), &all, Some(1), false), None, "nothing was ever forgotten");
        assert_eq!(gap(&Rest::default(), &all, Some(1), false), None);
    }
}
