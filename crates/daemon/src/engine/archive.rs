//! The archive: what purge takes, what comes back, and what is deleted for good.

use super::{Engine, WhyNot};
use crate::caller::By;
use crate::crash;
use crate::engine::command::Removal;
use crate::engine::input::{Forgotten, LoopInput};
use crate::engine::reply::ReplyHandle;
use crate::engine::session::Tracked;
use pinfold_api::object::Removed;
use pinfold_core::event::Ask;
use pinfold_core::{Event, EventKind, State};
use pinfold_store::{AuditEvent, Batch, Facts, SessionId};
use serde_json::json;
use std::sync::Arc;
use tracing::warn;

impl Engine {
    /// The archived session with this name or id prefix; if several have the name, the latest.
    pub(super) fn find_archived(&self, wanted: &str) -> Result<SessionId, WhyNot> {
        let archived = |tracked: &&Tracked| tracked.session.life().is_retired() && tracked.name == wanted;
        match self
            .sessions
            .values()
            .map(Box::as_ref)
            .filter(archived)
            .max_by_key(|tracked| (tracked.created_at, tracked.id))
        {
            Some(tracked) => Ok(tracked.id),
            None => self.find(wanted),
        }
    }

    /// Brings a session back, parked. Checks its name in the same step, so two sessions cannot take it.
    pub(super) fn restore(&mut self, id: SessionId, by: Option<&By>, reply: ReplyHandle) {
        if let Err(why) = self.restorable(id) {
            return reply.refuse(why);
        }
        if self.has_lost_parent(id) {
            self.forget_parent(id);
        }
        let facts = Facts { by: by.map(|by| by.words()), ..Facts::default() };
        self.happened(id, &Event::Asked(Ask::Restore), &facts, Some(reply));
    }

    fn restorable(&self, id: SessionId) -> Result<(), WhyNot> {
        self.can_record()?;
        let name = &self.sessions.get(&id).ok_or(WhyNot::Gone)?.name;
        match self.names.get(name) {
            Some(other) if *other != id => Err(WhyNot::NameTaken { name: name.clone() }),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether its record names a parent that does not exist.
    pub(super) fn has_lost_parent(&self, id: SessionId) -> bool {
        let Some(tracked) = self.sessions.get(&id) else { return false };
        let definition = &tracked.definition;
        let damaged = definition
            .parent
            .as_ref()
            .is_some_and(|parent| self.damaged.values().any(|damaged| damaged.name == *parent));
        match definition.parent_id {
            Some(parent) => !self.sessions.contains_key(&parent) && !damaged,
            None => false,
        }
    }

    /// A person restores it without its former parent.
    fn forget_parent(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        tracked.amend(|definition| (definition.parent, definition.parent_id) = (None, None));
        let mut batch = Batch::new();
        batch.define(id, &tracked.stored_definition());
        self.commit(None, batch);
    }

    /// A session whose parent is gone is archived once, with the reason.
    pub(super) fn archive_orphan(&mut self, id: SessionId) {
        let archived = self.sessions.get(&id).is_none_or(|tracked| tracked.session.life().is_retired());
        if archived || !self.has_lost_parent(id) {
            return;
        }
        let parent = self.sessions.get(&id).and_then(|tracked| tracked.definition.parent.clone());
        let why = format!("its parent `{}` is gone", parent.unwrap_or_default());
        let facts = Facts { why: Some(why), ..Facts::default() };
        self.happened(id, &Event::Asked(Ask::Archive), &facts, None);
    }

    /// Deletes an archived session for good and reports what was deleted. The record goes last, so a deletion
    /// that is killed half-way is started again.
    pub(super) fn remove(&mut self, id: SessionId, by: Option<Arc<By>>, done: Removal) {
        if self.is_leaving(id) {
            return self.removing.push((id, by, done));
        }
        if let Err(why) = self.removable(id) {
            _ = done.send(Err(why));
            return;
        }
        let (folder, listen) = (self.home.session(id), self.home.shim_socket(id));
        let handle = self.handle.clone();
        let told = move |deleted| handle.tell(LoopInput::FilesDeleted { id, deleted, by, done });
        self.ports.files.delete(folder, listen, Box::new(told));
    }

    pub(super) fn files_deleted(
        &mut self,
        id: SessionId,
        deleted: Result<u64, String>,
        by: Option<&By>,
        done: Removal,
    ) {
        let deleted = deleted.map_err(|problem| WhyNot::NotDeleted { problem });
        // It may have been restored, or removed by another client, while its files were deleted.
        match deleted.and_then(|bytes| Ok(Removed { bytes, ..self.removable(id)? })) {
            Ok(removed) => self.forget(id, removed, by, done),
            Err(why) => _ = done.send(Err(why)),
        }
    }

    /// Whether a session is archived but its shim has not left yet, which takes moments.
    fn is_leaving(&self, id: SessionId) -> bool {
        let leaving =
            |tracked: &Tracked| tracked.session.state() == State::Archived && !self.at_rest(tracked);
        self.sessions.get(&id).is_some_and(|tracked| leaving(tracked))
    }

    /// Retries removals that waited for a shim to leave.
    pub(super) fn remove_what_rests(&mut self) {
        // Those not yet at rest queue themselves again.
        for (id, by, done) in std::mem::take(&mut self.removing) {
            self.remove(id, by, done);
        }
    }

    fn removable(&self, id: SessionId) -> Result<Removed, WhyNot> {
        self.can_record()?;
        let Some(tracked) = self.sessions.get(&id) else { return Err(WhyNot::Gone) };
        let name = &tracked.name;
        if tracked.session.state() != State::Archived || !self.at_rest(tracked) {
            return Err(WhyNot::NotArchived { name: name.clone(), state: tracked.session.state().word() });
        }
        let running = |other: &&Tracked| other.session.live_run().is_some();
        let running: Vec<String> =
            self.children(id).filter(running).map(|child| child.name.clone()).collect();
        if !running.is_empty() {
            return Err(WhyNot::ChildrenRun { name: name.clone(), running });
        }
        let inbox = tracked.session.inbox();
        let (settled, failed) = inbox.settled();
        // No message has its turn, since no run lives.
        let messages = settled + failed + inbox.queued() as u64;
        let runs = tracked.session.runs().count;
        Ok(Removed { id: id.to_string(), name: name.clone(), messages, runs, bytes: 0 })
    }

    /// The child sessions of this one.
    pub(super) fn children(&self, id: SessionId) -> impl Iterator<Item = &Tracked> {
        self.sessions
            .values()
            .map(Box::as_ref)
            .filter(move |tracked| tracked.definition.parent_id == Some(id))
    }

    fn forget(&mut self, id: SessionId, removed: Removed, by: Option<&By>, done: Removal) {
        let mut batch = Batch::new();
        let data = json!({ "messages": removed.messages, "runs": removed.runs, "bytes": removed.bytes });
        let mut data = data.as_object().cloned().unwrap_or_default();
        data.extend(by.map(|by| ("by".to_owned(), by.words())));
        let (kind, why) = (EventKind::Removed, "a person removed it".to_owned());
        let at = self.ports.clock.wall();
        batch.event(AuditEvent { at, session: Some(id), run: None, kind, why, data });
        batch.remove(id);
        batch.wipe();
        self.wake_at(id, None);
        let gone = self.sessions.remove(&id);
        self.feed.removed(id, &removed.name);
        let (values, handle) = (gone.and_then(|tracked| tracked.definition.env.file()), self.handle.clone());
        let told = move |outcome| {
            handle.tell(LoopInput::Forgotten(Box::new(Forgotten { removed, values, outcome, done })));
        };
        self.ports.journal.commit(batch, None, Box::new(told));
        let orphans: Vec<SessionId> = self.children(id).map(|child| child.id).collect();
        orphans.into_iter().for_each(|orphan| self.archive_orphan(orphan));
    }

    /// The record of a session has been deleted; the values file it named is deleted next.
    pub(super) fn forgotten(&mut self, Forgotten { removed, values, outcome, done }: Forgotten) {
        let committed = match outcome {
            Ok(committed) => committed,
            Err(error) => {
                warn!("a session could not be removed: {error}");
                _ = done.send(Err(self.handle.going_down()));
                return;
            }
        };
        crash::point("given.removed");
        self.last_event.send_replace(committed.seqs.end.saturating_sub(1));
        match values {
            Some(file) => {
                let told = move |()| _ = done.send(Ok(removed));
                self.ports.files.remove_values(self.values.clone(), file, Box::new(told));
            }
            None => _ = done.send(Ok(removed)),
        }
    }
}
