//! The kinds of events: one table of everything the audit log can report, with the word for each.
//!
//! Most of them are the [`Record`](crate::Record)s of decisions; the others happen to daemons, locks and
//! databases, and nothing is decided by them. A new kind needs only a row here; a new `Record` stops the
//! build at `Record::kind` and everywhere else that must handle it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

macro_rules! kinds {
    ($($(#[$of_variant:meta])* $Variant:ident = $word:literal,)+) => {
        /// The kind of an event.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the kinds are the words of the contract")]
        pub enum EventKind {
            $($(#[$of_variant])* $Variant,)+
            /// A word of another version: events are kept as they came.
            Other(String),
        }

        impl EventKind {
            /// All words known to this version.
            pub const WORDS: &[&str] = &[$($word),+];

            /// Returns the word under which it is stored and reported.
            #[must_use]
            pub fn word(&self) -> &str {
                match self {
                    $(EventKind::$Variant => $word,)+
                    EventKind::Other(word) => word,
                }
            }

            fn known(word: &str) -> Option<EventKind> {
                match word {
                    $($word => Some(EventKind::$Variant),)+
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    SessionCreated = "session_created",
    RunStarted = "run_started",
    RunExited = "run_exited",
    StartFailed = "start_failed",
    Backoff = "backoff",
    HealthWarn = "health_warn",
    LockBusy = "lock_busy",
    LockAcquired = "lock_acquired",
    LockReleased = "lock_released",
    TakeoverRequested = "takeover_requested",
    TakeoverDone = "takeover_done",
    MessageQueued = "message_queued",
    MessageDelivered = "message_delivered",
    MessageDone = "message_done",
    MessageFailed = "message_failed",
    RequestOpened = "request_opened",
    RequestAnswered = "request_answered",
    RequestWithdrawn = "request_withdrawn",
    VendorSession = "vendor_session",
    ConversationLost = "conversation_lost",
    ConversationPutBack = "conversation_put_back",
    GuestStarted = "guest_started",
    GuestEnded = "guest_ended",
    ConsumerJoined = "consumer_joined",
    ConsumerLeft = "consumer_left",
    Parked = "parked",
    Woken = "woken",
    MemoryWarn = "memory_warn",
    Drained = "drained",
    Stopped = "stopped",
    Failed = "failed",
    Archived = "archived",
    Restored = "restored",
    Purged = "purged",
    AccountHeld = "account_held",
    AccountResumed = "account_resumed",
    Adopted = "adopted",
    Removed = "removed",
    Renamed = "renamed",
    Unlocked = "unlocked",
    EndedByLock = "ended_by_lock",
    BegunAgain = "begun_again",
    LeftAlone = "left_alone",
    Pruned = "pruned",
    DaemonStarted = "daemon_started",
    DaemonStopped = "daemon_stopped",
    ConfigReloaded = "config_reloaded",
    ConfigRefused = "config_refused",
    BackupRestored = "backup_restored",
    WitnessMade = "witness_made",
    DiskFull = "disk_full",
    DatabaseWell = "database_well",
    DatabaseBusy = "database_busy",
    DatabaseGone = "database_gone",
    DatabaseFailed = "database_failed",
    DatabaseDamaged = "database_damaged",
    DatabaseEnded = "database_ended",
    /// The row of an event was altered; what the event said is lost.
    Damaged = "damaged",
}

impl From<&str> for EventKind {
    fn from(word: &str) -> EventKind {
        EventKind::known(word).unwrap_or_else(|| EventKind::Other(word.to_owned()))
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl Serialize for EventKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for EventKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<EventKind, D::Error> {
        let word = String::deserialize(from)?;
        Ok(EventKind::known(&word).unwrap_or(EventKind::Other(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_as_it_is_written() {
        for word in EventKind::WORDS {
            let kind: EventKind = serde_json::from_value((*word).into()).unwrap();
            assert!(!matches!(kind, EventKind::Other(_)), "{word}");
            assert_eq!(serde_json::to_value(&kind).unwrap(), *word);
        }
    }

    #[test]
    fn a_kind_of_another_version_is_kept_as_it_came() {
        let kind = EventKind::from("dreamt");
        assert_eq!(kind, EventKind::Other("dreamt".into()));
        assert_eq!(format!("{kind:<8}|"), "dreamt  |");
    }
}
