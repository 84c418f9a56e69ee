//! What is known about the conversation with an agent: what it is doing, what it asks, and which conversation
//! of its vendor it is in.
//!
//! For an agent that reports none of this, the activity is unknown and there are no requests.

use crate::ids::{RequestNumber, RunNumber};
use crate::lost::LostConversation;
use crate::time::Wall;
use serde::{Deserialize, Serialize};

/// The most requests of one session that may be open: an agent that asks more is not asking a person.
pub const MOST_REQUESTS: usize = 64;

/// The part of the conversation that outlives the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Talk {
    /// The requests that are not over, oldest first.
    requests: Vec<Request>,
    /// How many requests there were; their numbers are never reused.
    asked: u64,
    vendor: Option<Vendor>,
    /// How many messages of the session were done when a person last chose its conversation.
    #[serde(default)]
    chosen_after: u64,
    /// Its conversation cannot be continued: nothing was answered since that showed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost: Option<Box<LostConversation>>,
}

/// A conversation of the agent's vendor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vendor {
    /// The vendor's id of it.
    pub id: String,
    /// The run that named it, or that lost it.
    pub run: RunNumber,
    /// How many messages of the session were done when it was named.
    #[serde(default)]
    pub done_before: u64,
    /// Who named it.
    #[serde(default)]
    pub by: NamedBy,
}

/// Who named a conversation of the vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamedBy {
    /// The agent: it was in it.
    #[default]
    Agent,
    /// Pinfold: it replaces one that the vendor does not know, and the next run begins it.
    Pinfold,
    /// Nobody any more: its vendor does not know it, and the agent names another one in the next run.
    Nobody,
}

impl Vendor {
    /// Whether there is no such conversation any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.by == NamedBy::Nobody
    }

    /// Whether this run found out that its vendor does not know the conversation, and the next one begins another.
    #[must_use]
    pub fn was_lost_in(&self, run: RunNumber) -> bool {
        self.run == run && self.by != NamedBy::Agent
    }
}

/// Something that an agent asks a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its number in this session.
    pub number: RequestNumber,
    /// The run that asks; the request ends with it.
    pub run: RunNumber,
    /// The agent's own key for it, unique within the run.
    pub key: String,
    /// The kind of request.
    pub kind: RequestKind,
    /// What is asked, in words.
    pub title: String,
    /// When it was asked.
    pub since: Wall,
    /// The answer. Until there is one, the request is open; afterwards it is kept until the agent was told.
    pub answer: Option<RequestAnswer>,
}

/// What an agent can ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// Whether it may use a tool.
    Permission,
    /// Something only a person knows.
    Question,
}

/// The answer of a person, or of the policy, to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAnswer {
    /// Whether it is allowed.
    pub verdict: Permit,
    /// Whether the answer covers all similar requests.
    pub always: bool,
    /// Words that go with the answer.
    pub words: Option<String>,
}

/// Whether a request is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permit {
    /// It is allowed.
    Allow,
    /// It is denied.
    Deny,
}

/// Who answers requests for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permissions {
    /// A person answers.
    #[default]
    Ask,
    /// The policy allows all.
    Allow,
    /// The policy denies all.
    Deny,
}

/// What an agent is doing and how that is known. True only while this daemon lives: the next one hears it anew.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Standing {
    /// What it is doing now.
    pub activity: Activity,
    /// Whether it works on something that no message asked for.
    pub own_work: bool,
    /// How this is known.
    pub from: ActivitySource,
    /// When it began; `None` means that it has just become known.
    pub since: Option<Wall>,
    /// Whether its terminal shows a dialog that a typed message would answer.
    pub dialog: Dialog,
    /// What it waits for, in its own words.
    pub detail: Option<String>,
}

/// How it is known what an agent is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivitySource {
    /// From its protocol.
    #[default]
    Protocol,
    /// From a file that its program keeps about itself.
    IdFile,
    /// From a bell or a notification on its terminal.
    Terminal,
}

/// Whether the terminal of an agent shows a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialog {
    /// No, as far as is known.
    #[default]
    None,
    /// Yes: anything typed now would answer it.
    Open,
    /// It could be seen, but has not been looked for yet.
    Unseen,
}

impl Standing {
    /// Whether both say the same, apart from when it began.
    fn says_as(&self, other: &Standing) -> bool {
        let Standing { activity, own_work, from, since: _, dialog, detail } = self;
        (activity, own_work, from, dialog, detail)
            == (&other.activity, &other.own_work, &other.from, &other.dialog, &other.detail)
    }

    /// Whether `newer` says nothing that this one does not.
    #[must_use]
    pub fn covers(&self, newer: &Standing) -> bool {
        self.says_as(newer) && (newer.since.is_none() || newer.since == self.since)
    }
}

/// What an agent is doing now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// It is working.
    Working,
    /// It waits for a person.
    Waiting,
    /// It waits for a message.
    Idle,
    /// It waits for a usage limit to end.
    Limited,
    /// It does not say.
    #[default]
    Unknown,
}

/// One step of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestChange {
    /// The agent asked.
    Opened(Box<Request>),
    /// It was answered.
    Answered {
        /// The number of the request.
        number: RequestNumber,
        /// The answer.
        answer: RequestAnswer,
    },
    /// The agent was told, or no longer asks.
    Closed {
        /// The number of the request.
        number: RequestNumber,
    },
}

impl Talk {
    /// Returns the requests that wait for an answer, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.answer.is_none())
    }

    /// Returns the requests that were answered but whose agent has not been told.
    pub fn untold(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.answer.is_some())
    }

    /// Returns how many requests there have been in all.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Returns all requests that are not over.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// Returns the request of a run with this key.
    #[must_use]
    pub fn called(&self, run: RunNumber, key: &str) -> Option<&Request> {
        self.requests.iter().find(|request| request.run == run && request.key == key)
    }

    /// Returns the latest known conversation of the vendor.
    #[must_use]
    pub fn vendor(&self) -> Option<&Vendor> {
        self.vendor.as_ref()
    }

    /// Returns the conversation that the next run goes on with, for a session that was defined with this one;
    /// `None` if it begins one.
    #[must_use]
    pub fn conversation<'a>(&'a self, defined: Option<&'a str>) -> Option<&'a str> {
        match &self.vendor {
            Some(vendor) => (!vendor.is_lost()).then_some(&vendor.id),
            None => defined,
        }
    }

    /// Returns the conversation that cannot be continued, until one can.
    #[must_use]
    pub fn lost(&self) -> Option<&LostConversation> {
        self.lost.as_deref()
    }

    /// Whether this run found out that its conversation cannot be continued.
    #[must_use]
    pub fn lost_in(&self, run: RunNumber) -> bool {
        self.lost().is_some_and(|lost| lost.run == run)
    }

    /// Whether a message was answered in the latest conversation of a session with so many done messages.
    #[must_use]
    pub fn is_answered(&self, done: u64) -> bool {
        let named_after = self.vendor.as_ref().map_or(0, |vendor| vendor.done_before);
        done > named_after.max(self.chosen_after)
    }

    /// Whether a person's choice of a conversation changes anything for a session with so many done messages.
    pub(crate) fn has_conversation(&self, done: u64) -> bool {
        self.vendor.is_some() || self.lost.is_some() || done != self.chosen_after
    }

    /// Returns the number of the next request.
    pub(crate) fn next_number(&self) -> RequestNumber {
        RequestNumber(self.asked + 1)
    }

    pub(crate) fn apply(&mut self, change: &RequestChange) {
        match change {
            RequestChange::Opened(request) => {
                self.asked = self.asked.max(request.number.0);
                self.requests.push((**request).clone());
            }
            RequestChange::Answered { number, answer } => {
                if let Some(request) = self.requests.iter_mut().find(|request| request.number == *number) {
                    request.answer = Some(answer.clone());
                }
            }
            RequestChange::Closed { number } => self.requests.retain(|request| request.number != *number),
        }
    }

    pub(crate) fn learn(&mut self, vendor: &Vendor) {
        self.vendor = Some(vendor.clone());
    }

    pub(crate) fn lose(&mut self, lost: &LostConversation) {
        self.lost = Some(Box::new(lost.clone()));
    }

    /// A message was answered, so there is a conversation.
    pub(crate) fn answers(&mut self) {
        self.lost = None;
    }

    /// A person chose another conversation when so many messages were done.
    pub(crate) fn forget_vendor(&mut self, done: u64) {
        (self.vendor, self.lost, self.chosen_after) = (None, None, done);
    }
}
