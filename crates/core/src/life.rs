//! The state of a session. Whatever exists in only one state is stored in that state.

use crate::exit::Verdict;
use crate::ids::RunNumber;
use crate::rules::verdict::Asked;
use crate::rules::{self, WaitReason};
use crate::time::{Moment, Wall};
use serde::{Deserialize, Serialize};

/// The state of a session, with the facts that belong to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Life {
    /// Parked: no run and no locks; it wakes when it is needed.
    Idle {
        /// How it came to be parked.
        since: IdleSince,
    },
    /// A run was decided and stored, but is not yet known to run.
    Starting {
        /// The number of the run.
        run: RunNumber,
        /// How far the start has come.
        stage: StartStage,
        /// What it is for.
        purpose: Purpose,
    },
    /// A headless run.
    Running {
        /// The number of the run.
        run: RunNumber,
        /// When it began.
        since: Moment,
        /// The agent's process.
        process: Process,
    },
    /// An interactive run, started by a takeover.
    Held {
        /// The number of the run.
        run: RunNumber,
        /// When it began.
        since: Moment,
        /// The terminal program's process.
        process: Process,
        /// Where the session goes after the run.
        then: HandBack,
    },
    /// A run that was asked to end.
    Stopping {
        /// The number of the run.
        run: RunNumber,
        /// When it began.
        since: Moment,
        /// What it was for.
        purpose: Purpose,
        /// What it was asked first; its end is judged by that.
        asked: Asked,
        /// What comes after it.
        goal: Goal,
    },
    /// No run until some time has passed.
    Backoff {
        /// When the wait ends.
        until: Moment,
        /// What the wait is for.
        reason: WaitReason,
        /// What the system said, if it refused a start.
        #[serde(default)]
        refused: Option<Box<StartRefused>>,
        /// The process that holds what the session needs, if it is known.
        #[serde(default)]
        holder: Option<Box<HolderSeen>>,
    },
    /// No run because another process holds what it needs.
    Blocked {
        /// The holder, as far as it is known.
        holder: Option<Box<HolderSeen>>,
        /// Whose lock it is, which decides what ends the wait.
        on: BlockedOn,
    },
    /// Stopped by a person.
    Stopped,
    /// It needs attention.
    Failed {
        /// Why it failed.
        cause: FailCause,
    },
    /// Kept as a record; never runs.
    Archived {
        /// When it was archived.
        at: Wall,
    },
}

impl Life {
    /// Returns the agent at work: its run, its process, and when it began.
    #[must_use]
    pub fn at_work(&self) -> Option<(RunNumber, Process, Moment)> {
        match self {
            Life::Running { run, process, since } | Life::Held { run, process, since, .. } => {
                Some((*run, *process, *since))
            }
            Life::Idle { .. }
            | Life::Starting { .. }
            | Life::Stopping { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => None,
        }
    }

    /// Whether this wait ends when another process lets go.
    #[must_use]
    pub fn awaits_holder(&self) -> bool {
        matches!(self, Life::Blocked { .. } | Life::Backoff { reason: WaitReason::Contended, .. })
    }

    /// Returns the process that it waits for, if that is known.
    #[must_use]
    pub fn holder(&self) -> Option<&HolderSeen> {
        match self {
            Life::Blocked { holder, .. } | Life::Backoff { holder, .. } => holder.as_deref(),
            Life::Idle { .. }
            | Life::Starting { .. }
            | Life::Running { .. }
            | Life::Held { .. }
            | Life::Stopping { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => None,
        }
    }

    /// Whether it is archived or being archived.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        matches!(self, Life::Archived { .. } | Life::Stopping { goal: Goal::Archive, .. })
    }
}

/// The word of the contract for a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are explained at `Life`")]
pub enum State {
    Idle,
    Starting,
    Running,
    Stopping,
    Backoff,
    Blocked,
    Held,
    Stopped,
    Failed,
    Archived,
}

impl State {
    /// Returns the word of the contract.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Starting => "starting",
            State::Running => "running",
            State::Stopping => "stopping",
            State::Backoff => "backoff",
            State::Blocked => "blocked",
            State::Held => "held",
            State::Stopped => "stopped",
            State::Failed => "failed",
            State::Archived => "archived",
        }
    }
}

/// How a session came to be parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleSince {
    /// It is new and has not been needed yet.
    Created,
    /// It was not needed for its idle time.
    Parked,
    /// Its run ended and no other was needed.
    NotNeeded,
    /// It was restored from the archive; mode `always` alone does not wake it before the daemon starts next.
    Restored,
    /// The daemon went down.
    DaemonDown,
}

/// How far a start has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartStage {
    /// The locks are being taken; no process exists.
    Reserving,
    /// The locks are held; the shim may have started the agent.
    Spawning,
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The agent at work, without a terminal.
    Headless,
    /// The vendor's own terminal program, on the same vendor session.
    Interactive(HandBack),
}

/// Where a session goes after an interactive run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandBack {
    /// To a headless run if one is needed, otherwise parked.
    ByNeed,
    /// Back to `stopped`.
    ToStopped,
}

/// The agent's process and its fence, as reported by the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    /// The fence of the session lock for this run.
    pub fence: u64,
}

/// What comes after a run that was asked to end; a person may change it later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// A person stopped it.
    Stop,
    /// A person wants a new run.
    Restart,
    /// It is no longer needed.
    Park,
    /// It is over its memory limit.
    Drain,
    /// An interactive run will take its place.
    Takeover,
    /// It goes to the archive.
    Archive,
    /// The daemon goes down.
    Down,
    /// Its watchdog was silent.
    Watchdog,
    /// Its vendor session turned out to be held elsewhere.
    Yield,
    /// Its agent opened another conversation than the one that it was to continue.
    Lost,
}

impl Goal {
    /// Returns what a run that ends for this goal is asked to do.
    #[must_use]
    pub fn asked(self) -> Asked {
        match self {
            Goal::Drain => Asked::ToDrain,
            Goal::Watchdog => Asked::ToRevive,
            Goal::Yield => Asked::ToYield,
            // Its end is judged by what was recognised.
            Goal::Lost => Asked::Nothing,
            Goal::Stop | Goal::Restart | Goal::Park | Goal::Takeover | Goal::Archive | Goal::Down => {
                Asked::ToEnd
            }
        }
    }
}

/// The process seen to hold a lock; shown to people, never used to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderSeen {
    /// The resource that it holds.
    pub resource: String,
    /// Its pid.
    pub pid: Option<u32>,
    /// Its command.
    pub command: Option<String>,
    /// The session that it belongs to.
    pub session: Option<String>,
    /// When it took the lock.
    pub since: Option<Wall>,
}

/// Whose lock keeps a session from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedOn {
    /// One of our locks: the kernel wakes us when it is free.
    OurLock,
    /// A lock of the vendor's: tried again at this moment, or when its holder goes.
    VendorLock {
        /// When to try next.
        retry: Moment,
    },
}

/// Why a session needs attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailCause {
    /// The verdict on its last run rules out another one.
    Ended(Verdict),
    /// The crash streak reached the hard limit.
    CrashHardLimit {
        /// The number of crashes.
        crashes: u32,
    },
    /// A run could not be started, and trying again is pointless.
    CannotStart(CannotStart),
    /// A `once` run was cut short.
    Interrupted,
    /// Its conversation cannot be continued; [`Talk::lost`](crate::talk::Talk::lost) knows more.
    ConversationLost,
}

/// Why a run cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CannotStart {
    /// The program does not exist.
    ProgramMissing {
        /// The program that was looked for.
        program: String,
    },
    /// The program may not be executed.
    NotExecutable {
        /// The path of the program.
        program: String,
    },
    /// The directory does not exist.
    DirectoryMissing {
        /// The path of the directory.
        directory: String,
    },
    /// The program's first line names an interpreter that does not exist.
    InterpreterMissing {
        /// The path of the program.
        program: String,
        /// The interpreter it names; `None` if it is not a script and its loader is missing.
        interpreter: Option<String>,
    },
    /// The directory may not be entered.
    DirectoryClosed {
        /// The path of the directory.
        directory: String,
    },
    /// The lock folder cannot be used.
    LocksUnusable {
        /// What is wrong with it.
        problem: String,
    },
    /// The system refused, and will refuse again.
    Refused(StartRefused),
}

impl CannotStart {
    /// Returns the error number the system gave, or would give.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            CannotStart::ProgramMissing { .. }
            | CannotStart::DirectoryMissing { .. }
            | CannotStart::InterpreterMissing { .. } => Some(rules::start::ENOENT),
            CannotStart::NotExecutable { .. } | CannotStart::DirectoryClosed { .. } => {
                Some(rules::start::EACCES)
            }
            CannotStart::LocksUnusable { .. } => None,
            CannotStart::Refused(refused) => refused.errno,
        }
    }
}

/// What the system said when it refused a start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRefused {
    /// The error number, if it came from the kernel.
    pub errno: Option<i32>,
    /// What was refused and why, in words.
    pub text: String,
}
