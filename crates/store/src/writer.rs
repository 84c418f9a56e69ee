//! The one thread that writes: everything that waits goes into one transaction and one fsync.

use crate::apply::Applier;
use crate::batch::{Batch, Step};
use crate::commit_error::CommitError;
use crate::room;
use crate::ticket::{Committed, Promise};
use crate::ulid::SessionId;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// More would make the first of a group wait long for the last.
const LARGEST_GROUP: usize = 256;

/// When nothing came for this long, there is time for the log.
const CALM: Duration = Duration::from_millis(500);

/// How long the end waits for others who use the log.
const LAST_TRY: Duration = Duration::from_millis(500);

pub(crate) struct Job {
    pub(crate) batch: Batch,
    pub(crate) promise: Promise,
}

pub(crate) struct Writer {
    conn: Connection,
    path: PathBuf,
    /// Whether the log has its full length.
    has_room: bool,
    /// Sessions with a failed batch that were not loaded again since.
    broken: BTreeSet<SessionId>,
}

impl Writer {
    pub(crate) fn new(conn: Connection, path: PathBuf) -> Writer {
        Writer { conn, path, has_room: false, broken: BTreeSet::new() }
    }

    /// Writes until nobody can ask any more and everything that was asked is answered.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) {
        while let Some(job) = self.next(jobs) {
            let mut group = vec![job];
            group.extend(jobs.try_iter().take(LARGEST_GROUP - 1));
            self.commit_group(group);
        }
        self.finish();
    }

    /// Brings everything from the log into the file: whoever copies the file alone then has all of it.
    fn finish(&self) {
        // A foreign reader that keeps the log in use does not keep the daemon; SQLite reads the log again next time.
        drop(self.conn.busy_timeout(LAST_TRY));
        self.make_room();
    }

    fn next(&mut self, jobs: &Receiver<Job>) -> Option<Job> {
        if self.has_room {
            return jobs.recv().ok();
        }
        match jobs.recv_timeout(CALM) {
            Err(RecvTimeoutError::Timeout) => {
                // Without it commits are slower, and as good.
                self.has_room = true;
                drop(room::make(&crate::open::log_of(&self.path)));
                jobs.recv().ok()
            }
            job => job.ok(),
        }
    }

    fn commit_group(&mut self, group: Vec<Job>) {
        let batches: Vec<&Batch> = group.iter().map(|job| &job.batch).collect();
        match self.transact(&batches) {
            Ok(outcomes) => group.into_iter().zip(outcomes).for_each(|(job, done)| self.succeed(job, done)),
            Err(CommitError::StorageFull { .. }) => {
                self.make_room();
                self.commit_one_by_one(group);
            }
            // One bad batch must not fail its neighbours.
            Err(error) if group.len() > 1 && !error.is_storage() => self.commit_one_by_one(group),
            Err(error) => {
                let error = Arc::new(error);
                group.into_iter().for_each(|job| self.fail(job, Arc::clone(&error)));
            }
        }
    }

    fn commit_one_by_one(&mut self, group: Vec<Job>) {
        for job in group {
            match self.transact(&[&job.batch]) {
                Ok(outcomes) => self.succeed(job, outcomes.into_iter().next().unwrap_or_default()),
                Err(error) => self.fail(job, Arc::new(error)),
            }
        }
    }

    fn succeed(&mut self, job: Job, committed: Committed) {
        self.broken.retain(|id| !job.batch.reloaded.contains(id));
        job.promise.keep(Ok(committed));
    }

    fn fail(&mut self, job: Job, error: Arc<CommitError>) {
        self.broken.extend(job.batch.steps.iter().filter_map(Step::session));
        job.promise.keep(Err(error));
    }

    /// All or nothing.
    fn transact(&self, batches: &[&Batch]) -> Result<Vec<Committed>, CommitError> {
        if batches.iter().all(|batch| batch.is_empty()) {
            return Ok(vec![Committed::default(); batches.len()]);
        }
        self.execute("BEGIN IMMEDIATE")?;
        let done = batches.iter().map(|batch| self.apply(batch)).collect::<Result<Vec<_>, _>>();
        let done = done.and_then(|outcomes| self.execute("COMMIT").map(|()| outcomes));
        if done.is_err() && !self.conn.is_autocommit() {
            // Nothing of it may be seen; if even this fails, the next BEGIN does.
            drop(self.execute("ROLLBACK"));
        }
        done
    }

    fn apply(&self, batch: &Batch) -> Result<Committed, CommitError> {
        let mut applier = Applier::new(&self.conn, &self.path);
        for step in &batch.steps {
            self.refuse_broken(batch, step)?;
            applier.apply(step)?;
        }
        Ok(applier.committed())
    }

    fn refuse_broken(&self, batch: &Batch, step: &Step) -> Result<(), CommitError> {
        let broken = step.session().filter(|id| self.broken.contains(id) && !batch.reloaded.contains(id));
        broken.map_or(Ok(()), |id| Err(CommitError::BuildsOnFailed { id }))
    }

    /// Gives the space of the log back, as far as no reader needs it.
    fn make_room(&self) {
        // Failing to is no worse than not trying: the batches get their own errors next.
        drop(self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
    }

    fn execute(&self, sql: &str) -> Result<(), CommitError> {
        let done = self.conn.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(|source| CommitError::from_sqlite(&self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::{AuditEvent, Options};
    use pinfold_core::Wall;
    use std::sync::mpsc::channel;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("s.db"), &Options::default()).unwrap();
        (folder, store)
    }

    fn event(kind: &str) -> Batch {
        let mut batch = Batch::new();
        let (kind, why, data) = (kind.to_owned(), String::new(), serde_json::Map::new());
        batch.event(AuditEvent { at: Wall(1), session: None, run: None, kind, why, data });
        batch
    }

    fn deadly() -> Batch {
        Batch { steps: vec![Step::Panic], ..Batch::default() }
    }

    #[test]
    fn a_writer_that_dies_fails_every_ticket_and_hangs_none() {
        let (_folder, store) = store();
        let (here, arrived) = channel::<()>();
        let (held, hold) = channel::<()>();
        // While this callback waits, all others join the queue behind it.
        store.commit_then(event("first"), move |_| {
            drop(here);
            hold.recv().unwrap_err();
        });
        arrived.recv().unwrap_err();
        let tickets: Vec<_> = [event("before"), deadly(), event("after")]
            .into_iter()
            .map(|batch| store.commit(batch))
            .collect();
        let (told, tell) = channel();
        store.commit_then(event("callback"), move |outcome| told.send(outcome).unwrap());
        drop(held);
        for ticket in tickets {
            assert!(matches!(*ticket.wait().unwrap_err(), CommitError::WriterGone));
        }
        assert!(matches!(*tell.recv().unwrap().unwrap_err(), CommitError::WriterGone));
        let late = store.commit(event("late")).wait();
        assert!(matches!(*late.unwrap_err(), CommitError::WriterGone));
        assert_eq!(store.reader().unwrap().max_seq().unwrap(), 1, "nothing of the deadly group is visible");
    }

    #[test]
    fn a_callback_that_panics_harms_nobody_else() {
        let (_folder, store) = store();
        store.commit_then(event("first"), |_| panic!("a test wants this"));
        assert_eq!(store.commit(event("second")).wait().unwrap().seqs, 2..3);
    }

    #[test]
    fn a_store_that_its_own_callback_drops_does_not_wait_for_itself() {
        let (_folder, store) = store();
        let (told, tell) = channel();
        let shared = Arc::new(store);
        let last = Arc::clone(&shared);
        shared.commit_then(event("first"), move |_| {
            drop(last);
            told.send(()).unwrap();
        });
        drop(shared);
        tell.recv().unwrap();
    }
}
