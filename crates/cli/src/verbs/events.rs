//! `events`: prints what happened.

use crate::daemon::{Daemon, NextDaemon};
use crate::doing::DaemonVerb;
use crate::global::Global;
use crate::long_list::{self, LastEntries};
use crate::output::{Failure, Paper, Shade, exit_with_the_reader, has_lost, moment, print, say, talk, zoned};
use crate::since::Since;
use clap::Args;
use pinfold_api::endpoint;
use pinfold_api::object::Event;
use pinfold_api::word::EventKind;
use pinfold_api::{ClientError, Rest, query, time};
use pinfold_core::visible::visible;
use pinfold_core::{Exit, words};
use serde_json::Value;
use std::time::Duration;

/// How many events a person sees without asking for a number.
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
    /// Only what happened since then: a duration (5m), a time (RFC 3339) or a sequence number
    #[arg(long, value_name = "T")]
    since: Option<String>,
    /// Only the last N, or `all` [default: 50 on a terminal, otherwise all]
    #[arg(short = 'n', value_name = "N|all")]
    last: Option<LastEntries>,
}

impl DaemonVerb for Events {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let (client, global) = (daemon.client()?, &daemon.global);
        let which = self.which(global)?;
        let call = endpoint::ListEvents::call(&which);
        if self.follow {
            return follow(which, daemon);
        }
        let (mut shown, mut first) = (0, None);
        let rest = if global.json {
            long_list::pass_on(&client, &call)?
        } else {
            let mut told = Told::default();
            client.each(&call, |event: Event| {
                shown += 1;
                first.get_or_insert(event.seq);
                told.tell(&event);
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

/// From where on the events are complete, if what was asked for goes further back.
fn gap(rest: &Rest, which: &query::Events, first: Option<u64>, hidden: bool) -> Option<String> {
    let (from, since) = (rest.complete_from?, rest.complete_since.as_deref()?);
    let goes_back = match (which.since_ms, which.since) {
        (Some(asked), _) => time::moment(since).is_some_and(|at| asked < at),
        (None, 0) => !hidden,
        (None, after) => after + 1 < from,
    };
    let goes_back = goes_back || first.is_some_and(|first| first < from);
    let at = zoned(since);
    (from > 1 && goes_back).then(|| {
        format!("every event from {from} on is there ({at}); of earlier ones, each session's newest are")
    })
}

/// Where to begin.
fn since(text: &str) -> Result<query::Events, Failure> {
    Ok(match Since::read(text)? {
        Since::After(since) => query::Events { since, ..query::Events::default() },
        Since::At(ms) => query::Events { since_ms: Some(ms), ..query::Events::default() },
    })
}

impl Events {
    fn which(&self, global: &Global) -> Result<query::Events, Failure> {
        let since = self.since.as_deref().map(since).transpose()?.unwrap_or_default();
        // With `--since`, the user wants all of them.
        let usual =
            if self.since.is_some() || self.follow { LastEntries::All } else { LastEntries::Some(SHOWN) };
        Ok(query::Events {
            follow: Some(self.follow),
            session: self.session.clone(),
            last: long_list::last(self.last, usual, global),
            ..since
        })
    }
}

/// How long to wait before looking again for a daemon that has gone: nothing announces that the next one listens.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// Follows events across the death of any daemon: with the next one it goes on after the last number.
fn follow(mut which: query::Events, daemon: &Daemon) -> Result<(), Failure> {
    let mut told = Told::default();
    let mut client = daemon.client()?;
    exit_with_the_reader(0);
    loop {
        let lines = match client.lines(&endpoint::ListEvents::call(&which)) {
            Ok(lines) => Some(lines),
            Err(ClientError::Down { .. } | ClientError::Broken(_)) => None,
            Err(error) => return Err(error.into()),
        };
        for line in lines.into_iter().flatten() {
            let line = match line.map_err(ClientError::from) {
                Ok(line) => line,
                // The daemon is alive but mute, so no other one will come.
                Err(mute @ ClientError::Mute(_)) => return Err(mute.into()),
                Err(_) => break,
            };
            let Some(data) = line.strip_prefix("data:").map(str::trim_start) else { continue };
            let Ok(event) = serde_json::from_str::<Event>(data) else { continue };
            (which.since, which.since_ms, which.last) = (event.seq, None, None);
            if daemon.global.json {
                say(&data);
            } else {
                told.tell(&event);
            }
            if has_lost() {
                return Ok(());
            }
        }
        std::thread::sleep(LOOK_AGAIN);
        match daemon.next() {
            Ok(NextDaemon::Up(next)) => client = next,
            Ok(NextDaemon::Stopped) => {
                daemon.tell_stopped();
                return Ok(());
            }
            // None may be started from here, or it cannot start now: another one may come.
            Err(_) => {}
        }
    }
}

/// The session that asked for it, if it was not a person.
fn by(event: &Event) -> Option<String> {
    let by = event.by.as_ref().filter(|by| by["kind"] == "session")?;
    Some(match by["session"].as_str() {
        Some(session) => format!(" (asked for by session {session})"),
        None => " (asked for by a run of another home)".to_owned(),
    })
}

/// The last event printed: several records of the same thing make one line.
#[derive(Default)]
struct Told {
    last: Option<(Option<String>, String)>,
}

impl Told {
    fn tell(&mut self, event: &Event) {
        let why = event.why.clone().unwrap_or_default();
        let this = (event.session.clone(), why);
        let again = !this.1.is_empty() && self.last.as_ref() == Some(&this) && follows(&event.kind);
        self.last = Some(this);
        if !again {
            print(&line(event, Paper::stdout()));
        }
    }
}

/// Whether an event of this kind only follows from the one before it.
fn follows(kind: &EventKind) -> bool {
    [
        EventKind::Backoff,
        EventKind::LockReleased,
        EventKind::LockAcquired,
        EventKind::Stopped,
        EventKind::Failed,
    ]
    .contains(kind)
}

/// One event for people: when, which session, what, why.
fn line(event: &Event, paper: Paper) -> String {
    let (at, session) = (moment(&event.at), event.session.as_deref().unwrap_or("-"));
    let kind = paper.paint(event.kind.word(), shade(&event.kind)).into_owned();
    let blanks = " ".repeat(18usize.saturating_sub(event.kind.word().len()));
    let (what, by) = (what(event), by(event).unwrap_or_default());
    let words = visible(&format!("{what}{by}")).into_owned();
    let text = format!("{:>6}  {at}  {:<16}  {kind}{blanks}  {words}", event.seq, visible(session));
    format!("{}\n", paper.cut_line(text.trim_end()))
}

/// What happened, if the record has more than its reason.
fn what(event: &Event) -> String {
    let why = event.why.as_deref().unwrap_or_default();
    match (&event.kind, event.facts.get("pid").and_then(Value::as_u64)) {
        (EventKind::RunStarted, Some(pid)) => format!("started (pid {pid})"),
        (EventKind::RunExited, _) => ended(event, why),
        (EventKind::Parked, _) => parked(event, why),
        (EventKind::SessionCreated, _) if why == "noted" => "it runs when it is needed".to_owned(),
        (EventKind::ConsumerJoined, _) if why == "noted" => "a client is connected".to_owned(),
        (EventKind::ConsumerLeft, _) if why == "noted" => "a client has gone".to_owned(),
        (_, _) => why.to_owned(),
    }
}

/// Which processes a park ended besides the agent.
fn parked(event: &Event, why: &str) -> String {
    let ended = event.facts.get("ended").and_then(Value::as_array).into_iter().flatten();
    let named =
        |process: &Value| Some(format!("`{}` (pid {})", process["command"].as_str()?, process["pid"]));
    let all: Vec<String> = ended.filter_map(named).collect();
    if all.is_empty() { why.to_owned() } else { format!("{why}; ended {}", all.join(", ")) }
}

/// How a run ended, if its reason does not say so.
fn ended(event: &Event, why: &str) -> String {
    let number =
        |name: &str| event.facts.get(name).and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
    let exit = match (number("code"), number("signal")) {
        (Some(code), _) => Exit::Code(code).to_string(),
        (None, Some(signal)) => Exit::Signal(signal).to_string(),
        (None, None) => return why.to_owned(),
    };
    let lived = event.facts.get("uptime_ms").and_then(Value::as_u64).map(Duration::from_millis);
    let after = lived.map(|lived| format!(" after {}", words::duration(lived))).unwrap_or_default();
    match why.split_once(&exit) {
        Some((before, rest)) => format!("{before}{exit}{after}{rest}"),
        None => format!("{exit}{after}; {why}"),
    }
}

/// Makes failures stand out, and successes.
fn shade(kind: &EventKind) -> Shade {
    let bad = [EventKind::Failed, EventKind::StartFailed, EventKind::MessageFailed, EventKind::ConfigRefused];
    let busy = [EventKind::Backoff, EventKind::LockBusy, EventKind::HealthWarn, EventKind::MemoryWarn];
    let good = [EventKind::RunStarted, EventKind::MessageDone, EventKind::Adopted];
    match kind {
        kind if bad.contains(kind) => Shade::Bad,
        kind if busy.contains(kind) => Shade::Busy,
        kind if good.contains(kind) => Shade::Good,
        _ => Shade::Plain,
    }
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
        let text = Some(format!(
            "every event from 7 on is there ({}); of earlier ones, each session's newest are",
            zoned("2026-11-15T18:00:00.000Z")
        ));
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
