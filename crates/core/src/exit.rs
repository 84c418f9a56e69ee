//! How runs end, and the one verdict that each end gets.

use crate::inbox::Read;
use crate::time::Wall;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the kernel, or its absence, says about the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// Its shim died and took the status with it.
    ShimLost,
    /// The machine restarted under it.
    MachineLost,
    /// No process of it ever ran.
    NeverStarted,
}

impl Exit {
    /// Its word in events: tells apart the ends that have neither code nor signal.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Exit::Code(_) => "code",
            Exit::Signal(_) => "signal",
            Exit::ShimLost => "shim_lost",
            Exit::MachineLost => "machine_lost",
            Exit::NeverStarted => "never_started",
        }
    }

    /// The exit code, where there is one.
    #[must_use]
    pub fn code(self) -> Option<i32> {
        match self {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::ShimLost | Exit::MachineLost | Exit::NeverStarted => None,
        }
    }

    /// The signal, where one killed it.
    #[must_use]
    pub fn signal(self) -> Option<i32> {
        match self {
            Exit::Signal(signal) => Some(signal),
            Exit::Code(_) | Exit::ShimLost | Exit::MachineLost | Exit::NeverStarted => None,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exited with {code}"),
            Exit::Signal(signal) => write!(f, "was killed by signal {signal}"),
            Exit::ShimLost => f.write_str("was lost with its shim"),
            Exit::MachineLost => f.write_str("was ended by a restart of the machine"),
            Exit::NeverStarted => f.write_str("never started"),
        }
    }
}

/// What an agent said about its coming exit through its notify socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// It ends to give memory back.
    Drained,
    /// Somebody else holds what it needs.
    Contended,
    /// Trying again is pointless.
    Hopeless,
    /// A usage limit was met.
    Limited,
}

/// What was recognised about the end of a run, by its adapter in the output or by the daemon in the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recognised {
    /// The vendor's own lock is held elsewhere.
    VendorLock,
    /// The vendor knows no session of this id.
    StaleId,
    /// The vendor wants a login.
    LoginNeeded,
    /// The agent refused a step of the handshake, and was told to leave: its exit code says nothing.
    NoHandshake,
    /// A person ended the holder of one of its locks with `unlock`.
    Unlocked,
    /// A usage limit, with its reset time where the vendor names one.
    UsageLimit {
        /// When it resets.
        resets: Option<Wall>,
    },
}

/// Everything known about the end of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What the kernel says.
    pub exit: Exit,
    /// What the agent said, if it spoke.
    #[serde(default)]
    pub said: Option<Said>,
    /// What was recognised.
    #[serde(default)]
    pub recognised: Option<Recognised>,
    /// The kernel's out-of-memory counter of the run grew.
    #[serde(default)]
    pub oom_killed: bool,
    /// SIGKILL was needed to end it.
    #[serde(default)]
    pub forced: bool,
    /// How long it lived, time asleep not counted.
    #[serde(with = "crate::time::millis")]
    pub lived: std::time::Duration,
    /// Whether it may have read the message whose turn it was.
    #[serde(default)]
    pub read: Read,
    /// When it ended, where that is known.
    #[serde(default)]
    pub at: Option<Wall>,
    /// The last line that it printed.
    #[serde(default)]
    pub last_line: Option<String>,
}

impl Ended {
    /// An end of which only this much is known.
    #[must_use]
    pub fn new(exit: Exit, lived: std::time::Duration) -> Ended {
        Ended {
            exit,
            said: None,
            recognised: None,
            oom_killed: false,
            forced: false,
            lived,
            read: Read::default(),
            at: None,
            last_line: None,
        }
    }
}

/// The verdict on the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It ended as it should, or because we asked.
    Clean,
    /// It gave way to a memory limit.
    Drained,
    /// Somebody else holds what it needs.
    Contended,
    /// Trying again is pointless.
    Hopeless,
    /// A usage limit was met.
    Limited,
    /// The kernel killed it for memory.
    OutOfMemory,
    /// Anything else.
    Crash,
}

impl Verdict {
    /// The word of the contract.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Clean => "clean",
            Verdict::Drained => "drained",
            Verdict::Contended => "contended",
            Verdict::Hopeless => "hopeless",
            Verdict::Limited => "limited",
            Verdict::OutOfMemory => "out_of_memory",
            Verdict::Crash => "crash",
        }
    }
}
