//! The port of ownership, names and inbox: what all hosts of a fleet must agree on, apart from what one host keeps.
//!
//! With one host nobody else has a say, and [`Solo`](crate::Solo) answers from the store itself. Past one host another
//! implementation stands here, and the store stays what it is: `docs/design/012-ports-of-the-store.md`.

use crate::batch::Batch;
use crate::query::Read;
use crate::rows::Message;
use crate::ticket::Promise;
use crate::ulid::{SessionId, Ulid};
use pinfold_core::MessageId;
use std::fmt::Debug;
use std::sync::Arc;

/// Who has a session: what every write about it compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The host's name.
    pub host: Arc<str>,
    /// Which life of that host: grows each time it joins, and with one host each time its daemon starts.
    pub incarnation: u64,
    /// The attempt by which the host became the owner; none where nothing has to be claimed.
    pub claim: Option<Ulid>,
    /// Grows with each owner of the session, so that what an earlier one still does can be told from it.
    pub fence: u64,
}

/// A change that all hosts must agree on, together with what this host keeps of it.
///
/// What it does to names and inboxes is in its steps: [`Create`](crate::Step::Create), [`Update`](crate::Step::Update)
/// and [`Remove`](crate::Step::Remove) take names and free them, [`Message`](crate::Step::Message) sends, takes and
/// finishes.
#[derive(Debug)]
pub struct Put {
    /// The owner, as the writer knows it: nothing is changed where there is another by now.
    pub seen: Owner,
    /// What becomes durable with it.
    pub batch: Batch,
}

/// Who has which session, what it is called, and what waits for it. It is the loop's own, and stays on its thread.
pub trait Owners: Debug {
    /// Who has a session; nothing where there is no such session.
    ///
    /// # Errors
    /// It cannot be known now.
    fn owner(&self, session: SessionId) -> Read<Option<Owner>>;

    /// The session that has a name; archived ones have none.
    ///
    /// # Errors
    /// It cannot be known now.
    fn named(&self, name: &str) -> Read<Option<SessionId>>;

    /// The message that a dedupe key of a session stands for, whatever has become of it.
    ///
    /// # Errors
    /// It cannot be known now: that is not "no such message".
    fn known(&self, session: SessionId, key: &str) -> Read<Option<MessageId>>;

    /// A message, with its text.
    ///
    /// # Errors
    /// It cannot be read now, or is damaged.
    fn message(&self, message: MessageId) -> Read<Option<Message>>;

    /// How many bytes of text wait in an inbox, that of the turn under way included.
    ///
    /// # Errors
    /// It cannot be known now.
    fn waiting_bytes(&self, session: SessionId) -> Read<u64>;

    /// Makes a change everybody's, and keeps what this host has of it; all of it or nothing.
    ///
    /// It returns at once. The promise is kept when the outcome is definite: an implementation whose attempt ended in an
    /// unknown one tries the same attempt again until it is known. Puts take effect in the order in which they are given.
    /// A name or a key that is taken, a step that a message does not allow, and a writer that does not own any more are
    /// refused where the write lands, whatever the writer had read.
    fn put(&self, put: Put, promise: Promise);
}
