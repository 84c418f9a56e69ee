//! The numbers of changes: which session changed last, in the order in which changes became durable.
//!
//! Only the latest change of each session is kept. A client that reads from a number on gets every session
//! that changed since once, as it is now, and memory use does not grow with time. Removed sessions are
//! remembered up to a limit; a client that has not read for longer than that starts with a snapshot.

use super::session_view::SessionSnapshot;
use pinfold_store::SessionId;
use std::collections::BTreeMap;
use tokio::sync::watch;

/// How many removed sessions are remembered: more than anyone removes between two reads.
const MOST_REMOVED: usize = 1024;

/// What happened to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// Something about it is different.
    Changed,
    /// It was removed; its former name.
    Removed(String),
}

/// Changes with their numbers.
#[derive(Debug)]
pub(crate) struct Numbers {
    latest: watch::Sender<u64>,
    of: BTreeMap<SessionId, u64>,
    in_order: BTreeMap<u64, (SessionId, ChangeKind)>,
    removed: usize,
    /// Changes up to this number may have been forgotten.
    forgotten: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers {
            latest: watch::Sender::new(0),
            of: BTreeMap::new(),
            in_order: BTreeMap::new(),
            removed: 0,
            forgotten: 0,
        }
    }
}

impl Numbers {
    /// Gives a change of a session its number.
    pub(crate) fn note(&mut self, id: SessionId, became: ChangeKind) {
        let number = self.latest() + 1;
        if let Some(before) = self.of.insert(id, number) {
            self.in_order.remove(&before);
        }
        if became != ChangeKind::Changed {
            self.of.remove(&id);
            self.removed += 1;
        }
        self.in_order.insert(number, (id, became));
        if self.removed > MOST_REMOVED {
            self.forget_first_removed();
        }
        self.latest.send_replace(number);
    }

    fn forget_first_removed(&mut self) {
        let removed = self.in_order.iter().find(|(_, (_, became))| *became != ChangeKind::Changed);
        if let Some(number) = removed.map(|(number, _)| *number) {
            self.in_order.remove(&number);
            self.removed -= 1;
            self.forgotten = number;
        }
    }

    /// The number of the latest change.
    pub(crate) fn latest(&self) -> u64 {
        *self.latest.borrow()
    }

    /// A watch on the number of the latest change.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    /// The changes after a number, in order; `None` if they are no longer known or the number was never
    /// given.
    pub(crate) fn after(&self, number: u64) -> Option<impl Iterator<Item = (u64, SessionId, &ChangeKind)>> {
        if number < self.forgotten || number > self.latest() {
            return None;
        }
        let after = self.in_order.range(number + 1..);
        Some(after.map(|(number, (id, became))| (*number, *id, became)))
    }
}

/// What is published to clients that show sessions or wait for them.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    /// Changes that are durable.
    pub(crate) changes: Numbers,
    /// What is measured or reported of live runs and not stored.
    pub(crate) live: Numbers,
}

/// What a decision changes for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeedNews {
    /// A change of the session.
    Change,
    /// Something about the live run.
    Live,
    /// Nothing that is shown.
    Nothing,
}

impl Feed {
    /// Tells those who watch one session how it stands and numbers the change for those who read all
    /// sessions: in one step, so that both hear of the same changes in the same order.
    pub(crate) fn publish(
        &mut self,
        id: SessionId,
        watched: &watch::Sender<SessionSnapshot>,
        now: SessionSnapshot,
        news: FeedNews,
    ) {
        let changed = watched.send_if_modified(|seen| std::mem::replace(seen, now) != now);
        self.note(id, if changed { FeedNews::Change } else { news });
    }

    pub(crate) fn note(&mut self, id: SessionId, news: FeedNews) {
        match news {
            FeedNews::Change => self.changes.note(id, ChangeKind::Changed),
            FeedNews::Live => self.live.note(id, ChangeKind::Changed),
            FeedNews::Nothing => {}
        }
    }

    /// A session was removed.
    pub(crate) fn removed(&mut self, id: SessionId, name: &str) {
        self.changes.note(id, ChangeKind::Removed(name.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_store::Ulid;

    fn id(number: u128) -> SessionId {
        SessionId(Ulid::new(0, number))
    }

    fn read(numbers: &Numbers, after: u64) -> Option<Vec<(u64, SessionId)>> {
        Some(numbers.after(after)?.map(|(number, id, _)| (number, id)).collect())
    }

    #[test]
    fn a_session_is_told_once_however_often_it_changed() {
        let mut numbers = Numbers::default();
        for changed in [1, 2, 1, 1] {
            numbers.note(id(changed), ChangeKind::Changed);
        }
        assert_eq!(read(&numbers, 0), Some(vec![(2, id(2)), (4, id(1))]));
        assert_eq!(read(&numbers, 2), Some(vec![(4, id(1))]));
        assert_eq!(read(&numbers, 4), Some(vec![]));
        assert_eq!(numbers.in_order.len(), 2, "the room does not grow with the changes");
    }

    #[test]
    fn a_number_that_never_was_is_not_answered_as_if_nothing_had_changed() {
        let mut numbers = Numbers::default();
        numbers.note(id(1), ChangeKind::Changed);
        assert_eq!(read(&numbers, 2), None);
    }

    #[test]
    fn a_removed_session_is_told_as_removed_and_forgotten_in_the_end() {
        let mut numbers = Numbers::default();
        numbers.note(id(1), ChangeKind::Changed);
        numbers.note(id(1), ChangeKind::Removed("a".into()));
        let told: Vec<_> = numbers.after(0).unwrap().map(|(number, _, became)| (number, became)).collect();
        assert_eq!(told, [(2, &ChangeKind::Removed("a".into()))]);
        for other in 0..MOST_REMOVED as u128 {
            numbers.note(id(10 + other), ChangeKind::Removed("b".into()));
        }
        assert_eq!(read(&numbers, 1), None, "its end is not known any more");
        assert_eq!(read(&numbers, 2).map(|rest| rest.len()), Some(MOST_REMOVED));
        numbers.note(id(2), ChangeKind::Changed);
        assert_eq!(
            read(&numbers, 2).map(|rest| rest.len()),
            Some(MOST_REMOVED + 1),
            "no more than has to be"
        );
    }

    #[test]
    fn what_is_new_to_whoever_watches_a_session_has_a_number() {
        let session = pinfold_core::Session::new(pinfold_core::Spec::new(pinfold_core::Mode::OnDemand));
        let now = SessionSnapshot {
            state: session.state(),
            runs: session.runs(),
            unended: false,
            takeover: None,
            guest: None,
            connected: false,
        };
        let (watched, mut seen) = watch::channel(now);
        let mut feed = Feed::default();
        feed.publish(id(1), &watched, now, FeedNews::Nothing);
        assert_eq!((feed.changes.latest(), seen.has_changed().unwrap()), (0, false));
        feed.publish(id(1), &watched, SessionSnapshot { connected: true, ..now }, FeedNews::Nothing);
        assert_eq!((feed.changes.latest(), seen.borrow_and_update().connected), (1, true));
        feed.publish(id(1), &watched, SessionSnapshot { connected: true, ..now }, FeedNews::Change);
        assert_eq!((feed.changes.latest(), seen.has_changed().unwrap()), (2, false), "not all is watched");
    }

    #[test]
    fn whoever_watches_hears_of_the_latest_number() {
        let mut feed = Feed::default();
        let (changes, live) = (feed.changes.watch(), feed.live.watch());
        feed.note(id(1), FeedNews::Nothing);
        assert!(!changes.has_changed().unwrap() && !live.has_changed().unwrap());
        feed.note(id(1), FeedNews::Live);
        assert!(!changes.has_changed().unwrap() && live.has_changed().unwrap());
        feed.note(id(1), FeedNews::Change);
        assert_eq!(*changes.borrow(), 1);
    }
}
