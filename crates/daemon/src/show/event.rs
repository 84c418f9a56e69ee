//! Audit records as the objects of the API.

use crate::clock::time;
use pinfold_api::object::Event;

/// One audit record.
pub(crate) fn event(mut row: pinfold_store::StoredEvent) -> Event {
    Event {
        by: row.data.remove("by"),
        seq: row.seq,
        at: time(row.at),
        session: row.name,
        run: row.run,
        kind: row.kind,
        why: Some(row.why).filter(|why| !why.is_empty()),
        facts: row.data,
    }
}
