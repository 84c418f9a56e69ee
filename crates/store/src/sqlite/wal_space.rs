//! Space in SQLite's log: a file that grows with every commit has its length and its blocks written with every sync.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// The log starts over at this length: a thousand pages, each with its header (`wal_autocheckpoint`).
const WHOLE: u64 = 1000 * (4096 + 24) + 32;
const PIECE: usize = 64 << 10;

/// Fills the log with zeroes up to the length that it would get anyway. SQLite does not read what is not a
/// frame, so only the writer of frames may call this, between two of them.
///
/// # Errors
/// The kernel's error; the log is then as long as before.
pub(crate) fn make(log: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(log)?;
    let before = file.seek(SeekFrom::End(0))?;
    fill(&mut file, before).and_then(|()| file.sync_all()).inspect_err(|_| {
        // A full disk has better uses for the space.
        _ = file.set_len(before);
    })
}

fn fill(file: &mut File, mut length: u64) -> io::Result<()> {
    let zeroes = vec![0; PIECE];
    while length < WHOLE {
        let piece = usize::try_from(WHOLE - length).map_or(PIECE, |left| left.min(PIECE));
        file.write_all(&zeroes[..piece])?;
        length += piece as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AuditEvent, Batch, Store, StoreOptions};
    use pinfold_core::Wall;
    use std::time::{Duration, Instant};

    fn event() -> Batch {
        let mut batch = Batch::new();
        let (kind, why, data) = ("test".into(), String::new(), serde_json::Map::new());
        batch.event(AuditEvent { at: Wall(1), session: None, run: None, kind, why, data });
        batch
    }

    #[test]
    fn a_calm_store_makes_room_once_and_whoever_finds_it_after_a_crash_reads_everything() {
        let temp = tempfile::tempdir().unwrap();
        let (path, log) = (temp.path().join("s.db"), temp.path().join("s.db-wal"));
        let store = Store::open(&path, &StoreOptions::default()).unwrap();
        store.commit(event()).wait().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while std::fs::metadata(&log).unwrap().len() < WHOLE {
            assert!(Instant::now() < until, "no room was made");
            std::thread::sleep(Duration::from_millis(10));
        }
        for _ in 0..50 {
            store.commit(event()).wait().unwrap();
        }
        assert_eq!(std::fs::metadata(&log).unwrap().len(), WHOLE, "it did not grow");
        // As a power failure would leave it: without the index.
        let found = temp.path().join("found.db");
        std::fs::copy(&path, &found).unwrap();
        std::fs::copy(&log, temp.path().join("found.db-wal")).unwrap();
        let again = Store::open(&found, &StoreOptions::default()).unwrap();
        assert_eq!(again.reader().unwrap().max_seq().unwrap(), 51);
        assert_eq!(again.commit(event()).wait().unwrap().seqs, 52..53);
    }

    #[test]
    fn a_log_that_cannot_be_filled_stays_as_it_was() {
        make(Path::new("/dev/full")).unwrap_err();
        make(Path::new("/nowhere/at/all")).unwrap_err();
    }
}
