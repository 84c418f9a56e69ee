//! What may be asked of the engine beside what a session decides: each by its name.

use super::Engine;
use super::attaching::{Attach, AttachReply};
use super::reply::Reply;
use super::session_view::Snapshot;
use super::why_not::WhyNot;
use crate::caller::By;
use pinfold_api::object::Removed;
use pinfold_core::inbox::Inbox;
use pinfold_core::{ConsumerId, MessageId};
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
    /// A session gets another name.
    Rename { id: SessionId, name: String, by: Option<Arc<By>>, reply: Reply },
    /// An archived session is deleted for good.
    Remove { id: SessionId, by: Option<Arc<By>>, done: Removal },
    /// Says when a message is done or has failed, and until then how its session stands.
    AwaitMessage {
        id: SessionId,
        message: MessageId,
        settled: oneshot::Sender<()>,
        reply: oneshot::Sender<Option<(watch::Receiver<Snapshot>, Unsettled)>>,
    },
    /// Somebody attaches. Whoever is told of a terminal leaves with it.
    Attach { id: SessionId, attach: Box<Attach>, reply: AttachReply },
    /// Somebody has the terminal of the present run already, is counted again, and leaves with it.
    AttachAgain { id: SessionId, attach: Box<Attach>, reply: Reply },
    /// Somebody looks at the terminal that is there, and is not counted.
    Look { id: SessionId, consumer: ConsumerId, reply: AttachReply },
    /// What verbs wrote down is taken into the events; says when it is there.
    TakeAudit { done: oneshot::Sender<()> },
    /// Old records are forgotten.
    Prune { batch: Batch, done: oneshot::Sender<Outcome> },
    /// A person says that an account goes on; says whether it was held.
    ResumeAccount { account: String, reply: oneshot::Sender<bool> },
    /// A burst is over: what it left behind goes back to the kernel when nothing follows it.
    RestSoon,
}

impl Command {
    /// Whether its answer is a record: it is refused while nothing can be recorded.
    pub(super) fn is_recorded(&self) -> bool {
        match self {
            Command::Attach { .. } | Command::AttachAgain { .. } => true,
            // Those look for themselves, or record nothing.
            Command::Restore { .. }
            | Command::Rename { .. }
            | Command::Remove { .. }
            | Command::AwaitMessage { .. }
            | Command::Look { .. }
            | Command::TakeAudit { .. }
            | Command::Prune { .. }
            | Command::ResumeAccount { .. }
            | Command::RestSoon => false,
        }
    }
}

impl Engine {
    pub(super) fn obey(&mut self, command: Command) {
        match command {
            Command::Restore { id, by, reply } => self.restore(id, by.as_deref(), reply),
            Command::Rename { id, name, by, reply } => self.rename(id, name, by, reply),
            Command::Remove { id, by, done } => self.remove(id, by, done),
            Command::AwaitMessage { id, message, settled, reply } => {
                let tracked = self.sessions.get_mut(&id);
                _ = reply.send(tracked.map(|tracked| {
                    tracked.wait_for(message, settled);
                    (tracked.seen.subscribe(), Unsettled::of(tracked.session.inbox(), message))
                }));
            }
            Command::Attach { id, attach, reply } => self.begin_attach(id, *attach, reply),
            Command::AttachAgain { id, attach, reply } => self.attach_again(id, &attach, reply),
            Command::Look { id, consumer, reply } => self.begin_look(id, consumer, reply),
            Command::TakeAudit { done } => {
                self.take_audit();
                self.tell_when_audited(done);
            }
            Command::Prune { batch, done } => self.commit_pruning(batch, done),
            Command::ResumeAccount { account, reply } => _ = reply.send(self.resume_account(&account)),
            Command::RestSoon => self.rest_soon(),
        }
    }
}
