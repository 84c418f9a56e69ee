//! What follows from an event, as data: what to store, what to do, and why.

use crate::event::{ConsumerKind, Shim};
use crate::exit::{Exit, Verdict};
use crate::guest::Guest;
use crate::hold::Hold;
use crate::ids::{ConsumerId, MessageId, RequestNumber, RunNumber};
use crate::inbox::{MessageChange, MessageFailure};
use crate::kind::EventKind;
use crate::last_exit::LastExit;
use crate::life::{Life, Purpose};
use crate::lost::{LostConversation, LostHow};
use crate::policy::{ShimSetup, Spec};
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
/// Commit `changes` first, then perform `actions` in order; their results come back as events. The session
/// that decided has already applied every change to itself, so after a failed commit it must be dropped and loaded again.
#[must_use]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// What changes, in order.
    pub changes: Vec<Change>,
    /// What to do once the changes are durable.
    pub actions: Vec<Action>,
    /// The rule that decided, with its facts.
    pub why: Why,
    /// The reply to the caller, if the event was a request.
    pub answer: Option<Answer>,
}

/// One change of a session. Applying all changes of all decisions in order reproduces the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Its state changed.
    Life(Life),
    /// The numbers of its runs changed.
    Runs(Runs),
    /// A run ended, in this way.
    LastExit(Box<LastExit>),
    /// Its restart counters changed.
    Budgets(Box<crate::budgets::Budgets>),
    /// A shim began or stopped keeping its locks while nothing runs.
    Shim(Shim),
    /// The locks for a shim were taken; it is opened for this.
    Opened(ShimSetup),
    /// A message took a step.
    Message(MessageChange),
    /// A backup was put back: an agent may have read the messages up to this one since it was made.
    Doubted {
        /// The latest of these messages.
        latest: MessageId,
        /// Deliveries have higher numbers from now on.
        deliveries: u64,
    },
    /// A request of its agent took a step.
    Request(RequestChange),
    /// It is in this conversation of its vendor.
    Vendor(Box<Vendor>),
    /// A person chose another conversation: the one that an agent named no longer counts.
    VendorForgotten,
    /// Its conversation cannot be continued.
    ConversationLost(Box<LostConversation>),
    /// A turn used this much.
    Spent(Box<Spending>),
    /// What its agent is doing changed.
    Standing(Option<Box<Standing>>),
    /// What keeps it from its next turn changed.
    Hold(Option<Box<Hold>>),
    /// What it has spent so far no longer counts against its budget.
    BudgetRaised(Allowance),
    /// When the turn under way began, if its time is counted.
    TurnSince(Option<Boot>),
    /// A turn ended after this time.
    TurnTook(Took),
    /// A consumer connected.
    Joined(ConsumerId, ConsumerKind),
    /// A consumer left.
    Left(ConsumerId),
    /// When a consumer was last connected.
    LastConsumer(Wall),
    /// A person's `start` counts as a need until then.
    KeepUntil(Option<Boot>),
    /// Nothing has needed the run since then.
    Unneeded(Option<Boot>),
    /// A takeover began or ended.
    Takeover(Option<Takeover>),
    /// The latest guest of its runs changed.
    Guest(Option<Guest>),
    /// The consumers that wait for a guest.
    AwaitingGuest(Vec<ConsumerId>),
    /// What is known about its memory changed.
    Memory(MemoryWatch),
    /// When a run with a watchdog last gave a sign of life.
    SignOfLife(Option<Boot>),
    /// A person interrupted the turn under way, and its end was requested.
    Interrupted(bool),
    /// Its definition changed, now or from the next run on.
    Spec(Box<Spec>, InForce),
    /// The daemon is going down: nothing starts any more.
    Closing(bool),
    /// Its shim does not answer: nothing is decided until it does, or its lock is free.
    Mute(bool),
    /// Its agent was asked to leave, and is given time to.
    Leaving(Option<Leaving>),
    /// What keeps its run from ending, if anything.
    Unended(Option<Box<Unended>>),
    /// Whether its vendor has not written down everything that was answered in this run.
    Unsaved(bool),
    /// A person looked at what it did.
    Looked,
    /// A line for its audit log.
    Record(Record),
}

/// When a changed definition takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InForce {
    /// From now on.
    Now,
    /// From the next run on.
    NextRun,
}

/// Something for the shell to do. Doing it twice is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Take the locks of a run; answers `Reserved`, `LockBusy` or `StartFailed`.
    Reserve {
        /// The number of the run.
        run: RunNumber,
        /// What the run is for.
        purpose: Purpose,
    },
    /// Start the agent of a run, under the shim that stands or under a new one that is given the locks;
    /// answers `Started` or `StartFailed`.
    Spawn {
        /// The number of the run.
        run: RunNumber,
        /// What the run is for.
        purpose: Purpose,
    },
    /// End the whole process tree of a run: stop signal, grace, SIGKILL. If asked again, the shorter grace
    /// counts. Answers `Exited`, and `Unended` before that if it takes longer than it should.
    Stop {
        /// The number of the run.
        run: RunNumber,
        /// The time before SIGKILL.
        grace: Duration,
    },
    /// Give back the locks of a session that has no run: drop the reservation, dismiss the shim.
    Release,
    /// Wait for the lock that was refused or for the holder that was named; answers `HolderGone`.
    AwaitHolder,
    /// Stop waiting for the holder.
    ForgetHolder,
    /// Look at the world again once the session's lock is free or its shim answers; answers `DaemonStarted`.
    LookAgain,
    /// Hand a message to the agent; a delivery that is handed over twice is delivered once.
    Deliver {
        /// The run that gets it.
        run: RunNumber,
        /// The id of the message.
        message: MessageId,
        /// 1 for its first delivery.
        attempt: u32,
        /// The number of this delivery; the same number means the same delivery.
        delivery: u64,
        /// Whether an agent may have read the message before.
        #[serde(default)]
        repeated: bool,
    },
    /// Tell the agent the answer to a request; if repeated, the agent still hears it once. Answers `Told`.
    Answer {
        /// The run that it belongs to.
        run: RunNumber,
        /// The number of the request.
        number: RequestNumber,
        /// The agent's own key for the request.
        key: String,
        /// The answer.
        answer: Box<RequestAnswer>,
    },
    /// Lock a conversation of the vendor for as long as the run lives; answers `VendorBusy` if another
    /// process holds it.
    HoldVendor {
        /// The run that holds it.
        run: RunNumber,
        /// The vendor's id of the conversation.
        id: String,
    },
    /// End the turn under way but keep the run.
    Interrupt {
        /// The run that it belongs to.
        run: RunNumber,
    },
    /// Close the agent's input: nothing more will come.
    Close {
        /// The run that it belongs to.
        run: RunNumber,
    },
    /// Start the vendor's own terminal program beside a run; a number that is repeated starts nothing. Answers `Guest`.
    StartGuest {
        /// The run that it joins.
        run: RunNumber,
        /// The number of the guest within its run.
        guest: u64,
    },
    /// Read the exact memory of a run; answers `MemoryRead` from `Shares`.
    ConfirmMemory {
        /// The run that it belongs to.
        run: RunNumber,
    },
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is under way; the state will show when it is done.
    UnderWay,
    /// It is done.
    Done,
    /// It was already so.
    Already,
    /// It joined what is already under way or running.
    Joined,
    /// The message is queued.
    Queued {
        /// The id of the message, or of the first one with the same key.
        message: MessageId,
        /// Whether it will be delivered without further help.
        wakes: Wakes,
    },
    /// It is refused.
    Refused(Refusal),
}

/// Whether a queued message wakes its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wakes {
    /// It does, or the session is already awake.
    Yes,
    /// It waits until the session is started, because a person stopped it.
    NotWhileStopped,
    /// It waits until the holder of the session's lock lets go.
    NotWhileBlocked,
    /// It waits for the end of a backoff, which an earlier message has shortened already.
    NotInBackoff,
    /// It waits until the session is started: an earlier message had the failed session's one try.
    NotWhileFailed,
    /// It waits until the session's account or budget allows a turn.
    NotWhileHeld,
    /// It waits until the daemon is back.
    NotWhileClosing,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The session is archived.
    Archived,
    /// The session is being archived.
    BeingArchived,
    /// A person is stopping the session.
    BeingStopped,
    /// A person has stopped the session.
    Stopped,
    /// The session has failed and needs attention.
    Failed,
    /// The session is not archived.
    NotArchived,
    /// Another process holds the session's lock.
    Busy,
    /// The daemon is going down.
    GoingDown,
    /// The session's shim does not answer.
    ShimMute,
    /// The session's agent has no terminal program of its own.
    NoTerminal,
    /// The session runs only once.
    RunsOnce,
    /// There is no turn to interrupt.
    NoTurn,
    /// No such message is waiting.
    NoSuchMessage,
    /// No such request is open.
    NoSuchRequest,
    /// Too many messages wait already.
    InboxFull,
    /// Too much text waits already.
    InboxHeavy,
    /// The agent takes messages as arguments, and this one cannot be an argument.
    NotAnArgument,
    /// Purge: a consumer is connected.
    Connected,
    /// Purge: a turn is under way.
    TurnUnderWay,
    /// Purge: a message is queued.
    MessageQueued,
    /// Purge: the session itself asked.
    Own,
}

/// One line of the audit log; the shell adds session, number, time, output and texts.
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
    VendorSession { run: RunNumber, id: Option<String> },
    ConversationLost { run: RunNumber, id: Option<String>, how: LostHow },
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
    /// Returns its kind, under which it is stored and reported.
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
            Record::ConversationLost { .. } => EventKind::ConversationLost,
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
    /// The number of the run.
    pub run: RunNumber,
    /// What the kernel says about it.
    pub exit: Exit,
    /// The verdict on it.
    pub verdict: Verdict,
    /// How long the run lived.
    #[serde(with = "crate::time::millis")]
    pub lived: Duration,
    /// Crashes in the streak, this end included.
    pub crashes: u32,
    /// Whether SIGKILL was needed.
    pub forced: bool,
}

/// How a takeover ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeoverEnd {
    /// The interactive run is running.
    Held,
    /// The turn under way did not end in time.
    DeadlinePassed,
    /// The client that asked for it has gone.
    CallerGone,
    /// The interactive run could not be started.
    CannotStart,
    /// Another process holds a lock it needs.
    Busy,
    /// A person stopped or archived the session, or the daemon went down.
    Overruled,
}
