//! Sessions with a failed batch: what builds on it is refused until they are read again.

use crate::batch::Batch;
use crate::commit_error::CommitError;
use crate::step::Step;
use crate::ulid::SessionId;
use std::collections::BTreeSet;

/// Sessions with a failed batch that were not loaded again since.
#[derive(Debug, Default)]
pub(crate) struct Broken(BTreeSet<SessionId>);

impl Broken {
    /// A batch failed: whoever made it believes in what is not there.
    pub(crate) fn failed(&mut self, batch: &Batch) {
        self.0.extend(batch.steps.iter().filter_map(Step::session));
    }

    /// A batch is durable, and says which sessions were read again for it.
    pub(crate) fn succeeded(&mut self, batch: &Batch) {
        self.0.retain(|id| !batch.reloaded.contains(id));
    }

    /// Refuses a step of a session that was not read again.
    pub(crate) fn refuse(&self, batch: &Batch, step: &Step) -> Result<(), CommitError> {
        let broken = step.session().filter(|id| self.0.contains(id) && !batch.reloaded.contains(id));
        broken.map_or(Ok(()), |id| Err(CommitError::BuildsOnFailed { id }))
    }
}
