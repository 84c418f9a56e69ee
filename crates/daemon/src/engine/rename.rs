//! Renames a session. Its lock goes by its name, so nothing of it may run meanwhile.

use super::{Engine, WhyNot};
use crate::caller::By;
use crate::engine::input::{Define, VariablesChange};
use crate::engine::reply::ReplyHandle;
use crate::engine::session::Pending;
use pinfold_core::{EventKind, State};
use pinfold_store::{AuditEvent, Batch, SessionId};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::oneshot;

impl Engine {
    /// Renames a session in one step: neither name can be taken in between.
    pub(super) fn rename(&mut self, id: SessionId, name: String, by: Option<Arc<By>>, reply: ReplyHandle) {
        if let Err(why) = self.renamable(id, &name) {
            return reply.refuse(why);
        }
        let Some(tracked) = self.sessions.get_mut(&id) else { return reply.refuse(WhyNot::Gone) };
        let before = std::mem::replace(&mut tracked.name, name.clone());
        let archived = tracked.session.state() == State::Archived;
        let definition = Arc::clone(tracked.latest_definition());
        tracked.pending.push_back(Pending::recorded(tracked.snapshot(), Vec::new(), reply));
        let mut batch = Batch::new();
        batch.rename(id, &name);
        let mut data = json!({ "from": before, "to": name }).as_object().cloned().unwrap_or_default();
        data.extend(by.as_ref().map(|by| ("by".to_owned(), by.words())));
        let (at, why) = (self.ports.clock.wall(), format!("it was called `{before}` before"));
        batch.event(AuditEvent { at, session: Some(id), run: None, kind: EventKind::Renamed, why, data });
        self.rename_parent(id, &name, &mut batch);
        self.commit(Some(id), batch);
        if archived {
            return;
        }
        self.names.remove(&before);
        self.names.insert(name, id);
        // config.toml may have settings for this name.
        let define = Define {
            base: None,
            definition: Arc::unwrap_or_clone(definition),
            given: VariablesChange::AsBefore,
            by,
        };
        self.define(id, define, oneshot::channel().0);
    }

    /// Its children name it as their parent.
    fn rename_parent(&mut self, id: SessionId, name: &str, batch: &mut Batch) {
        let children: Vec<SessionId> = self.children(id).map(|child| child.id).collect();
        for child in children {
            let Some(tracked) = self.sessions.get_mut(&child) else { continue };
            tracked.amend(|definition| definition.parent = Some(name.to_owned()));
            batch.define(child, &tracked.stored_definition());
        }
    }

    fn renamable(&self, id: SessionId, name: &str) -> Result<(), WhyNot> {
        self.can_record()?;
        let tracked = self.sessions.get(&id).ok_or(WhyNot::Gone)?;
        let rests = match tracked.session.state() {
            State::Idle | State::Stopped | State::Failed | State::Archived => self.at_rest(tracked),
            State::Starting
            | State::Running
            | State::Stopping
            | State::Backoff
            | State::Blocked
            | State::Held => false,
        };
        if !rests {
            let (name, state) = (tracked.name.clone(), tracked.session.state().word());
            return Err(WhyNot::NotAtRest { name, state });
        }
        if tracked.session.state() == State::Archived { Ok(()) } else { self.is_free(name) }
    }
}
