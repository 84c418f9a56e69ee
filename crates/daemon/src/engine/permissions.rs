//! What the configuration permits callers that are not people.

use super::Engine;
use crate::caller::Act;
use crate::define::config::Confined;
use pinfold_shim::JoinRights;

impl Engine {
    /// Whether confined callers count as unconfined for this agent and session; both are empty when no
    /// session is concerned.
    pub(super) fn lets_confined(&self, agent: &str, session: &str) -> bool {
        self.config.settings(agent, session).confined == Confined::Allow
    }

    /// Who besides people may join the terminal of a session.
    pub(super) fn joins(&self, agent: &str, session: &str) -> JoinRights {
        let confined = self.lets_confined(agent, session);
        JoinRights { confined, runs: self.config.any_may(Act::Attach) }
    }
}
