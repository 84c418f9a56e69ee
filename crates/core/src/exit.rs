//! How runs end, and the verdict that each end gets.

use crate::inbox::Read;
use crate::time::Wall;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What is known about the end of a run, from the kernel or from the lack of a record.
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
    /// It belongs to an earlier life of the home: a backup that was made while it ran was put back.
    AfterBackup,
    /// No process of it ever ran.
    NeverStarted,
}

impl Exit {
    /// Returns its word in events, which tells apart the ends that have neither code nor signal.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Exit::Code(_) => "code",
            Exit::Signal(_) => "signal",
            Exit::ShimLost => "shim_lost",
            Exit::MachineLost => "machine_lost",
            Exit::AfterBackup => "after_backup",
            Exit::NeverStarted => "never_started",
        }
    }

    /// Returns the exit code, if there is one.
    #[must_use]
    pub fn code(self) -> Option<i32> {
        match self {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::ShimLost | Exit::MachineLost | Exit::AfterBackup | Exit::NeverStarted => {
                None
            }
        }
    }

    /// Returns the signal that killed it, if one did.
    #[must_use]
    pub fn signal(self) -> Option<i32> {
        match self {
            Exit::Signal(signal) => Some(signal),
            Exit::Code(_) | Exit::ShimLost | Exit::MachineLost | Exit::AfterBackup | Exit::NeverStarted => {
                None
            }
        }
    }
}

impl Exit {
    /// Whether the agent had nothing to do with its end: the world around it changed.
    #[must_use]
    pub fn is_another_life(self) -> bool {
        matches!(self, Exit::MachineLost | Exit::AfterBackup)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exited with {code}"),
            Exit::Signal(signal) => write!(f, "was killed by signal {signal}"),
            Exit::ShimLost => f.write_str("was lost with its shim"),
            Exit::MachineLost => f.write_str("was ended by a restart of the machine"),
            Exit::AfterBackup => f.write_str("ended after the backup was made that was put back"),
            Exit::NeverStarted => f.write_str("never started"),
        }
    }
}

/// What an agent announced about its exit through its notify socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitNotice {
    /// It ends to give memory back.
    Drained,
    /// Another process holds what it needs.
    Contended,
    /// Trying again is pointless.
    Hopeless,
    /// It reached a usage limit.
    Limited,
}

/// What was recognised about the end of a run, by the adapter in its output or by the daemon in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recognised {
    /// Another process holds the vendor's own lock.
    VendorLock,
    /// The vendor knows no session with this id.
    StaleId,
    /// The vendor knows no session with this id, in which nothing was answered: the next run begins another one.
    BeginsAnother,
    /// The vendor wants a login.
    LoginNeeded,
    /// The agent refused a step of the handshake and was told to leave; its exit code says nothing.
    NoHandshake,
    /// A person ended the holder of one of its locks with `unlock`.
    Unlocked,
    /// A usage limit, with its reset time where the vendor names one.
    UsageLimit {
        /// When it resets.
        resets: Option<Wall>,
    },
}

/// Everything known about how one run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What the kernel says.
    pub exit: Exit,
    /// What the agent announced, if it did.
    #[serde(default)]
    pub said: Option<ExitNotice>,
    /// What was recognised about it.
    #[serde(default)]
    pub recognised: Option<Recognised>,
    /// Whether the kernel's out-of-memory counter of the run grew.
    #[serde(default)]
    pub oom_killed: bool,
    /// Whether SIGKILL was needed to end it.
    #[serde(default)]
    pub forced: bool,
    /// How long it lived, not counting time asleep.
    #[serde(with = "crate::time::millis")]
    pub lived: std::time::Duration,
    /// Whether it may have read the message whose turn it was.
    #[serde(default)]
    pub read: Read,
    /// When it ended, if that is known.
    #[serde(default)]
    pub at: Option<Wall>,
    /// The last line it printed.
    #[serde(default)]
    pub last_line: Option<String>,
}

impl Ended {
    /// Creates an end of which only this is known.
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
    /// It ended because of a memory limit.
    Drained,
    /// Another process holds what it needs.
    Contended,
    /// Trying again is pointless.
    Hopeless,
    /// It reached a usage limit.
    Limited,
    /// The kernel killed it for memory.
    OutOfMemory,
    /// Any other end.
    Crash,
}

impl Verdict {
    /// Returns the word of the contract.
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
