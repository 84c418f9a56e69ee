//! Exit records: a small preallocated file per session. An exit is written before it is reported, so that no
//! kill can lose it. It is on disk before the session's locks are free or its next agent starts: in the
//! daemon's database, in which case the daemon acknowledges it, or here.
//!
//! The file is a ring of slots, each with a checksum, written one after the other. A torn slot counts as
//! missing. The file is never removed or cut while the session lives.

use crate::crash;
use crate::protocol::exited::Exited;
use crate::protocol::frame::{Fields, write_fields};
use pinfold_core::ids::RunNumber;
use pinfold_kernel::checksum::checksum;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A power of two, so that no slot straddles two sectors.
const SLOT: usize = 256;
/// Many more than the runs that can end before a living daemon acknowledges one.
const SLOTS: usize = 64;
/// Bytes of one read or write: several slots.
const PIECE: usize = 4096;
const MAGIC: &[u8; 4] = b"PFX1";
const HEAD: usize = 24;
const SUM_AT: usize = SLOT - 8;

/// The exit records of a session, open for one writer: the holder of the session's lock.
#[derive(Debug)]
pub struct Records {
    file: OwnedFd,
    path: PathBuf,
    next: u64,
    last: Option<RunNumber>,
    acknowledged: RunNumber,
    /// The unacknowledged runs; only if there are any is the file read again.
    pending: Vec<RunNumber>,
    /// The last run whose record was written but may not be on disk.
    unsynced: Option<RunNumber>,
    kept: Kept,
}

/// Whether the file's existence and size are on disk, so that a record costs one small write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    NotYet,
}

struct Slot {
    sequence: u64,
    acknowledged: RunNumber,
    exited: Exited,
}

impl Records {
    /// Opens the file, and creates it at its full size if it is missing.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        let kept = if rustix::fs::fstat(&file)?.st_size == (SLOT * SLOTS) as i64 {
            Kept::Yes
        } else {
            fill(&file)?;
            Kept::NotYet
        };
        let slots = slots(&file)?;
        let last = slots.last();
        let acknowledged = last.map_or(RunNumber(0), |slot| slot.acknowledged);
        let runs = slots.iter().map(|slot| slot.exited.run);
        Ok(Self {
            next: last.map_or(0, |slot| slot.sequence + 1),
            last: runs.clone().max(),
            acknowledged,
            pending: runs.filter(|run| *run > acknowledged).collect(),
            unsynced: None,
            path: path.to_owned(),
            file,
            kept,
        })
    }

    /// Returns the highest run that has a record.
    #[must_use]
    pub fn last(&self) -> Option<RunNumber> {
        self.last
    }

    /// Notes that the exits up to `run` are stored elsewhere, so their slots may be reused.
    pub fn acknowledge(&mut self, run: RunNumber) {
        self.acknowledged = self.acknowledged.max(run);
        self.pending.retain(|pending| *pending > run);
        self.unsynced = self.unsynced.filter(|unsynced| *unsynced > run);
    }

    /// Returns the unacknowledged exits, oldest first.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn unacknowledged(&self) -> Result<Vec<Exited>, Errno> {
        if self.pending.is_empty() {
            return Ok(Vec::new());
        }
        let exits = slots(&self.file)?.into_iter().map(|slot| slot.exited);
        Ok(exits.filter(|exited| exited.run > self.acknowledged).collect())
    }

    /// Returns the record of one run.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn of(&self, run: RunNumber) -> Result<Option<Exited>, Errno> {
        Ok(slots(&self.file)?.into_iter().map(|slot| slot.exited).rfind(|exited| exited.run == run))
    }

    /// Returns whether the next record would overwrite an unacknowledged one.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.pending.len() >= SLOTS
    }

    /// Writes a record: it survives a kill of this process, and [`Records::sync`] puts it on disk.
    ///
    /// # Errors
    /// The kernel's error; the record may or may not be there then.
    pub fn append(&mut self, exited: &Exited) -> Result<(), Errno> {
        let bytes = slot(self.next, self.acknowledged, exited);
        let at = (self.next as usize % SLOTS) * SLOT;
        crash::point("record.unwritten");
        write_all(&self.file, &bytes, at as u64)?;
        crash::point("record.written");
        self.next += 1;
        self.last = self.last.max(Some(exited.run));
        self.pending.push(exited.run);
        self.unsynced = Some(exited.run);
        Ok(())
    }

    /// Returns whether a record is neither acknowledged nor on disk.
    #[must_use]
    pub fn is_unsynced(&self) -> bool {
        self.unsynced.is_some()
    }

    /// Puts written records on disk, unless they are known to be stored elsewhere.
    ///
    /// # Errors
    /// The kernel's error; it is not tried again.
    pub fn sync(&mut self) -> Result<(), Errno> {
        if self.unsynced.take().is_none() {
            return Ok(());
        }
        self.settle()?;
        rustix::fs::fdatasync(&self.file)?;
        crash::point("record.synced");
        Ok(())
    }

    /// Puts a new file on disk, so that the first record is as quick as the others.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn settle(&mut self) -> Result<(), Errno> {
        if self.kept == Kept::NotYet {
            rustix::fs::fsync(&self.file)?;
            let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::fsync(rustix::fs::open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?)?;
            self.kept = Kept::Yes;
        }
        Ok(())
    }
}

/// Reads all whole exit records of a session, oldest first; empty if there is no file.
///
/// # Errors
/// The kernel's error.
pub fn read(path: &Path) -> Result<Vec<Exited>, Errno> {
    match rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => Ok(slots(&file)?.into_iter().map(|slot| slot.exited).collect()),
        Err(Errno::NOENT) => Ok(Vec::new()),
        Err(errno) => Err(errno),
    }
}

fn fill(file: &OwnedFd) -> Result<(), Errno> {
    // Zeroes are written, not merely reserved: an exit must be recordable on a full disk.
    let mut size = rustix::fs::fstat(file)?.st_size.unsigned_abs();
    let whole = (SLOT * SLOTS) as u64;
    while size < whole {
        let piece = (whole - size).min(PIECE as u64);
        write_all(file, &[0; PIECE][..piece as usize], size)?;
        size += piece;
    }
    Ok(())
}

fn slots(file: &OwnedFd) -> Result<Vec<Slot>, Errno> {
    let mut slots = Vec::new();
    let mut bytes = [0; PIECE];
    for at in (0..SLOT * SLOTS).step_by(PIECE) {
        let length = read_full(file, &mut bytes, at as u64)?;
        slots.extend(bytes[..length].as_chunks::<SLOT>().0.iter().filter_map(read_slot));
    }
    slots.sort_by_key(|slot: &Slot| slot.sequence);
    Ok(slots)
}

fn slot(sequence: u64, acknowledged: RunNumber, exited: &Exited) -> [u8; SLOT] {
    let mut fields = Vec::with_capacity(SUM_AT - HEAD);
    write_fields(&mut fields, |writer| exited.write(writer));
    debug_assert!(fields.len() <= SUM_AT - HEAD, "the longest exit takes about 100 bytes");
    let mut bytes = [0; SLOT];
    bytes[..4].copy_from_slice(MAGIC);
    bytes[4..6].copy_from_slice(&(fields.len() as u16).to_le_bytes());
    bytes[8..16].copy_from_slice(&sequence.to_le_bytes());
    bytes[16..24].copy_from_slice(&acknowledged.0.to_le_bytes());
    bytes[HEAD..HEAD + fields.len()].copy_from_slice(&fields);
    let sum = checksum(&bytes[..SUM_AT]);
    bytes[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn read_slot(bytes: &[u8; SLOT]) -> Option<Slot> {
    let word = |at: usize| bytes[at..].first_chunk().map(|chunk| u64::from_le_bytes(*chunk));
    if &bytes[..4] != MAGIC || word(SUM_AT)? != checksum(&bytes[..SUM_AT]) {
        return None;
    }
    let length = usize::from(u16::from_le_bytes([bytes[4], bytes[5]]));
    let fields = Fields::new(0, bytes[..SUM_AT].get(HEAD..HEAD + length)?).ok()?;
    let exited = Exited::read(fields).ok()?;
    Some(Slot { sequence: word(8)?, acknowledged: RunNumber(word(16)?), exited })
}

/// Reads as much as there is; returns how much.
fn read_full(file: &OwnedFd, bytes: &mut [u8], at: u64) -> Result<usize, Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pread(file, &mut bytes[done..], at + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

fn write_all(file: &OwnedFd, mut bytes: &[u8], mut at: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(file, bytes, at) {
            Ok(count) => (bytes, at) = (&bytes[count..], at + count as u64),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::log::Position;
    use crate::protocol::exited::StartFailure;
    use crate::protocol::say::SayNumber;
    use crate::protocol::tape::{SaidUpTo, TapeEnd};
    use pinfold_core::exit::{Ended, Exit, ExitNotice};
    use pinfold_core::inbox::Read;
    use pinfold_core::time::Wall;
    use std::time::Duration;

    fn exited(run: u64) -> Exited {
        Exited {
            run: RunNumber(run),
            ended: Ended {
                exit: Exit::Signal(-9),
                said: Some(ExitNotice::Limited),
                recognised: None,
                oom_killed: true,
                forced: true,
                lived: Duration::from_millis(u64::MAX),
                read: Read::default(),
                at: None,
                last_line: None,
            },
            failure: Some(StartFailure::Outdated { last: RunNumber(u64::MAX) }),
            pid: u32::MAX,
            fence: u64::MAX,
            at: Wall(-1),
            log: Position(u64::MAX),
            tape: Some(TapeEnd {
                end: Position(u64::MAX),
                said: SaidUpTo { said: SayNumber(u64::MAX), written: SayNumber(u64::MAX) },
            }),
        }
    }

    #[test]
    fn records_are_read_back_in_order_after_any_number_of_turns_of_the_ring() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("exits");
        for run in 1..=200 {
            let mut records = Records::open(&path).unwrap();
            records.append(&exited(run)).unwrap();
            records.acknowledge(RunNumber(run));
        }
        let runs: Vec<u64> = read(&path).unwrap().iter().map(|exited| exited.run.0).collect();
        assert_eq!(runs, (137..=200).collect::<Vec<_>>());
        let records = Records::open(&path).unwrap();
        assert_eq!(records.last(), Some(RunNumber(200)));
        assert_eq!(records.of(RunNumber(150)).unwrap(), Some(exited(150)));
        assert_eq!(records.of(RunNumber(10)).unwrap(), None);
    }

    #[test]
    fn only_what_was_not_acknowledged_is_told_again() {
        let temp = tempfile::tempdir().unwrap();
        let mut records = Records::open(&temp.path().join("exits")).unwrap();
        for run in 1..=3 {
            records.append(&exited(run)).unwrap();
        }
        records.acknowledge(RunNumber(2));
        assert_eq!(records.unacknowledged().unwrap(), [exited(3)]);
        assert!(!records.is_full());
        for run in 4..67 {
            records.append(&exited(run)).unwrap();
        }
        assert!(records.is_full());
    }

    #[test]
    fn what_was_acknowledged_or_synced_needs_no_sync() {
        let temp = tempfile::tempdir().unwrap();
        let mut records = Records::open(&temp.path().join("exits")).unwrap();
        assert!(!records.is_unsynced());
        records.append(&exited(1)).unwrap();
        assert!(records.is_unsynced());
        records.acknowledge(RunNumber(1));
        assert!(!records.is_unsynced());
        records.append(&exited(2)).unwrap();
        records.acknowledge(RunNumber(1));
        assert!(records.is_unsynced());
        records.sync().unwrap();
        assert!(!records.is_unsynced());
    }

    #[test]
    fn a_torn_slot_costs_itself_only() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("exits");
        let mut records = Records::open(&path).unwrap();
        records.append(&exited(1)).unwrap();
        records.append(&exited(2)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for at in 0..SLOT {
            let mut torn = whole.clone();
            torn[SLOT + at] ^= 1;
            std::fs::write(&path, &torn).unwrap();
            assert_eq!(read(&path).unwrap(), [exited(1)], "byte {at}");
            assert_eq!(Records::open(&path).unwrap().next, 1);
        }
    }

    #[test]
    fn a_file_cut_short_is_read_as_far_as_it_goes_and_filled_again() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("exits");
        let mut records = Records::open(&path).unwrap();
        records.append(&exited(1)).unwrap();
        std::fs::write(&path, &std::fs::read(&path).unwrap()[..SLOT + 10]).unwrap();
        assert_eq!(read(&path).unwrap(), [exited(1)]);
        drop(Records::open(&path).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), (SLOT * SLOTS) as u64);
        assert_eq!(read(&temp.path().join("none")).unwrap(), []);
    }
}
