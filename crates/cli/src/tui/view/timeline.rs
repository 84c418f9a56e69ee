//! The runs of a session as a timeline: one sign for each end, coloured by verdict, and the last ones in words.

use super::super::model::{Model, SessionDetails};
use super::canvas::Pieces;
use super::moments::clock;
use super::theme::Role;
use pinfold_api::object::{Event, LastExit};
use pinfold_api::word::{EventKind, Verdict};
use std::time::Duration;

/// How many ends are told in words.
const TOLD: usize = 4;

/// How a run ended, in words.
pub(super) fn told(exit: &LastExit) -> String {
    let lived = pinfold_core::words::duration(Duration::from_millis(exit.uptime_ms));
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "lost".to_owned(),
    };
    let line = exit.last_line.as_ref().map(|line| format!(": {line}")).unwrap_or_default();
    format!("{} ({how}) after {lived}{line}", exit.verdict)
}

/// The run ends found among the events.
pub(super) fn runs(model: &Model, gathered: &SessionDetails) -> Vec<Pieces> {
    let ends: Vec<&Event> =
        gathered.events.iter().filter(|event| event.kind == EventKind::RunExited).collect();
    if ends.is_empty() {
        return Vec::new();
    }
    let mut line: Pieces = ends.iter().map(|end| sign(end)).collect();
    if gathered.session.run.is_some() {
        line.push(("▸".to_owned(), Role::Good));
    }
    let mut lines = vec![line];
    for end in ends.iter().rev().take(TOLD) {
        let (_, role) = sign(end);
        let lived = end.facts.get("uptime_ms").and_then(serde_json::Value::as_u64).unwrap_or(0);
        let lived = pinfold_core::words::duration(Duration::from_millis(lived));
        let how = match (number(end, "code"), number(end, "signal")) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "lost".to_owned(),
        };
        let text = format!("{} ({how}) after {lived}", verdict(end));
        lines.push(vec![(format!("{} ", clock(model, &end.at)), Role::Faint), (text, role)]);
    }
    lines
}

fn number(end: &Event, name: &str) -> Option<i64> {
    end.facts.get(name).and_then(serde_json::Value::as_i64)
}

fn verdict(end: &Event) -> Verdict {
    Verdict::from(end.facts.get("verdict").and_then(serde_json::Value::as_str).unwrap_or_default())
}

/// The sign of an end, by its verdict.
fn sign(end: &Event) -> (String, Role) {
    let (sign, role) = match verdict(end) {
        Verdict::Clean => ("●", Role::Good),
        Verdict::Drained | Verdict::Contended | Verdict::Limited => ("◐", Role::Busy),
        Verdict::Crash | Verdict::OutOfMemory | Verdict::Hopeless => ("✗", Role::Bad),
        Verdict::Other(_) => ("○", Role::Faint),
    };
    (sign.to_owned(), role)
}
