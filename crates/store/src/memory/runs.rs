//! Runs, from their decision to their verdict.

use super::contradiction::{Applied, Contradiction};
use super::tables::Tables;
use crate::audit::{purpose_word, whole_millis};
use crate::commit_error::CommitError;
use crate::rows::StoredRun;
use crate::step::{KEPT_RUNS, PRUNE_AT_ONCE, RunStep, Tally};
use crate::ulid::{RunId, SessionId};
use pinfold_core::decision::RunExited;
use pinfold_core::life::{Process, Purpose};
use pinfold_core::{RunNumber, Wall};

pub(super) fn apply(tables: &mut Tables, session: SessionId, at: Wall, step: &RunStep) -> Applied {
    match step {
        RunStep::Decided { run, purpose, id } => decided(tables, session, *run, *purpose, *id),
        RunStep::Started { run, purpose, process } => {
            started(tables, at, new(session, *run, purpose_word(*purpose)), *process)
        }
        RunStep::Exited(exited) => ended(tables, session, at, exited),
        RunStep::Settled { run } => {
            settled(tables, session, at, *run);
            Ok(())
        }
    }
}

fn decided(
    tables: &mut Tables,
    session: SessionId,
    run: RunNumber,
    purpose: Purpose,
    id: Option<RunId>,
) -> Applied {
    let known = tables.runs.contains_key(&(session, run));
    match id {
        // A later stage of a start does not repeat the id.
        None if known => Ok(()),
        None => Err(CommitError::RunWithoutId { session, run }),
        Some(_) if known => Ok(()),
        Some(id) if tables.run_ids.contains_key(&id) => Err(Contradiction::RunThere.into()),
        Some(id) => put(tables, StoredRun { id: Some(id), ..new(session, run, purpose_word(purpose)) }),
    }
}

fn started(tables: &mut Tables, at: Wall, new: StoredRun, process: Process) -> Applied {
    let before = tables.runs.get(&(new.session, new.number)).cloned().unwrap_or(new);
    let Process { pid, fence } = process;
    put(tables, StoredRun { pid: Some(pid), fence: Some(fence), started_at: Some(at), ..before })
}

/// Ends a run. One that is known only from its exit record is taken for headless.
fn ended(tables: &mut Tables, session: SessionId, at: Wall, exited: &RunExited) -> Applied {
    let before = tables.runs.get(&(session, exited.run)).cloned();
    let before = before.unwrap_or_else(|| new(session, exited.run, purpose_word(Purpose::Headless)));
    let run = StoredRun {
        ended_at: Some(at),
        code: exited.exit.code(),
        signal: exited.exit.signal(),
        verdict: Some(exited.verdict.word().to_owned()),
        lived_ms: Some(whole_millis(exited.lived)),
        forced: exited.forced,
        ..before
    };
    put(tables, run)
}

/// Ends the runs whose end was never reported.
fn settled(tables: &mut Tables, session: SessionId, at: Wall, last: RunNumber) {
    let open = tables.runs_of(session).filter(|run| run.number <= last && run.ended_at.is_none());
    for run in open.cloned().collect::<Vec<_>>() {
        tables.put_run((session, run.number), Some(StoredRun { ended_at: Some(at), ..run }));
    }
}

fn put(tables: &mut Tables, run: StoredRun) -> Applied {
    if !tables.sessions.contains_key(&run.session) {
        return Err(Contradiction::NoSession(run.session).into());
    }
    tables.put_run((run.session, run.number), Some(run));
    Ok(())
}

fn new(session: SessionId, number: RunNumber, purpose: &str) -> StoredRun {
    StoredRun {
        session,
        number,
        id: None,
        purpose: purpose.to_owned(),
        pid: None,
        fence: None,
        started_at: None,
        ended_at: None,
        code: None,
        signal: None,
        verdict: None,
        lived_ms: None,
        forced: false,
        damage: None,
    }
}

/// Forgets runs that ended before a moment, from the oldest on; the newest stay.
pub(super) fn prune(tables: &mut Tables, session: SessionId, before: Wall, more: &mut bool) -> Tally {
    if !tables.is_active(session) {
        return Tally::default();
    }
    let many = tables.runs_of(session).count().saturating_sub(KEPT_RUNS as usize);
    let old = tables.runs_of(session).take(many);
    let old = old.take_while(|run| run.ended_at.is_some_and(|at| at < before)).map(|run| run.number);
    let mut old: Vec<RunNumber> = old.collect();
    *more |= old.len() > PRUNE_AT_ONCE as usize;
    old.truncate(PRUNE_AT_ONCE as usize);
    Tally { runs: remove(tables, session, old), ..Tally::default() }
}

/// Forgets runs that are over until at most this many are left.
pub(super) fn forget(tables: &mut Tables, session: SessionId, most: usize) {
    let many = tables.runs_of(session).count().saturating_sub(most);
    let over = tables.runs_of(session).take(many).filter(|run| run.ended_at.is_some());
    let over = over.map(|run| run.number).collect();
    remove(tables, session, over);
}

fn remove(tables: &mut Tables, session: SessionId, runs: Vec<RunNumber>) -> u64 {
    let count = runs.len() as u64;
    runs.into_iter().for_each(|number| tables.put_run((session, number), None));
    count
}
