//! The archive: what purge takes, what comes back, and what is deleted for good.

use super::{Engine, WhyNot};
use crate::caller::By;
use crate::crash;
use crate::engine::input::Reply;
use crate::engine::session::Tracked;
use crate::log::log;
use pinfold_api::object::Removed;
use pinfold_api::request::{Caller, Purge};
use pinfold_core::event::Ask;
use pinfold_core::{Event, Mode, Refusal, State};
use pinfold_store::{AuditEvent, Batch, Facts, Promise, SessionId};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::oneshot;

/// What purge makes of one session.
pub(crate) struct Candidate {
    pub(crate) id: SessionId,
    pub(crate) name: String,
    pub(crate) own: bool,
    /// Why it is left alone.
    pub(crate) spared: Option<Refusal>,
}

/// Which modes purge takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Modes {
    Only(Mode),
    All,
}

impl Engine {
    /// The sessions that purge is about, in their order; archived ones are not.
    pub(crate) fn to_purge(&self, modes: Modes, purge: &Purge) -> Vec<Candidate> {
        let of_mode = |tracked: &&Tracked| match modes {
            Modes::All => true,
            Modes::Only(mode) => tracked.session.spec().mode == mode,
        };
        let live = self
            .sessions
            .values()
            .map(Box::as_ref)
            .filter(|tracked| tracked.session.state() != State::Archived);
        live.filter(of_mode)
            .map(|tracked| {
                let own = self.is_callers(tracked, &purge.caller);
                let spared = tracked.session.spared_by_purge(purge.include_active, own);
                Candidate { id: tracked.id, name: tracked.name.clone(), own, spared }
            })
            .collect()
    }

    /// Whether the caller is part of this session: by what it was given, or by who started it.
    fn is_callers(&self, tracked: &Tracked, caller: &Caller) -> bool {
        let here = caller.socket.as_ref().is_none_or(|socket| self.is_our_socket(Path::new(socket)));
        let named = |text: &String| *text == tracked.name || *text == tracked.id.to_string();
        let by_name = here && caller.session.as_ref().is_some_and(named);
        let by_run = caller.run.is_some() && caller.run == tracked.run.map(|(_, run)| run.to_string());
        let pid = tracked.pid();
        let shim = tracked.shim.as_ref().map(|shim| shim.pid);
        let by_blood = caller.ancestors.iter().any(|pid_above| [pid, shim].contains(&Some(*pid_above)));
        by_name || by_run || by_blood
    }

    fn is_our_socket(&self, socket: &Path) -> bool {
        let real = std::fs::read_link(socket).unwrap_or_else(|_| socket.to_owned());
        socket == self.socket || real == self.home.socket()
    }

    /// The archived session that a name or the beginning of an id stands for; the latest of a name.
    pub(crate) fn find_archived(&self, wanted: &str) -> Result<SessionId, WhyNot> {
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

    /// Brings a session back, parked. Looks at its name in the same breath: two cannot take it.
    pub(crate) fn restore(&mut self, id: SessionId, by: Option<&By>, reply: Reply) -> Result<(), WhyNot> {
        self.can_record()?;
        let Some(tracked) = self.sessions.get_mut(&id) else { return Err(WhyNot::Gone) };
        let name = tracked.name.clone();
        if self.names.get(&name).is_some_and(|other| *other != id) {
            return Err(WhyNot::NameTaken { name });
        }
        if self.has_lost_parent(id) {
            self.forget_parent(id);
        }
        let facts = Facts { by: by.map(|by| by.words()), ..Facts::default() };
        self.happened(id, &Event::Asked(Ask::Restore), &facts, Some(reply));
        Ok(())
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

    /// A person brings it back without the parent that it had.
    fn forget_parent(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        (tracked.definition.parent, tracked.definition.parent_id) = (None, None);
        let definition = serde_json::to_value(&tracked.definition).unwrap_or_default();
        let mut batch = Batch::new();
        batch.define(id, &definition);
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

    /// Deletes an archived session for good, and says what that was. The record goes last: whatever is killed in
    /// between is begun again.
    pub(crate) fn remove(
        &mut self,
        id: SessionId,
        by: Option<Arc<By>>,
        done: oneshot::Sender<Result<Removed, WhyNot>>,
    ) {
        match self.removable(id) {
            Ok(removed) => {
                let (folder, listen) = (self.home.session(id), self.home.shim_socket(id));
                let handle = self.handle.clone();
                tokio::spawn(async move {
                    let gone = tokio::task::spawn_blocking(move || {
                        // What a run put into its group and nothing could remove then.
                        _ = pinfold_shim::client::sweep(&listen);
                        remove_folder(&folder)
                    })
                    .await;
                    let gone = gone.map_err(|error| error.to_string()).and_then(|gone| gone);
                    let end = move |engine: &mut Engine| match gone {
                        Ok(bytes) => engine.forget(id, Removed { bytes, ..removed }, by.as_deref(), done),
                        Err(problem) => {
                            _ = done.send(Err(WhyNot::NotDeleted { problem }));
                        }
                    };
                    _ = handle.look(end).await;
                });
            }
            Err(error) => _ = done.send(Err(error)),
        }
    }

    fn removable(&self, id: SessionId) -> Result<Removed, WhyNot> {
        self.can_record()?;
        let Some(tracked) = self.sessions.get(&id) else { return Err(WhyNot::Gone) };
        let name = &tracked.name;
        if tracked.session.state() != State::Archived || !tracked.at_rest(self.health.holds_up()) {
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
        let open = inbox.queued() as u64 + u64::from(inbox.in_flight().is_some());
        let messages = settled + failed + open;
        let runs = tracked.session.runs().count;
        Ok(Removed { id: id.to_string(), name: name.clone(), messages, runs, bytes: 0 })
    }

    /// The sessions that belong to this one.
    pub(crate) fn children(&self, id: SessionId) -> impl Iterator<Item = &Tracked> {
        self.sessions
            .values()
            .map(Box::as_ref)
            .filter(move |tracked| tracked.definition.parent_id == Some(id))
    }

    fn forget(
        &mut self,
        id: SessionId,
        removed: Removed,
        by: Option<&By>,
        done: oneshot::Sender<Result<Removed, WhyNot>>,
    ) {
        // Restored, or removed by somebody else, while its files were deleted.
        if let Err(error) = self.removable(id) {
            _ = done.send(Err(error));
            return;
        }
        let mut batch = Batch::new();
        let data = json!({ "messages": removed.messages, "runs": removed.runs, "bytes": removed.bytes });
        let mut data = data.as_object().cloned().unwrap_or_default();
        data.extend(by.map(|by| ("by".to_owned(), by.words())));
        let (kind, why) = ("removed".to_owned(), "a person removed it".to_owned());
        let at = self.ports.clock.wall();
        batch.event(AuditEvent { at, session: Some(id), run: None, kind, why, data });
        batch.remove(id);
        batch.wipe();
        self.wake_at(id, None);
        let file = self.sessions.remove(&id).and_then(|tracked| tracked.definition.env.file());
        let values = self.values.clone();
        let (promise, ticket) = Promise::with_ticket();
        self.ports.journal.commit(batch, None, Box::new(move |outcome| promise.keep(outcome)));
        let handle = self.handle.clone();
        let orphans: Vec<SessionId> = self.children(id).map(|child| child.id).collect();
        orphans.into_iter().for_each(|orphan| self.archive_orphan(orphan));
        let last_event = self.last_event.clone();
        tokio::task::spawn_blocking(move || {
            let answer = match ticket.wait() {
                Ok(committed) => {
                    crash::point("given.removed");
                    file.into_iter().for_each(|file| values.remove(file));
                    last_event.send_replace(committed.seqs.end.saturating_sub(1));
                    Ok(removed)
                }
                Err(error) => {
                    log(format_args!("a session could not be removed: {error}"));
                    Err(handle.going_down())
                }
            };
            _ = done.send(answer);
        });
    }
}

/// Deletes a folder with everything in it; how many bytes that was.
fn remove_folder(folder: &Path) -> Result<u64, String> {
    let sizes = std::fs::read_dir(folder).map(|entries| {
        let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|facts| facts.len());
        sizes.sum()
    });
    match std::fs::remove_dir_all(folder) {
        Ok(()) => Ok(sizes.unwrap_or(0)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error.to_string()),
    }
}
