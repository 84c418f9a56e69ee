//! Everything that can happen to a session. The names are in the past tense: it has happened, and only the
//! response is open.

use crate::exit::{Ended, Exit};
use crate::guest::GuestSeen;
use crate::hold::Hold;
use crate::ids::{ConsumerId, MessageId, RequestNumber, RunNumber};
use crate::inbox::Read;
use crate::life::{CannotStart, HolderSeen, Process, StartRefused};
use crate::lost::LostConversation;
use crate::policy::Spec;
use crate::rules::memory::{Reading, ReadingSource};
use crate::talk::{Dialog, RequestAnswer, RequestKind, Standing};
use crate::unended::Unended;
use crate::usage::UsageReport;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One thing that happened to one session. Stale and repeated events are harmless.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It was created.
    Created,
    /// The daemon started and found this.
    DaemonStarted(World),
    /// The daemon was asked to go down and to stop its runs.
    DownAsked,
    /// A deadline may have passed. Early, late and repeated ticks are harmless.
    Ticked,

    /// A person asked for something.
    Asked(Ask),
    /// Its definition changed; this takes effect with the next run.
    SpecChanged(Box<Spec>),

    /// A consumer connected.
    ConsumerJoined {
        /// The connection of the consumer.
        consumer: ConsumerId,
        /// The kind of connection.
        kind: ConsumerKind,
    },
    /// A consumer's connection ended.
    ConsumerLeft {
        /// The connection of the consumer.
        consumer: ConsumerId,
    },

    /// Something happened to a message or its turn.
    Message(MessageEvent),
    /// Something happened to a request of the agent.
    Request {
        /// The run that it belongs to.
        run: RunNumber,
        /// What happened.
        event: RequestEvent,
    },
    /// A person answered a request.
    Answered {
        /// The request; `None` means the oldest open one.
        request: Option<RequestNumber>,
        /// The person's answer.
        answer: RequestAnswer,
    },
    /// Something happened to a run.
    Run {
        /// The number of the run.
        run: RunNumber,
        /// What happened.
        event: RunEvent,
    },
    /// Its account is held, or is no longer held, as far as this session is concerned.
    Held(Option<Box<Hold>>),
    /// A person lets it spend more: what it has spent so far no longer counts against its budget.
    BudgetRaised,
    /// A person looked at what it did.
    Looked,
    /// A lock that was refused is free again, or the watched holder has gone.
    HolderGone,
    /// The process was found that holds what the last run could not get.
    HolderFound(Box<HolderSeen>),
    /// The shim that kept the locks between two runs has left.
    ShimLeft,
}

impl Event {
    /// Returns its name in logs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Event::Created => "created",
            Event::DaemonStarted(_) => "daemon_started",
            Event::DownAsked => "down_asked",
            Event::Ticked => "ticked",
            Event::Asked(_) => "asked",
            Event::SpecChanged(_) => "spec_changed",
            Event::ConsumerJoined { .. } => "consumer_joined",
            Event::ConsumerLeft { .. } => "consumer_left",
            Event::Message(_) => "message",
            Event::Request { .. } => "request",
            Event::Answered { .. } => "answered",
            Event::Run { .. } => "run",
            Event::Held(_) => "held",
            Event::BudgetRaised => "budget_raised",
            Event::Looked => "looked",
            Event::HolderGone => "holder_gone",
            Event::HolderFound(_) => "holder_found",
            Event::ShimLeft => "shim_left",
        }
    }
}

/// What a person can ask of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Start a run.
    Start,
    /// Stop the run.
    Stop {
        /// The grace to use instead of the policy's.
        grace: Option<Duration>,
    },
    /// Stop the run and start a new one.
    Restart,
    /// End the turn under way.
    Interrupt,
    /// Archive the session.
    Archive,
    /// Bring the session back from the archive, parked.
    Restore,
    /// Archive the session, unless it is active.
    Purge {
        /// Archive it even if it is active.
        include_active: bool,
        /// Whether the request comes from this session itself.
        own: bool,
    },
    /// Attach: count the connection as a consumer and, if nothing runs, start a run or the vendor's own terminal program.
    Attach {
        /// The connection that asks; it is counted until it ends.
        consumer: ConsumerId,
        /// What it wants to join.
        joins: Joins,
        /// Whether to interrupt the turn under way and to end a wait for the next run.
        urgent: bool,
    },
    /// Replace the headless run by the vendor's own terminal program, for a client that is attached and whose
    /// turn it is.
    Takeover {
        /// The connection that asks; the request ends with it.
        consumer: ConsumerId,
        /// Whether to interrupt the turn under way.
        urgent: bool,
    },
}

/// What a client that attaches joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Joins {
    /// The terminal of the session's runs.
    Terminal,
    /// The vendor's own terminal program, which takes the place of the headless run.
    Takeover,
    /// The vendor's own terminal program beside the run.
    Guest,
    /// The output, which it follows.
    Output,
}

/// What kind of connection a consumer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsumerKind {
    /// An attach: wakes the session and keeps it running.
    Attach,
    /// A client that watches: it only delays parking.
    Watch,
    /// A process of a run that watches: it delays parking too, but no person looks through it.
    Overhear,
}

/// What can happen to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageEvent {
    /// A client sent it.
    Sent {
        /// The message's id, if it is new.
        message: MessageId,
        /// The sender's dedupe key.
        key: Option<String>,
        /// The message that already has this key, according to the store.
        #[serde(default)]
        known: Option<MessageId>,
    },
    /// The agent of this run took the message.
    Taken {
        /// The number of the run.
        run: RunNumber,
        /// The id of the message.
        message: MessageId,
    },
    /// Its turn ended.
    TurnEnded {
        /// The number of the run.
        run: RunNumber,
        /// The id of the message.
        message: MessageId,
        /// How the turn ended.
        how: TurnEnd,
    },
    /// A person cancelled its delivery.
    Cancelled {
        /// The id of the message.
        message: MessageId,
    },
    /// It waits, and cannot be delivered as it is: what it names is gone.
    Undeliverable {
        /// Which message.
        message: MessageId,
    },
    /// A person wants a failed message delivered again. The shell has checked that it failed.
    Retried {
        /// The id of the message.
        message: MessageId,
        /// Whether an agent may have read it.
        #[serde(default)]
        read: Read,
    },
}

/// What can happen to a request of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestEvent {
    /// The agent asked something.
    Opened {
        /// The agent's own key for the request.
        key: String,
        /// The kind of request.
        kind: RequestKind,
        /// What is asked, in words.
        title: String,
    },
    /// The agent no longer asks.
    Withdrawn {
        /// The key of the request, as the agent named it.
        key: String,
    },
    /// The agent was told the answer.
    Told {
        /// The key of the request, as the agent named it.
        key: String,
    },
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// With an answer, which is stored together with this decision.
    Answered,
    /// With an error of the agent.
    Failed,
    /// By an interrupt.
    Interrupted,
    /// By an interrupt that was meant for the turn before it and arrived after that one had ended.
    Crossed,
    /// The vendor refused it for a reason that concerns the account.
    Refused,
}

/// What can happen to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// Its locks were taken.
    Reserved,
    /// Another process holds one of its locks.
    LockBusy {
        /// The holder, where it is known.
        holder: Option<Box<HolderSeen>>,
    },
    /// Its agent runs: exec has succeeded.
    Started(Process),
    /// It could not be started: nothing was executed.
    StartFailed(StartFailure),
    /// The agent said which conversation of its vendor it is in.
    VendorLearned {
        /// The vendor's id of the conversation.
        id: String,
    },
    /// The agent is about to end, and said which conversation of its vendor it leaves.
    VendorLeft {
        /// The vendor's id of the conversation.
        id: String,
    },
    /// Its vendor does not know the conversation that it was to go on with, and nothing was answered in it: the
    /// next run begins another one.
    VendorLost {
        /// The id of the other one, if the agent does not choose it.
        another: Option<String>,
    },
    /// The conversation that it was to continue cannot be continued, and something was said in it.
    ConversationLost(Box<LostConversation>),
    /// It became known whether its vendor has written down everything that was answered in this run.
    Saved {
        /// Whether it has.
        saved: bool,
    },
    /// It became known what its agent is doing.
    Standing(Box<Standing>),
    /// Its agent reported what a turn used.
    Spent(Box<UsageReport>),
    /// Its vendor session became known, and another process holds it.
    VendorBusy {
        /// The holder, where it is known.
        holder: Option<Box<HolderSeen>>,
    },
    /// Something happened to its guest.
    Guest {
        /// The number of the guest within the run.
        guest: u64,
        /// What happened.
        event: GuestEvent,
    },
    /// It ended, and its whole tree with it.
    Exited {
        /// How it ended.
        ended: Ended,
        /// Whether its shim still keeps the locks.
        shim: Shim,
        /// The holder of what it could not get, if the adapter knows it.
        holder: Option<Box<HolderSeen>>,
    },
    /// It should have ended, and something is in the way.
    Unended(Unended),
    /// Its shim, which had been silent, answers again.
    ShimAnswered,
    /// The agent fed its watchdog or reported that it is ready.
    SignOfLife,
    /// Its memory was read.
    MemoryRead {
        /// The reading.
        reading: Reading,
        /// Where the reading comes from.
        source: ReadingSource,
    },
}

/// What can happen to a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestEvent {
    /// It runs.
    Started {
        /// Its pid.
        pid: u32,
    },
    /// It ended, and its whole tree with it.
    Ended {
        /// How it ended.
        exit: Exit,
        /// Why it could not be started, if it could not.
        text: Option<String>,
    },
}

/// Why a start failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartFailure {
    /// Trying again is pointless.
    Hopeless(CannotStart),
    /// The system refused; the error tells whether trying again may help.
    Refused(StartRefused),
    /// The shim that kept the locks had already left; nothing was tried.
    ShimGone,
}

/// Whether a shim keeps the session's locks while no agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shim {
    /// No: the locks are free, or an agent runs under its own shim.
    #[default]
    Absent,
    /// Yes, for at most [`crate::rules::LONGEST_GAP`].
    Standing,
}

/// What a daemon finds when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct World {
    /// Whether the machine has restarted since the last change was stored.
    pub machine: Machine,
    /// What keeps the session's locks.
    pub shim: ShimSeen,
    /// Exit records of runs, oldest first; those that are already settled do no harm.
    pub exits: Vec<(RunNumber, Ended)>,
    /// Why the runs of these records never began, if that is known.
    #[serde(default)]
    pub failures: Vec<(RunNumber, StartFailure)>,
    /// The last line printed by the run that was alive under the last daemon.
    #[serde(default)]
    pub last_line: Option<String>,
    /// Whether a dialog on its terminal can be detected and is being looked for.
    #[serde(default)]
    pub dialog: Dialog,
    /// The last guest of the living run, if it had one.
    #[serde(default)]
    pub guest: Option<GuestSeen>,
}

impl World {
    /// Creates a world in which only this was found.
    #[must_use]
    pub fn new(machine: Machine, shim: ShimSeen, exits: Vec<(RunNumber, Ended)>) -> World {
        World {
            machine,
            shim,
            exits,
            failures: Vec::new(),
            last_line: None,
            dialog: Dialog::None,
            guest: None,
        }
    }
}

/// Whether stored boot-clock times still mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Machine {
    /// The same boot.
    Same,
    /// The machine has restarted.
    Restarted,
    /// A backup was put back: what it knows is of an earlier life of the home, and of whatever boot that was.
    PutBack,
}

/// What was found of a session's shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShimSeen {
    /// No shim: the session's own lock could be taken.
    Nobody,
    /// A shim that keeps the locks, without an agent.
    Standing,
    /// A shim with a living agent.
    Keeping {
        /// The number of the run.
        run: RunNumber,
        /// Its agent.
        process: Process,
    },
    /// The lock is held, but no shim answers.
    Mute,
}
