//! The numbers that the rules use, and what a session may ask for.

use crate::guest::Attaching;
use crate::talk::Permissions;
use crate::time::millis;
use crate::usage::Money;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When a session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// While it is needed.
    OnDemand,
    /// From `new` to `stop`.
    Always,
    /// One run, never restarted.
    Once,
}

impl Mode {
    /// Each mode with its word in the contract.
    pub const WORDS: [(&'static str, Mode); 3] =
        [("on-demand", Mode::OnDemand), ("always", Mode::Always), ("once", Mode::Once)];

    /// Returns the mode that a word stands for.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Mode> {
        Mode::WORDS.iter().find(|(known, _)| *known == word).map(|(_, mode)| *mode)
    }
}

/// All policy numbers; the defaults are the documented ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Crashes in a streak at which to warn; 0 means never.
    pub crash_soft_limit: u32,
    /// Crashes in a streak at which the session fails; 0 means never.
    pub crash_hard_limit: u32,
    /// A crash after a strictly longer run starts a new streak.
    #[serde(with = "millis")]
    pub stable_after: Duration,
    /// The first wait after a crash.
    #[serde(with = "millis")]
    pub backoff_initial: Duration,
    /// The longest wait after a crash.
    #[serde(with = "millis")]
    pub backoff_max: Duration,
    /// The largest part of a wait that chance may take off.
    pub backoff_jitter: f64,
    /// Clean restarts within `clean_window` that happen at once.
    pub clean_limit: u32,
    /// The window for clean restarts; a run that lives longer ends the episode.
    #[serde(with = "millis")]
    pub clean_window: Duration,
    /// Drains within `drain_window` that are restarted at once.
    pub drain_limit: u32,
    /// The window for drains.
    #[serde(with = "millis")]
    pub drain_window: Duration,
    /// The wait after each drain beyond the limit.
    #[serde(with = "millis")]
    pub drain_backoff: Duration,
    /// The wait after the n-th contended exit in a row is n times this, ...
    #[serde(with = "millis")]
    pub contention_step: Duration,
    /// ... but never longer than this.
    #[serde(with = "millis")]
    pub contention_max: Duration,
    /// The contended exit in a row at which the session is blocked; 0 means never.
    pub contention_limit: u32,
    /// How long a run that is no longer needed is kept.
    #[serde(with = "millis")]
    pub idle_after: Duration,
    /// Time between the stop signal and SIGKILL.
    #[serde(with = "millis")]
    pub stop_grace: Duration,
    /// How long a takeover waits for the turn under way.
    #[serde(with = "millis")]
    pub takeover_deadline: Duration,
    /// Deliveries after which a message fails; 0 counts as 1.
    pub message_tries: u32,
    /// The part of the memory limit at which to warn.
    pub memory_warn: f64,
    /// How long a run that was told of a watchdog may be silent before it is ended; zero turns it off.
    #[serde(with = "millis")]
    pub watchdog: Duration,
    /// How long an agent at work may be silent before `why` warns; zero means never.
    #[serde(with = "millis")]
    pub silence_warn: Duration,
    /// Whether a session resumes by itself when its usage limit resets.
    pub limit_resume: bool,
    /// Whether an agent is told that it may have seen a message before.
    pub mark_repetition: bool,
    /// Who answers when an agent asks for permission.
    pub permissions: Permissions,
}

impl Default for Policy {
    fn default() -> Self {
        const MINUTE: u64 = 60;
        Policy {
            crash_soft_limit: 10,
            crash_hard_limit: 100,
            stable_after: Duration::from_secs(5 * MINUTE),
            backoff_initial: Duration::from_secs(1),
            backoff_max: Duration::from_secs(MINUTE),
            backoff_jitter: 0.1,
            clean_limit: 10,
            clean_window: Duration::from_secs(MINUTE),
            drain_limit: 3,
            drain_window: Duration::from_secs(10 * MINUTE),
            drain_backoff: Duration::from_secs(30),
            contention_step: Duration::from_secs(10),
            contention_max: Duration::from_secs(MINUTE),
            contention_limit: 6,
            idle_after: Duration::from_secs(5 * MINUTE),
            stop_grace: Duration::from_secs(10),
            takeover_deadline: Duration::from_secs(30),
            message_tries: 3,
            memory_warn: 0.8,
            watchdog: Duration::ZERO,
            silence_warn: Duration::from_secs(10 * MINUTE),
            limit_resume: false,
            mark_repetition: true,
            permissions: Permissions::Ask,
        }
    }
}

/// Stands for the locks and the command of a definition. A shim is opened for one of them, so a run of another
/// one needs another shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShimSetup(pub u64);

impl ShimSetup {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
    fn is_unknown(&self) -> bool {
        *self == ShimSetup::default()
    }
}

/// The part of a session's definition that the core needs; argv, directory and environment stay in the shell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// When it runs.
    pub mode: Mode,
    /// Its policy numbers.
    #[serde(default)]
    pub policy: Policy,
    /// Memory in bytes above which a run is drained.
    #[serde(default)]
    pub memory_limit: Option<u64>,
    /// Whether the agent has its own terminal program, which can take the session over.
    #[serde(default)]
    pub interactive: bool,
    /// Whether it has one as soon as its vendor's id is known, which is learned from a run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive_when_named: bool,
    /// What `attach` does with that program.
    #[serde(default, skip_serializing_if = "Attaching::is_takeover")]
    pub attach: Attaching,
    /// How much it may spend before a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Money>,
    /// How long its turns may take in total before a person is asked, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_time: Option<u64>,
    /// Whether each run is for one message: only a message needs a run, and the end of the run ends the turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run_per_message: bool,
    /// What a shim is opened for. A definition stored by an earlier version has none.
    #[serde(default, skip_serializing_if = "ShimSetup::is_unknown")]
    pub setup: ShimSetup,
    /// How often a person chose another conversation of the vendor; each time, the learned one is forgotten.
    #[serde(default, skip_serializing_if = "is_first")]
    pub conversation: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_first(conversation: &u64) -> bool {
    *conversation == 0
}

impl Spec {
    /// Creates a definition with this mode and the default policy.
    #[must_use]
    pub fn new(mode: Mode) -> Spec {
        Spec {
            mode,
            policy: Policy::default(),
            memory_limit: None,
            interactive: false,
            interactive_when_named: false,
            attach: Attaching::Takeover,
            budget: None,
            turn_time: None,
            run_per_message: false,
            setup: ShimSetup::default(),
            conversation: 0,
        }
    }
}
