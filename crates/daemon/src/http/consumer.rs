//! A client that is connected to a session: counted as long as the connection lives, however it ends.

use crate::engine::WhyNot;
use crate::engine::input::{Handle, LoopInput};
use pinfold_core::event::ConsumerKind;
use pinfold_core::{ConsumerId, Event};
use pinfold_store::{Facts, SessionId};
use std::sync::atomic::{AtomicU64, Ordering};

/// A consumer of a session; dropping it reports that its connection has ended.
pub(crate) struct Consumer {
    handle: Handle,
    session: SessionId,
    pub(crate) id: ConsumerId,
}

impl Consumer {
    /// Joins a session, and returns when that is stored.
    pub(crate) async fn join(
        handle: &Handle,
        session: SessionId,
        kind: ConsumerKind,
    ) -> Result<Consumer, WhyNot> {
        let consumer = Consumer::new(handle, session);
        consumer.count(kind).await?;
        Ok(consumer)
    }

    /// A connection that is not counted yet, but may ask for something that ends with it.
    pub(crate) fn new(handle: &Handle, session: SessionId) -> Consumer {
        Consumer { handle: handle.clone(), session, id: Consumer::next() }
    }

    /// A new, unused number.
    pub(crate) fn next() -> ConsumerId {
        // Consumers are not stored, so their numbers only have to differ in this process.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        ConsumerId(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Counts it from now on, and returns when that is stored.
    pub(crate) async fn count(&self, kind: ConsumerKind) -> Result<(), WhyNot> {
        let joined = Event::ConsumerJoined { consumer: self.id, kind };
        self.handle.ask(self.session, joined, Facts::default()).await.map(drop)
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let event = Box::new(Event::ConsumerLeft { consumer: self.id });
        let facts = Box::new(Facts { by: self.handle.words(), ..Facts::default() });
        self.handle.tell(LoopInput::Happened { id: self.session, event, facts, reply: None });
    }
}
