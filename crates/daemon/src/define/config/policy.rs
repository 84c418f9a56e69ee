//! The numbers of `[policy]`: the keys, how each is written, and where its value goes.

use super::value::{ByteSize, Count, Flag, Pace, Part, Span, Word, WordTable};
use pinfold_core::Policy;
use pinfold_core::talk::Permissions;
use serde::Deserialize;
use std::fmt::{self, Formatter};
use std::time::Duration;

/// The numbers of one session: the core's policy, and those that only the daemon uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What the core decides by.
    pub policy: Policy,
    /// How often memory is read.
    pub memory_sample: Duration,
    /// How long an HTTP hold may last; zero means forever.
    pub hold_limit: Duration,
    /// How many bytes of text may be queued in an inbox; zero means no limit.
    pub inbox_limit: u64,
    /// How many sessions there may be in all, including archived ones; zero means no limit.
    pub session_limit: u32,
    /// How confined callers are treated.
    pub confined: Confined,
    /// How many children a session's own runs may create.
    pub child_limit: u32,
    /// How many levels of sessions runs may create below a person's session.
    pub child_depth: u32,
}

/// How confined callers are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confined {
    /// They may not start, change or end anything.
    Refuse,
    /// They count as unconfined.
    Allow,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            policy: Policy::default(),
            memory_sample: Duration::from_secs(5),
            hold_limit: Duration::ZERO,
            inbox_limit: 64 << 20,
            session_limit: 4096,
            confined: Confined::Refuse,
            child_limit: 32,
            child_depth: 4,
        }
    }
}

impl WordTable for Permissions {
    const WORDS: &'static [(&'static str, Permissions)] =
        &[("ask", Permissions::Ask), ("allow", Permissions::Allow), ("deny", Permissions::Deny)];

    fn expecting(f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("is \"ask\", \"allow\" or \"deny\"")
    }
}

impl WordTable for Confined {
    const WORDS: &'static [(&'static str, Confined)] =
        &[("refuse", Confined::Refuse), ("allow", Confined::Allow)];

    fn expecting(f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("is \"refuse\" or \"allow\"")
    }
}

impl From<Word<Permissions>> for Permissions {
    fn from(word: Word<Permissions>) -> Permissions {
        word.0
    }
}

impl From<Word<Confined>> for Confined {
    fn from(word: Word<Confined>) -> Confined {
        word.0
    }
}

/// Makes the table: each key, how it is written, and which number of [`Settings`] it sets.
macro_rules! numbers {
    ($($key:ident: $Written:ty => $($place:ident).+,)+) => {
        /// All keys.
        pub(super) const KEYS: &[&str] = &[$(stringify!($key)),+];

        /// What one table of the file sets; everything else stays as it was.
        #[derive(Debug, Clone, PartialEq, Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub(super) struct Changes {
            $($key: Option<$Written>,)+
        }

        impl Changes {
            /// The keys that are set.
            #[cfg(test)]
            pub(super) fn keys(&self) -> Vec<&'static str> {
                let all = [$((stringify!($key), self.$key.is_some())),+];
                all.into_iter().filter(|(_, has)| *has).map(|(key, _)| key).collect()
            }
        }

        impl Settings {
            /// Every key of `[policy]`, the type that reads its value, and the value here: the reference is
            /// made from this.
            #[must_use]
            pub fn rows(&self) -> Vec<(&'static str, &'static str, String)> {
                vec![$((stringify!($key), stringify!($Written), format!("{:?}", self.$($place).+))),+]
            }

            /// Applies what a table of the file sets.
            pub(super) fn change(&mut self, changes: &Changes) {
                $(if let Some(written) = changes.$key {
                    self.$($place).+ = written.into();
                })+
            }
        }
    };
}

numbers! {
    crash_soft_limit: Count => policy.crash_soft_limit,
    crash_hard_limit: Count => policy.crash_hard_limit,
    stable_after: Span => policy.stable_after,
    backoff_initial: Span => policy.backoff_initial,
    backoff_max: Span => policy.backoff_max,
    backoff_jitter: Part => policy.backoff_jitter,
    clean_limit: Count => policy.clean_limit,
    clean_window: Span => policy.clean_window,
    drain_limit: Count => policy.drain_limit,
    drain_window: Span => policy.drain_window,
    drain_backoff: Span => policy.drain_backoff,
    contention_step: Span => policy.contention_step,
    contention_max: Span => policy.contention_max,
    contention_limit: Count => policy.contention_limit,
    idle_after: Span => policy.idle_after,
    stop_grace: Span => policy.stop_grace,
    takeover_deadline: Span => policy.takeover_deadline,
    message_tries: Count => policy.message_tries,
    memory_warn: Part => policy.memory_warn,
    memory_sample: Pace => memory_sample,
    watchdog: Span => policy.watchdog,
    silence_warn: Span => policy.silence_warn,
    permissions: Word<Permissions> => policy.permissions,
    hold_limit: Span => hold_limit,
    inbox_limit: ByteSize => inbox_limit,
    session_limit: Count => session_limit,
    confined: Word<Confined> => confined,
    child_limit: Count => child_limit,
    child_depth: Count => child_depth,
    limit_resume: Flag => policy.limit_resume,
    mark_repetition: Flag => policy.mark_repetition,
}
