//! Lists of sessions, as JSON, in parts: the loop copies a few sessions at a time, and they are serialized
//! elsewhere. All of them at once would be a megabyte. Rows of a table are serialized on the loop: copying a
//! session takes as long as writing its row.

use super::{session, word};
use crate::caller::Pass;
use crate::engine::{EngineView, SessionRef, SessionView};
use pinfold_api::object::Row;
use pinfold_api::query::Sessions as Filter;
use pinfold_api::word::State as Word;
use pinfold_core::{Now, State};
use pinfold_store::SessionId;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// How many sessions are copied at once, which takes about a tenth of a millisecond; each further part costs
/// a trip to another thread.
pub(crate) const PART: usize = 256;
/// How many rows the loop writes at once, which takes about as long.
const ROWS: usize = 128;
/// Few sessions are longer, in bytes.
const SESSION: usize = 2048;
/// Few rows of the table are longer, in bytes.
const ROW: usize = 256;
/// This much of a command is enough to recognize it.
const COMMAND: usize = 64;

/// Whether a filter shows a session.
fn shows(filter: &Filter, known: SessionRef<'_>) -> bool {
    let state = known.state();
    let asked_for = filter.state.as_deref().map(|states| states.split(',').any(|word| word == state.word()));
    let listed = filter.all || asked_for == Some(true) || state != State::Archived;
    let has = |tag: &str| known.definition().tags.iter().any(|own| own == tag);
    let tagged = filter.tag.as_deref().is_none_or(has)
        && filter.tags.as_deref().is_none_or(|tags| tags.split('\n').all(has));
    listed && tagged && asked_for != Some(false)
}

/// Whether the list may include entries that are not sessions.
fn shows_odd_ones(filter: &Filter) -> bool {
    !filter.known && filter.state.is_none() && filter.tag.is_none() && filter.tags.is_none()
}

/// What is shown of each session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListShape {
    /// Everything about it.
    Whole,
    /// Everything but its policy, which is half of it.
    Brief,
}

/// Some sessions of a list, in the order in which they were created.
pub(crate) struct ListPart<T = SessionView> {
    pub(crate) sessions: Vec<T>,
    /// Whether others follow.
    pub(crate) more: bool,
    /// How many there are in all, if only some were asked for.
    pub(crate) total: Option<u64>,
    /// Entries that are not sessions: they belong to the last part.
    pub(crate) odd_ones: Vec<Value>,
    /// The revision of the feed that it is as of.
    pub(crate) revision: (u64, u64),
}

/// The first sessions after one that a filter shows, and how many there are in all.
pub(crate) fn part(
    view: EngineView<'_>,
    asked: (&Filter, &Pass),
    after: Option<SessionId>,
    most: usize,
) -> ListPart {
    part_of(view, asked, (after, most), |known| known.copy())
}

/// As `part`, but takes something else than a copy of each.
fn part_of<T>(
    view: EngineView<'_>,
    (filter, pass): (&Filter, &Pass),
    (after, most): (Option<SessionId>, usize),
    take: impl FnMut(SessionRef<'_>) -> T,
) -> ListPart<T> {
    let is_shown = |known: &SessionRef<'_>| shows(filter, *known) && pass.shows(known.id());
    let mut shown = view.sessions_after(after).filter(is_shown);
    let sessions = shown.by_ref().take(most).map(take).collect();
    let more = shown.next().is_some();
    let total = filter.limit.map(|_| view.sessions().filter(is_shown).count() as u64);
    let odd_ones = if more { Vec::new() } else { odd_ones(view, filter, pass) };
    ListPart { sessions, more, total, odd_ones, revision: view.revision() }
}

/// Entries besides sessions: those whose records are damaged, and with `--all` those that the store does not
/// know.
fn odd_ones(view: EngineView<'_>, filter: &Filter, pass: &Pass) -> Vec<Value> {
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
    /// The command of an entry that has none.
    no_command: Value,
}

impl Writing {
    /// A list of sessions.
    pub(crate) fn of_sessions() -> Writing {
        Writing { text: vec![b'['], no_command: json!([]) }
    }

    /// The rows of a table.
    pub(crate) fn of_rows() -> Writing {
        Writing { text: vec![b'['], no_command: json!("") }
    }

    pub(crate) fn add(&mut self, sessions: &[SessionView], shape: ListShape, now: Now) {
        self.text.reserve(SESSION * sessions.len());
        for view in sessions {
            match shape {
                ListShape::Brief => self.push(&session::brief(view, now)),
                ListShape::Whole => self.push(&session::session(view, now)),
            }
        }
    }

    /// Writes the rows of the first sessions after one, at most this many; returns whose they are.
    pub(crate) fn add_rows(
        &mut self,
        view: EngineView<'_>,
        asked: (&Filter, &Pass),
        (after, most): (Option<SessionId>, usize),
        now: Now,
    ) -> ListPart<SessionId> {
        let most = most.min(ROWS);
        self.text.reserve(ROW * most);
        let most_of_command = if asked.0.brief { COMMAND } else { usize::MAX };
        part_of(view, asked, (after, most), |known| {
            self.push(&row(known, most_of_command, now));
            known.id()
        })
    }

    /// Adds entries that are not sessions, with a command of the same type as the others.
    pub(crate) fn add_odd_ones(&mut self, odd_ones: Vec<Value>) {
        for mut object in odd_ones {
            object["command"] = self.no_command.clone();
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

/// An entry that is not a session, with the fields of rows and of sessions alike.
fn odd(id: &str, name: &str, state: &Word, shim_pid: Option<u32>, why: &str) -> Value {
    json!({
        "id": id, "name": name, "state": state, "mode": "", "pid": null, "shim_pid": shim_pid, "restarts": 0,
        "why": why, "foreign": false,
    })
}

fn row(known: SessionRef<'_>, most_of_command: usize, now: Now) -> Row<'_> {
    let core = known.core();
    let since = core.life().at_work().map(|(_, _, since)| since);
    let uptime = since.map(|since| now.boot.since(since.boot));
    Row {
        name: Cow::Borrowed(known.name()),
        state: word::state(core.state()),
        activity: Some(word::activity(core.activity())),
        mode: word::mode(core.spec().mode),
        pid: known.pid(),
        uptime_ms: uptime.map(|uptime| u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX)),
        memory_bytes: core.memory_bytes(),
        restarts: core.runs().count.saturating_sub(1),
        cost_usd: core.usage().and_then(|usage| usage.sum.cost).map(pinfold_core::usage::Money::usd),
        dir: known.definition().dir.to_string_lossy(),
        command: Cow::Owned(beginning(&known.definition().command, most_of_command)),
        why: Cow::Owned(session::why(core, known.hindrances(), now)),
    }
}

/// The first words of a command, up to a length.
fn beginning(words: &[String], most: usize) -> String {
    let mut line = String::with_capacity(2 * COMMAND);
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            line.push(' ');
        }
        line.push_str(&word[..word.floor_char_boundary(most)]);
        if line.len() >= most {
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
        let beginning = |all: &[&str]| super::beginning(&words(all), COMMAND);
        assert_eq!(beginning(&[]), "");
        assert_eq!(beginning(&["sleep"]), "sleep");
        assert_eq!(beginning(&["sleep", "", "5"]), "sleep  5");
        let long = "é".repeat(1000);
        assert_eq!(beginning(&[&long]), "é".repeat(32));
        assert_eq!(beginning(&["sh", &long, "end"]), format!("sh {}", "é".repeat(32)));
        assert_eq!(super::beginning(&words(&["sh", &long, "end"]), usize::MAX), format!("sh {long} end"));
    }
}
