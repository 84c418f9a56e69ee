//! Events that no session decides.

use super::Engine;
use crate::caller::Act;
use crate::define::config::Confined;
use crate::engine::input::Input;
use crate::ports::locks::Folders;
use pinfold_shim::Joins;
use pinfold_store::{AuditEvent, Batch, Outcome};
use tokio::sync::oneshot;

impl Engine {
    pub(super) fn note(&mut self, event: AuditEvent, reply: oneshot::Sender<()>) {
        let mut batch = Batch::new();
        batch.event(event);
        let handle = self.handle.clone();
        let told = move |outcome: Outcome| {
            if outcome.is_ok() {
                // A caller that only adds a note does not wait.
                _ = reply.send(());
            }
            handle.tell(Input::Committed { of: None, outcome });
        };
        self.ports.journal.commit(batch, None, Box::new(told));
    }

    pub(crate) fn folders(&self) -> Folders {
        self.folders.clone()
    }

    /// Whether confined callers count as unconfined for this agent and session; both are empty when no
    /// session is concerned.
    pub(super) fn lets_confined(&self, agent: &str, session: &str) -> bool {
        self.config.settings(agent, session).confined == Confined::Allow
    }

    /// Who besides people may join the terminal of a session.
    pub(super) fn joins(&self, agent: &str, session: &str) -> Joins {
        let confined = self.lets_confined(agent, session);
        Joins { confined, runs: self.config.any_may(Act::Attach) }
    }
}
