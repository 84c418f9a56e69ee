//! `events`: prints what happened.

use crate::daemon::Daemon;
use crate::doing::Asks;
use crate::global::Global;
use crate::long_list::{self, Last};
use crate::output::{Failure, Kind, moment, say};
use clap::Args;
use pinfold_api::endpoint::{self, Call, ListEvents};
use pinfold_api::object::Event;
use pinfold_api::{Client, ClientError, query, time, units};

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
        let call = endpoint::ListEvents::call(&self.which(global)?);
        if self.follow {
            return follow(&client, &call, global);
        }
        if global.json {
            return long_list::pass_on(&client, &call);
        }
        let mut shown = 0;
        let total = client.each(&call, |event: Event| {
            shown += 1;
            say(&sentence(&event));
        })?;
        long_list::say_how_many_more(total, shown, "events", global);
        Ok(())
    }
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
