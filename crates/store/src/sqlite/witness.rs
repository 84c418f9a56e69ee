//! The witness: how far the store was, in a small file outside of it.
//!
//! A store that lost its log, or was put back from an old copy, looks healthy. The witness is written after
//! every commit and before anything is acknowledged, and is not synced: after a power failure it may be older
//! than the store, but never newer. So a store that is behind it has lost something.
//!
//! Two slots are written in turn, each in its own page and with a checksum: a torn one leaves the other.

use super::sums::Sum;
use crate::position::StorePosition;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const MAGIC: &[u8; 8] = b"pinfwit1";
/// A torn write of one slot does not reach the other.
const PAGE: u64 = 4096;
const SLOT: usize = 56;

/// Returns how far the store of a connection is.
pub(crate) fn position(conn: &Connection) -> rusqlite::Result<StorePosition> {
    let value = |key: &str| {
        let sql = "SELECT value FROM meta WHERE key = ?1";
        conn.prepare_cached(sql)?.query_row([key], |row| row.get::<_, u64>(0)).optional()
    };
    let (generation, steps) = (value("generation")?.unwrap_or(0), value("steps")?.unwrap_or(0));
    let (seq, sum) = newest(conn)?;
    Ok(StorePosition { generation, seq, steps, sum })
}

/// Returns the newest event and its checksum.
fn newest(conn: &Connection) -> rusqlite::Result<(u64, i64)> {
    let sql = "SELECT seq, sum FROM events ORDER BY seq DESC LIMIT 1";
    let both = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?.unwrap_or(0)));
    Ok(conn.prepare_cached(sql)?.query_row([], both).optional()?.unwrap_or_default())
}

/// What a witness file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WitnessNote {
    /// There is no witness.
    Missing,
    /// The store was as far as this.
    At(StorePosition),
    /// Neither slot can be read.
    Damaged,
}

/// Reads a witness, and changes nothing.
pub(crate) fn look(path: &Path) -> io::Result<WitnessNote> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(WitnessNote::Missing),
        Err(error) => return Err(error),
    };
    let newest = slots(&file)?.into_iter().flatten().max();
    Ok(newest.map_or(WitnessNote::Damaged, |(_, position)| WitnessNote::At(position)))
}

fn slots(file: &File) -> io::Result<[Option<(u64, StorePosition)>; 2]> {
    let mut found = [None; 2];
    for (slot, at) in found.iter_mut().zip([0, PAGE]) {
        let mut bytes = [0; SLOT];
        match file.read_exact_at(&mut bytes, at) {
            Ok(()) => *slot = read(&bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn read(bytes: &[u8; SLOT]) -> Option<(u64, StorePosition)> {
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let whole = &bytes[..8] == MAGIC && word(48) == sum(bytes);
    let position =
        StorePosition { generation: word(16), seq: word(24), steps: word(32), sum: word(40).cast_signed() };
    whole.then(|| (word(8), position))
}

fn written(number: u64, position: &StorePosition) -> [u8; SLOT] {
    let mut bytes = [0; SLOT];
    bytes[..8].copy_from_slice(MAGIC);
    let words = [number, position.generation, position.seq, position.steps, position.sum.cast_unsigned()];
    for (at, word) in (8..).step_by(8).zip(words) {
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    let sum = sum(&bytes);
    bytes[48..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn sum(bytes: &[u8; SLOT]) -> u64 {
    let mut sum = Sum::of(6);
    sum.add(ValueRef::Blob(&bytes[..48]));
    sum.done().cast_unsigned()
}

/// A witness that is being written.
#[derive(Debug)]
pub(crate) struct Witness {
    file: File,
    number: u64,
}

impl Witness {
    /// Opens the witness of a store, or creates it; from now on it says that the store is as far as this.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn open(path: &Path, position: &StorePosition) -> io::Result<Witness> {
        let new = !path.exists();
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let number = slots(&file)?.into_iter().flatten().map(|(number, _)| number).max().unwrap_or(0);
        let mut witness = Witness { file, number };
        // Twice, so that both slots are about this store, whatever was there before.
        witness.note(position)?;
        witness.note(position)?;
        if new {
            // Its blocks are allocated before they are needed: a note must not fail on a full disk.
            witness.file.write_all_at(&[0; 8], 2 * PAGE - 8)?;
            witness.file.sync_all()?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(witness)
    }

    /// Notes how far the store is.
    pub(crate) fn note(&mut self, position: &StorePosition) -> io::Result<()> {
        self.number += 1;
        let at = (self.number % 2) * PAGE;
        self.file.write_all_at(&written(self.number, position), at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seq: u64) -> StorePosition {
        StorePosition { generation: 2, seq, steps: 3, sum: -7 }
    }

    #[test]
    fn what_was_noted_last_is_read_and_a_torn_slot_leaves_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("witness");
        assert_eq!(look(&path).unwrap(), WitnessNote::Missing);
        let mut witness = Witness::open(&path, &at(1)).unwrap();
        for seq in 2..9 {
            witness.note(&at(seq)).unwrap();
            assert_eq!(look(&path).unwrap(), WitnessNote::At(at(seq)));
        }
        let whole = std::fs::read(&path).unwrap();
        for byte in [0, 9, 20, 55].into_iter().flat_map(|byte| [byte, byte + 4096]) {
            let mut torn = whole.clone();
            torn[byte] ^= 0x10;
            std::fs::write(&path, &torn).unwrap();
            let WitnessNote::At(left) = look(&path).unwrap() else { panic!("byte {byte}") };
            assert!(left == at(7) || left == at(8), "byte {byte}: {left:?}");
        }
        std::fs::write(&path, vec![0; 8192]).unwrap();
        assert_eq!(look(&path).unwrap(), WitnessNote::Damaged);
        std::fs::write(&path, "").unwrap();
        assert_eq!(look(&path).unwrap(), WitnessNote::Damaged);
    }
}
