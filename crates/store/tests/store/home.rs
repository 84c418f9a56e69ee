//! A separate folder for each test, with a store in it.

use pinfold_core::{Session, Wall};
use pinfold_store::{AuditEvent, Batch, Loaded, Reader, SessionId, Store, StoreOptions, StoredSession, Ulid};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) struct Home {
    _limit: crate::limit::Limit,
    folder: TempDir,
}

impl Home {
    pub(crate) fn new() -> Home {
        Home { _limit: crate::limit::Limit::of_test(), folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("pinfold.db")
    }

    /// Returns options with a place for long answers.
    pub(crate) fn options(&self) -> StoreOptions {
        StoreOptions { sessions: Some(self.folder().join("sessions")), ..StoreOptions::default() }
    }

    pub(crate) fn open(&self) -> Store {
        Store::open(&self.path(), &StoreOptions::default()).unwrap()
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(&self.path()).unwrap()
    }

    /// Opens the store's file as another program would.
    pub(crate) fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }

    /// Returns every file in the folder, byte for byte.
    pub(crate) fn bytes(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(self.folder()).unwrap().map(Result::unwrap);
        entries
            .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
            .collect()
    }
}

pub(crate) fn id(number: u64) -> SessionId {
    SessionId(Ulid::new(1_700_000_000_000 + number, u128::from(number)))
}

/// Creates one event that is about no session, with a number to recognise it by.
pub(crate) fn note(number: u64) -> Batch {
    let mut batch = Batch::new();
    batch.event(audit("note", i64::try_from(number).unwrap(), &[("number", Value::from(number))]));
    batch
}

pub(crate) fn audit(kind: &str, at: i64, fields: &[(&str, Value)]) -> AuditEvent {
    let data: Map<String, Value> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let (kind, why) = (kind.into(), "a test wanted it".to_owned());
    AuditEvent { at: Wall(at), session: None, run: None, kind, why, data }
}

pub(crate) fn whole(loaded: Loaded) -> StoredSession {
    match loaded {
        Loaded::Whole(stored) => *stored,
        Loaded::Damaged(damaged) => panic!("{damaged:?}"),
    }
}

/// Returns a session without what is true only while a daemon lives.
pub(crate) fn durable(session: &Session) -> Session {
    let mut durable: Session = serde_json::from_str(&serde_json::to_string(session).unwrap()).unwrap();
    durable.refill(session.inbox().waiting());
    durable
}
