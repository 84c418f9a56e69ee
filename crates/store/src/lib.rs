//! What pinfold remembers: sessions, runs, messages and events.
//!
//! A state and the events that tell of it become durable in one transaction. One thread writes, and puts
//! everything that waits into one fsync; readers of this or any other process see what is durable.
//!
//! - [`Store`] opens a file and takes a [`Batch`]; its [`Ticket`] says when that is durable;
//! - [`Reader`] reads; [`event_data`] gives the core's records the words of the contract.
//!
//! ```
//! use pinfold_core::{Event, Mode, Now, Session, Spec};
//! use pinfold_store::*;
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pinfold.db");
//! let store = Store::open(&path, &Options::default())?;
//!
//! let now = Now::default();
//! let id = SessionId(Ulid::new(1_700_000_000_000, 0x5EED));
//! let mut session = Session::new(Spec::new(Mode::OnDemand));
//! let decision = session.handle(&Event::Created, now);
//!
//! let mut batch = Batch::new();
//! let (name, definition) = ("api".to_owned(), serde_json::json!({ "command": ["true"] }));
//! batch.create(NewSession { id, name, definition, parent: None, created_at: now.wall }, &session);
//! batch.decided(Decided { id, session: &session, decision: &decision, at: now.wall }, &Facts::default());
//! let committed = store.commit(batch).wait()?; // durable from here on
//!
//! let events = store.reader()?.events(&EventQuery::default())?;
//! assert_eq!(committed.seqs, 1..2);
//! assert_eq!(events[0].kind, "session_created");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod audit;
mod batch;
mod broken;
mod cause;
mod commit_error;
mod copy;
mod decided;
mod journal;
mod memory;
mod open;
mod owners;
mod pace;
mod position;
mod query;
mod rows;
mod size;
mod solo;
mod sqlite;
mod step;
mod store;
mod ticket;
mod trouble;
mod ulid;

pub mod backup {
    //! Copies of a store: made while it is in use ([`Query::backup`](crate::Query::backup)), and put back while it is not.

    pub use crate::copy::{BackupError, Files};
    pub use crate::sqlite::backup::{Found, look};
}

pub use audit::{EVENT_FIELDS, event_data};
pub use batch::{AuditEvent, Batch, Tidy};
pub use cause::Cause;
pub use commit_error::CommitError;
pub use decided::{Decided, Facts};
pub use journal::Journal;
pub use memory::History;
pub use open::{Damage, HeldUp, OpenError, Opened, Options};
pub use owners::{Owner, Owners, Put};
pub use pace::Pace;
pub use position::Position;
pub use query::{EventQuery, MessageQuery, Part, Place, Query, Read, ReadError, Take};
pub use rows::{
    DamagedSession, Event, Loaded, Lookup, Message, MessageState, Meta, RowDamage, Run, StoredSession,
    TurnPlace, UnknownMessageState,
};
pub use solo::Solo;
pub use step::{EventRun, EventStep, NewSession, PRUNE_AT_ONCE, Prune, RunStep, Step};
pub use store::{Backend, Reader, Store, open};
pub use ticket::{Committed, Outcome, Promise, Ticket};
pub use trouble::{Listener, Trouble};
pub use ulid::{ParseUlidError, RunId, SessionId, Ulid};
