//! Remembers what has happened to a lock folder: when it was tested, and which lock files were ever made.
//!
//! In this crate only the sweep removes lock files, and it notes that. If any other file known to the ledger
//! is missing, something else removed it and its holder may be alive: only then does a grant search for that holder.

use crate::files::layout::checksum;
use crate::files::name::FileName;
use crate::judge::identity::BootId;
use pinfold_kernel::sys;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

const NAME: &str = "ledger";
const STAMP_MAGIC: &[u8; 8] = b"PFtried\n";
const STAMP_LENGTH: usize = 40;
const TRUSTED_AT: u64 = 64;
/// The largest fence of any file that was swept, and its checksum.
const FLOOR_AT: u64 = 128;
const FLOOR_LENGTH: usize = 16;
const MADE_AT: u64 = 4096;
/// The values of a name's byte.
const MADE: u8 = 1;
const SWEPT: u8 = 2;
/// One byte per name, by hash: with a thousand locks, one in a thousand first grants searches needlessly.
const MADE_SLOTS: u128 = 1 << 20;

#[derive(Debug)]
pub(crate) struct FolderLedger(OwnedFd);

/// Where and when the folder was tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) boot: BootId,
    pub(crate) device: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LedgerState {
    pub(crate) stamp: Option<Stamp>,
    /// No holder of a removed file was alive when this ledger began.
    pub(crate) trusted: bool,
}

/// What is known about the file of a name, or of another name with the same hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileHistory {
    Never,
    /// It was made, and the sweep removed it when it was not held.
    Swept,
    /// It was made; if it is missing, something else removed it.
    Before,
}

impl FolderLedger {
    /// Whether a folder has a ledger.
    pub(crate) fn is_in(dir: BorrowedFd<'_>) -> bool {
        sys::stat_at(dir, Path::new(NAME), rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Returns the boot in which a folder was last tested. Creates nothing.
    pub(crate) fn boot_of(folder: &Path) -> Option<BootId> {
        let file =
            sys::open(&folder.join(NAME), OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK).ok()?;
        FolderLedger(file).state().ok()?.stamp.map(|stamp| stamp.boot)
    }

    pub(crate) fn open(dir: BorrowedFd<'_>) -> Result<Self, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW;
        sys::open_at(dir, Path::new(NAME), flags, Mode::RUSR | Mode::WUSR).map(Self)
    }

    pub(crate) fn state(&self) -> Result<LedgerState, Errno> {
        let mut bytes = [0; TRUSTED_AT as usize + 1];
        sys::read_at(&self.0, &mut bytes, 0)?;
        Ok(LedgerState {
            stamp: read_stamp(&bytes[..STAMP_LENGTH]),
            trusted: bytes[TRUSTED_AT as usize] == 1,
        })
    }

    pub(crate) fn set_stamp(&self, stamp: Stamp) -> Result<(), Errno> {
        sys::write_at(&self.0, &write_stamp(stamp), 0)
    }

    pub(crate) fn set_trusted(&self) -> Result<(), Errno> {
        sys::write_at(&self.0, &[1], TRUSTED_AT)
    }

    pub(crate) fn made(&self, name: &FileName) -> Result<FileHistory, Errno> {
        let mut byte = [0];
        sys::read_at(&self.0, &mut byte, made_at(name))?;
        Ok(match byte[0] {
            0 if self.state()?.trusted => FileHistory::Never,
            SWEPT if self.state()?.trusted => FileHistory::Swept,
            _ => FileHistory::Before,
        })
    }

    /// Whether every file ever made is one of `names`; then no removed file can be held.
    pub(crate) fn knows_no_other<'a>(
        &self,
        names: impl Iterator<Item = &'a FileName>,
    ) -> Result<bool, Errno> {
        if !self.state()?.trusted {
            return Ok(false);
        }
        let mut made = vec![0; MADE_SLOTS as usize];
        let length = sys::read_at(&self.0, &mut made, MADE_AT)?;
        for name in names {
            if let Some(slot) = usize::try_from(made_at(name) - MADE_AT).ok().and_then(|at| made.get_mut(at))
            {
                *slot = 0;
            }
        }
        Ok(made[..length].iter().all(|byte| *byte == 0 || *byte == SWEPT))
    }

    pub(crate) fn note_made(&self, name: &FileName) -> Result<(), Errno> {
        sys::write_at(&self.0, &[MADE], made_at(name))
    }

    pub(crate) fn note_swept(&self, name: &FileName) -> Result<(), Errno> {
        sys::write_at(&self.0, &[SWEPT], made_at(name))
    }

    /// Returns a fence that no swept file exceeded, not even with grants lost in a power failure.
    pub(crate) fn floor(&self) -> Result<u64, Errno> {
        let mut bytes = [0; FLOOR_LENGTH];
        sys::read_at(&self.0, &mut bytes, FLOOR_AT)?;
        let floor = u64::from_le_bytes(bytes[..8].try_into().map_err(|_| Errno::IO)?);
        // If it is damaged, the clock takes its place, as for every counter.
        Ok(if bytes == write_floor(floor) { floor } else { 0 })
    }

    /// Raises the floor to at least this; durable before it returns.
    pub(crate) fn raise_floor(&self, floor: u64) -> Result<u64, Errno> {
        let floor = floor.max(self.floor()?);
        sys::write_at(&self.0, &write_floor(floor), FLOOR_AT)?;
        sys::sync(&self.0)?;
        Ok(floor)
    }

    /// Returns the right to sweep, which lasts while the file is open; `None` if another process has it.
    pub(crate) fn sweeping(&self, dir: BorrowedFd<'_>) -> Result<Option<OwnedFd>, Errno> {
        let file = sys::open_at(dir, Path::new(NAME), OFlags::RDONLY | OFlags::NOFOLLOW, Mode::empty())?;
        match sys::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

fn made_at(name: &FileName) -> u64 {
    let slot = crate::files::name::hash(name.as_str().as_bytes()) % MADE_SLOTS;
    MADE_AT + u64::try_from(slot).unwrap_or(0)
}

fn write_floor(floor: u64) -> [u8; FLOOR_LENGTH] {
    let mut bytes = [0; FLOOR_LENGTH];
    bytes[..8].copy_from_slice(&floor.to_le_bytes());
    let sum = if floor == 0 { 0 } else { checksum(&bytes[..8]) };
    bytes[8..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn write_stamp(stamp: Stamp) -> [u8; STAMP_LENGTH] {
    let mut bytes = [0; STAMP_LENGTH];
    bytes[..8].copy_from_slice(STAMP_MAGIC);
    bytes[8..24].copy_from_slice(&stamp.boot.0.to_le_bytes());
    bytes[24..32].copy_from_slice(&stamp.device.to_le_bytes());
    let sum = checksum(&bytes[..32]);
    bytes[32..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn read_stamp(bytes: &[u8]) -> Option<Stamp> {
    let boot = BootId(u128::from_le_bytes(bytes[8..24].try_into().ok()?));
    let device = u64::from_le_bytes(bytes[24..32].try_into().ok()?);
    let stamp = Stamp { boot, device };
    (write_stamp(stamp) == bytes).then_some(stamp)
}
