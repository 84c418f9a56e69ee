//! The port of ownership, names and inbox: what all hosts of a fleet must agree on, apart from what one host keeps.
//!
//! With one host there is nothing to agree on, and [`Solo`](crate::Solo) answers from the store itself. With
//! more hosts another implementation takes its place, and the store stays what it is:
//! `docs/design/012-ports-of-the-store.md`.

use crate::batch::Batch;
use crate::query::Read;
use crate::rows::Message;
use crate::ticket::Promise;
use crate::ulid::{SessionId, Ulid};
use pinfold_core::MessageId;
use std::fmt::Debug;
use std::sync::Arc;

/// The owner of a session, which every write about it compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The host's name.
    pub host: Arc<str>,
    /// The life of that host: grows each time it joins or, with one host, each time its daemon starts.
    pub incarnation: u64,
    /// The attempt by which the host became the owner; `None` if nothing has to be claimed.
    pub claim: Option<Ulid>,
    /// Grows with each owner of the session, which tells apart what an earlier one still does.
    pub fence: u64,
}

/// A change that all hosts must agree on, together with what this host keeps of it.
///
/// What it does to names and inboxes is in its steps: [`Create`](crate::Step::Create),
/// [`Update`](crate::Step::Update) and [`Remove`](crate::Step::Remove) take and free names,
/// [`Message`](crate::Step::Message) sends, takes and finishes.
#[derive(Debug)]
pub struct Put {
    /// The owner as the writer knows it: if there is another one by now, nothing is changed.
    pub seen: Owner,
    /// What becomes durable with it.
    pub batch: Batch,
}

/// Which host has which session, its name, and what waits for it. It belongs to the loop and stays on its thread.
pub trait Owners: Debug {
    /// Returns the owner of a session; `None` if there is no such session.
    ///
    /// # Errors
    /// It cannot be known now.
    fn owner(&self, session: SessionId) -> Read<Option<Owner>>;

    /// Returns the session with a name; archived ones have none.
    ///
    /// # Errors
    /// It cannot be known now.
    fn named(&self, name: &str) -> Read<Option<SessionId>>;

    /// Returns the message that a dedupe key of a session stands for, whatever has become of it.
    ///
    /// # Errors
    /// It cannot be known now: that is not "no such message".
    fn known(&self, session: SessionId, key: &str) -> Read<Option<MessageId>>;

    /// Returns a message with its text.
    ///
    /// # Errors
    /// It cannot be read now, or is damaged.
    fn message(&self, message: MessageId) -> Read<Option<Message>>;

    /// Returns how many bytes of text wait in an inbox, including that of the turn under way.
    ///
    /// # Errors
    /// It cannot be known now.
    fn waiting_bytes(&self, session: SessionId) -> Read<u64>;

    /// Makes a change on all hosts, and keeps this host's part of it; all of it or nothing.
    ///
    /// It returns at once. The promise is kept when the outcome is definite: an implementation whose attempt
    /// ended in an unknown one repeats the same attempt until it is known. Puts take effect in the order in
    /// which they are given. A name or key that is taken, a step that a message does not allow, and a writer
    /// that is no longer the owner are refused where the write lands, whatever the writer had read.
    fn put(&self, put: Put, promise: Promise);
}
