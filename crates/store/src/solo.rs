//! One host: the store is the whole truth about ownership, names and inbox.

use crate::owners::{Owner, Owners, Put};
use crate::query::Read;
use crate::rows::{Loaded, Lookup, Message};
use crate::step::Step;
use crate::store::{Reader, Store};
use crate::ticket::Promise;
use crate::ulid::SessionId;
use pinfold_core::MessageId;
use std::rc::Rc;
use std::sync::Arc;

/// Ownership, names and inbox in the store of the only host, whatever its back-end.
///
/// A put is one commit, no more: the batch itself takes the name, queues the message and finishes it, and the
/// store refuses what is taken. Every session belongs to the daemon with the latest generation: one that was
/// announced later owns all of them, and an earlier one is refused in the same transaction in which it writes.
#[derive(Debug)]
pub struct Solo {
    store: Store,
    reader: Rc<Reader>,
    owner: Owner,
}

impl Solo {
    /// Creates the port of a daemon of this generation. Others on its thread may use the reader, too.
    #[must_use]
    pub fn new(store: &Store, reader: Rc<Reader>, generation: u64) -> Solo {
        Solo { store: store.clone(), reader, owner: owner(generation) }
    }

    /// Returns the owner as which this daemon writes.
    #[must_use]
    pub fn here(&self) -> Owner {
        self.owner.clone()
    }
}

/// With one host there is nothing to claim, and a new owner is a new daemon.
fn owner(generation: u64) -> Owner {
    Owner { host: Arc::from("here"), incarnation: generation, claim: None, fence: generation }
}

impl Owners for Solo {
    fn owner(&self, session: SessionId) -> Read<Option<Owner>> {
        let found = self.reader.session(session)?;
        let latest = self.reader.meta()?.generation;
        Ok(found.map(|_| owner(latest)))
    }

    fn named(&self, name: &str) -> Read<Option<SessionId>> {
        Ok(match self.reader.find(name)? {
            Lookup::One(Loaded::Whole(stored)) if stored.name == name && stored.archived_at.is_none() => {
                Some(stored.id)
            }
            // The name of a damaged session is not certain either.
            Lookup::One(Loaded::Whole(_) | Loaded::Damaged(_)) | Lookup::Nobody | Lookup::Several(_) => None,
        })
    }

    fn known(&self, session: SessionId, key: &str) -> Read<Option<MessageId>> {
        if let Some(message) = self.reader.message_by_key(session, key)? {
            return Ok(Some(message.id.into()));
        }
        Ok(self.reader.spent_key(session, key)?.map(|spent| spent.message.into()))
    }

    fn message(&self, message: MessageId) -> Read<Option<Message>> {
        self.reader.message(message)
    }

    fn waiting_bytes(&self, session: SessionId) -> Read<u64> {
        self.reader.waiting_bytes(session)
    }

    fn put(&self, put: Put, promise: Promise) {
        let Put { seen, mut batch } = put;
        if !batch.is_empty() {
            batch.steps.push(Step::OwnedBy { incarnation: seen.incarnation });
        }
        self.store.journal().commit(batch, promise);
    }
}
