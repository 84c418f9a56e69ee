//! The words in objects: states, modes, kinds, verdicts. Those of events are the core's ([`EventKind`]): they
//! are reported as they are stored.
//!
//! A client reads whole lists of objects. A newer daemon may have a word that this version does not know, and
//! one such word must not make a list unreadable: so every kind of word that is read has the arm `Other`,
//! which keeps it as it came. The daemon writes only those that are named, and the OpenAPI document lists them.

pub use pinfold_core::EventKind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Makes an enum of words: each variant next to its word.
macro_rules! words {
    ($(
        $(#[$meta:meta])*
        $Name:ident { $($(#[$of_variant:meta])* $Variant:ident = $word:literal,)+ }
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
            /// All words known to this version.
            pub const WORDS: &[&str] = &[$($word),+];

            /// Returns the word as it is written in an object.
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
                json_schema!({ "type": "string", "enum": $Name::WORDS })
            }
        }
    )+};
}

/// Reads a word, without a copy if it is known.
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
    /// The state of a session.
    State {
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
        /// Something of it exists, but the database does not know it.
        Unknown = "unknown",
    }

    /// When a session runs. One whose record cannot be read has an empty word.
    Mode {
        OnDemand = "on-demand",
        Always = "always",
        Once = "once",
    }

    /// What an agent is doing.
    Activity {
        Working = "working",
        Waiting = "waiting",
        Idle = "idle",
        Limited = "limited",
        Unknown = "unknown",
    }

    /// The kind of text that something was found in.
    TextKind {
        Name = "name",
        Message = "message",
        Answer = "answer",
        Why = "why",
    }

    /// What an agent asks a person.
    RequestKind {
        Permission = "permission",
        Question = "question",
        Limit = "limit",
        Login = "login",
        Budget = "budget",
    }

    /// The verdict on the end of a run.
    Verdict {
        Clean = "clean",
        Drained = "drained",
        Contended = "contended",
        Hopeless = "hopeless",
        Limited = "limited",
        OutOfMemory = "out_of_memory",
        Crash = "crash",
    }

    /// What sums of usage are grouped by.
    UsageBy {
        Session = "session",
        Account = "account",
        Model = "model",
        Day = "day",
    }

    /// Why the sessions of an account get no turns.
    AccountHold {
        Limit = "limit",
        Login = "login",
        Overloaded = "overloaded",
        Budget = "budget",
    }

    /// What happens next by itself.
    Upcoming {
        Restart = "restart",
        Retry = "retry",
        Park = "park",
        TakeoverDeadline = "takeover_deadline",
        Watchdog = "watchdog",
        Idle = "idle",
        Signal = "signal",
        Reset = "reset",
    }

    /// How far a message has come.
    MessageState {
        Queued = "queued",
        Delivered = "delivered",
        Done = "done",
        Failed = "failed",
        /// It was altered since it was written.
        Damaged = "damaged",
    }

    /// Whether the holder of a lock is alive.
    HolderVerdict {
        Alive = "alive",
        Dead = "dead",
        Unknown = "unknown",
    }

    /// What a lock is on.
    LockKind {
        Key = "key",
        Session = "session",
        Vendor = "vendor",
        Directory = "directory",
    }

    /// Where a line of output was printed; a note is our own.
    Stream {
        Stdout = "stdout",
        Stderr = "stderr",
        Note = "note",
    }

    /// The kind of a metric.
    MetricKind {
        Counter = "counter",
        Gauge = "gauge",
        Histogram = "histogram",
    }

}

/// Returns the states that a client can ask for: those of sessions that the daemon has.
fn of_sessions() -> impl Iterator<Item = &'static str> {
    let odd = [State::Damaged, State::Unknown];
    State::WORDS.iter().copied().filter(move |word| odd.iter().all(|odd| odd.word() != *word))
}

/// Returns the schema for kinds of events. They are examples: verbs of any version write their own events
/// into a file that the daemon takes over word by word.
pub(crate) fn event_kinds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "examples": EventKind::WORDS })
}

/// Returns the states that a client can ask for: those that messages are stored with.
pub(crate) fn asked_message_states() -> Vec<Option<&'static str>> {
    let written = MessageState::WORDS.iter().filter(|word| **word != MessageState::Damaged.word());
    written.copied().map(Some).chain([None]).collect()
}

/// Returns the modes that `purge` can be asked for.
pub(crate) fn purged_modes() -> Vec<Option<&'static str>> {
    Mode::WORDS.iter().copied().chain(["all"]).map(Some).chain([None]).collect()
}

/// Returns the pattern for several states, separated by commas.
pub(crate) fn several_states() -> String {
    let words = of_sessions().collect::<Vec<_>>().join("|");
    format!("^({words})(,({words}))*$")
}

// What a session is before anything is known about it.

#[expect(clippy::derivable_impls, reason = "a macro makes the words, and marks none of them")]
impl Default for Mode {
    fn default() -> Mode {
        Mode::OnDemand
    }
}

#[expect(clippy::derivable_impls, reason = "a macro makes the words, and marks none of them")]
impl Default for State {
    fn default() -> State {
        State::Idle
    }
}

#[expect(clippy::derivable_impls, reason = "a macro makes the words, and marks none of them")]
impl Default for Activity {
    fn default() -> Activity {
        Activity::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_is_written() {
        for word in Upcoming::WORDS {
            let upcoming: Upcoming = serde_json::from_value((*word).into()).unwrap();
            assert!(!matches!(upcoming, Upcoming::Other(_)), "{word}");
            assert_eq!(serde_json::to_value(&upcoming).unwrap(), *word);
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
