//! The table of `pinfold ls`: what it shows of each session, written without copies of what the daemon has.

use crate::clock::Clock;
use crate::definition::mode_word;
use crate::entry::Entry;
use crate::fleet::Fleet;
use crate::view::{self, Filter};
use pinfold_api::object::Row;
use pinfold_core::Now;
use std::borrow::Cow;

/// So much of a command is enough to know it by.
const COMMAND: usize = 64;
/// Few rows are longer.
const ROW: usize = 256;

/// The rows that a filter shows, in the order in which the sessions were made, as JSON.
pub(crate) fn text(fleet: &Fleet, filter: &Filter) -> Vec<u8> {
    let now = Clock::new().now();
    let mut text = Vec::with_capacity(ROW * fleet.entries.len());
    let rows = fleet.entries.values().filter(|entry| filter.shows(entry)).map(|entry| row(entry, now));
    let mut serializer = serde_json::Serializer::new(&mut text);
    serde::Serializer::collect_seq(&mut serializer, rows)
        .expect("strings and numbers can be written to memory");
    text
}

fn row(entry: &Entry, now: Now) -> Row<'_> {
    let core = &entry.session;
    Row {
        name: Cow::Borrowed(&entry.name),
        state: Cow::Borrowed(core.state().word()),
        mode: Cow::Borrowed(mode_word(core.spec().mode)),
        pid: view::pid(entry),
        restarts: core.runs().count.saturating_sub(1),
        command: Cow::Owned(beginning(&entry.definition.command)),
        why: Cow::Owned(core.explain(now)),
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
