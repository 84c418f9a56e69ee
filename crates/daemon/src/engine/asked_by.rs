//! Who asked for what: an end that takes a while is attributed to its caller.

use crate::engine::session::Tracked;
use pinfold_core::decision::Answer;
use pinfold_core::{Change, Decision, Record};
use pinfold_store::Facts;

/// What a decision means for a request that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// It has no bearing on the request.
    None,
    /// The request is under way.
    Next,
    /// The request is fulfilled, or cannot be.
    Last,
}

/// Notes who asked for what is under way, and names them in the facts that result.
pub(super) fn in_whose_name(tracked: &mut Tracked, decision: &Decision, mut facts: Facts) -> Facts {
    if facts.by.is_some() {
        tracked.asked = facts.by.clone().filter(|_| decision.answer == Some(Answer::UnderWay)).map(Box::new);
        return facts;
    }
    facts.by = match decision.changes.iter().map(step).max() {
        None | Some(Step::None) => None,
        Some(Step::Next) => tracked.asked.as_deref().cloned(),
        Some(Step::Last) => tracked.asked.take().map(|by| *by),
    };
    facts
}

fn step(change: &Change) -> Step {
    let Change::Record(record) = change else { return Step::None };
    match record {
        Record::RunExited(_) => Step::Next,
        Record::RunStarted { .. }
        | Record::StartFailed { .. }
        | Record::LockBusy { .. }
        | Record::Stopped
        | Record::Failed
        | Record::Archived
        | Record::Restored
        | Record::Purged
        | Record::TakeoverDone { .. } => Step::Last,
        Record::SessionCreated
        | Record::Backoff { .. }
        | Record::HealthWarn { .. }
        | Record::LockAcquired { .. }
        | Record::LockReleased
        | Record::TakeoverRequested { .. }
        | Record::MessageQueued { .. }
        | Record::MessageDelivered { .. }
        | Record::MessageDone { .. }
        | Record::MessageFailed { .. }
        | Record::RequestOpened { .. }
        | Record::RequestAnswered { .. }
        | Record::RequestWithdrawn { .. }
        | Record::VendorSession { .. }
        | Record::ConversationLost { .. }
        | Record::GuestStarted { .. }
        | Record::GuestEnded { .. }
        | Record::ConsumerJoined { .. }
        | Record::ConsumerLeft { .. }
        | Record::Parked
        | Record::Woken
        | Record::MemoryWarn { .. }
        | Record::Drained { .. }
        | Record::Adopted { .. } => Step::None,
    }
}
