//! What went wrong, as the contract says it: one line, a hint, an exit code, and JSON when asked.

use crate::args::Global;
use crate::json;
use pinfold_lock::{AcquireError, BusyBecause, DirectoryError, FolderError, NotAResource};
use serde_json::{Value, json};
use std::error::Error;
use std::process::ExitCode;

/// The kinds of failure; scripts rely on their words and codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Failed,
    NotFound,
    Usage,
    Damaged,
    Busy,
    NotPermitted,
    BadConfig,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::NotFound => "not_found",
            Self::Usage => "usage",
            Self::Damaged => "damaged",
            Self::Busy => "busy",
            Self::NotPermitted => "not_permitted",
            Self::BadConfig => "bad_config",
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::Failed | Self::NotFound => 1,
            Self::Usage => 2,
            Self::Damaged => 65,
            Self::Busy => 75,
            Self::NotPermitted => 77,
            Self::BadConfig => 78,
        }
    }
}

/// A failure on its way to the user.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
    holder: Option<Value>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, holder: None }
    }

    /// A failure told by an error and its causes.
    pub(crate) fn from_error(kind: Kind, error: &dyn Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            message = format!("{message}: {next}");
            cause = next.source();
        }
        Self::new(kind, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Tells the user and returns the exit code.
pub(crate) fn report(failure: &Failure, global: &Global) -> ExitCode {
    eprintln!("error: {}", failure.message);
    if let Some(hint) = failure.hint.as_ref().filter(|_| !global.quiet) {
        eprintln!("hint: {hint}");
    }
    if global.json {
        let error = json!({
            "kind": failure.kind.word(),
            "message": failure.message,
            "hint": failure.hint,
            "holder": failure.holder,
        });
        crate::verbs::say(&json!({ "error": error }));
    }
    ExitCode::from(failure.kind.code())
}

impl From<NotAResource> for Failure {
    fn from(error: NotAResource) -> Self {
        Self::from_error(Kind::Usage, &error).hint("a resource is a directory, session:NAME or key:ANY")
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        let (kind, hint) = match &error {
            FolderError::NotOurs { .. } | FolderError::NotPermitted { .. } => {
                (Kind::NotPermitted, "PINFOLD_LOCKS names another lock folder")
            }
            FolderError::NoExclusion { .. } => (
                Kind::BadConfig,
                "set PINFOLD_LOCKS to a folder on a local file system, the same for all of them",
            ),
            FolderError::NotADirectory { .. } => (Kind::BadConfig, "PINFOLD_LOCKS names another lock folder"),
            FolderError::Failed { .. } => (Kind::Failed, "PINFOLD_LOCKS names another lock folder"),
        };
        Self::from_error(kind, &error).hint(hint)
    }
}

impl From<DirectoryError> for Failure {
    fn from(error: DirectoryError) -> Self {
        match &error {
            DirectoryError::Missing { .. } => Self::from_error(Kind::NotFound, &error),
            DirectoryError::NotADirectory { .. } => Self::from_error(Kind::Failed, &error)
                .hint("only directories are locked by path; key:ANY locks a name"),
            DirectoryError::NotPermitted { .. } => Self::from_error(Kind::NotPermitted, &error),
            DirectoryError::Moved { .. } | DirectoryError::Failed { .. } => {
                Self::from_error(Kind::Failed, &error)
            }
        }
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Busy(busy) => {
                let mut failure = Self::from_error(Kind::Busy, &AcquireError::Busy(busy.clone()));
                failure.holder = busy.lock.as_ref().map(|lock| json::holder(&lock.holder));
                let held = busy.lock.as_ref().map_or(busy.resource.as_str(), |lock| lock.resource.as_str());
                failure.hint(match busy.because {
                    BusyBecause::Held | BusyBecause::Removed | BusyBecause::Survivor(_) => {
                        format!("`--wait 10s` waits for it; `pinfold unlock {held} --kill` ends its holder")
                    }
                    BusyBecause::Awaited => "`--wait 10s` waits behind it".to_owned(),
                })
            }
            AcquireError::AlreadyYours { .. } => Self::from_error(Kind::Busy, &error)
                .hint("you hold it already: run the command without `pinfold lock`"),
            AcquireError::NotAFile { .. } => Self::from_error(Kind::Damaged, &error)
                .hint("nothing was changed; move it out of the lock folder"),
            AcquireError::File { source, .. } => Self::from_error(kind_of(source), &error),
            AcquireError::Directory(error) => error.into(),
            AcquireError::Folder(error) => error.into(),
            AcquireError::Cancelled { .. } | AcquireError::Restless { .. } | AcquireError::Identity(_) => {
                Self::from_error(Kind::Failed, &error)
            }
        }
    }
}

fn kind_of(errno: rustix::io::Errno) -> Kind {
    use rustix::io::Errno;
    if [Errno::ACCESS, Errno::PERM, Errno::ROFS].contains(&errno) { Kind::NotPermitted } else { Kind::Failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_words_and_codes_of_the_contract() {
        let rows = [
            (Kind::Failed, "failed", 1),
            (Kind::NotFound, "not_found", 1),
            (Kind::Usage, "usage", 2),
            (Kind::Damaged, "damaged", 65),
            (Kind::Busy, "busy", 75),
            (Kind::NotPermitted, "not_permitted", 77),
            (Kind::BadConfig, "bad_config", 78),
        ];
        for (kind, word, code) in rows {
            assert_eq!((kind.word(), kind.code()), (word, code));
        }
    }
}
