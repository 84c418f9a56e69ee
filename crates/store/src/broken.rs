//! Sessions with a failed batch: whatever builds on it is refused until they are read again.

use crate::batch::Batch;
use crate::commit_error::CommitError;
use crate::step::Step;
use crate::ulid::SessionId;
use std::collections::BTreeSet;

/// Sessions with a failed batch that have not been loaded again since.
#[derive(Debug, Default)]
pub(crate) struct BrokenSessions(BTreeSet<SessionId>);

impl BrokenSessions {
    /// Notes that a batch failed: its sessions believe in something that is not stored.
    pub(crate) fn failed(&mut self, batch: &Batch) {
        self.0.extend(batch.steps.iter().filter_map(Step::session));
    }

    /// Notes that a batch is durable, which says which sessions were read again for it.
    pub(crate) fn succeeded(&mut self, batch: &Batch) {
        self.0.retain(|id| !batch.reloaded.contains(id));
    }

    /// Refuses a step of a session that was not read again.
    pub(crate) fn refuse(&self, batch: &Batch, step: &Step) -> Result<(), CommitError> {
        let broken = step.session().filter(|id| self.0.contains(id) && !batch.reloaded.contains(id));
        broken.map_or(Ok(()), |id| Err(CommitError::BuildsOnFailed { id }))
    }
}
