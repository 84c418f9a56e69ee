//! What happens to a batch that did not become durable.
//!
//! If the disk does not take it, the writer waits and reports a trouble (`health.rs`). A batch that
//! contradicts what is stored is our bug, or another program wrote to the database: its session begins again
//! from what is stored, as it would with a new daemon. All other sessions go on.

use super::{Engine, GoesOn, WhyNot};
use crate::engine::feed::FeedNews;
use crate::engine::input::LoopInput;
use crate::engine::running::RunMemory;
use crate::engine::session::Tracked;
use crate::ports::journal::Remembered;
use pinfold_core::event::Machine;
use pinfold_core::{Event, EventKind};
use pinfold_store::{Batch, CommitError, DamagedSession, Loaded, SessionId, Trouble};
use std::time::Duration;
use tracing::error;

/// After this many contradictions in a row another attempt would fail too.
const BEGINNINGS: u32 = 3;

impl Engine {
    pub(super) fn not_durable(&mut self, id: Option<SessionId>, error: &CommitError) {
        let taken_back = id.is_some_and(|id| self.take_back(id, error));
        match error {
            _ if taken_back => {}
            CommitError::WriterGone => self.troubled(Trouble::Ended),
            // It was not to wait for the disk, or the store is being closed; the cause was reported as a
            // trouble.
            CommitError::StorageFull { .. }
            | CommitError::StorageFailed { .. }
            | CommitError::Damaged { .. }
            | CommitError::Busy { .. }
            | CommitError::Gone { .. } => {
                error!("not recorded: {}", crate::error_chain::chain(error));
            }
            CommitError::NameTaken { .. }
            | CommitError::NoSuchSession { .. }
            | CommitError::NoSuchMessage { .. }
            | CommitError::MessageWithoutText { .. }
            | CommitError::RunWithoutId { .. }
            | CommitError::StaleGeneration { .. }
            | CommitError::BuildsOnFailed { .. }
            | CommitError::Contradiction { .. } => match id {
                Some(id) => self.begin_again(id, error),
                None => error!("not recorded: {}", crate::error_chain::chain(error)),
            },
        }
    }

    /// Takes back a new session that could not be recorded; returns whether it was one.
    fn take_back(&mut self, id: SessionId, error: &CommitError) -> bool {
        if !self.sessions.get(&id).is_some_and(|tracked| tracked.unborn) {
            return false;
        }
        let Some(tracked) = self.let_go(id) else { return false };
        self.ports.files.remove_empty(self.home.session(id));
        self.forget_given(&tracked.definition);
        let refusal = self.handle.refusal();
        let why = refusal.unwrap_or_else(|| WhyNot::NotRecorded {
            name: tracked.name.clone(),
            problem: crate::error_chain::chain(error),
        });
        answer_all(*tracked, &why);
        true
    }

    /// Drops a session from memory; its shim then listens for the next daemon.
    fn let_go(&mut self, id: SessionId) -> Option<Box<Tracked>> {
        let tracked = self.sessions.remove(&id)?;
        self.names.retain(|_, owner| *owner != id);
        self.wake_at(id, None);
        self.early.remove(&id);
        if let Some(run) = tracked.run.as_ref().filter(|run| run.memory != RunMemory::Unwatched) {
            self.ports.memory.forget((id, run.number));
        }
        Some(tracked)
    }

    /// What is in memory has not happened: the session begins again from what is stored and what is found of
    /// it.
    fn begin_again(&mut self, id: SessionId, error: &CommitError) {
        // Inputs that arrived before recovery had looked at the session wait for the look ordered now.
        let early = self.early.remove(&id).unwrap_or_default();
        let Some(mut old) = self.let_go(id) else { return };
        // This link ends here, so that the shim accepts the next one.
        old.shim = None;
        let problem = crate::error_chain::chain(error);
        error!(session = old.name, %id, "it contradicts what is stored: {problem}");
        if let Err(why) = self.read_again(id, old.beginnings) {
            let problem = why.unwrap_or_else(|| problem.clone());
            self.leave_alone(DamagedSession { id: id.to_string(), name: old.name.clone(), problem });
        }
        if let Some(waiting) = self.early(id) {
            waiting.extend(early);
        }
        self.go_on_from(id, *old, &problem);
    }

    /// Reads a session from the store, unless that was done too often; the error says what is wrong with it,
    /// if known.
    fn read_again(&mut self, id: SessionId, beginnings: u32) -> Result<(), Option<String>> {
        if beginnings >= BEGINNINGS {
            return Err(None);
        }
        match self.ports.journal.session(id).map_err(Some)? {
            Some(Remembered { loaded: Loaded::Whole(stored), run }) => {
                self.enter(*stored, run);
                Ok(())
            }
            Some(Remembered { loaded: Loaded::Damaged(damaged), .. }) => Err(Some(damaged.problem)),
            None => Err(Some("it is not in the database any more".to_owned())),
        }
    }

    /// Hands over what is not stored: who waits, who is connected, and what is still being committed.
    fn go_on_from(&mut self, id: SessionId, mut old: Tracked, problem: &str) {
        let again = self.sessions.contains_key(&id);
        let name = old.name.clone();
        let text = format!("session `{}` could not be recorded: {problem}", old.name);
        let goes_on = if again { GoesOn::Again } else { GoesOn::LeftAlone };
        let why = WhyNot::Contradicted { name: old.name.clone(), problem: problem.to_owned(), goes_on };
        let consumers: Vec<_> = old.session.connected().collect();
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.beginnings = old.beginnings + 1;
            (tracked.reloaded, tracked.terminal) = (true, old.terminal);
            tracked.held_up = old.held_up.take();
            tracked.waiters = std::mem::take(&mut old.waiters);
            tracked.seen = old.seen.clone();
            tracked.attaching = std::mem::take(&mut old.attaching);
            let joined = consumers.into_iter().map(|(consumer, kind)| LoopInput::Happened {
                id,
                event: Box::new(Event::ConsumerJoined { consumer, kind }),
                facts: Box::default(),
                reply: None,
            });
            self.early.entry(id).or_default().extend(joined);
            self.feed.note(id, FeedNews::Change);
            self.look_at(id, Machine::Same, Duration::ZERO);
        }
        answer_all(old, &why);
        if !again {
            self.feed.removed(id, &name);
            self.look_for_strangers();
        }
        let mut batch = Batch::new();
        let event =
            self.daemon_event(if again { EventKind::BegunAgain } else { EventKind::LeftAlone }, &text);
        batch.event(pinfold_store::AuditEvent { session: Some(id), ..event });
        self.commit(None, batch);
    }
}

fn answer_all(tracked: Tracked, why: &WhyNot) {
    let replies = tracked.pending.into_iter().filter_map(|pending| pending.reply);
    replies.for_each(|reply| reply.refuse(why.clone()));
}
