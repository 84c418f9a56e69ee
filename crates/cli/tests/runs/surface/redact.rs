//! Puts placeholders for what differs between runs: ids, pids, times, durations, paths. Everything else is
//! left as it is.

use super::machine;
use super::named::{Known, named};
use crate::world::World;
use std::cell::RefCell;

/// Table columns whose cells have a different width in each run.
const UNSTEADY: [&str; 4] = ["PID", "HOLDER", "UPTIME", "FOR"];

/// The placeholders used in one case.
pub(super) struct Redaction {
    places: Vec<(String, &'static str)>,
    known: RefCell<Known>,
}

impl Redaction {
    pub(super) fn of(world: &World) -> Redaction {
        let bin = world.binary.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
        let places = vec![(world.root.display().to_string(), "[root]"), (bin, "[bin]")];
        Redaction { places, known: RefCell::default() }
    }

    /// A text with placeholders for what differs between runs or machines. Equal ids get equal placeholders.
    pub(super) fn names(&self, text: &str) -> String {
        let text = machine::named(&self.without_places(text));
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(letter) = rest.chars().next() {
            let begins = !out.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_');
            match begins.then(|| named(rest, &out, &mut self.known.borrow_mut())).flatten() {
                Some((length, name)) => {
                    out.push_str(&name);
                    rest = &rest[length..];
                }
                None => {
                    out.push(letter);
                    rest = &rest[letter.len_utf8()..];
                }
            }
        }
        out
    }

    fn without_places(&self, text: &str) -> String {
        self.places.iter().fold(text.to_owned(), |text, (place, name)| text.replace(place.as_str(), name))
    }

    /// A table with placeholders in its cells, and its columns aligned again. The cells are cut where the
    /// headings begin, so a column that is not below its heading shows up as a change. Any other text gets
    /// placeholders only.
    pub(super) fn tables(&self, text: &str) -> String {
        let Some(head) = text.lines().next().filter(|head| is_head(head)) else { return self.names(text) };
        let starts = starts(head);
        let rows: Vec<Vec<String>> = text.lines().map(|line| cells(line, &starts)).collect();
        let name =
            |row: &Vec<String>| row.iter().zip(&rows[0]).map(|(cell, head)| self.cell(cell, head)).collect();
        aligned(&rows.iter().map(name).collect::<Vec<Vec<String>>>())
    }

    fn cell(&self, cell: &str, head: &str) -> String {
        let words = cell.trim_end();
        if !UNSTEADY.contains(&head.trim_end()) {
            return self.names(words);
        }
        if ["UPTIME", "FOR"].contains(&head.trim_end())
            && words.starts_with(|letter: char| letter.is_ascii_digit())
        {
            return "[time]".to_owned();
        }
        let is_pid = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let named = words.split_inclusive([' ', ',']).map(|word| {
            let bare = word.trim_end_matches([' ', ',']);
            format!("{}{}", if is_pid(bare) { "[pid]" } else { bare }, &word[bare.len()..])
        });
        named.collect()
    }
}

/// Whether a line is the head of a table: words in capitals.
fn is_head(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.clone().count() > 2 && words.all(|word| word.bytes().all(|byte| byte.is_ascii_uppercase()))
}

/// Where the words of a line begin.
fn starts(head: &str) -> Vec<usize> {
    let letters: Vec<char> = head.chars().collect();
    (0..letters.len()).filter(|at| letters[*at] != ' ' && (*at == 0 || letters[at - 1] == ' ')).collect()
}

fn cells(line: &str, starts: &[usize]) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    let end = |index: usize| starts.get(index + 1).copied().unwrap_or(usize::MAX).min(letters.len());
    let cut = |(index, start): (usize, &usize)| {
        letters.get(*start..end(index)).unwrap_or_default().iter().collect()
    };
    starts.iter().enumerate().map(cut).collect()
}

fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let line: String = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  ")).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction() -> Redaction {
        Redaction { places: vec![("/tmp/x".to_owned(), "[root]")], known: RefCell::default() }
    }

    #[test]
    fn what_differs_between_runs_is_named() {
        let rows = [
            ("01K9ABCDEFGHJKMNPQRSTVWXYZ and 01K9ABCDEFGHJKMNPQRSTVWXYA", "[id 1] and [id 2]"),
            ("held by pid 4711 (sh, since 2026-11-16 20:15:01)", "held by pid [pid] (sh, since [time])"),
            (r#"{"pid":12,"at":"2026-11-16T20:15:01.123Z"}"#, r#"{"pid":[pid],"at":"[time]"}"#),
            ("code 3 after 1.5 s, next run in 2 min 1 s", "code 3 after [duration], next run in [duration]"),
            ("free; ended 12, 13, 14", "free; ended [pid], [pid], [pid]"),
            ("/tmp/x/home (220 KiB on disk)", "[root]/home ([size] on disk)"),
            ("/tmp/x/one.db.new.12.3", "[root]/one.db.new.[pid].3"),
            ("ac39f71061ecbdc1-effffffc-394a-1b558-0", "[run 1]"),
            ("0ab3c7d2-0000-4000-8000-0123456789ab", "[boot]"),
        ];
        for (text, expected) in rows {
            assert_eq!(redaction().names(text), expected);
        }
    }

    #[test]
    fn what_is_the_same_in_all_runs_is_shown() {
        let same = [
            "exit 75",
            "not within 100 ms",
            "code 3",
            "\"fence\":2",
            "A_LONG_CONSTANT_NAME_OF_26_X",
            "1 MiB at most",
        ];
        for text in same {
            assert_eq!(redaction().names(text), text);
        }
    }

    #[test]
    fn a_table_is_aligned_whatever_the_width_of_its_pids() {
        let wide = "NAME  PID      WHY\na     1234567  runs for 3 s\nb     -\n";
        let narrow = "NAME  PID  WHY\na     12   runs for 20 ms\nb     -\n";
        let shown = "NAME  PID    WHY\na     [pid]  runs for [duration]\nb     -\n";
        assert_eq!((redaction().tables(wide).as_str(), redaction().tables(narrow).as_str()), (shown, shown));
        let crooked = "NAME  PID  WHY\na      12  runs\n";
        assert_ne!(redaction().tables(crooked), "NAME  PID    WHY\na     [pid]  runs\n");
    }
}
