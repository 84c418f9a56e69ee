//! The one writing thread: everything that waits goes into one transaction and one fsync.

use super::answers::{AllSettled, AnswerFiles};
use super::apply::{AppliedSteps, Applier, WriterCache};
use super::checkpoints::Checkpoints;
use super::errors::commit_error;
use super::files::log_of;
use super::footing::Footing;
use super::open;
use super::reserve::Reserve;
use super::wal_space;
use super::witness::Witness;
use crate::batch::{Batch, Tidy};
use crate::broken::BrokenSessions;
use crate::commit_error::CommitError;
use crate::open::HeldUp;
use crate::position::StorePosition;
use crate::step::Step;
use crate::ticket::{Committed, Promise};
use crate::trouble::{SharedTrouble, Trouble};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// More would make the first of a group wait long for the last.
const LARGEST_GROUP: usize = 256;

/// When nothing came for this long, there is time for the log.
const CALM: Duration = Duration::from_millis(500);

/// How long closing waits for other users of the log.
const LAST_TRY: Duration = Duration::from_millis(500);

/// How often to check whether the files are still there, and whether there is space again.
const LOOK: Duration = Duration::from_secs(2);
/// How soon to retry something that cannot be written now.
const AGAIN: Duration = Duration::from_millis(200);

pub(crate) struct CommitJob {
    pub(crate) batch: Batch,
    pub(crate) promise: Promise,
}

/// What a writer consists of besides its connection.
pub(crate) struct Surroundings {
    pub(crate) path: PathBuf,
    pub(crate) witness: Option<Witness>,
    pub(crate) reserve: Reserve,
    pub(crate) health: SharedTrouble,
    pub(crate) when_held_up: HeldUp,
    /// Set when the store is closed: what cannot be written then fails.
    pub(crate) leaving: Arc<AtomicBool>,
    /// How far the store is, for other threads.
    pub(crate) acknowledged: Arc<Mutex<StorePosition>>,
    /// Where long answers are.
    pub(crate) answers: AnswerFiles,
}

pub(crate) struct SqliteWriter {
    conn: Connection,
    path: PathBuf,
    /// Whether the log has its full length.
    has_room: bool,
    broken: BrokenSessions,
    /// How far the store is.
    position: StorePosition,
    /// What need not be read again while SQLite's count of other writers' changes stays the same.
    known: WriterCache,
    version: Option<i64>,
    footing: Footing,
    checkpoints: Checkpoints,
    around: Surroundings,
}

type Outcomes = Result<Vec<Committed>, CommitError>;

impl SqliteWriter {
    pub(crate) fn new(mut conn: Connection, position: StorePosition, around: Surroundings) -> SqliteWriter {
        let (path, footing) = (around.path.clone(), Footing::new(&around.path));
        let checkpoints = Checkpoints::default();
        // If this fails, SQLite makes checkpoints within the commits.
        drop(checkpoints.watch(&mut conn));
        SqliteWriter {
            conn,
            path,
            has_room: false,
            broken: BrokenSessions::default(),
            position,
            known: WriterCache::default(),
            version: None,
            footing,
            checkpoints,
            around,
        }
    }

    /// Writes until no more jobs can come and every one is answered.
    pub(crate) fn run(mut self, jobs: &Receiver<CommitJob>) {
        while let Some(job) = self.next(jobs) {
            let mut group = vec![job];
            group.extend(jobs.try_iter().take(LARGEST_GROUP - 1));
            self.commit_group(group);
            self.bring_home();
        }
        self.finish();
    }

    /// Checkpoints everything, so that a copy of the file alone is complete.
    fn finish(&mut self) {
        self.checkpoints.end();
        if self.footing.is_cut() {
            // What is left of a log that was cut would be written over intact pages.
            drop(self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
            return;
        }
        // Another program's reader that uses the log does not hold up the daemon; SQLite reads the log again next time.
        drop(self.conn.busy_timeout(LAST_TRY));
        self.make_room();
    }

    /// Makes a checkpoint if it is time. The callers of the last group have already been told.
    fn bring_home(&mut self) {
        if !self.checkpoints.is_due(!self.around.reserve.is_kept()) || self.footing.lost().is_some() {
            return;
        }
        if !self.checkpoints.has_thread() {
            let footing = &mut self.footing;
            self.checkpoints.begin(&self.path, || footing.lost().is_none());
        }
        self.checkpoints.make(&self.conn);
    }

    fn next(&mut self, jobs: &Receiver<CommitJob>) -> Option<CommitJob> {
        loop {
            match jobs.recv_timeout(if self.has_room { LOOK } else { CALM }) {
                Ok(job) => return Some(job),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.look_after(),
            }
        }
    }

    /// Uses idle time: for the log, for the reserve, and to check the files.
    fn look_after(&mut self) {
        if !self.has_room {
            // Without it commits are slower but just as good.
            self.has_room = true;
            drop(wal_space::make(&log_of(&self.path)));
            self.around.reserve.keep();
        }
        let trouble = match (self.footing.lost(), self.around.health.now()) {
            (Some(path), _) => Trouble::Gone { path },
            (None, Trouble::None) => return,
            // The batch that was refused is gone and cannot be retried, so a probe is written instead.
            (None, found) if found.holds_up() && !self.is_over(&found) => found,
            (None, _) if self.around.reserve.keep() => Trouble::None,
            (None, _) => Trouble::Reserve,
        };
        self.around.health.set(trouble);
    }

    /// Whether the trouble is over: the file can be written and is whole. A large one is not read for that:
    /// once damaged it stays so until a batch succeeds or the store is opened again.
    fn is_over(&self, found: &Trouble) -> bool {
        self.forget_pages();
        let whole =
            !matches!(found, Trouble::Damaged { .. }) || open::is_small_and_whole(&self.conn, &self.path);
        whole && self.probe().is_ok()
    }

    /// Writes something that changes nothing.
    fn probe(&self) -> Result<(), CommitError> {
        self.execute("BEGIN IMMEDIATE")?;
        let written = self
            .execute("UPDATE meta SET value = value WHERE key = 'steps'")
            .and_then(|()| self.execute("COMMIT"));
        self.roll_back_if_open();
        written
    }

    fn commit_group(&mut self, group: Vec<CommitJob>) {
        let batches: Vec<&Batch> = group.iter().map(|job| &job.batch).collect();
        match self.persist(&batches) {
            Ok(outcomes) => group.into_iter().zip(outcomes).for_each(|(job, done)| self.succeed(job, done)),
            // One bad batch must not fail its neighbours.
            Err(error) if group.len() > 1 && error.may_be_of_one() => self.commit_one_by_one(group),
            Err(error) => {
                let error = Arc::new(error);
                group.into_iter().for_each(|job| self.fail(job, Arc::clone(&error)));
            }
        }
    }

    fn commit_one_by_one(&mut self, group: Vec<CommitJob>) {
        for job in group {
            match self.persist(&[&job.batch]) {
                Ok(outcomes) => self.succeed(job, outcomes.into_iter().next().unwrap_or_default()),
                Err(error) => self.fail(job, Arc::new(error)),
            }
        }
    }

    /// Makes batches durable; waits for other writers, for space, and for a disk that accepts them. Nothing
    /// is decided anew meanwhile, so what waits is as true as before.
    fn persist(&mut self, batches: &[&Batch]) -> Outcomes {
        let mut tidied = false;
        self.wait_for_whole_files()?;
        loop {
            let written = self.settle(batches).and_then(|settled| self.transact(batches, &settled));
            match written {
                Ok(outcomes) => return self.on_firm_ground().map(|()| outcomes),
                Err(CommitError::StorageFull { .. }) if self.around.reserve.give_back() => tidied = false,
                // With the reserve given back, the log fits into the file and starts over.
                Err(CommitError::StorageFull { .. }) if !tidied => {
                    self.make_room();
                    tidied = true;
                }
                Err(error) => self.wait_or(error, batches)?,
            }
        }
    }

    /// Reports what holds it up and waits a little, unless that is not wanted or the store is being closed.
    fn wait_or(&self, error: CommitError, batches: &[&Batch]) -> Result<(), CommitError> {
        let Some(trouble) = error.trouble() else { return Err(error) };
        if self.around.when_held_up == HeldUp::Fail || self.around.leaving.load(Ordering::Acquire) {
            return Err(error);
        }
        // Another writer is gone in a moment, and SQLite has already waited for the busy time-out.
        let waits = trouble == Trouble::Busy || batches.iter().all(|batch| !batch.impatient);
        self.around.health.set(trouble);
        if !waits {
            return Err(error);
        }
        std::thread::sleep(AGAIN);
        self.forget_pages();
        Ok(())
    }

    /// Drops cached pages: what was read from a damaged file is not what is in it now.
    fn forget_pages(&self) {
        drop(self.conn.release_memory());
    }

    /// Waits until no file is cut: an append would hide that. Whether each still has its name is checked
    /// after the commit, when it matters.
    fn wait_for_whole_files(&mut self) -> Result<(), CommitError> {
        match self.footing.sunk() {
            Some(_) => self.wait_for_files(),
            None => Ok(()),
        }
    }

    /// Waits until the files are what they were.
    fn wait_for_files(&mut self) -> Result<(), CommitError> {
        while let Some(path) = self.footing.lost() {
            self.wait_or(CommitError::Gone { path }, &[])?;
        }
        Ok(())
    }

    /// A commit into a file that has lost its name does not count: it is acknowledged when the file is back.
    fn on_firm_ground(&mut self) -> Result<(), CommitError> {
        self.wait_for_files()?;
        if let Some(witness) = &mut self.around.witness {
            // It must not note more than is there; less is fine.
            drop(witness.note(&self.position));
        }
        *self.around.acknowledged.lock().unwrap_or_else(PoisonError::into_inner) = self.position;
        let reserved = self.around.reserve.is_kept();
        if !reserved || self.around.health.now().holds_up() {
            self.around.health.set(if reserved { Trouble::None } else { Trouble::Reserve });
        }
        Ok(())
    }

    fn succeed(&mut self, job: CommitJob, committed: Committed) {
        self.broken.succeeded(&job.batch);
        let tidied = self.tidy(job.batch.tidy).map_err(Arc::new);
        job.promise.keep(tidied.map(|()| committed));
    }

    /// Leaves as little of what was deleted as was asked for.
    fn tidy(&mut self, tidy: Tidy) -> Result<(), CommitError> {
        match tidy {
            Tidy::Later => return Ok(()),
            Tidy::Log => {}
            Tidy::File => {
                self.execute("VACUUM")?;
                self.footing.file_is_cut();
            }
        }
        self.make_room();
        // The log is empty now.
        self.has_room = false;
        Ok(())
    }

    fn fail(&mut self, job: CommitJob, error: Arc<CommitError>) {
        self.broken.failed(&job.batch);
        job.promise.keep(Err(error));
    }

    /// Writes long answers to the disk: a row must not name a file that does not exist.
    fn settle(&self, batches: &[&Batch]) -> Result<AllSettled, CommitError> {
        self.around
            .answers
            .settle(batches)
            .map_err(|source| CommitError::StorageFull { path: self.path.clone(), source: source.into() })
    }

    /// Applies all or nothing.
    fn transact(&mut self, batches: &[&Batch], settled: &AllSettled) -> Outcomes {
        if batches.iter().all(|batch| batch.is_empty()) {
            return Ok(vec![Committed::default(); batches.len()]);
        }
        self.execute("BEGIN IMMEDIATE")?;
        let done = self.still_known().and_then(|mut known| {
            let applied = batches.iter().map(|batch| self.apply(batch, &mut known, settled));
            let applied = applied.collect::<Result<Vec<_>, _>>()?;
            let position = self.advance(batches, &applied)?;
            self.execute("COMMIT")?;
            Ok((applied, position, known))
        });
        match done {
            Ok((applied, position, known)) => {
                (self.position, self.known) = (position, known);
                self.expect_a_shorter_file(batches);
                self.drop_files(batches, &applied);
                Ok(applied.into_iter().map(|done| done.committed).collect())
            }
            Err(error) => {
                self.roll_back_if_open();
                Err(error)
            }
        }
    }

    /// Removes files that are not needed any more, now that this is durable.
    fn drop_files(&self, batches: &[&Batch], applied: &[AppliedSteps]) {
        self.around.answers.drop_drafts(batches);
        for (session, message) in applied.iter().flat_map(|done| &done.gone) {
            self.around.answers.remove(*session, *message);
        }
    }

    /// Space that was given back is cut off at the next checkpoint, which may already have happened.
    fn expect_a_shorter_file(&mut self, batches: &[&Batch]) {
        let gives = |step: &Step| matches!(step, Step::GiveBack { .. });
        if !batches.iter().flat_map(|batch| &batch.steps).any(gives) {
            return;
        }
        let number = |pragma| self.conn.pragma_query_value(None, pragma, |row| row.get::<_, u64>(0));
        // If even this cannot be read, any length will do.
        let bytes = number("page_count").and_then(|pages| Ok(pages * number("page_size")?));
        self.footing.file_will_be_cut(bytes.unwrap_or(0));
    }

    /// Returns what was known at the end of the last transaction, if nothing else has written since. If this
    /// transaction fails, nothing is known.
    fn still_known(&mut self) -> Result<WriterCache, CommitError> {
        let version = self
            .conn
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut asked| asked.query_row([], |row| row.get(0)))
            .map_err(|source| commit_error(&self.path, source))?;
        let known = std::mem::take(&mut self.known);
        let before = self.version.replace(version);
        Ok(if before == Some(version) { known } else { WriterCache::default() })
    }

    fn roll_back_if_open(&self) {
        if !self.conn.is_autocommit() {
            // Nothing of it may be seen; if even this fails, so does the next BEGIN.
            drop(self.execute("ROLLBACK"));
        }
    }

    /// Returns how far the store is with these batches. Those without an event count as a step.
    fn advance(&self, batches: &[&Batch], applied: &[AppliedSteps]) -> Result<StorePosition, CommitError> {
        let generation = batches.iter().filter_map(|batch| batch.generation()).max();
        let mut position =
            StorePosition { generation: generation.unwrap_or(self.position.generation), ..self.position };
        let newest =
            applied.iter().rev().find_map(|done| done.sum.map(|sum| (done.committed.seqs.end - 1, sum)));
        if let Some(newest) = newest {
            (position.seq, position.sum) = newest;
        } else {
            position.steps += 1;
            let sql = "UPDATE meta SET value = ?1 WHERE key = 'steps'";
            let changed = self.conn.prepare_cached(sql).and_then(|mut set| set.execute([position.steps]));
            changed.map_err(|source| commit_error(&self.path, source))?;
        }
        Ok(position)
    }

    fn apply(
        &self,
        batch: &Batch,
        known: &mut WriterCache,
        settled: &AllSettled,
    ) -> Result<AppliedSteps, CommitError> {
        let mut applier = Applier::new(&self.conn, &self.path, known, settled);
        for step in &batch.steps {
            self.broken.refuse(batch, step)?;
            applier.apply(step)?;
        }
        Ok(applier.applied())
    }

    /// Gives the space of the log back, as far as no reader needs it.
    fn make_room(&mut self) {
        let _turn = self.checkpoints.turn();
        // Failing is no worse than not trying: the batches get their own errors next.
        drop(self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        self.footing.log_is_cut();
    }

    fn execute(&self, sql: &str) -> Result<(), CommitError> {
        let done = self.conn.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(|source| commit_error(&self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::{AuditEvent, StoreOptions};
    use pinfold_core::Wall;
    use std::sync::mpsc::channel;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("s.db"), &StoreOptions::default()).unwrap();
        (folder, store)
    }

    fn event(kind: &str) -> Batch {
        let mut batch = Batch::new();
        let (kind, why, data) = (kind.into(), String::new(), serde_json::Map::new());
        batch.event(AuditEvent { at: Wall(1), session: None, run: None, kind, why, data });
        batch
    }

    #[test]
    fn what_another_connection_has_written_is_not_taken_for_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let [ours, theirs] = [(); 2].map(|()| Store::open(&path, &StoreOptions::default()).unwrap());
        let committed = |store: &Store, batch| store.commit(batch).wait();
        let owned = |incarnation| Batch { steps: vec![Step::OwnedBy { incarnation }], ..event("owned") };
        let mut began = Batch::new();
        began.daemon_started(1, "boot");
        committed(&ours, began).unwrap();
        assert_eq!(committed(&ours, event("first")).unwrap().seqs, 1..2);
        assert_eq!(committed(&theirs, event("second")).unwrap().seqs, 2..3);
        assert_eq!(committed(&ours, event("third")).unwrap().seqs, 3..4);
        committed(&ours, owned(1)).unwrap();
        let mut followed = Batch::new();
        followed.daemon_started(2, "boot");
        committed(&theirs, followed).unwrap();
        let refused = committed(&ours, owned(1)).unwrap_err();
        assert!(
            matches!(*refused, CommitError::StaleGeneration { wanted: 1, found: 2 }),
            "a later daemon has announced itself: {refused}"
        );
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
}
