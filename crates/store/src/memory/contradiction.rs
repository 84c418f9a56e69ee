//! Contradictions in a batch: what SQLite's constraints refuse is refused here by name.

use crate::commit_error::CommitError;
use crate::ulid::SessionId;

pub(super) type Applied = Result<(), CommitError>;

/// Something in a batch that contradicts what is stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum Contradiction {
    #[error("session {0} exists already")]
    SessionThere(SessionId),
    #[error("session {0} does not exist")]
    NoSession(SessionId),
    #[error("the JSON of a session's definition cannot be read")]
    Definition(#[source] serde_json::Error),
    #[error("there is a message with this id already")]
    MessageThere,
    #[error("there is a message with this key already")]
    KeyTaken,
    #[error("there is a run with this id already")]
    RunThere,
    #[error("the JSON of an event's fields cannot be read")]
    Fields(#[source] serde_json::Error),
}

impl From<Contradiction> for CommitError {
    fn from(cause: Contradiction) -> CommitError {
        CommitError::Contradiction { source: cause.into() }
    }
}
