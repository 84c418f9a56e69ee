//! Everything that can reach the loop, and the handle by which it does.

use crate::definition::Definition;
use crate::fleet::Fleet;
use crate::locks::{Refused, Reserved};
use crate::observe::Seen;
use crate::shims::{LinkNumber, ShimUp};
use pinfold_api::{ErrorBody, ErrorKind, Name};
use pinfold_core::decision::Answer;
use pinfold_core::life::CannotStart;
use pinfold_core::{Event, RunNumber};
use pinfold_shim::Report;
use pinfold_store::{Facts, Outcome, SessionId};
use tokio::sync::{mpsc, oneshot};

/// One thing for the loop to take.
pub(crate) enum Input {
    /// Something happened to a session.
    Happened { id: SessionId, event: Box<Event>, facts: Box<Facts>, reply: Option<oneshot::Sender<Answer>> },
    /// Somebody wants a new session.
    Create(Box<Create>),
    /// Somebody changed a session's definition.
    Define { id: SessionId, definition: Box<Definition>, reply: oneshot::Sender<()> },
    /// Somebody wants to look at the fleet.
    Look(Box<dyn FnOnce(&mut Fleet) + Send>),
    /// A batch is durable, or could not be made so. `None` is for batches of the daemon itself.
    Committed { id: Option<SessionId>, outcome: Outcome },
    /// The locks of a session were taken, or not.
    Reserved { id: SessionId, result: Result<Vec<Reserved>, Refused> },
    /// A shim was started, or not.
    ShimUp { id: SessionId, run: RunNumber, result: Result<Box<ShimUp>, String> },
    /// A shim said something; nothing when its connection ended.
    Shim { id: SessionId, link: LinkNumber, report: Option<Report> },
    /// Whoever was waited for has gone.
    HolderGone { id: SessionId },
    /// What was found of a session when the daemon started, or later.
    Observed { id: SessionId, seen: Box<Seen> },
    /// The daemon shall go down.
    Down { agents: Agents, reply: Option<oneshot::Sender<()>> },
}

/// What becomes of the agents when the daemon goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agents {
    /// They are stopped.
    Stopped,
    /// They stay under their shims.
    Kept,
}

/// A new session.
pub(crate) struct Create {
    pub(crate) name: Name,
    pub(crate) definition: Definition,
    /// Why it cannot run, where it was forced.
    pub(crate) broken: Option<CannotStart>,
    pub(crate) reply: oneshot::Sender<Result<SessionId, ErrorBody>>,
}

/// How everybody reaches the loop.
#[derive(Clone)]
pub(crate) struct Handle(mpsc::UnboundedSender<Input>);

impl Handle {
    pub(crate) fn new() -> (Handle, mpsc::UnboundedReceiver<Input>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Handle(sender), receiver)
    }

    /// Tells the loop; when the loop has ended nobody is interested any more.
    pub(crate) fn tell(&self, input: Input) {
        _ = self.0.send(input);
    }

    /// Looks at the fleet from outside the loop.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut Fleet) -> T + Send + 'static,
    ) -> Result<T, ErrorBody> {
        let (sender, receiver) = oneshot::channel();
        self.tell(Input::Look(Box::new(move |fleet| _ = sender.send(look(fleet)))));
        receiver.await.map_err(|_| going_down())
    }

    /// Tells a session something and waits for its answer, which is durable then.
    pub(crate) async fn ask(&self, id: SessionId, event: Event, facts: Facts) -> Result<Answer, ErrorBody> {
        let (sender, receiver) = oneshot::channel();
        let (event, facts) = (Box::new(event), Box::new(facts));
        self.tell(Input::Happened { id, event, facts, reply: Some(sender) });
        receiver.await.map_err(|_| going_down())
    }
}

pub(crate) fn going_down() -> ErrorBody {
    ErrorBody::new(ErrorKind::Unavailable, "the daemon is going down")
}
