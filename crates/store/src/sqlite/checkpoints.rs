//! Checkpoints SQLite's log beside the commits: the writer waits for that only if it does not keep up.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// After this many pages the log is checkpointed: it then starts over within the space it has (`wal_space`),
/// unless there are writes without a pause.
const SOON: u32 = 500;
/// At this length the writer waits for it: four megabytes, for which space is reserved (`reserve`).
const AT_LAST: u32 = 1000;

/// The thread that makes checkpoints, started when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    /// The number of pages in the log, by SQLite's own count.
    pages: Arc<AtomicU32>,
    /// How many there were at the last checkpoint.
    seen: u32,
    /// SQLite does not wait if two connections want to do this at once: one of them would do nothing.
    turn: Arc<Mutex<()>>,
    thread: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl Checkpoints {
    /// Makes the writer's connection count pages, and make no checkpoints by itself.
    ///
    /// # Errors
    /// SQLite's error.
    pub(crate) fn watch(&self, conn: &mut Connection) -> rusqlite::Result<()> {
        let pages = Arc::clone(&self.pages);
        conn.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, count: i32| {
            pages.store(count.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        }))
    }

    /// Whether a checkpoint is due; asked after a commit. On a full disk (`tight`) it is tried after each
    /// one: a longer log must not use up the reserve.
    pub(crate) fn is_due(&mut self, tight: bool) -> bool {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.seen {
            // The log has started over.
            self.seen = 0;
        }
        // If a reader keeps the log from starting over, it is not tried after each commit.
        let due = pages >= self.seen + SOON || tight && pages >= AT_LAST;
        if due {
            self.seen = pages;
        }
        due
    }

    /// Makes the thread do it, or does it directly if the thread cannot keep up.
    pub(crate) fn make(&mut self, conn: &Connection) {
        match &self.thread {
            Some((due, _)) if self.seen < AT_LAST => drop(due.try_send(())),
            _ => {
                let _turn = self.turn();
                // Failing is no worse than not trying: then the log is longer.
                drop(pass(conn));
            }
        }
    }

    /// Whether the thread is running.
    pub(crate) fn has_thread(&self) -> bool {
        self.thread.is_some()
    }

    /// Starts the thread, with its own connection that has its files open from now on. The caller checks
    /// before and afterwards whether those are the files that it writes: no others must get anything of this log.
    pub(crate) fn begin(&mut self, path: &Path, is_ours: impl FnOnce() -> bool) {
        let Ok(conn) = connect(path) else { return };
        if !is_ours() {
            return;
        }
        let ((due, told), turn) = (sync_channel::<()>(1), Arc::clone(&self.turn));
        let work = move || {
            while told.recv().is_ok() {
                let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
                drop(pass(&conn));
            }
        };
        let thread = thread::Builder::new().name("checkpoints".into()).spawn(work);
        self.thread = thread.ok().map(|thread| (due, thread));
    }

    /// While this is held, nothing else checkpoints the log.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the thread, which closes its connection.
    pub(crate) fn end(&mut self) {
        if let Some((due, thread)) = self.thread.take() {
            drop(due);
            drop(thread.join());
        }
    }
}

/// Checkpoints as far as no reader is in the way; waits for nothing.
fn pass(conn: &Connection) -> rusqlite::Result<()> {
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.busy_timeout(Duration::ZERO)?;
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "checkpoint_fullfsync", true)?;
    // The log is opened at the first look into the file.
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AuditEvent, Batch, Store, StoreOptions};
    use pinfold_core::Wall;
    use std::time::Instant;

    /// The size of a page in the log.
    const PAGE: u64 = 4096 + 24;

    fn events(count: usize) -> Batch {
        let mut batch = Batch::new();
        for _ in 0..count {
            let data = [("text".to_owned(), "x".repeat(1000).into())].into_iter().collect();
            batch.event(AuditEvent {
                at: Wall(1),
                session: None,
                run: None,
                kind: "test".into(),
                why: String::new(),
                data,
            });
        }
        batch
    }

    #[test]
    fn the_log_of_a_store_that_is_written_without_a_pause_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let store = Store::open(&path, &StoreOptions::default()).unwrap();
        for _ in 0..100 {
            let tickets: Vec<_> = (0..10).map(|_| store.commit(events(10))).collect();
            tickets.into_iter().for_each(|ticket| assert!(ticket.wait().is_ok()));
        }
        let (log, file) = (folder.path().join("s.db-wal"), std::fs::metadata(&path).unwrap().len());
        let log = std::fs::metadata(log).unwrap().len();
        assert!(log < (u64::from(AT_LAST) + 500) * PAGE, "{log} bytes");
        assert!(file > 5 << 20, "{file} bytes");
        drop(store);
        assert!(!folder.path().join("s.db-wal").exists(), "an orderly end leaves one file");
        assert_eq!(
            Store::open(&path, &StoreOptions::default()).unwrap().reader().unwrap().max_seq().unwrap(),
            10_000
        );
    }

    #[test]
    fn a_store_that_is_written_now_and_then_has_its_log_brought_into_the_file_by_a_thread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let store = Store::open(&path, &StoreOptions::default()).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        // One commit fewer than it takes until the writer has to wait.
        for _ in 0..2 {
            store.commit(events(1000)).wait().unwrap();
        }
        while std::fs::metadata(&path).unwrap().len() < 1 << 20 {
            assert!(Instant::now() < until, "nobody has done it");
            thread::yield_now();
        }
    }
}
