//! What may be asked of the engine beside what a session decides: each by its name.

use super::Engine;
use super::attach::{Standing, Way};
use super::reply::Reply;
use super::session_view::{SessionView, Snapshot};
use super::why_not::WhyNot;
use crate::caller::By;
use pinfold_api::object::Removed;
use pinfold_core::inbox::Inbox;
use pinfold_core::{ConsumerId, MessageId};
use pinfold_shim::Size;
use pinfold_store::{Batch, Outcome, SessionId};
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// Somebody who waits for a session to be removed for good.
pub(crate) type Removal = oneshot::Sender<Result<Removed, WhyNot>>;

/// Whether a message that is waited for has its end before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsettled {
    /// It is in the inbox: whoever waits for it hears of its end.
    Yes,
    /// The store has to be asked.
    Unknown,
}

impl Unsettled {
    fn of(inbox: &Inbox, message: MessageId) -> Unsettled {
        let has_its_turn = inbox.in_flight().is_some_and(|turn| turn.message == message);
        if has_its_turn || inbox.waits(message) { Unsettled::Yes } else { Unsettled::Unknown }
    }
}

/// Something that the engine is to do. Like everything that is read, it waits until every session was looked at.
pub(crate) enum Command {
    /// An archived session comes back.
    Restore { id: SessionId, by: Option<Arc<By>>, reply: Reply },
    /// An archived session is deleted for good.
    Remove { id: SessionId, by: Option<Arc<By>>, done: Removal },
    /// Says when a message is done or has failed, and until then how its session stands.
    AwaitMessage {
        id: SessionId,
        message: MessageId,
        settled: oneshot::Sender<()>,
        reply: oneshot::Sender<Option<(watch::Receiver<Snapshot>, Unsettled)>>,
    },
    /// Somebody is about to attach: with a terminal of this size, where it is to have that.
    PrepareAttach { id: SessionId, size: Option<Size>, shows_only: bool, reply: oneshot::Sender<Option<Way>> },
    /// How a takeover ended before does not count for the one that is asked for now.
    ForgetTakeoverEnd { id: SessionId },
    /// How far an attach has come. Whoever is told of a terminal leaves with it.
    TellStanding {
        id: SessionId,
        way: Way,
        consumer: ConsumerId,
        reply: oneshot::Sender<Option<(Standing, SessionView)>>,
    },
    /// Somebody has the terminal of the present run already, and leaves with it.
    KeepsViewing { id: SessionId, consumer: ConsumerId },
    /// What verbs wrote down is taken into the events; says when it is there.
    TakeAudit { done: oneshot::Sender<()> },
    /// Old records are forgotten.
    Prune { batch: Batch, done: oneshot::Sender<Outcome> },
    /// A burst is over: what it left behind goes back to the kernel when nothing follows it.
    RestSoon,
}

impl Engine {
    pub(super) fn obey(&mut self, command: Command) {
        match command {
            Command::Restore { id, by, reply } => self.restore(id, by.as_deref(), reply),
            Command::Remove { id, by, done } => self.remove(id, by, done),
            Command::AwaitMessage { id, message, settled, reply } => {
                let tracked = self.sessions.get_mut(&id);
                _ = reply.send(tracked.map(|tracked| {
                    tracked.wait_for(message, settled);
                    (tracked.seen.subscribe(), Unsettled::of(tracked.session.inbox(), message))
                }));
            }
            Command::PrepareAttach { id, size, shows_only, reply } => {
                _ = reply.send(self.prepare_attach(id, size, shows_only));
            }
            Command::ForgetTakeoverEnd { id } => self.forget_takeover_end(id),
            Command::TellStanding { id, way, consumer, reply } => {
                _ = reply.send(self.standing(id, way, consumer));
            }
            Command::KeepsViewing { id, consumer } => self.keeps_viewing(id, consumer),
            Command::TakeAudit { done } => {
                self.take_audit();
                self.tell_when_audited(done);
            }
            Command::Prune { batch, done } => {
                // Whoever asked for it hears what came of it, and nobody else has to.
                self.ports.journal.commit(batch, None, Box::new(move |outcome| _ = done.send(outcome)));
            }
            Command::RestSoon => self.rest_soon(),
        }
    }
}
