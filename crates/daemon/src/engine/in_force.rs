//! The definition that a live run was started with, and the one that replaces it with the next run.
//!
//! The store has the latest one, and with it the one in force while a run lives: a new daemon treats that run
//! as the last one did.

use super::Engine;
use crate::define::definition::Definition;
use crate::engine::session::Tracked;
use pinfold_core::RunNumber;
use pinfold_store::{SessionId, StoredSession, Ulid};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The key of the definition in force within the stored one, which is the latest.
const IN_FORCE: &str = "in_force";

/// The definition in force, as it is stored.
#[derive(Serialize, Deserialize)]
struct InForce {
    /// The run that it is of: with the next run it is out of date.
    run: RunNumber,
    definition: Definition,
    /// The names of variables that the latest definition changes: the values that they had are deleted.
    #[serde(default)]
    changed: Vec<String>,
}

impl Tracked {
    /// The definition that the next run is started with.
    pub(crate) fn latest_definition(&self) -> &Arc<Definition> {
        self.next.as_ref().unwrap_or(&self.definition)
    }

    /// Both definitions as the store keeps them.
    pub(crate) fn stored_definition(&self) -> Value {
        let mut stored = serde_json::to_value(&**self.latest_definition()).unwrap_or_default();
        if let (Some(_), Some(run)) = (&self.next, self.session.live_run()) {
            let changed = self.definition.env.differing(&self.latest_definition().env);
            let in_force = InForce { run, definition: Definition::clone(&self.definition), changed };
            stored[IN_FORCE] = serde_json::to_value(in_force).unwrap_or_default();
        }
        stored
    }

    /// Takes a changed definition: from now on, or from the next run on if one is live. Returns the file with
    /// values of variables with which no run is started any more.
    pub(super) fn redefine(&mut self, definition: Definition) -> Option<Ulid> {
        let before = self.latest_definition().env.file();
        // It may be another program now.
        self.stray_mark = false;
        self.take_definition(definition);
        before.filter(|file| self.latest_definition().env.file() != Some(*file))
    }

    fn take_definition(&mut self, definition: Definition) {
        if self.session.live_run().is_none() {
            (self.definition, self.next) = (Arc::new(definition), None);
            return;
        }
        // Where it belongs and its tags concern no run.
        let own = Arc::make_mut(&mut self.definition);
        own.parent.clone_from(&definition.parent);
        own.parent_id = definition.parent_id;
        own.tags.clone_from(&definition.tags);
        self.next = Some(Arc::new(definition));
    }

    /// Changes what is true of every definition.
    pub(super) fn amend(&mut self, change: impl Fn(&mut Definition)) {
        change(Arc::make_mut(&mut self.definition));
        if let Some(next) = &mut self.next {
            change(Arc::make_mut(next));
        }
    }

    /// Lets the latest definition count once the core does; values of variables that only the former one had
    /// are forgotten when that is durable.
    pub(super) fn follow_definition(&mut self) {
        if self.session.next_spec().is_some() {
            return;
        }
        let Some(next) = self.next.take() else { return };
        let former = std::mem::replace(&mut self.definition, next);
        self.outdated.extend(former.env.file().filter(|file| self.definition.env.file() != Some(*file)));
    }
}

impl Engine {
    /// Reads the definitions of a stored session: the one in force, and the next one if another is.
    pub(super) fn read_definitions(
        &self,
        stored: &StoredSession,
    ) -> Result<(Definition, Option<Definition>), String> {
        let read = serde_json::from_value(stored.definition.clone());
        let mut latest: Definition =
            read.map_err(|error| format!("its definition cannot be read: {error}"))?;
        self.read_given(&mut latest)?;
        match self.read_in_force(stored, &latest) {
            Some(in_force) => Ok((in_force, Some(latest))),
            None => Ok((latest, None)),
        }
    }

    fn read_in_force(&self, stored: &StoredSession, latest: &Definition) -> Option<Definition> {
        stored.session.next_spec()?;
        let in_force = InForce::deserialize(stored.definition.get(IN_FORCE)?).ok()?;
        let InForce { run, mut definition, changed } = in_force;
        if stored.session.live_run() != Some(run) {
            return None;
        }
        if self.read_given(&mut definition).is_err() {
            definition.env.replaced(&latest.env, &changed);
        }
        Some(definition)
    }

    /// Deletes values that no record names any more, once every decision is durable.
    pub(super) fn forget_outdated(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id).filter(|tracked| tracked.pending.is_empty()) else {
            return;
        };
        for file in std::mem::take(&mut tracked.outdated) {
            self.ports.files.remove_values(self.values.clone(), file, Box::new(|()| {}));
        }
    }
}
