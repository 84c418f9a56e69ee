//! The core's records in the words of the contract: the fields of each kind.

use crate::ulid::Ulid;
use pinfold_core::decision::{RunExited, TakeoverEnd};
use pinfold_core::inbox::MessageFailure;
use pinfold_core::life::Purpose;
use pinfold_core::lost::LostHow;
use pinfold_core::{Exit, MessageId, Record, RunNumber};
use serde_json::{Value, json};
use std::time::Duration;

/// The names that every event has; the fields of a kind may not use them.
pub const EVENT_FIELDS: [&str; 6] = ["seq", "at", "session", "run", "kind", "why"];

/// Returns the fields that only events of this [kind](Record::kind) have, as one JSON object.
///
/// The output of a run that ended and the holder of a busy lock are not part of the record: a
/// [`Batch`](crate::Batch) adds them.
///
/// ```
/// # use pinfold_core::{Record, rules::WaitReason};
/// let record = Record::Backoff { wait: std::time::Duration::from_secs(2), reason: WaitReason::Crash };
/// let data = pinfold_store::event_data(&record);
/// assert_eq!((data["ms"].as_u64(), data["reason"].as_str()), (Some(2000), Some("crash")));
/// ```
#[must_use]
pub fn event_data(record: &Record) -> Value {
    match record {
        Record::RunStarted { run: _, pid, fence, purpose } => {
            json!({ "pid": pid, "fence": fence, "purpose": purpose_word(*purpose) })
        }
        Record::RunExited(exited) => exit_data(exited),
        Record::StartFailed { run: _, errno, text } => json!({ "errno": errno, "text": text }),
        Record::Backoff { wait, reason } => {
            json!({ "ms": whole_millis(*wait), "reason": reason.word() })
        }
        Record::HealthWarn { reason } => json!({ "reason": reason.word() }),
        Record::TakeoverRequested { consumer, urgent } => {
            json!({ "consumer": consumer.0, "urgent": urgent })
        }
        Record::TakeoverDone { how } => json!({ "how": takeover_word(*how) }),
        Record::MessageQueued { message } => json!({ "message": text(*message) }),
        Record::MessageDelivered { message, attempt } => {
            json!({ "message": text(*message), "try": attempt })
        }
        Record::MessageDone { message } => json!({ "message": text(*message) }),
        Record::MessageFailed { message, why } => {
            json!({ "message": text(*message), "reason": failure_word(*why) })
        }
        Record::RequestOpened { run: _, number, request, title } => {
            json!({ "request": number.to_string(), "asks": request, "title": title })
        }
        Record::RequestAnswered { number, verdict, always } => {
            json!({ "request": number.to_string(), "verdict": verdict, "always": always })
        }
        Record::RequestWithdrawn { number } => json!({ "request": number.to_string() }),
        Record::VendorSession { run: _, id } => json!({ "vendor_session": id }),
        Record::ConversationLost { run: _, id, how } => lost_data(id.as_deref(), *how),
        Record::GuestStarted { run: _, guest, pid } => json!({ "guest": guest, "pid": pid }),
        Record::GuestEnded { run: _, guest, exit, text } => guest_data(*guest, exit, text.as_deref()),
        Record::ConsumerJoined { consumer } => json!({ "consumer": consumer.0 }),
        Record::ConsumerLeft { consumer } => json!({ "consumer": consumer.0 }),
        Record::MemoryWarn { bytes, limit } => json!({ "bytes": bytes, "limit": limit }),
        Record::Drained { bytes, limit } => json!({ "bytes": bytes, "limit": limit }),
        Record::Adopted { run: _, pid } => json!({ "pid": pid }),
        Record::SessionCreated
        | Record::LockBusy { run: _ }
        | Record::LockAcquired { run: _ }
        | Record::LockReleased
        | Record::Parked
        | Record::Woken
        | Record::Stopped
        | Record::Failed
        | Record::Archived
        | Record::Restored
        | Record::Purged => json!({}),
    }
}

/// Returns the run that a record names.
pub(crate) fn run_of(record: &Record) -> Option<RunNumber> {
    match record {
        Record::RunStarted { run, .. }
        | Record::StartFailed { run, .. }
        | Record::LockBusy { run }
        | Record::LockAcquired { run }
        | Record::RequestOpened { run, .. }
        | Record::VendorSession { run, .. }
        | Record::ConversationLost { run, .. }
        | Record::GuestStarted { run, .. }
        | Record::GuestEnded { run, .. }
        | Record::Adopted { run, .. } => Some(*run),
        Record::RunExited(exited) => Some(exited.run),
        Record::SessionCreated
        | Record::Backoff { .. }
        | Record::HealthWarn { .. }
        | Record::LockReleased
        | Record::TakeoverRequested { .. }
        | Record::TakeoverDone { .. }
        | Record::MessageQueued { .. }
        | Record::MessageDelivered { .. }
        | Record::MessageDone { .. }
        | Record::MessageFailed { .. }
        | Record::RequestAnswered { .. }
        | Record::RequestWithdrawn { .. }
        | Record::ConsumerJoined { .. }
        | Record::ConsumerLeft { .. }
        | Record::Parked
        | Record::Woken
        | Record::MemoryWarn { .. }
        | Record::Drained { .. }
        | Record::Stopped
        | Record::Failed
        | Record::Archived
        | Record::Restored
        | Record::Purged => None,
    }
}

fn lost_data(id: Option<&str>, how: LostHow) -> Value {
    json!({ "vendor_session": id, "reason": how.word() })
}

fn guest_data(guest: u64, exit: &Exit, text: Option<&str>) -> Value {
    json!({ "guest": guest, "code": exit.code(), "signal": exit.signal(), "end": exit.word(), "text": text })
}

fn exit_data(exited: &RunExited) -> Value {
    json!({
        "code": exited.exit.code(),
        "signal": exited.exit.signal(),
        "end": exited.exit.word(),
        "verdict": exited.verdict.word(),
        "uptime_ms": whole_millis(exited.lived),
        "crashes": exited.crashes,
        "forced": exited.forced,
    })
}

pub(crate) fn purpose_word(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Headless => "headless",
        Purpose::Interactive(_) => "interactive",
    }
}

/// Returns what is stored about a failed message: the word of its event, followed by the reason if one is known.
pub(crate) fn failure(why: MessageFailure, reason: Option<&str>) -> String {
    let word = failure_word(why);
    reason.map_or_else(|| word.to_owned(), |reason| format!("{word}: {reason}"))
}

pub(crate) fn failure_word(failure: MessageFailure) -> &'static str {
    match failure {
        MessageFailure::TriesUsedUp => "tries_used_up",
        MessageFailure::TurnFailed => "turn_failed",
        MessageFailure::Interrupted => "interrupted",
        MessageFailure::Cancelled => "cancelled",
    }
}

fn takeover_word(how: TakeoverEnd) -> &'static str {
    match how {
        TakeoverEnd::Held => "held",
        TakeoverEnd::DeadlinePassed => "deadline_passed",
        TakeoverEnd::CallerGone => "caller_gone",
        TakeoverEnd::CannotStart => "cannot_start",
        TakeoverEnd::Busy => "busy",
        TakeoverEnd::Overruled => "overruled",
    }
}

fn text(message: MessageId) -> String {
    Ulid::from(message).to_string()
}

/// Rounds up, as the core does.
pub(crate) fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_core::ids::RequestNumber;
    use pinfold_core::rules::{WaitReason, Warning};
    use pinfold_core::talk::{Permit, RequestKind};
    use pinfold_core::{ConsumerId, Exit, Verdict};

    const RUN: RunNumber = RunNumber(3);
    const CONSUMER: ConsumerId = ConsumerId(5);
    const MESSAGE: MessageId = MessageId(33);

    fn exited() -> RunExited {
        let (exit, verdict, lived) = (Exit::Signal(9), Verdict::OutOfMemory, Duration::from_micros(1_500));
        RunExited { run: RUN, exit, verdict, lived, crashes: 2, forced: true }
    }

    /// Returns the record after this one, so that each variant comes once; `None` after the last.
    fn after(record: &Record) -> Option<Record> {
        let (run, consumer, message, number) = (RUN, CONSUMER, MESSAGE, RequestNumber(4));
        Some(match record {
            Record::SessionCreated => {
                Record::RunStarted { run, pid: 7, fence: 9, purpose: Purpose::Headless }
            }
            Record::RunStarted { .. } => Record::RunExited(Box::new(exited())),
            Record::RunExited(_) => Record::StartFailed { run, errno: Some(24), text: "no".into() },
            Record::StartFailed { .. } => {
                Record::Backoff { wait: Duration::from_millis(1500), reason: WaitReason::Crash }
            }
            Record::Backoff { .. } => Record::HealthWarn { reason: Warning::CrashSoftLimit },
            Record::HealthWarn { .. } => Record::LockBusy { run },
            Record::LockBusy { .. } => Record::LockAcquired { run },
            Record::LockAcquired { .. } => Record::LockReleased,
            Record::LockReleased => Record::TakeoverRequested { consumer, urgent: true },
            Record::TakeoverRequested { .. } => Record::TakeoverDone { how: TakeoverEnd::DeadlinePassed },
            Record::TakeoverDone { .. } => Record::MessageQueued { message },
            Record::MessageQueued { .. } => Record::MessageDelivered { message, attempt: 2 },
            Record::MessageDelivered { .. } => Record::MessageDone { message },
            Record::MessageDone { .. } => Record::MessageFailed { message, why: MessageFailure::TriesUsedUp },
            Record::MessageFailed { .. } => {
                Record::RequestOpened { run, number, request: RequestKind::Permission, title: "rm".into() }
            }
            Record::RequestOpened { .. } => {
                Record::RequestAnswered { number, verdict: Permit::Deny, always: true }
            }
            Record::RequestAnswered { .. } => Record::RequestWithdrawn { number },
            Record::RequestWithdrawn { .. } => Record::VendorSession { run, id: Some("s-1".into()) },
            Record::VendorSession { .. } => {
                Record::ConversationLost { run, id: Some("s-1".into()), how: LostHow::Gone }
            }
            Record::ConversationLost { .. } => Record::GuestStarted { run, guest: 2, pid: 8 },
            Record::GuestStarted { .. } => {
                Record::GuestEnded { run, guest: 2, exit: Exit::Code(3), text: None }
            }
            Record::GuestEnded { .. } => Record::ConsumerJoined { consumer },
            Record::ConsumerJoined { .. } => Record::ConsumerLeft { consumer },
            Record::ConsumerLeft { .. } => Record::Parked,
            Record::Parked => Record::Woken,
            Record::Woken => Record::MemoryWarn { bytes: 8, limit: 10 },
            Record::MemoryWarn { .. } => Record::Drained { bytes: 11, limit: 10 },
            Record::Drained { .. } => Record::Stopped,
            Record::Stopped => Record::Failed,
            Record::Failed => Record::Archived,
            Record::Archived => Record::Restored,
            Record::Restored => Record::Purged,
            Record::Purged => Record::Adopted { run, pid: 7 },
            Record::Adopted { .. } => return None,
        })
    }

    /// Returns the fields expected of this record.
    fn expected(record: &Record) -> Value {
        let message = "00000000000000000000000011";
        match record {
            Record::RunStarted { .. } => json!({ "pid": 7, "fence": 9, "purpose": "headless" }),
            Record::RunExited(_) => {
                json!({ "code": null, "signal": 9, "end": "signal", "verdict": "out_of_memory",
                                            "uptime_ms": 2, "crashes": 2, "forced": true })
            }
            Record::StartFailed { .. } => json!({ "errno": 24, "text": "no" }),
            Record::Backoff { .. } => json!({ "ms": 1500, "reason": "crash" }),
            Record::HealthWarn { .. } => json!({ "reason": "crash_soft_limit" }),
            Record::TakeoverRequested { .. } => json!({ "consumer": 5, "urgent": true }),
            Record::TakeoverDone { .. } => json!({ "how": "deadline_passed" }),
            Record::MessageQueued { .. } | Record::MessageDone { .. } => json!({ "message": message }),
            Record::MessageDelivered { .. } => json!({ "message": message, "try": 2 }),
            Record::MessageFailed { .. } => json!({ "message": message, "reason": "tries_used_up" }),
            Record::RequestOpened { .. } => {
                json!({ "request": "r4", "asks": "permission", "title": "rm" })
            }
            Record::RequestAnswered { .. } => json!({ "request": "r4", "verdict": "deny", "always": true }),
            Record::RequestWithdrawn { .. } => json!({ "request": "r4" }),
            Record::VendorSession { .. } => json!({ "vendor_session": "s-1" }),
            Record::ConversationLost { .. } => json!({ "vendor_session": "s-1", "reason": "gone" }),
            Record::GuestStarted { .. } => json!({ "guest": 2, "pid": 8 }),
            Record::GuestEnded { .. } => {
                json!({ "guest": 2, "code": 3, "signal": null, "end": "code", "text": null })
            }
            Record::ConsumerJoined { .. } | Record::ConsumerLeft { .. } => json!({ "consumer": 5 }),
            Record::MemoryWarn { .. } => json!({ "bytes": 8, "limit": 10 }),
            Record::Drained { .. } => json!({ "bytes": 11, "limit": 10 }),
            Record::Adopted { .. } => json!({ "pid": 7 }),
            Record::SessionCreated
            | Record::LockBusy { .. }
            | Record::LockAcquired { .. }
            | Record::LockReleased
            | Record::Parked
            | Record::Woken
            | Record::Stopped
            | Record::Failed
            | Record::Archived
            | Record::Restored
            | Record::Purged => json!({}),
        }
    }

    fn all() -> Vec<Record> {
        std::iter::successors(Some(Record::SessionCreated), after).collect()
    }

    #[test]
    fn every_record_has_the_kind_and_the_fields_of_the_contract() {
        assert_eq!(all().len(), 34);
        for record in all() {
            let (kind, data) = (record.kind(), event_data(&record));
            assert_eq!(data, expected(&record), "{record:?}");
            let tag = format!("{{\"kind\":\"{kind}\"");
            assert!(serde_json::to_string(&record).unwrap().starts_with(&tag), "{record:?}: {kind}");
        }
    }

    #[test]
    fn no_record_has_a_field_that_every_event_has() {
        for record in all() {
            let data = event_data(&record);
            let fields = data.as_object().unwrap();
            assert!(EVENT_FIELDS.iter().all(|name| !fields.contains_key(*name)), "{record:?}");
        }
    }

    #[test]
    fn an_end_without_a_status_says_why_it_has_none() {
        for (exit, word) in [
            (Exit::ShimLost, "shim_lost"),
            (Exit::MachineLost, "machine_lost"),
            (Exit::AfterBackup, "after_backup"),
            (Exit::NeverStarted, "never_started"),
        ] {
            let lived = Duration::ZERO;
            let exited = RunExited {
                run: RunNumber(1),
                exit,
                verdict: Verdict::Crash,
                lived,
                crashes: 1,
                forced: false,
            };
            let data = exit_data(&exited);
            assert_eq!(
                (&data["code"], &data["signal"], &data["end"]),
                (&Value::Null, &Value::Null, &json!(word))
            );
        }
    }
}
