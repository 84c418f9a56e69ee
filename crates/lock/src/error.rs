//! Why a lock was not granted, with the facts a person needs at that moment.

use crate::files::folder::FolderError;
use crate::judge::grant::Trace;
use crate::process::IdentifyError;
use crate::seen::LockSeen;
use crate::want::directory::DirectoryError;
use rustix::io::Errno;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why a lock was not granted.
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// Another holder has it.
    #[error("{0}")]
    Busy(Box<Busy>),
    /// The asking holder already has it; it would wait forever.
    #[error(
        "`{resource}` is already held by the one who asks for it; a lock is not granted twice to one holder"
    )]
    AlreadyYours {
        /// The resource.
        resource: String,
    },
    /// The wait was cancelled.
    #[error("waiting for `{resource}` was cancelled")]
    Cancelled {
        /// The resource.
        resource: String,
    },
    /// The directory cannot be locked.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A symbolic link, a directory or a device is in place of the lock file; nothing was removed.
    #[error("{} is not a lock file", path.display())]
    NotAFile {
        /// The path of the file.
        path: PathBuf,
    },
    /// The lock file was replaced again and again while it was being locked.
    #[error("{} is being replaced again and again", path.display())]
    Restless {
        /// The path of the file.
        path: PathBuf,
    },
    /// A file operation failed; nothing is held.
    #[error("{} could not be {step}", path.display())]
    File {
        /// The lock file.
        path: PathBuf,
        /// What was being done to it.
        step: FileStep,
        /// What the kernel said.
        #[source]
        source: Errno,
    },
    /// The calling process could not be identified.
    #[error(transparent)]
    Identity(#[from] IdentifyError),
    /// A folder could not be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// What was being done to a lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStep {
    /// Opening or creating it.
    Open,
    /// Locking it.
    Lock,
    /// Examining it.
    Examine,
    /// Reading it.
    Read,
    /// Writing the fence, the record or the mark.
    Write,
    /// Syncing the fence to the disk.
    Sync,
    /// Searching for processes of the last run.
    Search,
    /// Closing it.
    Close,
}

impl fmt::Display for FileStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "opened",
            Self::Lock => "locked",
            Self::Examine => "examined",
            Self::Read => "read",
            Self::Write => "written",
            Self::Sync => "brought to the disk",
            Self::Search => "searched for",
            Self::Close => "closed",
        })
    }
}

/// A lock that another holder has.
#[derive(Debug, Clone)]
pub struct Busy {
    /// The resource asked for.
    pub resource: String,
    /// Why it is not free.
    pub because: BusyBecause,
    /// The lock that is in the way: that of the resource itself, or of a directory above or below it.
    pub lock: Option<LockSeen>,
    /// How long the caller waited.
    pub waited: Duration,
}

/// Why a lock is not free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusyBecause {
    /// A process holds it.
    Held,
    /// Its flock is free but processes of its last run are alive.
    Survivor(Trace),
    /// Its file was removed while it was held, and that holder is still alive.
    Removed,
    /// Another acquirer waits for exclusive use of it; newcomers wait their turn.
    Awaited,
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ", self.resource)?;
        f.write_str(match self.because {
            BusyBecause::Held => "is held",
            BusyBecause::Survivor(_) => "was held by a run of which something is still alive,",
            BusyBecause::Removed => "is held through a lock file that was removed,",
            BusyBecause::Awaited => "is awaited",
        })?;
        match &self.lock {
            Some(lock) => {
                write!(f, " by {}", lock.holder_text())?;
                if lock.resource != self.resource && !lock.resource.is_empty() {
                    write!(f, " as `{}`", lock.resource)?;
                }
                Ok(())
            }
            None => f.write_str(" by a process that cannot be seen from here"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::ResourceKind;
    use crate::seen::LockHolder;
    use crate::{Fence, process};

    fn seen() -> LockSeen {
        LockSeen {
            resource: "key:k".into(),
            kind: ResourceKind::Key,
            fence: Some(Fence(7)),
            // In the future, as after the clock was set: the age is shown as 0.
            since_ms: Some(32_503_680_000_000),
            reason: None,
            session: Some("api".into()),
            run: None,
            holder: LockHolder {
                identity: Some(crate::judge::identity::Identity { pid: 4711, ..process::own().unwrap() }),
                host: "h".into(),
                command: "claude".into(),
                verdict: process::verdict(None),
            },
            others: Vec::new(),
            removed: false,
        }
    }

    fn text(because: BusyBecause, lock: Option<LockSeen>) -> String {
        Busy { resource: "key:k".into(), because, lock, waited: Duration::ZERO }.to_string()
    }

    #[test]
    fn the_busy_text_is_whole_whatever_field_is_absent() {
        let no_command = LockHolder { command: String::new(), ..seen().holder };
        let nobody = LockHolder { identity: None, ..no_command.clone() };
        let rows = [
            (Some(seen()), "`key:k` is held by pid 4711 (claude, session api, since 00:00:00 UTC, 0 s)"),
            (
                Some(LockSeen { session: None, ..seen() }),
                "`key:k` is held by pid 4711 (claude, since 00:00:00 UTC, 0 s)",
            ),
            (
                Some(LockSeen { since_ms: None, ..seen() }),
                "`key:k` is held by pid 4711 (claude, session api)",
            ),
            (
                Some(LockSeen { since_ms: None, session: None, holder: no_command, ..seen() }),
                "`key:k` is held by pid 4711",
            ),
            (
                Some(LockSeen { since_ms: None, session: None, holder: nobody, ..seen() }),
                "`key:k` is held by a process that left no name",
            ),
            (
                Some(LockSeen { resource: "/a/b".into(), since_ms: None, ..seen() }),
                "`key:k` is held by pid 4711 (claude, session api) as `/a/b`",
            ),
            (None, "`key:k` is held by a process that cannot be seen from here"),
        ];
        for (lock, expected) in rows {
            assert_eq!(text(BusyBecause::Held, lock), expected);
        }
    }

    #[test]
    fn every_reason_for_busy_has_its_own_sentence() {
        let all = [
            BusyBecause::Held,
            BusyBecause::Survivor(Trace::Marker),
            BusyBecause::Removed,
            BusyBecause::Awaited,
        ];
        let sentences: std::collections::BTreeSet<String> = all.map(|because| text(because, None)).into();
        assert_eq!(sentences.len(), all.len());
    }
}
