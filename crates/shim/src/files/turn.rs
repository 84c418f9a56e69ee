//! What a shim saw of the latest turn, on disk: a later daemon reads it there, even after the shim is gone.
//!
//! One turn runs at a time, and the next begins when the previous end is stored, so one record of each kind
//! is enough. They are written in place, to survive the death of processes; a power cut costs at most a
//! second delivery.

use crate::protocol::frame::{Decoder, write};
pub use crate::protocol::turn::{DoneLine, Turn};
use pinfold_kernel::checksum::checksum;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Longest answer that is kept, in bytes, as long as a message may be; the log has all of it.
pub const LONGEST_ANSWER: usize = 1 << 20;
/// The end of a turn does not overwrite its beginning: a torn end says nothing, but the beginning still does.
const END_AT: u64 = 4096;
const KIND: u8 = 1;
const SUM: usize = 8;

impl Turn {
    /// Stores the turn beside the exit records.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn store(&self, records: &Path) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path(records), flags, Mode::RUSR | Mode::WUSR)?;
        let mut bytes = vec![0; SUM];
        write(&mut bytes, KIND, |fields| self.write(fields));
        let sum = checksum(&bytes[SUM..]);
        bytes[..SUM].copy_from_slice(&sum.to_le_bytes());
        let mut at = if self.done.is_some() { END_AT } else { 0 };
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match rustix::io::pwrite(&file, rest, at) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(count) => (rest, at) = (&rest[count..], at + count as u64),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Returns the latest turn that was stored beside these exit records.
    #[must_use]
    pub fn latest(records: &Path) -> Option<Turn> {
        let file = rustix::fs::open(path(records), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let begun = slot(&file, 0);
        let ended = slot(&file, END_AT);
        match (begun, ended) {
            (Some(begun), Some(ended)) if ended.is(begun.run, begun.message, begun.attempt) => Some(ended),
            (Some(begun), _) => Some(begun),
            (None, ended) => ended,
        }
    }
}

/// Returns the path of the turn's file, beside the exit records.
fn path(records: &Path) -> PathBuf {
    let mut name = OsString::from(records.as_os_str());
    name.push(".turn");
    PathBuf::from(name)
}

/// Reads one record; `None` if it is missing, torn, or written by a newer version.
fn slot(file: &OwnedFd, at: u64) -> Option<Turn> {
    let head = read(file, at, SUM + 4)?;
    let (sum, length) = head.split_at(SUM);
    let length = u32::from_le_bytes(*length.first_chunk()?) as usize;
    let frame = read(file, at + SUM as u64, length.checked_add(4).filter(|all| *all <= crate::LONGEST)?)?;
    if sum != checksum(&frame).to_le_bytes() {
        return None;
    }
    let mut decoder = Decoder::default();
    decoder.feed(&frame);
    let frame = decoder.frame().ok()??;
    Turn::read(frame.fields).ok().filter(|_| frame.kind == KIND)
}

fn read(file: &OwnedFd, at: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut done = 0;
    while done < length {
        match rustix::io::pread(file, &mut bytes[done..], at + done as u64) {
            Ok(0) => return None,
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::output::Position;
    use pinfold_core::ids::{MessageId, RunNumber};

    fn turn(attempt: u32, answer: Option<&[u8]>) -> Turn {
        let done = answer.map(|answer| DoneLine {
            to: Position(900),
            answer: answer.to_vec(),
            whole: answer.len() < 9,
            named: (answer.len() == 9).then_some(MessageId(1 << 77)),
        });
        Turn { run: RunNumber(3), message: MessageId(1 << 90), attempt, from: Position(77), done }
    }

    #[test]
    fn the_latest_turn_is_read_back_and_an_older_end_is_not_taken_for_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("exits");
        assert_eq!(Turn::latest(&records), None);
        for row in [turn(1, None), turn(1, Some(b"an answer")), turn(2, None), turn(2, Some(b""))] {
            row.store(&records).unwrap();
            assert_eq!(Turn::latest(&records), Some(row));
        }
        turn(3, None).store(&records).unwrap();
        let long = turn(3, Some(&vec![b'x'; LONGEST_ANSWER]));
        long.store(&records).unwrap();
        assert_eq!(Turn::latest(&records), Some(long));
    }

    #[test]
    fn a_torn_end_leaves_the_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("exits");
        turn(1, None).store(&records).unwrap();
        turn(1, Some(b"an answer")).store(&records).unwrap();
        let file = path(&records);
        let mut bytes = std::fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(Turn::latest(&records), Some(turn(1, None)));
        bytes.truncate(END_AT as usize + 5);
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(Turn::latest(&records), Some(turn(1, None)));
    }
}
