//! Everything that can happen to a session. Past tense: it has happened, and only the answer is open.

use crate::exit::{Ended, Exit};
use crate::guest::GuestSeen;
use crate::hold::Hold;
use crate::ids::{ConsumerId, MessageId, RequestNumber, RunNumber};
use crate::life::{CannotStart, HolderSeen, Process, StartRefused};
use crate::policy::Spec;
use crate::rules::memory::{Reading, Source};
use crate::talk::{Dialog, RequestAnswer, RequestKind, Standing};
use crate::unended::Unended;
use crate::usage::Report;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One thing that happened to one session. Stale and repeated ones are harmless.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It was created.
    Created,
    /// The daemon started, and this is what it found.
    DaemonStarted(World),
    /// The daemon was asked to go down and to stop its runs.
    DownAsked,
    /// A deadline may have passed. Early, late and repeated ones are harmless.
    Ticked,

    /// A person asked for something.
    Asked(Ask),
    /// Its definition changed; takes effect with the next run.
    SpecChanged(Box<Spec>),

    /// A consumer connected.
    ConsumerJoined {
        /// Which connection.
        consumer: ConsumerId,
        /// What kind.
        kind: ConsumerKind,
    },
    /// A consumer's connection ended.
    ConsumerLeft {
        /// Which connection.
        consumer: ConsumerId,
    },

    /// Something happened to a message or its turn.
    Message(MessageEvent),
    /// Something happened to a request of the agent.
    Request {
        /// Of which run.
        run: RunNumber,
        /// What.
        event: RequestEvent,
    },
    /// A person answered a request.
    Answered {
        /// Which; nothing means the oldest that is open.
        request: Option<RequestNumber>,
        /// How.
        answer: RequestAnswer,
    },
    /// Something happened to a run.
    Run {
        /// Which.
        run: RunNumber,
        /// What.
        event: RunEvent,
    },
    /// Its account is held, or is not any more, as far as this session goes.
    Held(Option<Box<Hold>>),
    /// A person lets it spend more: what it has spent counts no longer against its budget.
    BudgetRaised,
    /// A lock that was refused is free again, or the holder that was watched has gone.
    HolderGone,
    /// The shim that kept the locks over a gap has left.
    ShimLeft,
}

impl Event {
    /// Its name in logs.
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
            Event::HolderGone => "holder_gone",
            Event::ShimLeft => "shim_left",
        }
    }
}

/// What a person can ask of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// A run.
    Start,
    /// No run.
    Stop {
        /// Instead of the policy's grace.
        grace: Option<Duration>,
    },
    /// A new run.
    Restart,
    /// The end of the turn under way.
    Interrupt,
    /// The archive.
    Archive,
    /// Back from the archive, parked.
    Restore,
    /// The archive, unless it is active.
    Purge {
        /// Active ones too.
        include_active: bool,
        /// The asker is this session itself.
        own: bool,
    },
    /// To be attached: counted as a consumer, with a run, or the vendor's own terminal program, where there is none.
    Attach {
        /// Whose connection asks; it is counted until it ends.
        consumer: ConsumerId,
        /// What it joins.
        joins: Joins,
        /// Interrupt the turn under way, and do not wait for the next run.
        urgent: bool,
    },
    /// The vendor's own terminal program in place of the headless run, for somebody who is attached and whose turn it is.
    Takeover {
        /// Whose connection asks; when it ends, so does the request.
        consumer: ConsumerId,
        /// Interrupt the turn under way.
        urgent: bool,
    },
}

/// What somebody who attaches joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Joins {
    /// The terminal that its runs have.
    Terminal,
    /// The vendor's own terminal program, which takes the place of the headless run.
    Takeover,
    /// The vendor's own terminal program beside the run.
    Guest,
    /// Its output, which is followed.
    Output,
}

/// What kind of connection a consumer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsumerKind {
    /// An attach: wakes the session and keeps it running.
    Attach,
    /// Somebody who watches: only delays parking.
    Watch,
}

/// What can happen to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageEvent {
    /// Somebody sent it.
    Sent {
        /// Its id, if it is new.
        message: MessageId,
        /// The sender's dedupe key.
        key: Option<String>,
        /// The message that has this key already, as the store says.
        #[serde(default)]
        known: Option<MessageId>,
    },
    /// The agent of this run took it.
    Taken {
        /// Which run.
        run: RunNumber,
        /// Which message.
        message: MessageId,
    },
    /// Its turn ended.
    TurnEnded {
        /// Which run.
        run: RunNumber,
        /// Which message.
        message: MessageId,
        /// How.
        how: TurnEnd,
    },
    /// A person does not want it delivered.
    Cancelled {
        /// Which message.
        message: MessageId,
    },
    /// It waits, and cannot be delivered as it is: what it names is gone.
    Undeliverable {
        /// Which message.
        message: MessageId,
    },
    /// A person wants a failed one delivered again. The shell has checked that it has failed.
    Retried {
        /// Which message.
        message: MessageId,
    },
}

/// What can happen to a request of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestEvent {
    /// The agent asks.
    Opened {
        /// What it calls the request.
        key: String,
        /// What is asked.
        kind: RequestKind,
        /// The same in words.
        title: String,
    },
    /// It does not ask any more.
    Withdrawn {
        /// Which.
        key: String,
    },
    /// It was told the answer.
    Told {
        /// Which.
        key: String,
    },
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// With an answer, which is being stored with this decision.
    Answered,
    /// With an error of the agent's.
    Failed,
    /// By an interrupt.
    Interrupted,
    /// By an interrupt that was meant for the turn before it, whose end it crossed.
    Crossed,
    /// The vendor refused it, for a reason that is the account's.
    Refused,
}

/// What can happen to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// Its locks were taken.
    Reserved,
    /// One of its locks is held by somebody else.
    LockBusy {
        /// By whom.
        holder: Option<Box<HolderSeen>>,
    },
    /// Its agent runs: exec succeeded.
    Started(Process),
    /// It could not be started: nothing of it was executed.
    StartFailed(StartFailure),
    /// It said which conversation of its vendor it is in.
    VendorLearned {
        /// The vendor's id of it.
        id: String,
    },
    /// It is about to end, and said which conversation of its vendor it leaves.
    VendorLeft {
        /// The vendor's id of it.
        id: String,
    },
    /// It became known what it does.
    Standing(Box<Standing>),
    /// Its agent reported what a turn took.
    Spent(Box<Report>),
    /// Its vendor session was learned, and is held by somebody else.
    VendorBusy {
        /// By whom.
        holder: Option<Box<HolderSeen>>,
    },
    /// Something happened to its guest.
    Guest {
        /// Which guest of it.
        guest: u64,
        /// What.
        event: GuestEvent,
    },
    /// It ended, and its whole tree with it.
    Exited {
        /// How.
        ended: Ended,
        /// Whether its shim still keeps the locks.
        shim: Shim,
        /// Who holds what it could not get, where the adapter knows.
        holder: Option<Box<HolderSeen>>,
    },
    /// It should have ended, and somebody is in the way.
    Unended(Unended),
    /// Its shim, which was silent, is at work again.
    ShimAnswered,
    /// Its watchdog was fed, or it said that it is ready.
    SignOfLife,
    /// Its memory was read.
    MemoryRead {
        /// How much.
        reading: Reading,
        /// From where.
        source: Source,
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
        /// How.
        exit: Exit,
        /// Why it could not be started, where it could not.
        text: Option<String>,
    },
}

/// Why a start came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartFailure {
    /// Trying again is pointless.
    Hopeless(CannotStart),
    /// The system refused; what it said tells whether trying again may help.
    Refused(StartRefused),
    /// The shim that kept the locks had left already; nothing was tried.
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
    /// Exit records of runs, oldest first; those already settled do no harm.
    pub exits: Vec<(RunNumber, Ended)>,
    /// Why runs of these records never began, where that is known.
    #[serde(default)]
    pub failures: Vec<(RunNumber, StartFailure)>,
    /// The last line of the run that lived when the last daemon did.
    #[serde(default)]
    pub last_line: Option<String>,
    /// Whether a dialog on its terminal could be known of, and is looked for.
    #[serde(default)]
    pub dialog: Dialog,
    /// The last guest of the run that lives, if it had one.
    #[serde(default)]
    pub guest: Option<GuestSeen>,
}

impl World {
    /// What was found, and no more.
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
    /// Same boot.
    Same,
    /// The machine has restarted.
    Restarted,
}

/// What was found of a session's shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShimSeen {
    /// None: the session's own lock could be taken.
    Nobody,
    /// One that keeps the locks, with no agent.
    Standing,
    /// One with a living agent.
    Keeping {
        /// Which run.
        run: RunNumber,
        /// Its agent.
        process: Process,
    },
    /// The lock is held, but nobody answers.
    Mute,
}
