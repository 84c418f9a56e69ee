//! Decisions as the loop makes them, kept until it is known whether they took effect.
//!
//! A decision that must be recorded counts when its batch is durable; one that dies with its daemon, or whose
//! batch was refused, was never made. One that needs no record counts once everything before it does.

use super::case::may_be_early;
use super::check::Violation;
use super::world::SESSIONS;
use pinfold_core::{Change, Decision, Event, Now, Session};
use pinfold_store::SessionId;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// One decision, with what it was made from.
pub(in crate::engine) struct Witnessed {
    pub(in crate::engine) id: SessionId,
    /// Whether recovery has not looked at the session yet.
    pub(in crate::engine) early: bool,
    pub(in crate::engine) before: Session,
    pub(in crate::engine) event: Event,
    pub(in crate::engine) decision: Decision,
    pub(in crate::engine) after: Session,
    pub(in crate::engine) now: Now,
}

/// Called with every decision as it is made.
pub(in crate::engine) type Witness = Box<dyn FnMut(Witnessed)>;

impl Witnessed {
    fn is_recorded(&self) -> bool {
        self.decision.changes.iter().any(Change::is_durable)
    }
}

/// All decisions that were made and have not taken effect.
#[derive(Default)]
pub(super) struct Decisions {
    pub(super) ids: Vec<SessionId>,
    made: Rc<RefCell<Vec<Witnessed>>>,
    waiting: [VecDeque<Witnessed>; SESSIONS],
    /// Set from a refused batch until the session begins again.
    refused: [bool; SESSIONS],
}

impl Decisions {
    pub(super) fn witness(&self) -> Witness {
        let made = Rc::clone(&self.made);
        Box::new(move |witnessed| made.borrow_mut().push(witnessed))
    }

    /// Moves the new decisions into the queues of the sessions.
    pub(super) fn sort(&mut self) -> Result<(), Violation> {
        for witnessed in self.made.borrow_mut().drain(..) {
            let Some(session) = self.ids.iter().position(|id| *id == witnessed.id) else { continue };
            if witnessed.early && !may_be_early(&witnessed.event) {
                let event = &witnessed.event;
                return Err(format!("session {session}: {event:?} was handled before recovery had looked"));
            }
            self.waiting[session].push_back(witnessed);
        }
        Ok(())
    }

    /// The same for what a daemon decides before recovery: noted stops.
    pub(super) fn sort_early(&mut self) -> Result<(), Violation> {
        self.made.borrow_mut().iter_mut().for_each(|witnessed| witnessed.early = false);
        self.sort()
    }

    /// The next decision that needs no record, if all before it have taken effect.
    pub(super) fn next_unrecorded(&mut self, session: usize) -> Option<Witnessed> {
        loop {
            let next = self.waiting[session].pop_front_if(|next| !next.is_recorded())?;
            if !self.refused[session] {
                return Some(next);
            }
        }
    }

    /// The next decision, which is recorded now.
    pub(super) fn next_recorded(&mut self, session: usize) -> Option<Witnessed> {
        self.waiting[session].pop_front()
    }

    /// The batch of the next decision was refused: neither it nor anything that builds on it was made.
    pub(super) fn refuse(&mut self, session: usize) {
        self.refused[session] = true;
        while self.next_unrecorded(session).is_some() {}
        self.waiting[session].pop_front();
    }

    pub(super) fn is_refused(&self, session: usize) -> bool {
        self.refused[session]
    }

    /// The session began again from what is stored.
    pub(super) fn begin_again(&mut self, session: usize) {
        while self.next_unrecorded(session).is_some() {}
        self.refused[session] = false;
    }

    /// The daemon died.
    pub(super) fn forget(&mut self) {
        self.made.borrow_mut().clear();
        self.waiting.iter_mut().for_each(VecDeque::clear);
        self.refused = [false; SESSIONS];
    }
}
