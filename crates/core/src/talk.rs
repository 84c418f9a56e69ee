//! What is known of the conversation with an agent: what it does now, what it asks, and which conversation of its vendor it is in.
//!
//! Agents that tell nothing of this have none of it: their activity is unknown, and they ask nothing.

use crate::ids::{RequestNumber, RunNumber};
use crate::time::Wall;
use serde::{Deserialize, Serialize};

/// So many requests of one session may be open: an agent that asks more is not asking a person.
pub const MOST_REQUESTS: usize = 64;

/// What outlives the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Talk {
    /// Those that are open, oldest first.
    requests: Vec<Request>,
    /// How many there were: their numbers are never used again.
    asked: u64,
    vendor: Option<Vendor>,
}

/// A conversation of the agent's vendor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vendor {
    /// Its id, in the vendor's words.
    pub id: String,
    /// The run that named it.
    pub run: RunNumber,
}

/// Something that an agent asks a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its number in this session.
    pub number: RequestNumber,
    /// The run that asks; it is gone with it.
    pub run: RunNumber,
    /// What the agent calls it; unique within the run.
    pub key: String,
    /// What is asked.
    pub kind: RequestKind,
    /// The same in words.
    pub title: String,
    /// Since when.
    pub since: Wall,
    /// What was decided; it is open until then, and kept until the agent was told.
    pub answer: Option<RequestAnswer>,
}

/// What an agent can ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// Whether it may use a tool.
    Permission,
    /// Something that only a person knows.
    Question,
}

/// What a person, or the policy, says to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAnswer {
    /// Yes or no.
    pub verdict: Permit,
    /// Whether it counts for all that are alike.
    pub always: bool,
    /// What is said with it.
    pub words: Option<String>,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permit {
    /// Yes.
    Allow,
    /// No.
    Deny,
}

/// Who answers requests for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permissions {
    /// A person.
    #[default]
    Ask,
    /// The policy: yes.
    Allow,
    /// The policy: no.
    Deny,
}

/// What an agent does, and how that is known. True only while this daemon lives: another one hears it again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Standing {
    /// What it does now.
    pub activity: Activity,
    /// Whether work of its own is under way that no message asked for.
    pub own_work: bool,
    /// How it is known.
    pub from: Source,
    /// Since when; nothing means that it has just become known.
    pub since: Option<Wall>,
    /// Whether its terminal asks something that a typed message would answer.
    pub dialog: Dialog,
    /// What it waits for, in words of its own.
    pub detail: Option<String>,
}

/// How it is known what an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// By its protocol.
    #[default]
    Protocol,
    /// By a file that its program keeps about itself.
    IdFile,
    /// By a bell or a notification on its terminal.
    Terminal,
}

/// Whether the terminal of an agent asks something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialog {
    /// No, as far as is known.
    #[default]
    None,
    /// Yes: what is typed now answers it.
    Open,
    /// It can be known, and was not looked at yet.
    Unseen,
}

impl Standing {
    /// Whether another one says the same, whenever it began.
    fn says_as(&self, other: &Standing) -> bool {
        let Standing { activity, own_work, from, since: _, dialog, detail } = self;
        (activity, own_work, from, dialog, detail)
            == (&other.activity, &other.own_work, &other.from, &other.dialog, &other.detail)
    }

    /// Whether it tells nothing that this one does not.
    #[must_use]
    pub fn covers(&self, newer: &Standing) -> bool {
        self.says_as(newer) && (newer.since.is_none() || newer.since == self.since)
    }
}

/// What an agent does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// It works.
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
    /// It was decided.
    Answered {
        /// Which.
        number: RequestNumber,
        /// How.
        answer: RequestAnswer,
    },
    /// The agent was told, or does not ask any more.
    Closed {
        /// Which.
        number: RequestNumber,
    },
}

impl Talk {
    /// The requests that wait for an answer, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.answer.is_none())
    }

    /// The requests that were answered while the agent has not been told.
    pub fn untold(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.answer.is_some())
    }

    /// How many requests there ever were.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// All that are not over.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The one that a run calls by a key.
    #[must_use]
    pub fn called(&self, run: RunNumber, key: &str) -> Option<&Request> {
        self.requests.iter().find(|request| request.run == run && request.key == key)
    }

    /// The latest conversation of the vendor's that is known.
    #[must_use]
    pub fn vendor(&self) -> Option<&Vendor> {
        self.vendor.as_ref()
    }

    /// The number of the next request.
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
}
