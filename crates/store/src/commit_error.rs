//! Why a batch did not become durable.

use crate::cause::Cause;
use crate::trouble::Trouble;
use crate::ulid::{SessionId, Ulid};
use pinfold_core::RunNumber;
use std::path::PathBuf;

/// Why a batch did not become durable. Nothing of it is visible.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The disk is full; the store works again when there is space.
    #[error("no space is left for `{path}`")]
    StorageFull {
        /// The store.
        path: PathBuf,
        /// The back-end's error.
        #[source]
        source: Cause,
    },
    /// The disk cannot be written.
    #[error("`{path}` cannot be written")]
    StorageFailed {
        /// The store.
        path: PathBuf,
        /// The back-end's error.
        #[source]
        source: Cause,
    },
    /// The file is damaged.
    #[error("`{path}` is damaged")]
    Damaged {
        /// The store.
        path: PathBuf,
        /// The back-end's error.
        #[source]
        source: Cause,
    },
    /// Another process kept on writing for longer than the busy time-out.
    #[error("`{path}` is being written by another process")]
    Busy {
        /// The store.
        path: PathBuf,
    },
    /// The store's file has lost its name: anything written into it could not be found again.
    #[error("`{path}` was removed, moved, replaced or cut while it was in use")]
    Gone {
        /// The file that is affected.
        path: PathBuf,
    },
    /// Another session that is not archived has this name.
    #[error("the name `{name}` is taken")]
    NameTaken {
        /// The name that is taken.
        name: String,
    },
    /// There is no such session.
    #[error("there is no session {id}")]
    NoSuchSession {
        /// The id that was asked for.
        id: SessionId,
    },
    /// There is no such message of this session, or it is not in a state for this step.
    #[error("message {message} of session {session} cannot take this step")]
    NoSuchMessage {
        /// The session of the message.
        session: SessionId,
        /// Which.
        message: Ulid,
    },
    /// A message was queued without its text.
    #[error("message {message} has no text")]
    MessageWithoutText {
        /// The id of the message.
        message: Ulid,
    },
    /// A run was begun without an id.
    #[error("{run} of session {session} has no id")]
    RunWithoutId {
        /// The session of the run.
        session: SessionId,
        /// The number of the run.
        run: RunNumber,
    },
    /// A daemon of the same or a later generation has started in the meantime.
    #[error("generation {wanted} is not later than generation {found}")]
    StaleGeneration {
        /// The generation that was to be stored.
        wanted: u64,
        /// The generation that is stored.
        found: u64,
    },
    /// An earlier batch of this session failed, and this one builds on it; see
    /// [`Batch::reloaded`](crate::Batch::reloaded).
    #[error("this builds on a change of session {id} that failed")]
    BuildsOnFailed {
        /// The session with the failed batch.
        id: SessionId,
    },
    /// The batch contradicts what is stored.
    #[error("the change contradicts what is stored")]
    Contradiction {
        /// The back-end's error.
        #[source]
        source: Cause,
    },
    /// The writer has ended. It is not known whether this batch became durable.
    #[error("the writer of the store has ended")]
    WriterGone,
}

impl CommitError {
    /// Returns what keeps every batch from being written, unless the fault is in this one.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        match self {
            CommitError::Busy { .. } => Some(Trouble::Busy),
            CommitError::StorageFull { .. } => Some(Trouble::Full),
            CommitError::Gone { path } => Some(Trouble::Gone { path: path.clone() }),
            CommitError::StorageFailed { source, .. } => {
                Some(Trouble::Failed { problem: source.to_string() })
            }
            CommitError::Damaged { source, .. } => Some(Trouble::Damaged { problem: source.to_string() }),
            CommitError::WriterGone => Some(Trouble::Ended),
            CommitError::NameTaken { .. }
            | CommitError::NoSuchSession { .. }
            | CommitError::NoSuchMessage { .. }
            | CommitError::MessageWithoutText { .. }
            | CommitError::RunWithoutId { .. }
            | CommitError::StaleGeneration { .. }
            | CommitError::BuildsOnFailed { .. }
            | CommitError::Contradiction { .. } => None,
        }
    }

    /// Whether the fault may be in a single batch; that includes one too large for the disk.
    pub(crate) fn may_be_of_one(&self) -> bool {
        matches!(self, CommitError::StorageFull { .. }) || !self.is_storage()
    }

    /// Whether it is about the disk, and not about the batch.
    #[must_use]
    pub fn is_storage(&self) -> bool {
        self.trouble().is_some()
    }
}
