//! Numbered rows that one task fetches and many read: the latest of them, as long as there is a reader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How many rows are kept for slow readers; a slower one fetches for itself what it has missed.
const MOST: usize = 512;

/// The latest rows.
pub(crate) struct RowRing<T> {
    rows: Mutex<Rows<T>>,
    latest: watch::Sender<u64>,
}

struct Rows<T> {
    latest: VecDeque<(u64, Arc<T>)>,
    /// Every row after this number is here; `None` while no task fetches.
    since: Option<u64>,
    fetched: Fetched,
}

/// Whether a task fetches rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetched {
    Already,
    /// The caller is the first reader and has to start one.
    NotYet,
}

impl<T> Default for RowRing<T> {
    fn default() -> Self {
        let rows = Rows { latest: VecDeque::new(), since: None, fetched: Fetched::NotYet };
        RowRing { rows: Mutex::new(rows), latest: watch::Sender::new(0) }
    }
}

impl<T> RowRing<T> {
    /// Adds a reader: the receiver tells when there is more, and counts as a reader while it lives.
    pub(crate) fn join(&self) -> (watch::Receiver<u64>, Fetched) {
        let mut rows = self.rows();
        (self.latest.subscribe(), std::mem::replace(&mut rows.fetched, Fetched::Already))
    }

    /// Begins to fetch: the rows after this number will be here.
    pub(crate) fn begin(&self, since: u64) {
        let mut rows = self.rows();
        rows.latest.clear();
        rows.since = Some(since);
        drop(rows);
        self.latest.send_replace(since);
    }

    /// The number of the latest row, or the one that fetching began with.
    pub(crate) fn latest(&self) -> u64 {
        *self.latest.borrow()
    }

    pub(crate) fn push(&self, number: u64, row: T) {
        let mut rows = self.rows();
        rows.latest.push_back((number, Arc::new(row)));
        if rows.latest.len() > MOST {
            let first = rows.latest.pop_front().map(|(number, _)| number);
            rows.since = first.or(rows.since);
        }
        drop(rows);
        self.latest.send_replace(number);
    }

    /// The rows after a number; `None` if some of them are not here.
    pub(crate) fn after(&self, number: u64) -> Option<Vec<(u64, Arc<T>)>> {
        let rows = self.rows();
        if rows.since.is_none_or(|since| number < since) {
            return None;
        }
        let first = rows.latest.partition_point(|(at, _)| *at <= number);
        Some(rows.latest.range(first..).cloned().collect())
    }

    /// Returns when there is no reader.
    pub(crate) async fn unread(&self) {
        self.latest.closed().await;
    }

    /// Ends the fetching unless a reader has come meanwhile; returns whether it has ended.
    pub(crate) fn end_if_unread(&self) -> bool {
        let mut rows = self.rows();
        let over = self.latest.receiver_count() == 0;
        if over {
            *rows = Rows { latest: VecDeque::new(), since: None, fetched: Fetched::NotYet };
        }
        over
    }

    fn rows(&self) -> MutexGuard<'_, Rows<T>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(ring: &RowRing<u64>, after: u64) -> Option<Vec<u64>> {
        Some(ring.after(after)?.into_iter().map(|(number, _)| number).collect())
    }

    #[test]
    fn the_first_reader_sees_to_it_that_rows_are_fetched_and_the_last_one_ends_it() {
        let ring = RowRing::<u64>::default();
        let (first, fetched) = ring.join();
        assert_eq!(fetched, Fetched::NotYet);
        let (second, fetched) = ring.join();
        assert_eq!(fetched, Fetched::Already);
        drop(first);
        assert!(!ring.end_if_unread());
        drop(second);
        assert!(ring.end_if_unread());
        assert_eq!(ring.join().1, Fetched::NotYet);
    }

    #[test]
    fn nothing_is_said_of_rows_from_before_the_fetching() {
        let ring = RowRing::default();
        assert_eq!(numbers(&ring, 7), None);
        ring.begin(7);
        ring.push(8, 8);
        ring.push(12, 12);
        assert_eq!(numbers(&ring, 6), None, "7 may have been a row");
        assert_eq!(numbers(&ring, 7), Some(vec![8, 12]));
        assert_eq!(numbers(&ring, 9), Some(vec![12]));
        assert_eq!(numbers(&ring, 12), Some(vec![]));
    }

    #[test]
    fn a_reader_who_is_too_slow_hears_that_it_has_missed_something() {
        let ring = RowRing::default();
        ring.begin(0);
        (1..=MOST as u64 + 1).for_each(|number| ring.push(number, number));
        assert_eq!(numbers(&ring, 0), None);
        assert_eq!(numbers(&ring, 1).map(|rows| rows.len()), Some(MOST));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn readers_are_woken_when_the_fetching_begins_and_by_each_row() {
        let ring = RowRing::default();
        let (mut reader, _) = ring.join();
        ring.begin(3);
        reader.changed().await.unwrap();
        ring.push(4, 4);
        reader.changed().await.unwrap();
        assert_eq!(*reader.borrow(), 4);
    }
}
