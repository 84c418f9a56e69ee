//! Values given with `--env`: read when sessions are loaded, moved out of old records, and deleted when no
//! record names them.

use super::{Engine, EngineFault};
use crate::define::definition::Definition;
use pinfold_store::{Batch, SessionId, Ulid};
use std::collections::BTreeSet;
use std::sync::Arc;
use tracing::{info, warn};

impl Engine {
    /// Reads the values of a session; the error says what is wrong with its file.
    pub(super) fn read_given(&self, definition: &mut Definition) -> Result<(), String> {
        let Some(file) = definition.env.file() else { return Ok(()) };
        let given = self.values.read(file);
        definition.env.found(given.map_err(|error| format!("its variables (env-values/{file}): {error}"))?);
        Ok(())
    }

    /// Reconciles records with value files and folders once all sessions are loaded. Blocks, so it runs before the loop
    /// begins.
    pub(crate) fn settle_given(&mut self) -> Result<(), EngineFault> {
        self.take_apart()?;
        self.sweep_folders();
        // A record that cannot be read may name any of them.
        if self.damaged.is_empty() {
            let both =
                self.sessions.values().flat_map(|known| [&known.definition, known.latest_definition()]);
            let files = both.filter_map(|definition| definition.env.file());
            self.values.sweep(&files.collect::<BTreeSet<Ulid>>());
        }
        Ok(())
    }

    /// Removes the empty folders of sessions that were never recorded: the daemon was killed before it could.
    fn sweep_folders(&self) {
        for entry in std::fs::read_dir(self.home.sessions()).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let Ok(id) = name.parse::<SessionId>() else { continue };
            let known = self.sessions.contains_key(&id) || self.damaged.contains_key(&name);
            if !known && !self.home.shim_socket(id).exists() {
                // One with content stays, and is reported.
                _ = std::fs::remove_dir(entry.path());
            }
        }
    }

    /// Moves the values out of old records. The database is then rewritten, since unused pages may still have
    /// them.
    fn take_apart(&mut self) -> Result<(), EngineFault> {
        self.sessions
            .values_mut()
            .for_each(|tracked| Arc::make_mut(&mut tracked.definition).env.take_apart());
        let ids: Vec<SessionId> = self
            .sessions
            .values()
            .filter(|tracked| tracked.definition.env.unkept().is_some())
            .map(|tracked| tracked.id)
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        let given = ids.iter().filter_map(|id| self.sessions.get(id)?.definition.env.unkept());
        let files = self.values.keep_all(given)?;
        let mut batch = Batch::new();
        for (id, file) in ids.iter().zip(files) {
            let Some(tracked) = self.sessions.get_mut(id) else { continue };
            Arc::make_mut(&mut tracked.definition).env.kept_in(file);
            batch.define(*id, &tracked.stored_definition());
        }
        self.store.commit(batch).wait().map_err(EngineFault::Commit)?;
        info!("the values of --env of {} sessions are in files of their own now", ids.len());
        let mut anew = Batch::new();
        anew.rewrite();
        self.store.commit_then(anew, |outcome| {
            if let Err(error) = outcome {
                let why = crate::error_chain::chain(&*error);
                warn!("old values of --env may be left in unused parts of the database: {why}");
            }
        });
        Ok(())
    }

    /// Deletes the value file of a definition that no record has.
    pub(super) fn forget_given(&self, definition: &Definition) {
        if let Some(file) = definition.env.file() {
            self.ports.files.remove_values(self.values.clone(), file, Box::new(|()| {}));
        }
    }
}
