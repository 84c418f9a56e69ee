//! Events: numbered without gaps, forgotten from the oldest on; the newest of each session stay.

use super::contradiction::{Applied, Contradiction};
use super::tables::{Past, Tables};
use crate::rows::StoredEvent;
use crate::step::{EventRun, EventStep, KEPT_EVENTS, PRUNE_AT_ONCE, Tally};
use crate::ticket::Committed;
use crate::ulid::SessionId;
use pinfold_core::Wall;
use std::collections::BTreeSet;
use std::num::NonZeroU64;

pub(super) fn add(tables: &mut Tables, step: &EventStep, committed: &mut Committed) -> Applied {
    let seq = tables.newest + 1;
    let event = StoredEvent {
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

/// Returns the id of the run that an event belongs to.
fn run_of(tables: &Tables, step: &EventStep) -> Option<String> {
    match (step.run?, step.session) {
        (EventRun::Id(id), _) => Some(id.to_string()),
        (EventRun::Number(number), Some(session)) => {
            tables.runs.get(&(session, number)).and_then(|run| run.id).map(|id| id.to_string())
        }
        (EventRun::Number(_), None) => None,
    }
}

/// Passes over events, beginning at the number from which on all exist, and moves that number on.
pub(super) fn prune(tables: &mut Tables, before: Wall, keep: NonZeroU64, more: &mut bool) -> Tally {
    let Some(from) = tables.complete_from() else { return Tally::default() };
    let kept_from = (tables.newest + 1).saturating_sub(keep.get());
    let end = kept_from.min(from + PRUNE_AT_ONCE);
    if end <= from {
        return Tally::default();
    }
    let young = tables.events.range(from..end).find(|(_, event)| event.at >= before);
    let young = young.map(|(seq, _)| *seq);
    *more |= young.is_none() && end < kept_from;
    let end = young.unwrap_or(end);
    let passed: Vec<(u64, Option<SessionId>)> =
        tables.events.range(from..end).map(|(seq, event)| (*seq, event.session)).collect();
    let sessions: BTreeSet<SessionId> = passed.iter().filter_map(|(_, session)| *session).collect();
    let mut gone: Vec<u64> =
        passed.iter().filter(|(_, session)| session.is_none()).map(|(seq, _)| *seq).collect();
    for session in sessions {
        let floor = floor_of(tables, session).min(end);
        gone.extend(of(tables, session).map(|event| event.seq).take_while(|seq| *seq < floor));
    }
    let events = gone.len() as u64;
    gone.into_iter().for_each(|seq| tables.drop_event(seq));
    tables.put_past(Past { kept_from: Some(end), ..tables.past });
    Tally { events, ..Tally::default() }
}

/// Forgets events that stayed only because of this session, if they were passed over.
pub(super) fn forget_kept(tables: &mut Tables, session: SessionId) -> Tally {
    let passed = tables.complete_from().unwrap_or(0);
    let gone: Vec<u64> = of(tables, session).map(|event| event.seq).take_while(|seq| *seq < passed).collect();
    let events = gone.len() as u64;
    gone.into_iter().for_each(|seq| tables.drop_event(seq));
    Tally { events, ..Tally::default() }
}

/// Returns the oldest event of a session that stays; for a session that no longer exists none does.
fn floor_of(tables: &Tables, session: SessionId) -> u64 {
    if !tables.sessions.contains_key(&session) {
        return u64::MAX;
    }
    let oldest = of(tables, session).rev().nth(KEPT_EVENTS as usize - 1);
    oldest.map_or(0, |event| event.seq)
}

fn of(tables: &Tables, session: SessionId) -> impl DoubleEndedIterator<Item = &StoredEvent> {
    tables.events.values().filter(move |event| event.session == Some(session))
}

/// Forgets the oldest events until at most this many are left.
pub(super) fn forget(tables: &mut Tables, most: usize) {
    let many = tables.events.len().saturating_sub(most);
    let gone: Vec<u64> = tables.events.keys().take(many).copied().collect();
    gone.into_iter().for_each(|seq| tables.drop_event(seq));
}
