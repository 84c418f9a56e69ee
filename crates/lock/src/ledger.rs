//! Remembers what has happened to a lock folder: when it was tried out, and which lock files were ever made.
//!
//! Nobody of ours removes a lock file. When a file is missing that the ledger knows, somebody else removed
//! it, and its holder may live on: then, and only then, the grant looks for that holder.

use crate::file_name::FileName;
use crate::page::checksum;
use crate::sys;
use pinfold_core::identity::BootId;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

const NAME: &str = "ledger";
const STAMP_MAGIC: &[u8; 8] = b"PFtried\n";
const STAMP_LENGTH: usize = 40;
const TRUSTED_AT: u64 = 64;
const MADE_AT: u64 = 4096;
/// One byte a name, by hash: with a thousand locks one in a thousand first grants looks needlessly.
const MADE_SLOTS: u128 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Ledger(OwnedFd);

/// Where and when the folder was tried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) boot: BootId,
    pub(crate) device: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) stamp: Option<Stamp>,
    /// No holder of a removed file was alive when this ledger began.
    pub(crate) trusted: bool,
}

impl Ledger {
    /// Whether a folder has one.
    pub(crate) fn is_in(dir: BorrowedFd<'_>) -> bool {
        sys::stat_at(dir, Path::new(NAME), rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// The boot in which a folder was tried out last. Nothing is made.
    pub(crate) fn boot_of(folder: &Path) -> Option<BootId> {
        let file =
            sys::open(&folder.join(NAME), OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK).ok()?;
        Ledger(file).state().ok()?.stamp.map(|stamp| stamp.boot)
    }

    pub(crate) fn open(dir: BorrowedFd<'_>) -> Result<Self, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW;
        sys::open_at(dir, Path::new(NAME), flags, Mode::RUSR | Mode::WUSR).map(Self)
    }

    pub(crate) fn state(&self) -> Result<State, Errno> {
        let mut bytes = [0; TRUSTED_AT as usize + 1];
        sys::read_at(&self.0, &mut bytes, 0)?;
        Ok(State { stamp: read_stamp(&bytes[..STAMP_LENGTH]), trusted: bytes[TRUSTED_AT as usize] == 1 })
    }

    pub(crate) fn set_stamp(&self, stamp: Stamp) -> Result<(), Errno> {
        sys::write_at(&self.0, &write_stamp(stamp), 0)
    }

    pub(crate) fn set_trusted(&self) -> Result<(), Errno> {
        sys::write_at(&self.0, &[1], TRUSTED_AT)
    }

    /// Whether a file of this name, or of another with the same hash, was made before.
    pub(crate) fn was_made(&self, name: &FileName) -> Result<bool, Errno> {
        let mut byte = [0];
        sys::read_at(&self.0, &mut byte, made_at(name))?;
        Ok(byte[0] != 0 || !self.state()?.trusted)
    }

    /// Whether every file that was ever made is one of `names`; so nobody holds one that was removed.
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
        Ok(made[..length].iter().all(|byte| *byte == 0))
    }

    pub(crate) fn note_made(&self, name: &FileName) -> Result<(), Errno> {
        sys::write_at(&self.0, &[1], made_at(name))
    }
}

fn made_at(name: &FileName) -> u64 {
    let slot = crate::file_name::hash(name.as_str().as_bytes()) % MADE_SLOTS;
    MADE_AT + u64::try_from(slot).unwrap_or(0)
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
