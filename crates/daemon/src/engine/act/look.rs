//! Agents that are begun with other words than they are resumed with: the vendor's own file says which are right, and is looked
//! for before each start.

use crate::define::transcript::Sought;
use crate::engine::Engine;
use crate::engine::input::{Input, Looked};
use pinfold_core::RunNumber;
use pinfold_core::life::Purpose;
use pinfold_store::SessionId;

impl Engine {
    /// What has to be looked for before a run of a session is started, if anything.
    pub(super) fn sought(&self, id: SessionId) -> Option<Sought> {
        let tracked = self.sessions.get(&id)?;
        let preset = self.config.preset(&tracked.definition.agent)?;
        self.as_known(tracked).transcript(&preset)
    }

    pub(super) fn spawn(&mut self, id: SessionId, run: RunNumber, purpose: Purpose) {
        let Some(sought) = self.sought(id) else { return self.spawn_on(id, run, purpose, None) };
        let Some(beginnings) = self.sessions.get(&id).map(|tracked| tracked.beginnings) else { return };
        let handle = self.handle.clone();
        let told = move |transcript| {
            let looked = Looked { run, purpose, transcript, beginnings };
            handle.tell(Input::Looked { id, looked });
        };
        self.ports.files.look_for(sought, Box::new(told));
    }

    pub(in crate::engine) fn looked(&mut self, id: SessionId, looked: Looked) {
        let Looked { run, purpose, transcript, beginnings } = looked;
        let waits = self.sessions.get(&id).is_some_and(|tracked| {
            tracked.beginnings == beginnings && tracked.session.live_run() == Some(run)
        });
        if waits {
            self.spawn_on(id, run, purpose, Some(transcript));
        }
    }
}
