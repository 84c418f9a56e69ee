//! Shelves: rows that were inserted one after another share one, and each of their words is prefixed with its mark.
//!
//! FTS5 reads everything there is for a prefix before it returns the first row, and merges everything there
//! is for a word in one go. With a mark before each word both are limited to one shelf, however much is
//! stored. A search goes from the newest shelf to the oldest, and stops when it has enough.

use super::SearchQuery;
use crate::ulid::SessionId;

/// Rows per shelf: with fewer, a rare word has more places to look at; with more, a common word has more to read.
const ROWS: i64 = 2048;

/// A shelf, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shelf(i64);

impl Shelf {
    /// Returns the shelf of a row.
    pub(super) fn of(row: i64) -> Shelf {
        Shelf(row / ROWS)
    }

    /// Returns this shelf and all older ones.
    pub(super) fn and_older(self) -> impl Iterator<Item = Shelf> {
        (0..=self.0).rev().map(Shelf)
    }

    /// Returns the prefix of each word on it: always the same length, so that no word is taken for the
    /// beginning of another.
    pub(super) fn mark(self) -> String {
        format!("{:06x}", self.0)
    }

    /// Returns the id of a session, as it is written on this shelf.
    pub(super) fn session(self, id: SessionId) -> String {
        format!("{}{}", self.mark(), id)
    }

    /// Returns the query for the rows of one session on this shelf.
    pub(super) fn of_session(self, id: SessionId) -> String {
        format!("session : \"{}\"", self.session(id))
    }

    /// Returns the query for this shelf; `None` if nothing can be found.
    pub(super) fn question(self, wanted: &SearchQuery) -> Option<ShelfQuery> {
        let (words, longest) = wanted.words.query(&self.mark())?;
        let longest = longest.map(|longest| format!("text : {longest}"));
        let Some(within) = &wanted.within else {
            return Some(ShelfQuery {
                all: format!("text : ({words})"),
                first: longest.into_iter().collect(),
            });
        };
        let sessions: Vec<String> = within.iter().map(|id| format!("\"{}\"", self.session(*id))).collect();
        let sessions = (!sessions.is_empty()).then(|| format!("session : ({})", sessions.join(" OR ")))?;
        let all = format!("{sessions} AND text : ({words})");
        Some(ShelfQuery { all, first: [Some(sessions), longest].into_iter().flatten().collect() })
    }
}

/// A query for FTS5, and what must exist for it to have a result: FTS5 reads everything that each part of a
/// query finds, even if another part finds nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShelfQuery {
    pub(super) all: String,
    pub(super) first: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::SearchWords;
    use crate::ulid::Ulid;

    fn asked(text: &str, within: Option<&[u64]>) -> Option<ShelfQuery> {
        let within = within.map(|ids| ids.iter().map(|id| SessionId(Ulid::new(*id, 0))).collect());
        Shelf(0x1a).question(&SearchQuery { words: SearchWords::new(text), within, limit: 20 })
    }

    #[test]
    fn rows_that_follow_each_other_stand_together_and_the_newest_comes_first() {
        assert_eq!(Shelf::of(ROWS - 1), Shelf(0));
        assert_eq!(Shelf::of(ROWS), Shelf(1));
        assert_eq!(Shelf(2).and_older().collect::<Vec<_>>(), [Shelf(2), Shelf(1), Shelf(0)]);
    }

    #[test]
    fn a_rare_word_is_looked_for_before_all_of_them() {
        let question = asked("a zebra b", None).unwrap();
        assert_eq!(question.all, "text : (\"00001aa\" * AND \"00001azebra\" * AND \"00001ab\" *)");
        assert_eq!(question.first, ["text : \"00001azebra\" *"]);
        assert_eq!(asked("!", None), None);
        assert_eq!(asked("a", Some(&[])), None);
        assert_eq!(asked("zebra", None).unwrap().first, <[&str; 0]>::default(), "it is the question itself");
        let [session, word] = &asked("a bc", Some(&[7])).unwrap().first[..] else { panic!("two of them") };
        assert!(session.starts_with("session : (\"00001a0"), "{session}");
        assert_eq!(word, "text : \"00001abc\" *");
    }
}
