//! Lists of sessions, as JSON, in parts: the loop copies a few sessions at a time, and they are written elsewhere. What
//! all of them are made of at once would be a megabyte.

use super::{session, word};
use crate::caller::Pass;
use crate::engine::{Known, SessionView, View};
use pinfold_api::object::Row;
use pinfold_api::query::Sessions as Filter;
use pinfold_api::word::State as Word;
use pinfold_core::{Now, State};
use pinfold_store::SessionId;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// So many sessions are copied at once, for about a tenth of a millisecond; each further part costs a way to another thread.
pub(crate) const PART: usize = 256;
/// Few sessions are longer.
const SESSION: usize = 2048;
/// Few rows of the table are longer.
const ROW: usize = 256;
/// So much of a command is enough to know it by.
const COMMAND: usize = 64;

/// Whether a filter shows a session.
fn shows(filter: &Filter, known: Known<'_>) -> bool {
    let state = known.state();
    let asked_for = filter.state.as_deref() == Some(state.word());
    let listed = filter.all || asked_for || state != State::Archived;
    let tagged = filter.tag.as_ref().is_none_or(|tag| known.definition().tags.contains(tag));
    listed && tagged && filter.state.as_deref().is_none_or(|wanted| wanted == state.word())
}

/// Whether what is not a session may be among them.
fn shows_odd_ones(filter: &Filter) -> bool {
    !filter.known && filter.state.is_none() && filter.tag.is_none()
}

/// What is shown of each session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Everything.
    Whole,
    /// Everything but its policy, which is half of it.
    Brief,
    /// What a table has room for.
    Row,
}

/// Some sessions of a list, in the order in which they were made.
pub(crate) struct Part {
    pub(crate) sessions: Vec<SessionView>,
    /// Whether others follow.
    pub(crate) more: bool,
    /// How many there are in all, where only some were asked for.
    pub(crate) total: Option<u64>,
}

/// The first sessions after one that a filter shows, and how many there are in all.
pub(crate) fn part(
    view: View<'_>,
    (filter, pass): (&Filter, &Pass),
    after: Option<SessionId>,
    most: usize,
) -> Part {
    let is_shown = |known: &Known<'_>| shows(filter, *known) && pass.shows(known.id());
    let mut shown = view.sessions_after(after).filter(is_shown);
    let sessions = shown.by_ref().take(most).map(Known::copy).collect();
    let more = shown.next().is_some();
    let total = filter.limit.map(|_| view.sessions().filter(is_shown).count() as u64);
    Part { sessions, more, total }
}

/// What is listed beside sessions: those whose records are damaged, and with `--all` those that the store does not know.
pub(crate) fn odd_ones(view: View<'_>, filter: &Filter, pass: &Pass) -> Vec<Value> {
    if pass.is_kept() || !shows_odd_ones(filter) {
        return Vec::new();
    }
    let damaged = view.damaged().map(|damaged| {
        let why = format!("its record is damaged: {}", damaged.problem);
        odd(&damaged.id, &damaged.name, &Word::Damaged, None, &why)
    });
    let unknown = view.unknown().iter().filter(|_| filter.all);
    let unknown =
        unknown.map(|unknown| odd(&unknown.id, &unknown.id, &Word::Unknown, unknown.shim_pid, &unknown.why));
    damaged.chain(unknown).collect()
}

/// A list that is being written.
pub(crate) struct Writing {
    text: Vec<u8>,
    shape: Shape,
}

impl Writing {
    pub(crate) fn new(shape: Shape) -> Writing {
        Writing { text: vec![b'['], shape }
    }

    pub(crate) fn add(&mut self, sessions: &[SessionView], now: Now) {
        let length = if self.shape == Shape::Row { ROW } else { SESSION };
        self.text.reserve(length * sessions.len());
        for view in sessions {
            match self.shape {
                Shape::Whole => self.push(&session::session(view, now)),
                Shape::Brief => self.push(&session::brief(view, now)),
                Shape::Row => self.push(&row(view, now)),
            }
        }
    }

    /// Adds what is not a session, with a command of the kind that its shape has.
    pub(crate) fn add_odd_ones(&mut self, odd_ones: Vec<Value>) {
        let command = if self.shape == Shape::Row { json!("") } else { json!([]) };
        for mut object in odd_ones {
            object["command"] = command.clone();
            self.push(&object);
        }
    }

    fn push(&mut self, object: &impl Serialize) {
        if self.text.len() > 1 {
            self.text.push(b',');
        }
        serde_json::to_writer(&mut self.text, object).expect("strings and numbers can be written to memory");
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.text.push(b']');
        self.text
    }
}

/// What is known of one that is not a session: fields of rows and of sessions alike.
fn odd(id: &str, name: &str, state: &Word, shim_pid: Option<u32>, why: &str) -> Value {
    json!({
        "id": id, "name": name, "state": state, "mode": "", "pid": null, "shim_pid": shim_pid, "restarts": 0,
        "why": why, "foreign": false,
    })
}

fn row(view: &SessionView, now: Now) -> Row<'_> {
    Row {
        name: Cow::Borrowed(&view.name),
        state: word::state(view.core.state()),
        mode: word::mode(view.core.spec().mode),
        pid: view.pid(),
        restarts: view.core.runs().count.saturating_sub(1),
        command: Cow::Owned(beginning(&view.definition.command)),
        why: Cow::Owned(session::why(view, now)),
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
