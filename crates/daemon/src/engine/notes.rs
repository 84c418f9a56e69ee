//! What belongs into the events although no session decides it.

use super::Engine;
use crate::caller::Act;
use crate::define::config::Confined;
use crate::engine::input::Input;
use crate::ports::locks::Folders;
use pinfold_shim::JoinRights;
use pinfold_store::{AuditEvent, Batch, Outcome};
use tokio::sync::oneshot;

impl Engine {
    pub(super) fn note(&mut self, event: AuditEvent, reply: oneshot::Sender<()>) {
        let mut batch = Batch::new();
        batch.event(event);
        let handle = self.handle.clone();
        let told = move |outcome: Outcome| {
            if outcome.is_ok() {
                // Whoever only notes does not wait.
                _ = reply.send(());
            }
            handle.tell(Input::Committed { of: None, outcome });
        };
        self.ports.journal.commit(batch, None, Box::new(told));
    }

    pub(crate) fn folders(&self) -> Folders {
        self.folders.clone()
    }

    /// Whether one that is confined counts as if it were not; of a session, or of none.
    pub(super) fn lets_confined(&self, agent: &str, session: &str) -> bool {
        self.config.settings(agent, session).confined == Confined::Allow
    }

    /// Who beside people may join the terminal of a session.
    pub(super) fn joins(&self, agent: &str, session: &str) -> JoinRights {
        let confined = self.lets_confined(agent, session);
        JoinRights { confined, runs: self.config.any_may(Act::Attach) }
    }
}
