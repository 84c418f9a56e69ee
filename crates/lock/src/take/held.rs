//! Takes the flocks of a set of lock files, all or none, without waiting.

use crate::files::folder::Folder;
use crate::files::name::FileName;
use crate::want::directory::{Gated, LockMode, WantedFile};
use pinfold_kernel::sys;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// One lock file with its flock.
#[derive(Debug)]
pub(crate) struct HeldFile {
    pub(crate) name: FileName,
    pub(crate) mode: LockMode,
    /// The description that has the flock; closing its last copy is the only way to give it back.
    pub(crate) lock: Arc<OwnedFd>,
}

/// The file that refused, open and ready to be waited on.
#[derive(Debug)]
pub(crate) struct RefusedFile {
    pub(crate) name: FileName,
    pub(crate) mode: LockMode,
    pub(crate) file: Arc<OwnedFd>,
    pub(crate) at: RefusedAt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusedAt {
    File,
    Gate,
}

#[derive(Debug)]
pub(crate) enum NotTaken {
    Refused(RefusedFile),
    NotAFile(FileName),
    Failed(FileName, crate::error::FileStep, Errno),
}

/// The gates that the caller itself holds.
pub(crate) type Gates = Vec<(FileName, Arc<OwnedFd>)>;

/// Takes all files, root to leaf; on failure all are closed again. `ready` is already locked.
pub(crate) fn take(
    folder: &Folder,
    wanted: &[WantedFile],
    mut ready: Option<HeldFile>,
    gates: &Gates,
) -> Result<Vec<HeldFile>, NotTaken> {
    let mut held = Vec::with_capacity(wanted.len());
    for want in wanted {
        match ready.take_if(|ready| ready.name == want.name) {
            Some(ready) => held.push(ready),
            None => held.push(take_one(folder, want, gates)?),
        }
    }
    Ok(held)
}

fn take_one(folder: &Folder, want: &WantedFile, gates: &Gates) -> Result<HeldFile, NotTaken> {
    let own_gate = gates.iter().any(|(name, _)| *name == want.name);
    // Held until the file itself is taken, so that the gate cannot be closed in between.
    let _passage = if want.gated == Gated::Yes && !own_gate { pass_gate(folder, want)? } else { None };
    let lock = Arc::new(open(folder, &want.name)?);
    match sys::flock(&lock, without_waiting(want.mode)) {
        Ok(()) => Ok(HeldFile { name: want.name, mode: want.mode, lock }),
        Err(Errno::WOULDBLOCK) => Err(NotTaken::Refused(RefusedFile {
            name: want.name,
            mode: want.mode,
            file: lock,
            at: RefusedAt::File,
        })),
        Err(errno) => Err(NotTaken::Failed(want.name, crate::error::FileStep::Lock, errno)),
    }
}

pub(crate) fn open(folder: &Folder, name: &FileName) -> Result<OwnedFd, NotTaken> {
    folder.open_lock(name).map_err(|errno| match errno {
        // A symbolic link, or a directory where a file should be made.
        Errno::LOOP | Errno::ISDIR | Errno::NXIO => NotTaken::NotAFile(*name),
        other => NotTaken::Failed(*name, crate::error::FileStep::Open, other),
    })
}

fn pass_gate(folder: &Folder, want: &WantedFile) -> Result<Option<OwnedFd>, NotTaken> {
    let name = want.name.gate();
    let failed = |step, errno| NotTaken::Failed(name, step, errno);
    // The first acquirer that waits at a gate creates it: without the file, none waits.
    let gate = match folder.open_existing(&name, OFlags::RDONLY) {
        Err(Errno::NOENT) => return Ok(None),
        other => other.map_err(|errno| failed(crate::error::FileStep::Open, errno))?,
    };
    match sys::flock(&gate, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(Some(gate)),
        Err(Errno::WOULDBLOCK) => Err(NotTaken::Refused(RefusedFile {
            name: want.name,
            mode: LockMode::Shared,
            file: Arc::new(gate),
            at: RefusedAt::Gate,
        })),
        Err(errno) => Err(failed(crate::error::FileStep::Lock, errno)),
    }
}

pub(crate) fn without_waiting(mode: LockMode) -> FlockOperation {
    match mode {
        LockMode::Shared => FlockOperation::NonBlockingLockShared,
        LockMode::Exclusive => FlockOperation::NonBlockingLockExclusive,
    }
}

pub(crate) fn waiting(mode: LockMode) -> FlockOperation {
    match mode {
        LockMode::Shared => FlockOperation::LockShared,
        LockMode::Exclusive => FlockOperation::LockExclusive,
    }
}
