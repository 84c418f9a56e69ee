//! Where a session is in its life: what exists only in one state lives in that state.

use crate::exit::Verdict;
use crate::ids::RunNumber;
use crate::rules::verdict::Asked;
use crate::rules::{self, WaitReason};
use crate::time::{Moment, Wall};
use serde::{Deserialize, Serialize};

/// The state of a session, with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Life {
    /// Parked: no run, no locks; wakes when needed.
    Idle {
        /// How it came to be parked.
        since: IdleSince,
    },
    /// A run is decided and durable, and not yet seen to run.
    Starting {
        /// Which.
        run: RunNumber,
        /// How far it has come.
        stage: Stage,
        /// What it is for.
        purpose: Purpose,
    },
    /// A headless run.
    Running {
        /// Which.
        run: RunNumber,
        /// Since when.
        since: Moment,
        /// The agent itself.
        process: Process,
    },
    /// An interactive run, started by a takeover.
    Held {
        /// Which.
        run: RunNumber,
        /// Since when.
        since: Moment,
        /// The terminal program.
        process: Process,
        /// Where the session goes when it ends.
        then: HandBack,
    },
    /// A run that was asked to end.
    Stopping {
        /// Which.
        run: RunNumber,
        /// Since when.
        since: Moment,
        /// What it was for.
        purpose: Purpose,
        /// What it was asked first: that is what its end will be judged by.
        asked: Asked,
        /// What comes next.
        goal: Goal,
    },
    /// No run until a moment.
    Backoff {
        /// Which moment.
        until: Moment,
        /// What for.
        reason: WaitReason,
        /// What the system said, where it refused a start.
        #[serde(default)]
        refused: Option<Box<StartRefused>>,
    },
    /// No run because somebody else holds what it needs.
    Blocked {
        /// Who, as far as it is known.
        holder: Option<Box<HolderSeen>>,
        /// Whose lock it is, and so what ends the wait.
        on: BlockedOn,
    },
    /// Ended by a person.
    Stopped,
    /// Needs attention.
    Failed {
        /// What happened.
        cause: FailCause,
    },
    /// Kept as a record; never runs.
    Archived {
        /// Since when.
        at: Wall,
    },
}

impl Life {
    /// The agent that is at work: its run, its process, and since when.
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

    /// Whether somebody else's going would end this wait.
    #[must_use]
    pub fn awaits_holder(&self) -> bool {
        matches!(self, Life::Blocked { .. } | Life::Backoff { reason: WaitReason::Contended, .. })
    }

    /// Whether it is in the archive, or on its way there.
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
    /// The word of the contract.
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
    /// It is new and nobody has needed it yet.
    Created,
    /// Nobody needed it for its idle time.
    Parked,
    /// Its run ended and nobody needed another.
    NotNeeded,
    /// It was restored from the archive; mode `always` alone does not wake it before the next daemon start.
    Restored,
    /// The daemon went down.
    DaemonDown,
}

/// How far a start has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
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
    /// To a headless run if one is needed, else parked.
    ByNeed,
    /// To `stopped`, where it came from.
    ToStopped,
}

/// The agent's process and its fence, as the shim reported them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    /// The fence of the session lock for this run.
    pub fence: u64,
}

/// What comes after a run that was asked to end; a later word of a person's may change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// A person stopped it.
    Stop,
    /// A person wants a new run.
    Restart,
    /// Nobody needs it.
    Park,
    /// It is over its memory limit.
    Drain,
    /// An interactive run shall take its place.
    Takeover,
    /// It goes to the archive.
    Archive,
    /// The daemon goes down.
    Down,
    /// Its watchdog was silent.
    Watchdog,
    /// Its vendor session turned out to be held elsewhere.
    Yield,
}

impl Goal {
    /// What a run that is ended for this is asked.
    #[must_use]
    pub fn asked(self) -> Asked {
        match self {
            Goal::Drain => Asked::ToDrain,
            Goal::Watchdog => Asked::ToRevive,
            Goal::Yield => Asked::ToYield,
            Goal::Stop | Goal::Restart | Goal::Park | Goal::Takeover | Goal::Archive | Goal::Down => {
                Asked::ToEnd
            }
        }
    }
}

/// Who was seen to hold a lock; for people, decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderSeen {
    /// What is held.
    pub resource: String,
    /// By which process.
    pub pid: Option<u32>,
    /// Running what.
    pub command: Option<String>,
    /// Of which session.
    pub session: Option<String>,
    /// Since when.
    pub since: Option<Wall>,
}

/// Whose lock keeps a session from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedOn {
    /// A lock of ours: the kernel wakes us when it is free.
    OurLock,
    /// Something of the vendor's: tried again at this moment, or when its holder goes.
    VendorLock {
        /// The next try.
        retry: Moment,
    },
}

/// Why a session needs attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailCause {
    /// The verdict on its last run leaves no other way.
    Ended(Verdict),
    /// Crashes reached the hard limit.
    CrashHardLimit {
        /// How many.
        crashes: u32,
    },
    /// A run could not be started, and trying again is pointless.
    CannotStart(CannotStart),
    /// A `once` run was cut short.
    Interrupted,
}

/// Why a run cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CannotStart {
    /// There is no such program.
    ProgramMissing {
        /// What was looked for.
        program: String,
    },
    /// The program may not be executed.
    NotExecutable {
        /// Which.
        program: String,
    },
    /// There is no such directory.
    DirectoryMissing {
        /// Which.
        directory: String,
    },
    /// The program's first line names an interpreter that is not there.
    InterpreterMissing {
        /// Which program.
        program: String,
        /// What it names; none where it is no script, and its loader is missing.
        interpreter: Option<String>,
    },
    /// The directory may not be entered.
    DirectoryClosed {
        /// Which.
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
    /// What the system said, or would say.
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
    /// The kernel's number for it, where it was the kernel.
    pub errno: Option<i32>,
    /// What was refused and why, in words.
    pub text: String,
}
