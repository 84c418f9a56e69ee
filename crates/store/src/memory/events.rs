//! Events: numbered without gaps, forgotten from the old end only.

use super::contradiction::{Applied, Contradiction};
use super::tables::Tables;
use crate::rows::Event;
use crate::step::{EventRun, EventStep, PRUNE_AT_ONCE, Prune};
use crate::ticket::Committed;

pub(super) fn add(tables: &mut Tables, step: &EventStep, committed: &mut Committed) -> Applied {
    let seq = tables.newest + 1;
    let event = Event {
        seq,
        at: step.at,
        session: step.session,
        name: step.session.and_then(|id| tables.sessions.get(&id)).map(|row| row.name.clone()),
        run: run_of(tables, step),
        kind: step.kind.clone(),
        why: step.why.clone(),
        data: serde_json::from_str(&step.data).map_err(Contradiction::Fields)?,
        damage: None,
    };
    tables.add_event(event);
    let first = if committed.seqs.is_empty() { seq } else { committed.seqs.start };
    committed.seqs = first..seq + 1;
    Ok(())
}

/// The id of the run that an event belongs to.
fn run_of(tables: &Tables, step: &EventStep) -> Option<String> {
    match (step.run?, step.session) {
        (EventRun::Id(id), _) => Some(id.to_string()),
        (EventRun::Number(number), Some(session)) => {
            tables.runs.get(&(session, number)).and_then(|run| run.id).map(|id| id.to_string())
        }
        (EventRun::Number(_), None) => None,
    }
}

/// Only ever takes away the oldest numbers, even where a clock that was set back made younger ones older.
pub(super) fn prune(tables: &mut Tables, prune: Prune) -> u64 {
    let Some(oldest) = tables.events.front().map(|event| event.seq) else { return 0 };
    let kept_from = (tables.newest + 1).saturating_sub(prune.keep.get());
    let end = kept_from.min(oldest + PRUNE_AT_ONCE);
    let old = |event: &&Event| event.seq < end && event.at < prune.before;
    let count = tables.events.iter().take_while(old).count();
    tables.drop_events(count);
    count as u64
}
