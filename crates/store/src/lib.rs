//! What pinfold remembers: sessions, runs, messages and events.
//!
//! A state and the events about it become durable in one transaction, before anything is done about them.
//!
//! - [`open`] opens a [`Backend`] as a [`Store`], which takes a [`Batch`]; its [`Ticket`] tells when that is
//!   durable;
//! - [`Reader`] reads; [`event_data`] gives the core's records the words of the contract;
//! - [`Journal`] and [`Query`] make up a back-end; [`Owners`] is what hosts must agree on.
//!
//! ```
//! use pinfold_core::{Event, Mode, Now, Session, Spec};
//! use pinfold_store::*;
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pinfold.db");
//! let store = Store::open(&path, &StoreOptions::default())?;
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
//! assert_eq!(events[0].kind.word(), "session_created");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Theory of operation
//!
//! **A commit travels one way.** The core decides; [`Batch::decided`] turns the decision into [`Step`]s: the
//! session as the core serializes it, the rows of its messages and runs, its events. [`Owners::put`] adds the
//! comparison with the owner and gives the batch to the [`Journal`], which queues it and returns. SQLite has
//! one writing thread: it takes everything that waits (up to 256 batches), begins one transaction, applies
//! step after step, and commits with one fsync. Then it checks whether the file still has its name and
//! length, notes how far it is, and only then keeps each [`Promise`], in order. A callback holds up all
//! writing, so it wakes another thread and returns. If the group fails for a reason that may lie in one
//! batch, each is tried alone. A session whose batch failed takes no other until its owner has read it again
//! ([`Batch::reloaded`]): whatever is queued after it was decided by a session that believes in what was lost.
//!
//! **Whatever holds a commit up is waited for.** A full disk, another program's lock, an I/O error, a damaged
//! page, a file without its name: the same batch is tried again, nothing is decided anew meanwhile, and
//! [`Trouble`] says what it is. A full disk first gets back the space that was reserved for this. A batch
//! that its caller can take back fails instead ([`Batch::fail_if_held_up`]), and so does everything once the
//! store is given up ([`Store::give_up`]).
//!
//! **Checksums.** Every row has one over its key and all columns. SQLite computes it while it writes (a
//! function that its statements call), so no row is read to be written; readers compare. A damaged row is
//! named but never shown, one record hides no other, and changing a damaged row leaves it damaged. The
//! tables' own description has a checksum as well.
//!
//! **The witness.** A store that lost its log, or was put back from an old copy, looks healthy. So the
//! [`StorePosition`] (generation, newest event and its checksum, batches without an event) is kept in a small file
//! outside of it: two slots, written in turn after the fsync and before anything is acknowledged, not synced.
//! After a power failure it may be older than the store, never newer: a store that is behind it has lost
//! something and is refused.
//!
//! **Recovery is opening.** The file is checked through a connection that changes nothing: owner, version,
//! tables, length, the witness, and all pages of a small one. A file that is damaged, foreign or too new is
//! refused with the reason ([`Damage`]) and stays as it is, byte for byte. SQLite then recovers its log;
//! older versions are migrated in one transaction. The daemon loads every session ([`Query::sessions`]) with
//! its waiting messages, and there is no other recovery path. A full check ([`Query::check`]) runs beside the work.
//!
//! **Back-ends.** `sqlite` lasts. `memory` keeps the same promises but one, and ends with its process: it is
//! for tests, for `pinfold run` and for simulations. It applies each batch to plain maps, remembers what was
//! there, and uses that to undo a failed batch; a caller that commits while no other does writes, on its own
//! thread, for all that come meanwhile. Every rule that is not about files is tested on every back-end
//! (`tests/store/conformance`).
//!
//! **Forgetting.** A [`Sweep`] plans what `[retention]` no longer allows, and a [`Prune`] step takes a
//! bounded number of rows for a bounded time, in a transaction like any other: a crash leaves all of a step
//! or nothing of it. Events are passed over from the oldest number on; the newest of each existing session
//! stay, and [`Query::complete_from`] is the number from which on nothing is missing. What went is counted in
//! the same transaction until it is reported ([`Query::untold`]). Keys of messages that went stay, as rows of
//! their own. New files give space back a few pages at a time ([`Batch::give_back`]).
//!
//! **Long answers.** An answer of more than a mebibyte is in its own file below [`StoreOptions::sessions`], synced
//! and named before its row is committed; the row has the beginning. Parts that come before the end of a turn
//! go into a draft together with the cursor that counts them as delivered. A backup has all answers in its rows.
//!
//! **Search.** The words of everything are in a separate file ([`search`]), which follows the events after
//! they are written and only proposes rows: what it finds is read here and compared again. Losing it loses nothing.
//!
//! **Gaps.** Indexes have no checksums. What the witness does not know (the last commit before a power
//! failure) can be lost silently with the log. A batch that is too large for the space that is left holds up
//! smaller ones after it. `docs/design/003-store.md` has the reasons, and
//! `docs/design/012-ports-of-the-store.md` those of the traits.
#![forbid(unsafe_code)]

mod answer;
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
pub mod search;
mod size;
mod solo;
mod sqlite;
mod step;
mod store;
mod sweep;
mod ticket;
mod trouble;
mod ulid;
mod usage;

pub mod backup {
    //! Copies of a store: made while it is in use ([`Query::backup`](crate::Query::backup)), and put back
    //! while it is not.

    pub use crate::copy::{BackupError, Files};
    pub use crate::sqlite::backup::{BackupCopy, PUT_BACK, look};
}

pub use answer::{
    ANSWERS, AnswerKept, AnswerPart, AnswerTold, BEGINNING, DRAFT, GivenAnswer, LONGEST_IN_ROW,
};
pub use audit::{EVENT_FIELDS, event_data};
pub use batch::{AuditEvent, Batch, Tidy};
pub use cause::Cause;
pub use commit_error::CommitError;
pub use decided::{Decided, Facts};
pub use journal::Journal;
pub use memory::History;
pub use open::{Damage, HeldUp, OpenError, Opened, Steps, StoreOptions};
pub use owners::{Owner, Owners, Put};
pub use pace::CheckPace;
pub use position::StorePosition;
pub use query::{
    COUNTED, EventQuery, ListPage, MessagePlace, MessageQuery, Query, Read, ReadError, RowCount, Take,
};
pub use rows::{
    CompleteFrom, Cursor, DamagedSession, Loaded, Lookup, Message, MessageState, Meta, RowDamage, SpentKey,
    StoredEvent, StoredRun, StoredSession, TurnPlace, UnknownMessageState,
};
pub use solo::Solo;
pub use step::{
    EventRun, EventStep, KEPT_EVENTS, KEPT_RUNS, NewSession, Old, PRUNE_AT_ONCE, PRUNE_WITHIN, Prune, Reason,
    RunStep, Step, Tally, Untold,
};
pub use store::{Backend, Reader, Store, open};
pub use sweep::{Sweep, SweepLimits};
pub use ticket::{Committed, Outcome, Promise, Ticket};
pub use trouble::{Listener, Trouble};
pub use ulid::{ParseUlidError, RunId, SessionId, Ulid};
pub use usage::{Spent, Taken, UsageBy, UsageQuery, UsageSum};

/// The version of the tables that this program writes. It reads all earlier versions and refuses later ones.
pub const SCHEMA_VERSION: i64 = sqlite::SCHEMA_VERSION;
