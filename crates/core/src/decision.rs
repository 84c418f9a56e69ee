//! What follows from an event, as data: what to remember, what to do, and why.

use crate::event::{ConsumerKind, Shim};
use crate::exit::{Exit, Verdict};
use crate::guest::Guest;
use crate::hold::Hold;
use crate::ids::{ConsumerId, MessageId, RequestNumber, RunNumber};
use crate::inbox::{MessageChange, MessageFailure};
use crate::kind::EventKind;
use crate::last_exit::LastExit;
use crate::life::{Life, Purpose};
use crate::policy::Spec;
use crate::rules::memory::MemoryWatch;
use crate::rules::{WaitReason, Warning};
use crate::running::{Leaving, Runs, Takeover};
use crate::talk::{Permit, RequestAnswer, RequestChange, RequestKind, Standing, Vendor};
use crate::time::{Boot, Wall};
use crate::unended::Unended;
use crate::usage::{Allowance, Spending, Took};
use crate::why::Why;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What follows from one event.
///
/// Commit `changes` first, then perform `actions` in their order; results come back as events. Every change
/// has already been applied to the session that decided, so a failed commit means: drop it and load again.
#[must_use]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// What is different from now on, in order.
    pub changes: Vec<Change>,
    /// What to do once the changes are durable.
    pub actions: Vec<Action>,
    /// Which rule decided, with its facts.
    pub why: Why,
    /// What to tell whoever asked, if somebody did.
    pub answer: Option<Answer>,
}

/// One difference. Applying all changes of all decisions in order gives the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Its state.
    Life(Life),
    /// The numbers of its runs.
    Runs(Runs),
    /// How its last run ended.
    LastExit(Box<LastExit>),
    /// Its counters.
    Budgets(Box<crate::budgets::Budgets>),
    /// What keeps its locks while nothing runs.
    Shim(Shim),
    /// A message took a step.
    Message(MessageChange),
    /// A request of its agent took a step.
    Request(RequestChange),
    /// The conversation of its vendor that it is in.
    Vendor(Box<Vendor>),
    /// What a turn took.
    Spent(Box<Spending>),
    /// What its agent does.
    Standing(Option<Box<Standing>>),
    /// What keeps it from its next turn.
    Hold(Option<Box<Hold>>),
    /// What it has spent counts no longer against its budget.
    BudgetRaised(Allowance),
    /// Since when the turn under way goes on, where that is counted.
    TurnSince(Option<Boot>),
    /// How long it went on.
    TurnTook(Took),
    /// A consumer connected.
    Joined(ConsumerId, ConsumerKind),
    /// A consumer left.
    Left(ConsumerId),
    /// When a consumer was last connected.
    LastConsumer(Wall),
    /// Until when a person's `start` counts as a need.
    KeepUntil(Option<Boot>),
    /// Since when nobody has needed the run.
    Unneeded(Option<Boot>),
    /// A takeover under way.
    Takeover(Option<Takeover>),
    /// The last guest of its runs.
    Guest(Option<Guest>),
    /// Who waits for a guest.
    AwaitingGuest(Vec<ConsumerId>),
    /// What is known of its memory.
    Memory(MemoryWatch),
    /// The last sign of life of a run with a watchdog.
    SignOfLife(Option<Boot>),
    /// A person interrupted the turn under way; its end is asked for.
    Interrupted(bool),
    /// Its definition, now or with the next run.
    Spec(Box<Spec>, InForce),
    /// The daemon is going down: nothing starts any more.
    Closing(bool),
    /// Its shim does not answer: nothing is decided until it does, or its lock is free.
    Mute(bool),
    /// Its agent was asked by word to leave, and is waited for.
    Leaving(Option<Leaving>),
    /// Who is in the way of its run's end, if anybody.
    Unended(Option<Box<Unended>>),
    /// A line in its audit log.
    Record(Record),
}

/// When a changed definition counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InForce {
    /// From now on.
    Now,
    /// From the next run on.
    NextRun,
}

/// Something for the shell to do. Repeating one is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Take the locks of a run; answers `Reserved`, `LockBusy` or `StartFailed`.
    Reserve {
        /// Which.
        run: RunNumber,
        /// What for.
        purpose: Purpose,
    },
    /// Start the agent of a run, under the shim that stands or under a new one that is given the locks;
    /// answers `Started` or `StartFailed`.
    Spawn {
        /// Which.
        run: RunNumber,
        /// What for.
        purpose: Purpose,
    },
    /// End the whole tree of a run: stop signal, grace, SIGKILL. Asked again, the shorter grace counts. Answers
    /// `Exited`, and `Unended` before it when that takes longer than it should.
    Stop {
        /// Which.
        run: RunNumber,
        /// Time before SIGKILL.
        grace: Duration,
    },
    /// Give back the locks of a session that has no run: reservation dropped, shim dismissed.
    Release,
    /// Wait for the lock that was refused or the holder that was named; answers `HolderGone`.
    AwaitHolder,
    /// Stop waiting for it.
    ForgetHolder,
    /// Look at the world again once the session's lock is free or its shim answers; answers `DaemonStarted`.
    LookAgain,
    /// Hand a message to the agent; handing the same delivery over twice delivers it once.
    Deliver {
        /// To which run.
        run: RunNumber,
        /// Which message.
        message: MessageId,
        /// 1 for its first delivery.
        attempt: u32,
        /// The number of this delivery: the same number twice is the same delivery.
        delivery: u64,
        /// Whether the agent may have read it before.
        #[serde(default)]
        repeated: bool,
    },
    /// Tell the agent the answer to a request; told twice, it is said once. Answers `Told`.
    Answer {
        /// Of which run.
        run: RunNumber,
        /// Which request.
        number: RequestNumber,
        /// What the agent calls it.
        key: String,
        /// What to say.
        answer: Box<RequestAnswer>,
    },
    /// Lock a conversation of the vendor's for as long as the run lives; answers `VendorBusy` if somebody else has it.
    HoldVendor {
        /// For which run.
        run: RunNumber,
        /// The vendor's id of it.
        id: String,
    },
    /// End the turn under way, keep the run.
    Interrupt {
        /// Of which run.
        run: RunNumber,
    },
    /// Tell the agent that nothing more will come: its input is closed.
    Close {
        /// Of which run.
        run: RunNumber,
    },
    /// Start the vendor's own terminal program beside a run; the same number twice starts one. Answers `Guest`.
    StartGuest {
        /// Beside which run.
        run: RunNumber,
        /// Which guest of it.
        guest: u64,
    },
    /// Read the memory of a run exactly; answers `MemoryRead` from `Shares`.
    ConfirmMemory {
        /// Of which run.
        run: RunNumber,
    },
}

/// The answer to what somebody asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is under way; the state will tell.
    UnderWay,
    /// It is done.
    Done,
    /// It was so already.
    Already,
    /// It joins what is already under way or running.
    Joined,
    /// The message is queued.
    Queued {
        /// Under this id: that of the first one with the same key.
        message: MessageId,
        /// Whether it will be delivered without somebody doing something.
        wakes: Wakes,
    },
    /// It cannot be.
    Refused(Refusal),
}

/// Whether a queued message wakes its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wakes {
    /// It does, or the session is awake.
    Yes,
    /// It waits until the session is started: a person stopped it.
    NotWhileStopped,
    /// It waits until somebody lets go of the session's lock.
    NotWhileBlocked,
    /// It waits until its account, or its budget, lets it.
    NotWhileHeld,
    /// It waits until the daemon is back.
    NotWhileClosing,
}

/// Why something cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// It is archived.
    Archived,
    /// It is on its way to the archive.
    BeingArchived,
    /// It is being stopped by a person.
    BeingStopped,
    /// A person stopped it.
    Stopped,
    /// It needs attention.
    Failed,
    /// It is not archived.
    NotArchived,
    /// Somebody else holds its lock.
    Busy,
    /// The daemon is going down.
    GoingDown,
    /// Its shim does not answer.
    ShimMute,
    /// Its agent has no terminal program of its own.
    NoTerminal,
    /// It runs once only.
    RunsOnce,
    /// There is no turn to interrupt.
    NoTurn,
    /// There is no such message that waits.
    NoSuchMessage,
    /// There is no such request that is open.
    NoSuchRequest,
    /// Too many messages wait already.
    InboxFull,
    /// Too much text waits already.
    InboxHeavy,
    /// Its agent gets a message as an argument, and this one cannot be one.
    NotAnArgument,
    /// Purge: somebody is connected.
    Connected,
    /// Purge: a turn is under way.
    TurnUnderWay,
    /// Purge: a message is queued.
    MessageQueued,
    /// Purge: it is the asker itself.
    Own,
}

/// One line of the audit log; the shell adds session, number and time, output and texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the kinds are the words of the contract")]
pub enum Record {
    SessionCreated,
    RunStarted { run: RunNumber, pid: u32, fence: u64, purpose: Purpose },
    RunExited(Box<RunExited>),
    StartFailed { run: RunNumber, errno: Option<i32>, text: String },
    Backoff { wait: Duration, reason: WaitReason },
    HealthWarn { reason: Warning },
    LockBusy { run: RunNumber },
    LockAcquired { run: RunNumber },
    LockReleased,
    TakeoverRequested { consumer: ConsumerId, urgent: bool },
    TakeoverDone { how: TakeoverEnd },
    MessageQueued { message: MessageId },
    MessageDelivered { message: MessageId, attempt: u32 },
    MessageDone { message: MessageId },
    MessageFailed { message: MessageId, why: MessageFailure },
    RequestOpened { run: RunNumber, number: RequestNumber, request: RequestKind, title: String },
    RequestAnswered { number: RequestNumber, verdict: Permit, always: bool },
    RequestWithdrawn { number: RequestNumber },
    VendorSession { run: RunNumber, id: String },
    GuestStarted { run: RunNumber, guest: u64, pid: u32 },
    GuestEnded { run: RunNumber, guest: u64, exit: Exit, text: Option<String> },
    ConsumerJoined { consumer: ConsumerId },
    ConsumerLeft { consumer: ConsumerId },
    Parked,
    Woken,
    MemoryWarn { bytes: u64, limit: u64 },
    Drained { bytes: u64, limit: u64 },
    Stopped,
    Failed,
    Archived,
    Restored,
    Purged,
    Adopted { run: RunNumber, pid: u32 },
}

impl Record {
    /// Its kind, by which it is stored and told.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        match self {
            Record::SessionCreated => EventKind::SessionCreated,
            Record::RunStarted { .. } => EventKind::RunStarted,
            Record::RunExited(_) => EventKind::RunExited,
            Record::StartFailed { .. } => EventKind::StartFailed,
            Record::Backoff { .. } => EventKind::Backoff,
            Record::HealthWarn { .. } => EventKind::HealthWarn,
            Record::LockBusy { .. } => EventKind::LockBusy,
            Record::LockAcquired { .. } => EventKind::LockAcquired,
            Record::LockReleased => EventKind::LockReleased,
            Record::TakeoverRequested { .. } => EventKind::TakeoverRequested,
            Record::TakeoverDone { .. } => EventKind::TakeoverDone,
            Record::MessageQueued { .. } => EventKind::MessageQueued,
            Record::MessageDelivered { .. } => EventKind::MessageDelivered,
            Record::MessageDone { .. } => EventKind::MessageDone,
            Record::MessageFailed { .. } => EventKind::MessageFailed,
            Record::RequestOpened { .. } => EventKind::RequestOpened,
            Record::RequestAnswered { .. } => EventKind::RequestAnswered,
            Record::RequestWithdrawn { .. } => EventKind::RequestWithdrawn,
            Record::VendorSession { .. } => EventKind::VendorSession,
            Record::GuestStarted { .. } => EventKind::GuestStarted,
            Record::GuestEnded { .. } => EventKind::GuestEnded,
            Record::ConsumerJoined { .. } => EventKind::ConsumerJoined,
            Record::ConsumerLeft { .. } => EventKind::ConsumerLeft,
            Record::Parked => EventKind::Parked,
            Record::Woken => EventKind::Woken,
            Record::MemoryWarn { .. } => EventKind::MemoryWarn,
            Record::Drained { .. } => EventKind::Drained,
            Record::Stopped => EventKind::Stopped,
            Record::Failed => EventKind::Failed,
            Record::Archived => EventKind::Archived,
            Record::Restored => EventKind::Restored,
            Record::Purged => EventKind::Purged,
            Record::Adopted { .. } => EventKind::Adopted,
        }
    }
}

/// The record of the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunExited {
    /// Which.
    pub run: RunNumber,
    /// What the kernel says.
    pub exit: Exit,
    /// The one verdict.
    pub verdict: Verdict,
    /// How long it lived.
    #[serde(with = "crate::time::millis")]
    pub lived: Duration,
    /// The crash streak after it.
    pub crashes: u32,
    /// SIGKILL was needed.
    pub forced: bool,
}

/// How a takeover ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeoverEnd {
    /// The interactive run runs.
    Held,
    /// The turn under way did not end in time.
    DeadlinePassed,
    /// Whoever asked has gone.
    CallerGone,
    /// The interactive run could not be started.
    CannotStart,
    /// Somebody else holds a lock of it.
    Busy,
    /// A person stopped or archived the session, or the daemon went down.
    Overruled,
}
