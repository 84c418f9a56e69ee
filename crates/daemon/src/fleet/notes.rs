//! What belongs into the events although no session decides it.

use super::Fleet;
use crate::input::Input;
use crate::locks::Folders;
use pinfold_store::{AuditEvent, Batch};
use std::time::Duration;
use tokio::sync::oneshot;

impl Fleet {
    pub(super) fn note(&mut self, event: AuditEvent, reply: oneshot::Sender<()>) {
        let mut batch = Batch::new();
        batch.event(event);
        let handle = self.handle.clone();
        self.store.commit_then(batch, move |outcome| {
            if outcome.is_ok() {
                // Whoever only notes does not wait.
                _ = reply.send(());
            }
            handle.tell(Input::Committed { id: None, outcome });
        });
    }

    /// A burst is over: what it left behind goes back to the kernel when nothing follows it.
    pub(crate) fn rest_soon(&mut self) {
        self.calm_at = Some(tokio::time::Instant::now() + super::CALM);
    }

    pub(crate) fn folders(&self) -> Folders {
        self.folders.clone()
    }

    /// How long what happened is kept.
    pub(crate) fn retention(&self) -> crate::config::Retention {
        self.config.retention()
    }

    /// How long an HTTP hold may last; zero is for ever.
    pub(crate) fn hold_limit(&self) -> Duration {
        self.config.settings("", "").hold_limit
    }
}
