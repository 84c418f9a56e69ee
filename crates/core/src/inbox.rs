//! The message queue of one session: order, one turn at a time, a limit on tries. Texts and keys stay in the store.

use crate::ids::MessageId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// The most messages that may wait: a longer queue means that nothing is reading it.
pub const MOST_QUEUED: usize = 10_000;

/// The messages that are not yet settled, and the number of those that are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Inbox {
    /// The store keeps these one by one: the stored session must not grow with its queue.
    #[serde(skip)]
    queue: VecDeque<Queued>,
    /// How many messages wait besides those listed: a copy made for display lists none.
    #[serde(skip)]
    unlisted: usize,
    in_flight: Option<InFlight>,
    done: u64,
    failed: u64,
    /// How many deliveries were decided; their numbers are never reused.
    #[serde(default)]
    deliveries: u64,
    /// The message at the front of the queue, if an agent may have read it before.
    #[serde(default)]
    repeated: Option<MessageId>,
    /// Waiting messages that failed after an agent may have read them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    again: BTreeSet<MessageId>,
    /// What waited when a backup was put back may have been read after the backup was made: the latest of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    doubtful_to: Option<MessageId>,
}

/// A message that waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// The id of the message.
    pub message: MessageId,
    /// Turns it has begun that counted as a try.
    pub tries: u32,
}

/// The message whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// The id of the message.
    pub message: MessageId,
    /// Turns it has begun, including this one once the agent has taken it.
    pub tries: u32,
    /// Whether the agent has taken it: only a turn that began costs a try.
    pub taken: bool,
    /// The number of this delivery, which tells its answer from the answer to an earlier one.
    #[serde(default)]
    pub delivery: u64,
    /// Whether an agent may have read it before.
    #[serde(default)]
    pub repeated: bool,
}

/// One step of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageChange {
    /// It joined the end of the queue.
    Queued {
        /// The id of the message.
        message: MessageId,
        /// Its dedupe key.
        key: Option<String>,
    },
    /// Its turn began.
    Delivering {
        /// The id of the message.
        message: MessageId,
    },
    /// The agent took it.
    Taken {
        /// The id of the message.
        message: MessageId,
    },
    /// It went back to the front of the queue.
    Requeued {
        /// The id of the message.
        message: MessageId,
        /// Whether the turn costs a try.
        cost: Cost,
        /// Whether the agent may have read it.
        #[serde(default)]
        read: Read,
    },
    /// Its answer is stored.
    Done {
        /// The id of the message.
        message: MessageId,
    },
    /// It will not be delivered again unless a person asks.
    Failed {
        /// The id of the message.
        message: MessageId,
        /// Why it failed.
        why: MessageFailure,
    },
    /// A person put a failed message back, with fresh tries.
    Retried {
        /// The id of the message.
        message: MessageId,
        /// Whether an agent may have read it.
        #[serde(default)]
        read: Read,
    },
}

/// Whether a turn that was cut short costs a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// It costs one.
    OneTry,
    /// It costs none: we cut it short, or it never began.
    Nothing,
}

/// Whether an agent may have read a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Read {
    /// It may have: anything uncertain counts as read.
    #[default]
    Maybe,
    /// No byte of it reached the agent.
    Never,
}

/// Why a message failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageFailure {
    /// Its turn was cut short too often.
    TriesUsedUp,
    /// The agent said that the turn failed.
    TurnFailed,
    /// A person interrupted its turn.
    Interrupted,
    /// A person cancelled it.
    Cancelled,
}

impl Inbox {
    /// Returns the message whose turn it is.
    #[must_use]
    pub fn in_flight(&self) -> Option<InFlight> {
        self.in_flight
    }

    /// Returns the next message, if no turn is under way.
    #[must_use]
    pub fn deliverable(&self) -> Option<Queued> {
        if self.in_flight.is_some() { None } else { self.queue.front().copied() }
    }

    /// Returns how many messages wait.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len() + self.unlisted
    }

    /// Returns a copy that says how many messages wait but does not list them: a queue may be long.
    pub(crate) fn outline(&self) -> Inbox {
        Inbox {
            queue: VecDeque::new(),
            unlisted: self.queued(),
            in_flight: self.in_flight,
            done: self.done,
            failed: self.failed,
            deliveries: self.deliveries,
            repeated: self.repeated,
            again: self.again.clone(),
            doubtful_to: self.doubtful_to,
        }
    }

    /// Returns how many are done and how many have failed.
    #[must_use]
    pub fn settled(&self) -> (u64, u64) {
        (self.done, self.failed)
    }

    /// Whether this message is waiting in the queue.
    #[must_use]
    pub fn waits(&self, message: MessageId) -> bool {
        self.queue.iter().any(|queued| queued.message == message)
    }

    /// Whether an agent may have read a waiting message.
    #[must_use]
    pub fn is_repeated(&self, message: MessageId) -> bool {
        self.repeated == Some(message)
            || self.again.contains(&message)
            || self.doubtful_to.is_some_and(|latest| message <= latest)
    }

    /// Returns the latest of the messages that wait or have their turn.
    pub(crate) fn latest(&self) -> Option<MessageId> {
        let current = self.in_flight.map(|turn| turn.message);
        self.queue.iter().map(|queued| queued.message).chain(current).max()
    }

    /// Anything up to this message may have been read. The numbers of deliveries go on from a number that no
    /// delivery had.
    pub(crate) fn doubt(&mut self, latest: MessageId, deliveries: u64) {
        self.doubtful_to = self.doubtful_to.max(Some(latest));
        self.deliveries = self.deliveries.max(deliveries);
    }

    /// Returns the waiting messages in the order of their turns.
    pub fn waiting(&self) -> impl Iterator<Item = Queued> + '_ {
        self.queue.iter().copied()
    }

    /// Returns the first waiting message, whether or not a turn is under way.
    #[must_use]
    pub fn next_waiting(&self) -> Option<MessageId> {
        self.queue.front().map(|queued| queued.message)
    }

    /// Applies one step of a message; a step of a message that it does not concern changes nothing.
    pub(crate) fn apply(&mut self, change: &MessageChange) {
        match change {
            MessageChange::Queued { message, .. } => {
                self.queue.push_back(Queued { message: *message, tries: 0 });
            }
            MessageChange::Delivering { message } => self.deliver(*message),
            MessageChange::Taken { message } => self.take(*message),
            MessageChange::Requeued { message, cost, read } => self.requeue(*message, *cost, *read),
            MessageChange::Done { message } => self.settle(*message, Settled::Done),
            MessageChange::Failed { message, .. } => self.settle(*message, Settled::Failed),
            MessageChange::Retried { message, read } => self.retry(*message, *read),
        }
    }

    /// Puts back the waiting messages, which were stored one by one, in the order of their turns.
    pub(crate) fn refill(&mut self, waiting: impl IntoIterator<Item = Queued>) {
        let current = self.in_flight.map(|turn| turn.message);
        self.queue = waiting.into_iter().filter(|queued| Some(queued.message) != current).collect();
    }

    fn deliver(&mut self, message: MessageId) {
        let Some(next) = self.queue.front().filter(|next| next.message == message) else { return };
        self.deliveries += 1;
        let (tries, delivery) = (next.tries, self.deliveries);
        let repeated = self.is_repeated(message);
        self.repeated = None;
        self.again.remove(&message);
        self.in_flight = Some(InFlight { message, tries, taken: false, delivery, repeated });
        self.queue.pop_front();
    }

    fn take(&mut self, message: MessageId) {
        if let Some(turn) = self.in_flight.as_mut().filter(|turn| turn.message == message && !turn.taken) {
            turn.taken = true;
            turn.tries += 1;
        }
    }

    fn requeue(&mut self, message: MessageId, cost: Cost, read: Read) {
        let Some(turn) = self.in_flight.take_if(|turn| turn.message == message) else { return };
        let free = u32::from(turn.taken && cost == Cost::Nothing);
        self.repeated = (turn.repeated || read == Read::Maybe).then_some(message);
        self.queue.push_front(Queued { message, tries: turn.tries - free });
    }

    fn settle(&mut self, message: MessageId, how: Settled) {
        self.in_flight.take_if(|turn| turn.message == message);
        self.queue.retain(|queued| queued.message != message);
        self.repeated.take_if(|repeated| *repeated == message);
        self.again.remove(&message);
        match how {
            Settled::Done => self.done += 1,
            Settled::Failed => self.failed += 1,
        }
    }

    fn retry(&mut self, message: MessageId, read: Read) {
        if read == Read::Maybe {
            self.again.insert(message);
        }
        self.failed = self.failed.saturating_sub(1);
        self.queue.push_back(Queued { message, tries: 0 });
    }
}

#[derive(Clone, Copy)]
enum Settled {
    Done,
    Failed,
}
