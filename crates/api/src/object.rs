//! The objects of the contract. Absent is `null`, times are RFC 3339 in UTC.

mod declared;
mod found;
mod locks;
mod usage;

pub use declared::{Applied, ChangedSession, Declared, Difference};
pub use found::Hit;
pub use locks::{HoldLine, Holder, Lock, Process, Revoked};
pub use usage::{Account, Usage, UsageSum, Window};

use crate::word::{
    Activity, EventKind, MessageState, MetricKind, Mode, RequestKind, State, Stream, Upcoming, Verdict,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Session {
    pub id: String,
    pub name: String,
    pub agent: String,
    pub dir: String,
    pub mode: Mode,
    pub state: State,
    pub why: String,
    pub next: Option<Next>,
    pub activity: Activity,
    /// How the activity is known: the word of a protocol, `id_file` or `terminal`.
    pub activity_from: Option<String>,
    /// Since when it is that, as far as is known.
    #[serde(default)]
    pub activity_since: Option<String>,
    /// What its agent waits for, in words of its own.
    #[serde(default)]
    pub waits_for: Option<String>,
    /// When its agent printed last; where it has no protocol, only told of one session.
    #[serde(default)]
    pub last_output_at: Option<String>,
    /// The oldest request of its agent that is not answered.
    #[serde(default)]
    pub request: Option<Request>,
    /// How many such requests there are.
    #[serde(default)]
    pub requests: usize,
    pub ready: bool,
    pub status: Option<String>,
    pub pid: Option<u32>,
    pub shim_pid: Option<u32>,
    /// The pid of the terminal program beside its run.
    #[serde(default)]
    pub guest_pid: Option<u32>,
    pub run: Option<String>,
    pub fence: Option<u64>,
    pub started_at: Option<String>,
    pub restarts: u64,
    pub crashes: u32,
    pub inbox: Inbox,
    pub consumers: usize,
    pub last_consumer_at: Option<String>,
    pub memory_bytes: Option<u64>,
    /// What it has on the swap beside its memory, where it has a limit.
    #[serde(default)]
    pub swap_bytes: Option<u64>,
    pub memory_limit_bytes: Option<u64>,
    pub holder: Option<Value>,
    pub created_at: String,
    pub archived_at: Option<String>,
    pub parent: Option<String>,
    pub parent_id: Option<String>,
    pub tags: Vec<String>,
    pub foreign: bool,
    pub command: Vec<String>,
    pub vendor_session: Option<String>,
    /// The account that its runs use: `AGENT:NAME`; null where pinfold knows of none.
    #[serde(default)]
    pub account: Option<String>,
    /// What it has used, where its agent tells.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// How its last run ended.
    #[serde(default)]
    pub last_exit: Option<LastExit>,
    /// What was set and is in force from its next run on, by the names of the options.
    #[serde(default)]
    pub pending: Option<BTreeMap<String, Value>>,
    /// Whether a person has looked at what it did last.
    #[serde(default)]
    pub seen: bool,
    /// The machine it is on; null for this one.
    #[serde(default)]
    pub host: Option<String>,
    /// Whether its run is in a control group of its own; only told of one session that has a run.
    #[serde(default)]
    pub contained: Option<bool>,
    /// The processes of its run, each after the one it is below; only told of one session that has a run.
    #[serde(default)]
    pub processes: Option<Vec<RunProcess>>,
    /// The names of the variables it is given; values are never printed.
    pub env: Vec<String>,
    pub dir_lock: bool,
    pub policy: Value,
}

/// Something that an agent asks a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Request {
    pub id: String,
    pub kind: RequestKind,
    pub title: String,
    pub since: String,
}

/// A session as one row of a table: what people look at, and no more. It borrows what it is read from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are those of the session")]
pub struct Row<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    pub state: State,
    /// Nothing of one whose record cannot be read.
    #[serde(default)]
    pub activity: Option<Activity>,
    pub mode: Mode,
    pub pid: Option<u32>,
    /// For how long its run has lived.
    #[serde(default)]
    pub uptime_ms: Option<u64>,
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    pub restarts: u64,
    /// What it has cost, where its agent tells.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    #[serde(borrow, default)]
    pub dir: Cow<'a, str>,
    /// Its command, as one line; with `brief` the beginning of it.
    #[serde(borrow)]
    pub command: Cow<'a, str>,
    #[serde(borrow)]
    pub why: Cow<'a, str>,
}

/// The configuration was read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    /// The file; it need not exist.
    pub config: String,
}

/// A process of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct RunProcess {
    pub pid: u32,
    /// The process that it is below; nothing for the agent itself.
    pub parent: Option<u32>,
    pub command: String,
    pub memory_bytes: Option<u64>,
}

/// How the last run of a session ended. A run that was lost with its shim has neither code nor signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct LastExit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Why it has neither: `shim_lost`, `machine_lost`, `after_backup` or `never_started`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    pub verdict: Verdict,
    pub at: String,
    pub uptime_ms: u64,
    /// The last line that it printed, without control characters, cut where it is long.
    pub last_line: Option<String>,
}

/// What happens next by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Next {
    /// When.
    pub at: String,
    /// What.
    pub what: Upcoming,
}

/// How many messages are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Inbox {
    pub queued: u64,
    pub in_flight: u64,
    pub done: u64,
    pub failed: u64,
    /// Those that wait and are not as they were written: they are not delivered. Absent means none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub damaged: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Message {
    pub id: String,
    pub session: String,
    /// The session that sent it, known by the socket's peer; null where a person did.
    #[serde(default)]
    pub from: Option<String>,
    pub text: String,
    pub key: Option<String>,
    pub state: MessageState,
    pub tries: u32,
    pub enqueued_at: String,
    pub done_at: Option<String>,
    /// In a list the first 4 KiB of it.
    pub answer: Option<String>,
    /// How long all of it is.
    #[serde(default)]
    pub answer_bytes: Option<u64>,
    /// Some of it is missing: it was longer than 32 MiB, or was lost with the power.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answer_cut: bool,
    /// Why it failed, in one word.
    pub failure: Option<String>,
    /// The same in words, where more is known: what the agent said, or how it exited.
    #[serde(default)]
    pub reason: Option<String>,
    /// What its turns took, where its agent tells.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// The files that it was sent with.
    #[serde(default)]
    pub files: Vec<String>,
    /// What it waits for while it is queued, beside its turn: a dialog that is open, a limit.
    #[serde(default)]
    pub waits_for: Option<String>,
    /// Where the output of its last turn stands.
    pub turn: Option<Turn>,
    /// It is not as it was written, and why; then only its id counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
    /// `[retention]` has removed it, and its text and answer with it: only its key still stands for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pruned: bool,
}

/// What purge did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Purged {
    /// The names of those that are archived now.
    pub archived: Vec<String>,
    /// Those that were left alone.
    pub skipped: Vec<Skipped>,
    /// Those whose runs do not end; they are archived when that has happened. Not there where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
}

/// A session whose run was to end and does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Left {
    pub session: String,
    pub why: String,
    /// The processes that are in the way.
    pub pids: Vec<u32>,
}

/// How the daemon went down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WentDown {
    /// Sessions whose runs could not be ended; the next daemon finds them again.
    #[serde(default)]
    pub left: Vec<Left>,
}

/// A session that purge left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Skipped {
    pub name: String,
    pub why: String,
}

/// What was deleted for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Removed {
    pub id: String,
    pub name: String,
    pub messages: u64,
    pub runs: u64,
    /// Of its output.
    pub bytes: u64,
}

/// A message that was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// As it is now.
    #[serde(flatten)]
    pub message: Message,
    /// What keeps it from being delivered.
    pub note: Option<String>,
}

/// Where the output of a turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// The number of the run.
    pub run: u64,
    /// Where in the session's log it begins.
    pub from: u64,
    /// Where it ends, once it has.
    pub to: Option<u64>,
}

/// An audit record; what its kind adds stands beside the common fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Event {
    pub seq: u64,
    pub at: String,
    pub session: Option<String>,
    pub run: Option<String>,
    #[schemars(schema_with = "crate::word::event_kinds")]
    pub kind: EventKind,
    pub why: Option<String>,
    /// Who asked for it: `kind` (`person` or `session`), `session`, `pid`, `user`, `exe`, and `confined` where it
    /// was; null for what happened by itself.
    #[serde(default)]
    pub by: Option<Value>,
    #[serde(flatten)]
    pub facts: Map<String, Value>,
}

/// The daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Status {
    pub pid: u32,
    pub version: String,
    pub uptime_ms: u64,
    pub home: String,
    pub socket: String,
    pub sessions: BTreeMap<String, u64>,
    pub capabilities: BTreeMap<String, Value>,
    pub disk_bytes: u64,
    pub generation: u64,
    /// Sessions whose records cannot be read, by name.
    pub damaged: Vec<String>,
    /// What is wrong with the database, in sentences; nothing when all is well.
    #[serde(default)]
    pub database: Vec<String>,
    /// Sessions of this home that the database does not know: folders, and shims that live.
    #[serde(default)]
    pub unknown: Vec<Unknown>,
    /// Why `config.toml` was not taken over when it was read last; the one before is in force.
    #[serde(default)]
    pub config_refused: Option<String>,
    /// Why the socket is not where it would usually be: another user has that place.
    #[serde(default)]
    pub socket_refused: Option<String>,
}

/// A sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ping {
    /// How far its start has come; left out when it is over. Requests are taken meanwhile, and answered afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting: Option<Starting>,
}

/// How far a daemon's start has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Starting {
    /// Sessions that it has looked at.
    pub seen: u64,
    /// All of them; 0 while they are being loaded.
    pub of: u64,
}

/// A copy of the database that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Backup {
    /// Where it is.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// Something of a session that the database does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unknown {
    /// The session's id.
    pub id: String,
    /// The pid of its shim, where one answers.
    pub shim_pid: Option<u32>,
    /// What there is of it, in words.
    pub why: String,
}

/// One piece of an agent's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct LogLine {
    pub at: String,
    pub run: String,
    pub stream: Stream,
    pub text: String,
}

/// Where the terminal of a session can be looked at. Whoever does is not a consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Terminal {
    /// Where its shim listens.
    pub socket: String,
    /// Of which run it is, by number.
    pub run: u64,
}

/// A line of the answer to an attach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Attached {
    /// How it goes.
    Line(AttachLine),
    /// What is printed, where there is no terminal.
    Output(LogLine),
}

/// How an attach goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttachLine {
    /// It is not ready yet.
    Waiting {
        /// What for, in words.
        message: String,
        /// How long at most, where that is known.
        left_ms: Option<u64>,
    },
    /// The terminal can be joined.
    Ready {
        /// Where its shim listens.
        socket: String,
        /// The bytes of that path, if it is not UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        socket_bytes: Option<Vec<u8>>,
        /// Of which run it is, by number.
        run: u64,
        /// What pinfold does not notice of what is typed there, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// There is no terminal: output follows, lines that are typed are sent as messages.
    Follow {},
    /// Whoever lost the daemon is counted again.
    Counted {},
    /// The run of the terminal has ended.
    Ended {
        /// How, and what comes next, in words.
        message: String,
    },
    /// It cannot be; the answer ends.
    Failed(Box<crate::error::ErrorBody>),
}

/// One metric with all its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: MetricKind,
    /// What it says.
    pub help: String,
    /// What was counted or measured.
    pub samples: Vec<Sample>,
}

/// One number of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// The metric's name; a histogram's has `_bucket`, `_sum` or `_count` after it.
    pub name: String,
    /// What tells it from the metric's other numbers.
    pub labels: BTreeMap<String, String>,
    /// The number.
    pub value: f64,
}
