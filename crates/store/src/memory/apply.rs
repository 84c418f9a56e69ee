//! The steps of a batch as changes of rows. The caller takes them back if one fails.

use super::contradiction::Applied;
use super::tables::{Past, Tables};
use super::{events, messages, runs, sessions};
use crate::batch::Batch;
use crate::commit_error::CommitError;
use crate::step::{Old, Prune, Reason, Step, Tally, Untold};
use crate::ticket::Committed;
use crate::ulid::SessionId;
use std::collections::BTreeSet;

pub(super) fn apply(tables: &mut Tables, step: &Step, committed: &mut Committed) -> Applied {
    match step {
        Step::Create { new, core, archived_at } => sessions::create(tables, new, core, *archived_at),
        Step::Update { id, core, archived_at } => sessions::update(tables, *id, core, *archived_at),
        Step::Define { id, definition } => sessions::define(tables, *id, definition),
        Step::Rename { id, name } => sessions::rename(tables, *id, name),
        Step::Remove { id } => {
            sessions::remove(tables, *id)?;
            let kept = events::forget_kept(tables, *id);
            count(tables, kept, committed);
            Ok(())
        }
        Step::Message { session, at, change, words, told, from, place } => {
            let (words, from) = (words.as_deref(), from.as_deref());
            let told = messages::StepFacts { at: *at, words, answer: *told, from, place: *place };
            messages::apply(tables, *session, change, told)
        }
        Step::Run { session, at, run } => runs::apply(tables, *session, *at, run),
        Step::Cursor(cursor) => sessions::fold(tables, cursor),
        Step::Spent(spent) => sessions::spent(tables, spent),
        Step::Files { session, message, paths } => {
            messages::files(tables, *session, (*message).into(), paths)
        }
        Step::Account { name, state } => {
            tables.put_account(name, state);
            Ok(())
        }
        Step::Event(event) => events::add(tables, event, committed),
        Step::Generation { generation, boot_id } => announce(tables, *generation, boot_id),
        Step::OwnedBy { incarnation } => owned_by(tables, *incarnation),
        Step::Prune(prune) => {
            forget_old(tables, prune, committed);
            Ok(())
        }
        Step::Told { at, tally } => {
            let untold = Untold { tally: tables.past.untold.tally.minus(*tally), told_at: Some(*at) };
            tables.put_past(Past { untold, ..tables.past });
            Ok(())
        }
        // There is no file.
        Step::GiveBack { .. } => Ok(()),
        #[cfg(test)]
        Step::Panic => panic!("a test asked the writer to die"),
    }
}

/// Ignores the time limit: nothing here takes long.
fn forget_old(tables: &mut Tables, prune: &Prune, committed: &mut Committed) {
    let (before, more) = (prune.before, &mut committed.more);
    let mut tally = match &prune.old {
        Old::Events { keep } => events::prune(tables, before, *keep, more),
        Old::Runs { session } => runs::prune(tables, *session, before, more),
        Old::Messages { session, ids } => messages::prune(tables, *session, ids, before, more),
    };
    tally.by_size = prune.reason == Reason::Size && tally.rows() > 0;
    count(tables, tally, committed);
}

/// Notes what a step forgot, together with the step.
fn count(tables: &mut Tables, tally: Tally, committed: &mut Committed) {
    if tally.rows() == 0 {
        return;
    }
    committed.pruned = committed.pruned.plus(tally);
    let untold = tables.past.untold;
    let untold = Untold { tally: untold.tally.plus(tally), ..untold };
    tables.put_past(Past { untold, ..tables.past });
}

/// Forgets what exceeds the history kept in memory, as if it had been pruned.
pub(super) fn forget(tables: &mut Tables, batch: &Batch, most: usize) {
    events::forget(tables, most);
    let touched: BTreeSet<SessionId> = batch.steps.iter().filter_map(Step::session).collect();
    for session in touched {
        runs::forget(tables, session, most);
        messages::forget(tables, session, most);
    }
    tables.keep();
}

fn announce(tables: &mut Tables, generation: u64, boot_id: &str) -> Applied {
    if let Some(found) = tables.generation.filter(|found| *found >= generation) {
        return Err(CommitError::StaleGeneration { wanted: generation, found });
    }
    tables.put_generation(generation, boot_id);
    Ok(())
}

fn owned_by(tables: &Tables, incarnation: u64) -> Applied {
    let later = tables.generation.filter(|found| *found > incarnation);
    later.map_or(Ok(()), |found| Err(CommitError::StaleGeneration { wanted: incarnation, found }))
}
