//! The words that stand in objects: states, modes, kinds, verdicts.
//!
//! A client reads whole lists of objects. A newer daemon may have a word that this version does not know, and one such
//! word must not make a list unreadable: so every kind of word that is read has the arm `Other`, which keeps it as it
//! came. The daemon writes none but those that are named, and the OpenAPI document lists them.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Makes an enum of words: each variant beside the word that stands for it, and how a schema lists them.
macro_rules! words {
    ($(
        $(#[$meta:meta])*
        $Name:ident as $listed:literal { $($(#[$of_variant:meta])* $Variant:ident = $word:literal,)+ }
    )+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "the words are the contract's")]
        pub enum $Name {
            $($(#[$of_variant])* $Variant,)+
            /// A word of a newer version.
            Other(String),
        }

        impl $Name {
            /// All words that this version knows.
            pub const WORDS: &[&str] = &[$($word),+];

            /// The word as it stands in an object.
            #[must_use]
            pub fn word(&self) -> &str {
                match self {
                    $($Name::$Variant => $word,)+
                    $Name::Other(word) => word,
                }
            }
        }

        impl From<&str> for $Name {
            fn from(word: &str) -> $Name {
                match word {
                    $($word => $Name::$Variant,)+
                    _ => $Name::Other(word.to_owned()),
                }
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }

        impl Serialize for $Name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.word())
            }
        }

        impl<'de> Deserialize<'de> for $Name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$Name, D::Error> {
                from.deserialize_str(Word(PhantomData))
            }
        }

        impl JsonSchema for $Name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($Name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", $listed: $Name::WORDS })
            }
        }
    )+};
}

/// Reads a word, which is not copied where it is known.
struct Word<T>(PhantomData<T>);

impl<T: for<'a> From<&'a str>> de::Visitor<'_> for Word<T> {
    type Value = T;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a word")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<T, E> {
        Ok(T::from(word))
    }
}

words! {
    /// What a session does.
    State as "enum" {
        Idle = "idle",
        Starting = "starting",
        Running = "running",
        Stopping = "stopping",
        Backoff = "backoff",
        Blocked = "blocked",
        Held = "held",
        Stopped = "stopped",
        Failed = "failed",
        Archived = "archived",
        /// Its record cannot be read.
        Damaged = "damaged",
        /// There is something of it, and the database does not know it.
        Unknown = "unknown",
    }

    /// When a session runs. One whose record cannot be read has an empty word.
    Mode as "enum" {
        OnDemand = "on-demand",
        Always = "always",
        Once = "once",
    }

    /// What an agent does.
    Activity as "enum" {
        Working = "working",
        Waiting = "waiting",
        Idle = "idle",
        Limited = "limited",
        Unknown = "unknown",
    }

    /// How the end of a run is judged.
    Verdict as "enum" {
        Clean = "clean",
        Drained = "drained",
        Contended = "contended",
        Hopeless = "hopeless",
        Limited = "limited",
        OutOfMemory = "out_of_memory",
        Crash = "crash",
    }

    /// What happens next by itself.
    Upcoming as "enum" {
        Restart = "restart",
        Retry = "retry",
        Park = "park",
        TakeoverDeadline = "takeover_deadline",
        Watchdog = "watchdog",
        Idle = "idle",
    }

    /// Where a message is on its way.
    MessageState as "enum" {
        Queued = "queued",
        Delivered = "delivered",
        Done = "done",
        Failed = "failed",
        /// It is not as it was written.
        Damaged = "damaged",
    }

    /// Whether the holder of a lock lives.
    HolderVerdict as "enum" {
        Alive = "alive",
        Dead = "dead",
        Unknown = "unknown",
    }

    /// What a lock is of.
    LockKind as "enum" {
        Key = "key",
        Session = "session",
        Vendor = "vendor",
        Directory = "directory",
    }

    /// Where a line of output was printed to; a note is our own.
    Stream as "enum" {
        Stdout = "stdout",
        Stderr = "stderr",
        Note = "note",
    }

    /// What a metric is.
    MetricKind as "enum" {
        Counter = "counter",
        Gauge = "gauge",
        Histogram = "histogram",
    }

    /// What happened. The document gives examples: verbs of any version write events of theirs into a file that the
    /// daemon takes over word by word.
    EventKind as "examples" {
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
        Adopted = "adopted",
        Removed = "removed",
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
    }
}

/// The states that a client can ask for: those of sessions that the daemon has.
fn of_sessions() -> impl Iterator<Item = &'static str> {
    let odd = [State::Damaged, State::Unknown];
    State::WORDS.iter().copied().filter(move |word| odd.iter().all(|odd| odd.word() != *word))
}

/// The words of a field that may be left out, for its schema.
pub(crate) fn asked_states() -> Vec<Option<&'static str>> {
    of_sessions().map(Some).chain([None]).collect()
}

/// What several states look like, separated by commas.
pub(crate) fn several_states() -> String {
    let words = of_sessions().collect::<Vec<_>>().join("|");
    format!("^({words})(,({words}))*$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_is_written() {
        for word in EventKind::WORDS {
            let kind: EventKind = serde_json::from_value((*word).into()).unwrap();
            assert!(!matches!(kind, EventKind::Other(_)), "{word}");
            assert_eq!(serde_json::to_value(&kind).unwrap(), *word);
        }
    }

    #[test]
    fn a_word_of_a_newer_daemon_is_kept_as_it_came() {
        let state: State = serde_json::from_str(r#""dreaming""#).unwrap();
        assert_eq!(state, State::Other("dreaming".into()));
        assert_eq!(serde_json::to_string(&state).unwrap(), r#""dreaming""#);
        assert_eq!(format!("{state:<10}|"), "dreaming  |");
    }

    #[test]
    fn what_is_not_a_word_is_refused() {
        assert!(serde_json::from_str::<State>("7").is_err());
    }
}
