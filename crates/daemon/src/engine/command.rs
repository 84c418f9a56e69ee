//! Commands for the engine that no session decides, each by its name.

use super::Engine;
use super::attaching::{AttachReply, AttachRequest};
use super::declaration::Declaration;
use super::reply::ReplyHandle;
use super::session_view::SessionSnapshot;
use super::why_not::WhyNot;
use crate::caller::By;
use pinfold_api::object::Removed;
use pinfold_core::inbox::Inbox;
use pinfold_core::{ConsumerId, MessageId};
use pinfold_store::{Batch, Outcome, SessionId};
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// The reply to a removal.
pub(crate) type Removal = oneshot::Sender<Result<Removed, WhyNot>>;

/// Whether a message that a client waits for still has its end ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsettled {
    /// It is in the inbox: the client will hear of its end.
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

/// A command for the engine. Like every read, it waits until recovery has looked at every session.
pub(crate) enum EngineCommand {
    /// Restore an archived session.
    Restore { id: SessionId, by: Option<Arc<By>>, reply: ReplyHandle },
    /// Give a session another name.
    Rename { id: SessionId, name: String, by: Option<Arc<By>>, reply: ReplyHandle },
    /// Delete an archived session for good.
    Remove { id: SessionId, by: Option<Arc<By>>, done: Removal },
    /// Tell when a message is done or has failed, and until then how its session stands.
    AwaitMessage {
        id: SessionId,
        message: MessageId,
        settled: oneshot::Sender<()>,
        reply: oneshot::Sender<Option<(watch::Receiver<SessionSnapshot>, Unsettled)>>,
    },
    /// Attach a client. A client that is told of a terminal leaves with it.
    Attach { id: SessionId, attach: Box<AttachRequest>, reply: AttachReply },
    /// Count again a client that already has the terminal of the present run; it leaves with it.
    AttachAgain { id: SessionId, attach: Box<AttachRequest>, reply: ReplyHandle },
    /// Let a client watch the existing terminal without counting it.
    Look { id: SessionId, consumer: ConsumerId, reply: AttachReply },
    /// Take what verbs wrote down into the events; tell when it is durable.
    TakeAudit { done: oneshot::Sender<()> },
    /// Delete old records.
    Prune { batch: Batch, done: oneshot::Sender<Outcome> },
    /// A person lets an account go on; replies whether it was held.
    ResumeAccount { account: String, reply: oneshot::Sender<bool> },
    /// Create, change and archive sessions, all of them or none.
    Declare(Box<Declaration>),
    /// A burst is over: if nothing follows, return the memory it used to the kernel.
    RestSoon,
}

impl EngineCommand {
    /// Whether its answer is recorded: such a command is refused while nothing can be recorded.
    pub(super) fn is_recorded(&self) -> bool {
        match self {
            EngineCommand::Attach { .. } | EngineCommand::AttachAgain { .. } | EngineCommand::Declare(_) => {
                true
            }
            // These check for themselves, or record nothing.
            EngineCommand::Restore { .. }
            | EngineCommand::Rename { .. }
            | EngineCommand::Remove { .. }
            | EngineCommand::AwaitMessage { .. }
            | EngineCommand::Look { .. }
            | EngineCommand::TakeAudit { .. }
            | EngineCommand::Prune { .. }
            | EngineCommand::ResumeAccount { .. }
            | EngineCommand::RestSoon => false,
        }
    }
}

impl Engine {
    pub(super) fn obey(&mut self, command: EngineCommand) {
        match command {
            EngineCommand::Restore { id, by, reply } => self.restore(id, by.as_deref(), reply),
            EngineCommand::Rename { id, name, by, reply } => self.rename(id, name, by, reply),
            EngineCommand::Remove { id, by, done } => self.remove(id, by, done),
            EngineCommand::AwaitMessage { id, message, settled, reply } => {
                let tracked = self.sessions.get_mut(&id);
                _ = reply.send(tracked.map(|tracked| {
                    tracked.wait_for(message, settled);
                    (tracked.seen.subscribe(), Unsettled::of(tracked.session.inbox(), message))
                }));
            }
            EngineCommand::Attach { id, attach, reply } => self.begin_attach(id, *attach, reply),
            EngineCommand::AttachAgain { id, attach, reply } => self.attach_again(id, &attach, reply),
            EngineCommand::Look { id, consumer, reply } => self.begin_look(id, consumer, reply),
            EngineCommand::TakeAudit { done } => {
                self.take_audit();
                self.tell_when_audited(done);
            }
            EngineCommand::Prune { batch, done } => self.commit_pruning(batch, done),
            EngineCommand::ResumeAccount { account, reply } => _ = reply.send(self.resume_account(&account)),
            EngineCommand::Declare(declaration) => self.declare(declaration),
            EngineCommand::RestSoon => self.rest_soon(),
        }
    }
}
