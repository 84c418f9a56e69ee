//! The sessions as told by the feed: a snapshot in parts, then changes. Nothing is requested.

use pinfold_api::feed::Live;
use pinfold_api::object::Session;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};

/// How many memory readings are kept: one for each column of a sparkline.
const READINGS: usize = 8;

/// A session, with fields of newer daemons that this version's `Session` does not have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FeedSession {
    pub(crate) session: Session,
    pub(crate) account: Option<String>,
    /// Whether a person has looked at what it did; `None` if the daemon does not say.
    pub(crate) seen: Option<bool>,
    pub(crate) cost: Option<f64>,
}

impl FeedSession {
    /// Reads a session as the feed sends it.
    pub(crate) fn read(object: Value) -> Option<FeedSession> {
        let account = object["account"].as_str().map(str::to_owned);
        let (seen, cost) = (object["seen"].as_bool(), object["usage"]["cost_usd"].as_f64());
        let session = serde_json::from_value(object).ok()?;
        Some(FeedSession { session, account, seen, cost })
    }
}

/// One piece of news from the feed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SessionsNews {
    /// All sessions, or a part of them.
    Snapshot { revision: String, sessions: Vec<FeedSession>, more: bool },
    /// A session has changed.
    Changed { revision: String, told: Box<FeedSession> },
    /// A session was removed for good.
    Removed { revision: String, id: String },
    /// New measurements of a session.
    Live(Box<Live>),
    /// The daemon does not answer, with the reason.
    Away(String),
}

/// A known session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KnownSession {
    pub(crate) told: FeedSession,
    /// When it was told, by the wall clock: its sentences refer to that time.
    pub(crate) at: u64,
    /// Its last memory readings, oldest first.
    pub(crate) memory: VecDeque<u64>,
}

impl KnownSession {
    fn of(told: FeedSession, before: Option<KnownSession>, at: u64) -> KnownSession {
        let mut known =
            KnownSession { memory: before.map(|before| before.memory).unwrap_or_default(), told, at };
        known.read_memory();
        known
    }

    fn read_memory(&mut self) {
        match self.told.session.memory_bytes {
            None => self.memory.clear(),
            Some(bytes) if self.memory.back() == Some(&bytes) => {}
            Some(bytes) => {
                self.memory.push_back(bytes);
                if self.memory.len() > READINGS {
                    self.memory.pop_front();
                }
            }
        }
    }

    fn live(&mut self, live: Live) {
        let session = &mut self.told.session;
        session.activity = live.activity;
        session.activity_from = live.activity_from;
        session.activity_since = live.activity_since;
        session.waits_for = live.waits_for;
        session.ready = live.ready;
        session.status = live.status;
        session.memory_bytes = live.memory_bytes;
        session.swap_bytes = live.swap_bytes;
        self.read_memory();
    }
}

/// All known sessions.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct KnownSessions {
    pub(crate) all: BTreeMap<String, KnownSession>,
    /// The feed's revision that they reflect.
    pub(crate) revision: Option<String>,
    /// The wall clock, as set by the caller before each piece of news.
    pub(crate) now: u64,
    /// The parts of a snapshot that is not complete yet.
    parts: Option<Vec<FeedSession>>,
}

/// What a piece of news changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SessionsChange {
    /// Nothing that is shown.
    Nothing,
    /// Possibly everything.
    Whole,
    /// One session has changed, or is gone.
    One { id: String, before: Option<Box<KnownSession>> },
}

impl KnownSessions {
    pub(crate) fn get(&self, id: &str) -> Option<&KnownSession> {
        self.all.get(id)
    }

    /// Applies a piece of news.
    pub(crate) fn take(&mut self, news: SessionsNews) -> SessionsChange {
        match news {
            SessionsNews::Snapshot { revision, sessions, more } => self.snapshot(revision, sessions, more),
            SessionsNews::Changed { revision, told } => {
                self.revision = Some(revision);
                let id = told.session.id.clone();
                let before = self.all.remove(&id);
                self.all.insert(id.clone(), KnownSession::of(*told, before.clone(), self.now));
                SessionsChange::One { id, before: before.map(Box::new) }
            }
            SessionsNews::Removed { revision, id } => {
                self.revision = Some(revision);
                let before = self.all.remove(&id).map(Box::new);
                SessionsChange::One { id, before }
            }
            SessionsNews::Live(live) => match self.all.get_mut(&live.id) {
                None => SessionsChange::Nothing,
                Some(known) => {
                    let (id, before) = (live.id.clone(), Some(Box::new(known.clone())));
                    known.live(*live);
                    SessionsChange::One { id, before }
                }
            },
            SessionsNews::Away(_) => {
                self.parts = None;
                SessionsChange::Nothing
            }
        }
    }

    fn snapshot(&mut self, revision: String, sessions: Vec<FeedSession>, more: bool) -> SessionsChange {
        let mut parts = self.parts.take().unwrap_or_default();
        parts.extend(sessions);
        if more {
            self.parts = Some(parts);
            return SessionsChange::Nothing;
        }
        let (mut before, now) = (std::mem::take(&mut self.all), self.now);
        let known = |told: FeedSession| {
            let id = told.session.id.clone();
            let earlier = before.remove(&id);
            (id, KnownSession::of(told, earlier, now))
        };
        self.all = parts.into_iter().map(known).collect();
        self.revision = Some(revision);
        SessionsChange::Whole
    }
}

/// Parses one event of the feed.
pub(crate) fn read(kind: &str, data: &str) -> Option<SessionsNews> {
    if kind == "live" {
        return serde_json::from_str(data).ok().map(|live| SessionsNews::Live(Box::new(live)));
    }
    let mut object: Value = serde_json::from_str(data).ok()?;
    let revision = object["revision"].as_str()?.to_owned();
    match kind {
        "snapshot" => {
            let more = object["more"].as_bool()?;
            let Value::Array(sessions) = object["sessions"].take() else { return None };
            let sessions = sessions.into_iter().filter_map(FeedSession::read).collect();
            Some(SessionsNews::Snapshot { revision, sessions, more })
        }
        "session" => {
            let told = Box::new(FeedSession::read(object["session"].take())?);
            Some(SessionsNews::Changed { revision, told })
        }
        "removed" => Some(SessionsNews::Removed { revision, id: object["id"].as_str()?.to_owned() }),
        _ => None,
    }
}
