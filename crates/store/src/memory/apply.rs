//! The steps of a batch as changes of rows. Whoever calls takes them back where one fails.

use super::contradiction::Applied;
use super::tables::Tables;
use super::{events, messages, runs, sessions};
use crate::batch::Batch;
use crate::commit_error::CommitError;
use crate::step::Step;
use crate::ticket::Committed;
use crate::ulid::SessionId;
use std::collections::BTreeSet;

pub(super) fn apply(tables: &mut Tables, step: &Step, committed: &mut Committed) -> Applied {
    match step {
        Step::Create { new, core, archived_at } => sessions::create(tables, new, core, *archived_at),
        Step::Update { id, core, archived_at } => sessions::update(tables, *id, core, *archived_at),
        Step::Define { id, definition } => sessions::define(tables, *id, definition),
        Step::Remove { id } => sessions::remove(tables, *id),
        Step::Message { session, at, change, words, from, place } => {
            let told =
                messages::Told { at: *at, words: words.as_deref(), from: from.as_deref(), place: *place };
            messages::apply(tables, *session, change, told)
        }
        Step::Run { session, at, run } => runs::apply(tables, *session, *at, run),
        Step::Event(event) => events::add(tables, event, committed),
        Step::Generation { generation, boot_id } => announce(tables, *generation, boot_id),
        Step::OwnedBy { incarnation } => owned_by(tables, *incarnation),
        Step::Prune(prune) => {
            committed.pruned += events::prune(tables, *prune);
            Ok(())
        }
        Step::PruneRuns { session, before } => {
            committed.pruned += runs::prune(tables, *session, *before);
            Ok(())
        }
        Step::PruneMessages { session, before } => {
            committed.pruned += messages::prune(tables, *session, *before);
            Ok(())
        }
        #[cfg(test)]
        Step::Panic => panic!("a test asked the writer to die"),
    }
}

/// Forgets what a batch left over of the past; what is left is as if it had been pruned.
pub(super) fn forget(tables: &mut Tables, batch: &Batch, most: usize) {
    let many = tables.events.len().saturating_sub(most);
    tables.drop_events(many);
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
