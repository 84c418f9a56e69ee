//! Lists of sessions, as JSON. Each is written before the next is made: the loop waits meanwhile, and what all of
//! them are made of at once would be a megabyte.

use crate::caller::Pass;
use crate::clock::Clock;
use crate::define::definition::mode_word;
use crate::engine::Engine;
use crate::engine::session::Tracked;
use crate::show;
use pinfold_api::object::Row;
use pinfold_core::{Now, State};
use pinfold_store::SessionId;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::ops::Bound::{Excluded, Unbounded};

/// Few sessions are longer.
const SESSION: usize = 2048;
/// Few rows of the table are longer.
const ROW: usize = 256;
/// So much of a command is enough to know it by.
const COMMAND: usize = 64;

/// Which sessions a listing shows.
#[derive(Debug, Clone, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct Filter {
    pub(crate) all: bool,
    pub(crate) state: Option<String>,
    pub(crate) tag: Option<String>,
    /// Without policies: for whoever prints a table.
    pub(crate) brief: bool,
    /// Only those that can be read: none that are damaged, and none that the database does not know.
    pub(crate) known: bool,
    /// Only the first so many; the field `next` of the answer's head says what `after` has to be for the next ones.
    pub(crate) limit: Option<usize>,
    /// Only those behind the session of this id.
    pub(crate) after: Option<String>,
}

/// A list, or a page of it, as JSON.
pub(crate) struct Listed {
    pub(crate) text: Vec<u8>,
    /// How many there would be, if not only some were asked for.
    pub(crate) total: Option<u64>,
    /// What `after` has to be for those that follow.
    pub(crate) next: Option<String>,
}

impl Filter {
    fn shows(&self, tracked: &Tracked) -> bool {
        let state = tracked.session.state();
        let asked_for = self.state.as_deref() == Some(state.word());
        let listed = self.all || asked_for || state != State::Archived;
        let tagged = self.tag.as_ref().is_none_or(|tag| tracked.definition.tags.contains(tag));
        listed && tagged && self.state.as_deref().is_none_or(|wanted| wanted == state.word())
    }
}

/// The sessions that a filter shows.
pub(crate) fn sessions(engine: &Engine, filter: &Filter, pass: &Pass) -> Listed {
    let mut list = written(
        engine,
        (filter, pass),
        SESSION,
        if filter.brief { show::session::brief } else { show::session::session },
    );
    if !pass.is_kept() {
        add_odd_ones(engine, filter, &json!([]), &mut list);
    }
    list
}

/// What `pinfold ls` shows of each.
pub(crate) fn table(engine: &Engine, filter: &Filter, pass: &Pass) -> Listed {
    let mut list = written(engine, (filter, pass), ROW, row);
    if !pass.is_kept() {
        add_odd_ones(engine, filter, &json!(""), &mut list);
    }
    list
}

/// What a filter shows, in the order in which the sessions were made.
fn written<'a, T: Serialize>(
    engine: &'a Engine,
    (filter, pass): (&Filter, &Pass),
    length: usize,
    object: impl Fn(&'a Tracked, Now) -> T,
) -> Listed {
    let now = Clock::new().now();
    let limit = filter.limit.unwrap_or(usize::MAX);
    let mut text = Vec::with_capacity(length * engine.sessions.len().min(limit));
    // One that was removed meanwhile had its place too.
    let after = filter.after.as_ref().and_then(|after| after.parse::<SessionId>().ok());
    let after = after.map_or(Unbounded, Excluded);
    let is_shown = |tracked: &Tracked| filter.shows(tracked) && pass.shows(tracked.id);
    let mut shown = engine.sessions.range((after, Unbounded)).filter(|(_, tracked)| is_shown(tracked));
    let mut last = None;
    let page = shown.by_ref().take(limit).inspect(|(id, _)| last = Some(**id));
    serde_json::Serializer::new(&mut text)
        .collect_seq(page.map(|(_, tracked)| object(tracked, now)))
        .expect("strings and numbers can be written to memory");
    let more = shown.next().is_some();
    let all = || engine.sessions.values().filter(|tracked| is_shown(tracked)).count() as u64;
    let total = filter.limit.map(|_| all());
    Listed { text, total, next: last.filter(|_| more).map(|last| last.to_string()) }
}

/// Behind the sessions: those whose records are damaged, and with `--all` those that the store does not know.
fn add_odd_ones(engine: &Engine, filter: &Filter, command: &Value, listed: &mut Listed) {
    // They belong to the last page.
    if filter.known || filter.state.is_some() || filter.tag.is_some() || listed.next.is_some() {
        return;
    }
    let list = &mut listed.text;
    let damaged = engine.damaged.values().map(|damaged| {
        let why = format!("its record is damaged: {}", damaged.problem);
        odd(&damaged.id, &damaged.name, "damaged", None, &why)
    });
    let unknown = engine.unknown.iter().filter(|_| filter.all);
    let unknown =
        unknown.map(|unknown| odd(&unknown.id, &unknown.id, "unknown", unknown.shim_pid, &unknown.why));
    for mut object in damaged.chain(unknown) {
        object["command"] = command.clone();
        list.pop();
        list.extend_from_slice(if list.len() > 1 { b"," } else { b"" });
        list.extend_from_slice(object.to_string().as_bytes());
        list.push(b']');
    }
}

/// What is known of one that is no session: fields of rows and of sessions alike.
fn odd(id: &str, name: &str, state: &str, shim_pid: Option<u32>, why: &str) -> Value {
    json!({
        "id": id, "name": name, "state": state, "mode": "", "pid": null, "shim_pid": shim_pid, "restarts": 0,
        "why": why, "foreign": false,
    })
}

fn row(tracked: &Tracked, now: Now) -> Row<'_> {
    let core = &tracked.session;
    Row {
        name: Cow::Borrowed(&tracked.name),
        state: Cow::Borrowed(core.state().word()),
        mode: Cow::Borrowed(mode_word(core.spec().mode)),
        pid: show::session::pid(tracked),
        restarts: core.runs().count.saturating_sub(1),
        command: Cow::Owned(beginning(&tracked.definition.command)),
        why: Cow::Owned(show::session::why(tracked, now)),
    }
}

/// The first words of a command, up to a length that a table has room for.
fn beginning(words: &[String]) -> String {
    let mut line = String::with_capacity(2 * COMMAND);
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            line.push(' ');
        }
        line.push_str(&word[..word.floor_char_boundary(COMMAND)]);
        if line.len() >= COMMAND {
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_is_known_by_its_beginning() {
        let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(beginning(&words(&[])), "");
        assert_eq!(beginning(&words(&["sleep"])), "sleep");
        assert_eq!(beginning(&words(&["sleep", "", "5"])), "sleep  5");
        let long = "é".repeat(1000);
        assert_eq!(beginning(&words(&[&long])), "é".repeat(32));
        assert_eq!(beginning(&words(&["sh", &long, "end"])), format!("sh {}", "é".repeat(32)));
    }
}
