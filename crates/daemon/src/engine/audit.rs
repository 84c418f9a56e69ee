//! Records that verbs wrote while they ended runs or locks without a daemon: taken into the events.

use super::Engine;
use crate::engine::input::LoopInput;
use crate::offline_audit::{self, AuditRecord, AuditState};
use pinfold_core::EventKind;
use pinfold_store::{Outcome, SessionId};
use std::sync::Arc;
use tokio::sync::oneshot;
use tracing::warn;

/// Whether records of verbs are on their way to the disk.
#[derive(Debug, Default)]
pub(super) enum Audit {
    #[default]
    No,
    /// They are; whether more were asked for meanwhile, and who is told when they are durable.
    UnderWay { again: bool, waiting: Vec<oneshot::Sender<()>> },
}

impl Engine {
    /// Takes in what verbs wrote down while no daemon ran.
    ///
    /// The file is short and is read at once: a verb that is about to end a run writes that down first, and
    /// the end must not be judged without it. A holder of the file's lock is not waited for here: what the
    /// file says of runs counts at once, and the records are taken when the lock is free.
    pub(crate) fn take_audit(&mut self) {
        // Verbs cannot append while records are on their way to the disk: the file stays locked until they
        // are durable.
        if let Audit::UnderWay { again, .. } = &mut self.audit {
            *again = true;
            return;
        }
        let left = match offline_audit::read(&self.home.audit()) {
            Ok(AuditState::Nothing) => return,
            Ok(AuditState::Records(left)) => left,
            Ok(AuditState::Busy(events)) => {
                for told in &events {
                    let session = self.session_of(told);
                    self.note_unlocked(session, told);
                }
                return self.take_audit_when_free();
            }
            Err(errno) => return warn!("the audit of verbs cannot be read: {errno}"),
        };
        let mut batch = pinfold_store::Batch::new();
        for told in &left.events {
            let session = self.session_of(told);
            self.note_unlocked(session, told);
            batch.event(pinfold_store::AuditEvent { session, ..told.event.clone() });
        }
        // What cannot be recorded now stays in the file and is taken later.
        if self.ports.journal.trouble().holds_up() {
            return;
        }
        batch.fail_if_held_up();
        self.audit = Audit::UnderWay { again: false, waiting: Vec::new() };
        let handle = self.handle.clone();
        let told = move |outcome: Outcome| {
            if outcome.is_ok()
                && let Err(errno) = left.settle()
            {
                warn!("the audit of verbs will be told twice: {errno}");
            }
            // Tell the loop before the file is unlocked, so that what a verb writes next is read as new.
            handle.tell(LoopInput::AuditStored { outcome });
            drop(left);
        };
        self.ports.journal.commit(batch, None, Box::new(told));
    }

    /// Notes that a verb is about to end a run, if a record says so.
    fn note_unlocked(&mut self, session: Option<SessionId>, told: &AuditRecord) {
        let unlocked = told.event.run.filter(|_| told.event.kind == EventKind::Unlocked);
        if let (Some(run), Some(tracked)) = (unlocked, session.and_then(|id| self.sessions.get_mut(&id))) {
            let ended = tracked.latest.filter(|(_, name)| *name == run);
            if let Some(run) = ended.and_then(|(number, _)| tracked.live(number)) {
                run.unlocked = true;
            }
        }
    }

    /// Starts one thread that waits for the file's lock.
    fn take_audit_when_free(&mut self) {
        if self.audit_awaited.strong_count() > 0 {
            return;
        }
        let (path, handle, waits) = (self.home.audit(), self.handle.clone(), Arc::new(()));
        self.audit_awaited = Arc::downgrade(&waits);
        let then = move || {
            // Dropped first, so that another wait can begin if the file is locked again.
            drop(waits);
            handle.tell(LoopInput::Audited);
        };
        if let Err(error) = offline_audit::when_free(path, then) {
            warn!("the audit of verbs cannot be waited for: {error}");
        }
    }

    pub(super) fn audit_stored(&mut self, outcome: Outcome) {
        let audit = std::mem::take(&mut self.audit);
        self.committed(None, outcome);
        let Audit::UnderWay { again, waiting } = audit else { return };
        if again {
            self.take_audit();
        }
        waiting.into_iter().for_each(|done| self.tell_when_audited(done));
    }

    /// Tells the caller when no records of verbs are on their way to the disk.
    pub(super) fn tell_when_audited(&mut self, done: oneshot::Sender<()>) {
        match &mut self.audit {
            Audit::UnderWay { waiting, .. } => waiting.push(done),
            Audit::No => _ = done.send(()),
        }
    }

    /// Which session a record is about: a run id is certain, a name only if no other home has a session of
    /// that name.
    fn session_of(&self, told: &AuditRecord) -> Option<SessionId> {
        let Some(run) = told.event.run else {
            return told.session.as_ref().and_then(|name| self.names.get(name)).copied();
        };
        let live = self.sessions.values().find(|tracked| tracked.latest.is_some_and(|(_, id)| id == run));
        live.map(|tracked| tracked.id).or_else(|| self.ports.journal.session_of_run(run))
    }
}
