//! The deadlines of all sessions. Waking the loop at the first one is the clock's task.

use pinfold_core::Boot;
use pinfold_store::SessionId;
use std::collections::{BTreeMap, BTreeSet};

/// The deadlines of all sessions, by time and by session.
#[derive(Default)]
pub(crate) struct Deadlines {
    due: BTreeSet<(Boot, SessionId)>,
    of: BTreeMap<SessionId, Boot>,
}

impl Deadlines {
    /// The first deadline.
    pub(crate) fn first(&self) -> Option<Boot> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Sets or clears the deadline of a session.
    pub(crate) fn set(&mut self, session: SessionId, at: Option<Boot>) {
        if let Some(old) = self.of.remove(&session) {
            self.due.remove(&(old, session));
        }
        if let Some(at) = at {
            self.of.insert(session, at);
            self.due.insert((at, session));
        }
    }

    /// Takes the sessions whose deadline has passed.
    pub(crate) fn take_due(&mut self, now: Boot) -> Vec<SessionId> {
        let mut taken = Vec::new();
        while let Some((at, session)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, session));
            self.of.remove(&session);
            taken.push(session);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_store::Ulid;

    fn session(n: u64) -> SessionId {
        SessionId(Ulid::new(n, 0))
    }

    #[test]
    fn only_what_is_due_is_taken_and_the_latest_word_on_a_session_counts() {
        let mut timer = Deadlines::default();
        timer.set(session(1), Some(Boot(3_600)));
        timer.set(session(2), Some(Boot(20)));
        timer.set(session(3), Some(Boot(10)));
        timer.set(session(3), None);
        assert_eq!(timer.first(), Some(Boot(20)));
        assert_eq!(timer.take_due(Boot(19)), []);
        assert_eq!(timer.take_due(Boot(20)), [session(2)]);
        timer.set(session(1), Some(Boot(5)));
        assert_eq!(timer.take_due(Boot(20)), [session(1)]);
        assert_eq!(timer.first(), None);
    }
}
