//! The steps of a batch as statements. Runs inside a transaction that the caller begins and ends.

use super::answers::{AllSettled, SettledAnswer};
use super::errors::commit_error;
use super::statements;
use super::sums::{ACCOUNTS, ANSWERS, CURSORS, EVENTS, FILES, MESSAGES, SummedTable, USAGE};
use super::usage::SpentRow;
use crate::audit::{failure, purpose_word, whole_millis};
use crate::commit_error::CommitError;
use crate::rows::{Cursor, MessageState, TurnPlace};
use crate::step::{EventRun, EventStep, NewSession, RunStep, Step, message_of};
use crate::ticket::Committed;
use crate::ulid::{RunId, SessionId, Ulid};
use crate::usage::Spent;
use pinfold_core::decision::RunExited;
use pinfold_core::inbox::{Cost, MessageChange};
use pinfold_core::life::{Process, Purpose};
use pinfold_core::{RunNumber, Wall};
use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Params, params, params_from_iter};
use std::path::Path;

mod prune;

/// Applies steps to one store, and notes their results.
pub(crate) struct Applier<'a> {
    conn: &'a Connection,
    path: &'a Path,
    committed: Committed,
    /// The checksum of its last event.
    sum: Option<i64>,
    known: &'a mut WriterCache,
    /// Answers that do not fit into their rows.
    settled: &'a AllSettled,
    /// Messages that were removed and have a file.
    gone: Vec<(SessionId, Ulid)>,
}

/// The results of the steps of a batch.
pub(crate) struct AppliedSteps {
    pub(crate) committed: Committed,
    /// The checksum of its last event.
    pub(crate) sum: Option<i64>,
    /// Messages that were removed and have a file.
    pub(crate) gone: Vec<(SessionId, Ulid)>,
}

/// What need not be read again from a store, as long as nothing else writes to it.
#[derive(Debug, Default)]
pub(crate) struct WriterCache {
    /// The latest generation that was announced.
    generation: Option<u64>,
    /// The number of the newest event.
    newest: Option<u64>,
    /// The session of the last event and its name: the next one is nearly always the same.
    named: Option<(SessionId, Option<String>)>,
}

type Applied = Result<(), CommitError>;

impl<'a> Applier<'a> {
    pub(crate) fn new(
        conn: &'a Connection,
        path: &'a Path,
        known: &'a mut WriterCache,
        settled: &'a AllSettled,
    ) -> Applier<'a> {
        Applier { conn, path, committed: Committed::default(), sum: None, known, settled, gone: Vec::new() }
    }

    /// Returns the results of the steps so far, for when they are durable.
    pub(crate) fn applied(self) -> AppliedSteps {
        AppliedSteps { committed: self.committed, sum: self.sum, gone: self.gone }
    }

    pub(crate) fn apply(&mut self, step: &Step) -> Applied {
        match step {
            Step::Create { new, core, archived_at } => {
                self.known.named = None;
                self.create(new, core, *archived_at)
            }
            Step::Update { id, core, archived_at } => self.update(*id, core, *archived_at),
            Step::Define { id, definition } => self.define(*id, definition),
            Step::Rename { id, name } => {
                self.known.named = None;
                self.rename(*id, name)
            }
            Step::Remove { id } => {
                self.known.named = None;
                self.remove(*id)
            }
            Step::Message { session, at, change, words, from, place, told: _ } => {
                self.message((*session, *at), change, (words.as_deref(), from.as_deref()), *place)
            }
            Step::Run { session, at, run } => self.run(*session, *at, run),
            Step::Cursor(cursor) => self.fold(cursor),
            Step::Spent(spent) => self.spent(spent),
            Step::Files { message, paths, .. } => self.files(Ulid::from(*message), paths),
            Step::Account { name, state } => self.account(name, state),
            Step::Event(event) => self.event(event),
            Step::Generation { generation, boot_id } => self.generation(*generation, boot_id),
            Step::OwnedBy { incarnation } => self.owned_by(*incarnation),
            Step::Prune(prune) => self.prune(prune),
            Step::Told { at, tally } => self.told(*at, *tally),
            Step::GiveBack { within } => self.give_back(*within),
            #[cfg(test)]
            Step::Panic => panic!("a test asked the writer to die"),
        }
    }

    fn create(&self, new: &NewSession, core: &str, archived_at: Option<Wall>) -> Applied {
        let created = self.execute(
            &statements::CREATE,
            params![
                new.id.to_string(),
                new.name,
                new.definition.to_string(),
                core,
                new.created_at.0,
                archived_at.map(|at| at.0),
                new.parent.map(|parent| parent.to_string()),
            ],
        );
        created.map(drop).map_err(|error| self.or_name_taken(error, || Ok(Some(new.name.clone()))))
    }

    fn update(&self, id: SessionId, core: &str, archived_at: Option<Wall>) -> Applied {
        let (of, archived_at) = (id.to_string(), archived_at.map(|at| at.0));
        // Nearly always `archived_at` stays the same, and then the index of names need not be written.
        if self.execute(&statements::UPDATE, params![of, core, archived_at])? > 0 {
            return Ok(());
        }
        let updated = self.execute(&statements::MOVE, params![of, core, archived_at]);
        let rows = updated.map_err(|error| self.or_name_taken(error, || self.name_of(id)))?;
        self.session_changed(id, rows)
    }

    /// Turns what the index of names refused into an error that says so.
    fn or_name_taken(
        &self,
        error: CommitError,
        name: impl FnOnce() -> Result<Option<String>, CommitError>,
    ) -> CommitError {
        let CommitError::Contradiction { source } = error else { return error };
        if !source.to_string().contains("sessions.name") {
            return CommitError::Contradiction { source };
        }
        match name() {
            Ok(Some(name)) => CommitError::NameTaken { name },
            Ok(None) | Err(_) => CommitError::Contradiction { source },
        }
    }

    fn name_of(&self, id: SessionId) -> Result<Option<String>, CommitError> {
        self.one("SELECT name FROM sessions WHERE id = ?1", [id.to_string()])
    }

    fn define(&self, id: SessionId, definition: &str) -> Applied {
        let rows = self.execute(&statements::DEFINE, params![id.to_string(), definition])?;
        self.session_changed(id, rows)
    }

    fn rename(&self, id: SessionId, name: &str) -> Applied {
        let renamed = self.execute(&statements::RENAME, params![id.to_string(), name]);
        let rows = renamed.map_err(|error| self.or_name_taken(error, || Ok(Some(name.to_owned()))))?;
        self.session_changed(id, rows)
    }

    fn remove(&mut self, id: SessionId) -> Applied {
        let sql = "DELETE FROM sessions WHERE id = ?1";
        self.session_changed(id, self.execute(sql, params![id.to_string()])?)?;
        self.forget_kept_events(id)
    }

    fn fold(&self, cursor: &Cursor) -> Applied {
        if self.name_of(cursor.session)?.is_none() {
            return Err(CommitError::NoSuchSession { id: cursor.session });
        }
        let session = cursor.session.to_string();
        let row = [
            session.as_str().into(),
            ValueRef::Integer(cursor.run.0.cast_signed()),
            ValueRef::Integer(cursor.position.cast_signed()),
            cursor.state.as_str().into(),
        ];
        self.insert(&statements::CURSOR, &CURSORS, &row)
    }

    fn spent(&self, spent: &Spent) -> Applied {
        let name = self.name_of(spent.session)?;
        if name.is_none() {
            return Err(CommitError::NoSuchSession { id: spent.session });
        }
        let last: Option<i64> = self.one("SELECT number FROM usage ORDER BY number DESC LIMIT 1", [])?;
        let row = SpentRow::of(spent, name);
        self.insert(&statements::SPENT, &USAGE, &row.columns(last.unwrap_or(0) + 1, spent))
    }

    fn files(&self, message: Ulid, paths: &[String]) -> Applied {
        let (message, paths) = (message.to_string(), serde_json::Value::from(paths).to_string());
        self.insert(&statements::FILES_SENT, &FILES, &[message.as_str().into(), paths.as_str().into()])
    }

    fn account(&self, name: &str, state: &str) -> Applied {
        self.insert(&statements::ACCOUNT, &ACCOUNTS, &[name.into(), state.into()])
    }

    fn insert(&self, sql: &str, table: &SummedTable, row: &[ValueRef<'_>]) -> Applied {
        let inserted = insert_made(self.conn, sql, table, row);
        inserted.map(drop).map_err(|source| commit_error(self.path, source))
    }

    fn message(
        &self,
        (session, at): (SessionId, Wall),
        change: &MessageChange,
        (words, from): (Option<&str>, Option<&str>),
        place: Option<TurnPlace>,
    ) -> Applied {
        let id = Ulid::from(message_of(change));
        let (message, of) = (id.to_string(), session.to_string());
        let run = place.map(|place| place.run.0);
        let (log, end) = (place.map(|place| place.from), place.and_then(|place| place.to));
        let changed = match change {
            MessageChange::Queued { key, .. } => {
                let text = words.ok_or(CommitError::MessageWithoutText { message: id })?;
                return self.queue([&message, &of], key.as_deref(), (text, from), at);
            }
            MessageChange::Delivering { .. } => return Ok(()),
            MessageChange::Taken { .. } => {
                self.execute(&statements::TAKE, params![message, of, run, log, end])
            }
            MessageChange::Requeued { cost, .. } => {
                self.execute(&statements::REQUEUE, params![message, of, *cost == Cost::Nothing])
            }
            MessageChange::Done { .. } => {
                let settled = self.settled.get(&id);
                let words = settled.map_or(words, |settled| Some(settled.words.as_str()));
                let done =
                    self.execute(&statements::FINISH, params![message, of, run, log, end, at.0, words]);
                settled.map_or(Ok(()), |settled| self.note_answer(&message, settled)).and(done)
            }
            MessageChange::Failed { why, .. } => {
                let why = failure(*why, words);
                self.execute(&statements::FAIL, params![message, of, run, log, end, at.0, why])
            }
            MessageChange::Retried { .. } => self.execute(&statements::RETRY, params![message, of]),
        };
        match changed? {
            0 => Err(CommitError::NoSuchMessage { session, message: id }),
            _ => Ok(()),
        }
    }

    /// Stores about an answer what the row of its message does not hold.
    fn note_answer(&self, message: &str, settled: &SettledAnswer) -> Applied {
        let row = [
            message.into(),
            ValueRef::Integer(settled.bytes.cast_signed()),
            settled.content.map_or(ValueRef::Null, ValueRef::Integer),
            ValueRef::Integer(settled.cut.into()),
        ];
        self.insert(&statements::ANSWER, &ANSWERS, &row)
    }

    fn queue(
        &self,
        [message, session]: [&str; 2],
        key: Option<&str>,
        (text, from): (&str, Option<&str>),
        at: Wall,
    ) -> Applied {
        if let Some(key) = key {
            self.refuse_spent(session, key)?;
        }
        let null = ValueRef::Null;
        let row = [
            message.into(),
            session.into(),
            key.into(),
            text.into(),
            MessageState::Queued.word().into(),
            ValueRef::Integer(0),
            ValueRef::Integer(at.0),
            // When it is done, its answer or failure, and where its turn is.
            null,
            null,
            null,
            null,
            null,
            null,
            from.into(),
        ];
        self.insert(&statements::QUEUE, &MESSAGES, &row)
    }

    fn run(&self, session: SessionId, at: Wall, step: &RunStep) -> Applied {
        match step {
            RunStep::Decided { run, purpose, id } => self.run_decided(session, *run, *purpose, *id),
            RunStep::Started { run, purpose, process } => {
                self.run_started(session, at, *run, *purpose, *process)
            }
            RunStep::Exited(exited) => self.run_exited(session, at, exited),
            RunStep::Settled { run } => self.runs_settled(session, at, *run),
        }
    }

    /// Ends the runs whose end was never reported. There is hardly ever one, and a look costs less than the
    /// temporary table that SQLite makes to change many rows.
    fn runs_settled(&self, session: SessionId, at: Wall, run: RunNumber) -> Applied {
        let session = session.to_string();
        let open: Option<i64> = self.one(statements::RUNS_OPEN, params![session, run.0])?;
        match open {
            Some(_) => self.execute(&statements::RUNS_SETTLED, params![session, run.0, at.0]).map(drop),
            None => Ok(()),
        }
    }

    fn run_decided(
        &self,
        session: SessionId,
        run: RunNumber,
        purpose: Purpose,
        id: Option<RunId>,
    ) -> Applied {
        let of = session.to_string();
        let Some(id) = id else {
            // A later stage of a start does not repeat the id.
            let known: Option<u64> =
                self.one("SELECT number FROM runs WHERE session = ?1 AND number = ?2", params![of, run.0])?;
            return known.map(drop).ok_or(CommitError::RunWithoutId { session, run });
        };
        let params = params![of, run.0, id.to_string(), purpose_word(purpose)];
        self.execute(&statements::RUN_DECIDED, params).map(drop)
    }

    fn run_started(
        &self,
        session: SessionId,
        at: Wall,
        run: RunNumber,
        purpose: Purpose,
        process: Process,
    ) -> Applied {
        let Process { pid, fence } = process;
        let params = params![session.to_string(), run.0, purpose_word(purpose), pid, fence, at.0];
        self.execute(&statements::RUN_STARTED, params).map(drop)
    }

    fn run_exited(&self, session: SessionId, at: Wall, exited: &RunExited) -> Applied {
        self.execute(
            &statements::RUN_EXITED,
            params![
                session.to_string(),
                exited.run.0,
                at.0,
                exited.exit.code(),
                exited.exit.signal(),
                exited.verdict.word(),
                whole_millis(exited.lived),
                exited.forced,
            ],
        )
        .map(drop)
    }

    fn event(&mut self, event: &EventStep) -> Applied {
        let seq = self.next_seq()?;
        self.learn_name(event.session)?;
        let (session, run) = (event.session.map(|session| session.to_string()), self.run_of(event)?);
        let name = event.session.and(self.known.named.as_ref()).and_then(|(_, name)| name.as_deref());
        let row = [
            ValueRef::Integer(seq.cast_signed()),
            ValueRef::Integer(event.at.0),
            session.as_deref().into(),
            name.into(),
            run.as_deref().into(),
            event.kind.word().into(),
            event.why.as_str().into(),
            event.data.as_str().into(),
        ];
        let sum = insert_event(self.conn, row).map_err(|source| commit_error(self.path, source))?;
        let first = if self.committed.seqs.is_empty() { seq } else { self.committed.seqs.start };
        self.committed.seqs = first..seq + 1;
        self.known.newest = Some(seq);
        self.sum = Some(sum);
        Ok(())
    }

    /// Returns the id of the run that an event belongs to.
    fn run_of(&self, event: &EventStep) -> Result<Option<String>, CommitError> {
        match (event.run, event.session) {
            (Some(EventRun::Id(id)), _) => Ok(Some(id.to_string())),
            (Some(EventRun::Number(number)), Some(session)) => {
                let sql = "SELECT id FROM runs WHERE session = ?1 AND number = ?2";
                Ok(self.one::<Option<String>>(sql, params![session.to_string(), number.0])?.flatten())
            }
            (Some(EventRun::Number(_)), None) | (None, _) => Ok(None),
        }
    }

    fn learn_name(&mut self, session: Option<SessionId>) -> Applied {
        let known = self.known.named.as_ref().map(|(session, _)| *session);
        if let Some(session) = session.filter(|session| known != Some(*session)) {
            self.known.named = Some((session, self.name_of(session)?));
        }
        Ok(())
    }

    /// Nothing else writes within this transaction, so the numbers of a batch are consecutive.
    fn next_seq(&self) -> Result<u64, CommitError> {
        if let Some(newest) = self.known.newest {
            return Ok(newest + 1);
        }
        let newest = self.one::<u64>("SELECT seq FROM events ORDER BY seq DESC LIMIT 1", [])?;
        Ok(newest.unwrap_or(0) + 1)
    }

    fn generation(&mut self, generation: u64, boot_id: &str) -> Applied {
        let stored = self.one("SELECT value FROM meta WHERE key = 'generation'", [])?;
        if let Some(found) = stored.filter(|found| *found >= generation) {
            return Err(CommitError::StaleGeneration { wanted: generation, found });
        }
        self.known.generation = None;
        let program = env!("CARGO_PKG_VERSION");
        let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
        self.execute(sql, params!["generation", generation])?;
        self.execute(sql, params!["boot_id", boot_id])?;
        self.execute(sql, params!["program", program]).map(drop)
    }

    fn owned_by(&mut self, incarnation: u64) -> Applied {
        if self.known.generation.is_none() {
            self.known.generation = self.one("SELECT value FROM meta WHERE key = 'generation'", [])?;
        }
        let later = self.known.generation.filter(|found| *found > incarnation);
        later.map_or(Ok(()), |found| Err(CommitError::StaleGeneration { wanted: incarnation, found }))
    }

    fn session_changed(&self, id: SessionId, rows: usize) -> Applied {
        if rows == 0 { Err(CommitError::NoSuchSession { id }) } else { Ok(()) }
    }

    fn one<T: FromSql>(&self, sql: &str, params: impl Params) -> Result<Option<T>, CommitError> {
        let found = self
            .conn
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(params, |row| row.get(0)).optional());
        found.map_err(|source| commit_error(self.path, source))
    }

    fn execute(&self, sql: &str, params: impl Params) -> Result<usize, CommitError> {
        let rows = self.conn.prepare_cached(sql).and_then(|mut statement| statement.execute(params));
        rows.map_err(|source| commit_error(self.path, source))
    }
}

/// Inserts an event with these columns, and returns its checksum.
pub(crate) fn insert_event(conn: &Connection, row: [ValueRef<'_>; 8]) -> rusqlite::Result<i64> {
    insert_made(conn, &statements::EVENT, &EVENTS, &row)
}

/// Inserts a row with these columns, and returns its checksum.
fn insert_made(
    conn: &Connection,
    sql: &str,
    table: &SummedTable,
    row: &[ValueRef<'_>],
) -> rusqlite::Result<i64> {
    let sum = table.sum(row.iter().copied());
    let values = row.iter().copied().chain([ValueRef::Integer(sum)]).map(ToSqlOutput::Borrowed);
    conn.prepare_cached(sql)?.execute(params_from_iter(values))?;
    Ok(sum)
}
