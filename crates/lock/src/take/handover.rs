//! Hands a held lock on: to a child at descriptors from 100 on, or to another process over a socket.
//!
//! A process with a copy of the descriptors holds the lock. Every descriptor of this crate is close-on-exec;
//! a copy that is not is made only inside the child that is meant to have it.

use crate::error::FileStep;
use crate::files::facts::facts;
use crate::files::folder::Folder;
use crate::files::name::FileName;
use crate::files::record::LockRecord;
use crate::look::scan;
use crate::raw;
use crate::take::grant::GrantWriter;
use crate::take::guard::{FileTrouble, GivenTo, Guard};
use crate::take::held::HeldFile;
use crate::take::holdings;
use crate::want::directory::LockMode;
use pinfold_kernel::sys;
use rustix::fs::OFlags;
use rustix::io::{Errno, FdFlags};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// What the receiver of a lock has to know besides the descriptors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockDescription {
    files: Vec<(FileName, LockMode)>,
    record: LockRecord,
    /// Whether one more descriptor follows: the locked directory.
    directory: bool,
}

/// Why descriptors did not make a guard.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// There are more or fewer descriptors than described.
    #[error("{expected} descriptors were described, {found} came")]
    Count {
        /// How many were described.
        expected: usize,
        /// How many came.
        found: usize,
    },
    /// A descriptor does not have this lock: nothing is held through it.
    #[error("the descriptor for {} does not hold its lock", path.display())]
    NotHeld {
        /// The lock file.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileTrouble),
}

impl Guard {
    /// Gives the lock to a child of `command`: it is then held as long as the child, or any process that the
    /// child passes its descriptors to, lives.
    ///
    /// The child gets copies at the lowest free numbers from 100 on, and after them the locked directory
    /// itself: as long as that is open, no other directory is given its inode number. They are made after the
    /// fork, so no other child that is spawned at the same moment can inherit them. The guard has to live
    /// until the child is spawned; otherwise the spawn fails.
    pub fn hand_over(&mut self, command: &mut Command) {
        self.given = GivenTo::ToOthers;
        let locks = self.held.iter().map(|held| &held.lock);
        raw::give(command, locks.chain(&self.directory).map(Arc::downgrade).collect());
    }

    /// Does the same as [`Guard::hand_over`] for a caller that forks by itself: call it in the child, before exec.
    ///
    /// It only makes system calls, so it may be called after a fork.
    pub fn give_in_child(&self) -> io::Result<()> {
        for held in &self.held {
            raw::duplicate(held.lock.as_raw_fd())?;
        }
        if let Some(directory) = &self.directory {
            raw::duplicate(directory.as_raw_fd())?;
        }
        Ok(())
    }

    /// Notes that a child forked by the caller has the lock: release will not mark it as given back.
    pub fn note_given(&mut self) {
        self.given = GivenTo::ToOthers;
    }

    /// Returns the description and the descriptors to send to another process, for example by `SCM_RIGHTS`.
    ///
    /// Both hold the lock until the sender calls [`Guard::surrender`] or the receiver closes its copies.
    pub fn lend(&self) -> io::Result<(LockDescription, Vec<BorrowedFd<'_>>)> {
        let files = self.held.iter().map(|held| (held.name, held.mode)).collect();
        let mut descriptors: Vec<_> = self.held.iter().map(|held| held.lock.as_fd()).collect();
        descriptors.extend(self.directory());
        let directory = self.directory.is_some();
        Ok((LockDescription { files, record: self.record.clone(), directory }, descriptors))
    }

    /// Makes a guard from descriptors that another process lent. Descriptors that do not really hold the lock
    /// are refused.
    ///
    /// The record still names the sender; [`Guard::new_fence`] writes the new holder.
    pub fn adopt(
        folder: &Folder,
        description: LockDescription,
        mut descriptors: Vec<OwnedFd>,
    ) -> Result<Self, AdoptError> {
        let expected = description.files.len() + usize::from(description.directory);
        if descriptors.len() != expected {
            return Err(AdoptError::Count { expected, found: descriptors.len() });
        }
        let directory = if description.directory { descriptors.pop() } else { None };
        let mut held = Vec::with_capacity(description.files.len());
        let mut writers = Vec::new();
        let mut ids = Vec::new();
        for ((name, mode), lock) in description.files.into_iter().zip(descriptors) {
            let trouble = |step| {
                let path = folder.file_path(&name);
                move |source| FileTrouble { path, step, source }
            };
            rustix::io::fcntl_setfd(&lock, FdFlags::CLOEXEC).map_err(trouble(FileStep::Examine))?;
            ids.push(facts(&lock).map_err(trouble(FileStep::Examine))?.id);
            check_held(folder, &name, mode, &lock)?;
            if mode == LockMode::Exclusive {
                let file = reopen(&lock, OFlags::RDWR).map_err(trouble(FileStep::Open))?;
                writers.push(GrantWriter::reopen(name, file).map_err(trouble(FileStep::Read))?);
            }
            held.push(HeldFile { name, mode, lock: Arc::new(lock) });
        }
        let entry = holdings::enter(&ids, std::process::id(), description.record.run.as_ref());
        let mut guard = Self::new(folder.clone(), held, writers, description.record, entry, directory);
        // The sender may still hold it, and so may a child it was given to.
        guard.note_given();
        Ok(guard)
    }

    /// Makes a guard from the descriptors that this process inherited, found by the files they are open on.
    pub fn adopt_inherited(folder: &Folder, description: LockDescription) -> Result<Self, AdoptError> {
        let mut descriptors = Vec::new();
        let found = scan::open_files_of(std::process::id(), folder.device());
        let path = folder.path().to_owned();
        let found = found.map_err(|source| FileTrouble { path, step: FileStep::Search, source })?;
        for (name, mode) in &description.files {
            let path = || folder.file_path(name);
            let one = found.iter().find(|open| open.name == *name && open.locked == Some(*mode));
            let Some(one) = one else { return Err(AdoptError::NotHeld { path: path() }) };
            let copy = raw::take_inherited(&one.through);
            let copy = copy.map_err(|source| FileTrouble { path: path(), step: FileStep::Open, source })?;
            descriptors.push(copy);
        }
        Self::adopt(folder, LockDescription { directory: false, ..description }, descriptors)
    }
}

/// Checks that the flock is on this very description; reading fdinfo takes no lock.
fn check_held(folder: &Folder, name: &FileName, mode: LockMode, lock: &OwnedFd) -> Result<(), AdoptError> {
    let path = PathBuf::from(format!("/proc/self/fdinfo/{}", lock.as_raw_fd()));
    let trouble = |source| FileTrouble { path: folder.file_path(name), step: FileStep::Examine, source };
    let text = sys::read_file(&path).map_err(trouble)?;
    if scan::locked(&text) == Some(mode) {
        Ok(())
    } else {
        Err(AdoptError::NotHeld { path: folder.file_path(name) })
    }
}

/// Opens another description of the same file, even if it no longer has a name.
fn reopen(file: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    sys::open(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())), flags)
}
