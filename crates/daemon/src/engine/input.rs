//! Everything that can reach the loop, and the handle through which it does.

use crate::caller::By;
use crate::define::before_start::BeforeStartFindings;
use crate::define::config::{Config, LoadError};
use crate::define::definition::Definition;
use crate::define::kept::{SaidTurn, Saved};
use crate::define::others::Others;
use crate::define::preset::IdFile;
use crate::engine::attaching::AttachNews;
use crate::engine::command::{EngineCommand, Removal};
pub(crate) use crate::engine::declaration::VariablesChange;
use crate::engine::reply::ReplyHandle;
use crate::engine::stopping::{Overdue, StopWatch};
use crate::engine::taping::{self, NotedCursor};
use crate::engine::view::{EngineView, SessionRef};
use crate::engine::why_not::WhyNot;
use crate::ports::files::NotMade;
use crate::ports::locks::{HolderEnded, LocksRefused, RunLocks};
use crate::ports::shims::observe::SessionSeen;
use crate::ports::shims::strangers::There;
use crate::ports::shims::{LinkNumber, ShimUp};
use crate::ports::tapes::Passage;
use pinfold_api::Name;
use pinfold_api::object::{Left, Ping, Removed};
use pinfold_core::decision::Answer;
use pinfold_core::life::{CannotStart, HolderSeen, Purpose, StartRefused};
use pinfold_core::{Event, MessageId, RunNumber};
use pinfold_shim::Report;
use pinfold_store::{AuditEvent, Facts, Message, Outcome, SessionId, Trouble, Ulid};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};

/// One input for the loop.
pub(crate) enum LoopInput {
    /// Something happened to a session.
    Happened { id: SessionId, event: Box<Event>, facts: Box<Facts>, reply: Option<ReplyHandle> },
    /// A client asks for something concerning a session's inbox.
    Post { id: SessionId, post: Post, by: Option<Arc<By>>, reply: ReplyHandle },
    /// A client asks for a new session.
    Create(Box<Create>),
    /// The folder of a requested session was made, or could not be.
    FolderMade { id: SessionId, create: Box<Create>, made: Result<(), NotMade> },
    /// A stop that cannot be recorded was noted, or could not be.
    StopNoted { id: SessionId, noted: std::io::Result<()>, stop: Box<Unrecorded> },
    /// A client changed a session's definition.
    Define { id: SessionId, define: Box<Define>, reply: oneshot::Sender<DefineOutcome> },
    /// A client wants to read what the engine knows.
    Look(Looker),
    /// A client gives a command that no session decides.
    Command(Box<EngineCommand>),
    /// A batch is durable, or could not be made so. Without `of`, it is one of the daemon itself.
    Committed { of: Option<Committer>, outcome: Outcome },
    /// The locks of a session were taken, or not.
    Reserved { id: SessionId, result: Result<Box<dyn RunLocks>, LocksRefused> },
    /// A shim was started, or not.
    ShimUp { id: SessionId, run: RunNumber, result: Result<Box<ShimUp>, StartRefused> },
    /// A shim sent a report; `None` when its link ended.
    Shim { id: SessionId, link: LinkNumber, report: Option<Report> },
    /// A shim died; whether it was proved that nothing of its run is alive.
    ShimGone { id: SessionId, run: RunNumber, proved: bool },
    /// A part of a run's tape was read.
    Tape { id: SessionId, run: RunNumber, from: u64, passage: Box<Passage> },
    /// Cursors that were far behind are durable, or could not be made so.
    Swept { all: Vec<Swept>, outcome: Outcome },
    /// The lock of a vendor conversation was taken, or not.
    VendorHeld {
        id: SessionId,
        run: RunNumber,
        vendor: String,
        result: Result<Box<dyn RunLocks>, LocksRefused>,
    },
    /// The vendor's state of a session was checked before a run of it starts.
    Looked { id: SessionId, looked: Box<Looked> },
    /// The holder that a session waited for has gone.
    HolderGone { id: SessionId },
    /// An event that an attach was waiting for.
    Attaching { id: SessionId, news: AttachNews },
    /// What was found of a session at the daemon's start, or later.
    Observed { id: SessionId, seen: Box<SessionSeen> },
    /// The memory of a run was read.
    Memory { id: SessionId, run: RunNumber, read: crate::memory::MeterReading },
    /// The file of a program on a terminal was read; `None` if there is none.
    Filed { id: SessionId, run: RunNumber, filed: Option<IdFile> },
    /// The configuration is to be read again.
    Reload,
    /// The configuration was read again, or cannot be.
    ConfigRead(Box<Result<Config, LoadError>>),
    /// A client asks for a sign of life.
    Ping { reply: oneshot::Sender<Ping> },
    /// The API socket was removed, and now has another path or is back.
    Moved { runtime: PathBuf, socket: PathBuf },
    /// A stop that a shim was told has exceeded its grace, by this much so far.
    StopOverdue { id: SessionId, watch: StopWatch, overdue: Overdue },
    /// A session had long enough to come to rest for the daemon's end.
    DownOverdue { id: SessionId },
    /// An attempt to end the holder of a session's lock has finished.
    HolderEnded { id: SessionId, ended: HolderEnded },
    /// The vendor refused a run its conversation, and this is the holder.
    WriterSeen { id: SessionId, run: RunNumber, holder: Option<HolderSeen> },
    /// What a vendor wrote was kept, or is not there yet.
    Kept { id: SessionId, run: RunNumber, turns: Vec<SaidTurn>, saved: std::io::Result<Saved> },
    /// The files of a message were looked for before it is delivered; the first that is missing.
    FilesSeen {
        id: SessionId,
        run: RunNumber,
        row: Box<Message>,
        given: taping::MessageDelivery,
        missing: Option<String>,
    },
    /// The files of a session that is to be removed were deleted, or not.
    FilesDeleted { id: SessionId, deleted: Result<u64, String>, by: Option<Arc<By>>, done: Removal },
    /// The record of a session is gone, or could not be removed.
    Forgotten(Box<Forgotten>),
    /// A verb wrote something down for the events.
    Audited,
    /// What verbs wrote down is durable, or could not be made so.
    AuditStored { outcome: Outcome },
    /// The search for unknown agents in the home has finished.
    StrangersSought(There),
    /// An agent that the store does not know was ended, as far as possible.
    StrangerEnded { id: String },
    /// Something keeps the store from being written, or no longer does.
    Trouble(Trouble),
    /// The whole store was checked; what is wrong with it.
    Checked(Vec<String>),
    /// An event that no session decides; the reply is sent when it is durable.
    Note { event: Box<AuditEvent>, reply: oneshot::Sender<()> },
    /// The daemon is to go down.
    Down { agents: AgentsOnDown, by: Option<Arc<By>>, reply: Option<Goodbye> },
}

/// A session whose record was to be deleted.
pub(crate) struct Forgotten {
    pub(crate) removed: Removed,
    /// The value file that the record named.
    pub(crate) values: Option<Ulid>,
    pub(crate) outcome: Outcome,
    pub(crate) done: Removal,
}

/// A cursor that was stored on its own.
pub(crate) struct Swept {
    pub(crate) id: SessionId,
    /// How often its session had begun again.
    pub(crate) beginnings: u32,
    pub(crate) noted: NotedCursor,
}

/// A stop that is carried out first and recorded later.
pub(crate) struct Unrecorded {
    pub(crate) event: Event,
    pub(crate) facts: Facts,
    pub(crate) reply: Option<ReplyHandle>,
}

/// Whose decision a batch records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Committer {
    pub(crate) id: SessionId,
    /// How often the session had begun again from what is stored: what was decided before that has not
    /// happened.
    pub(crate) beginnings: u32,
}

/// A request concerning an inbox.
pub(crate) enum Post {
    /// Add a message, unless there is one with its key.
    Send(Sending),
    /// Do not deliver a queued message.
    Cancel { message: MessageId },
    /// Deliver a failed message again.
    Retry { message: MessageId },
}

/// A text for an inbox.
pub(crate) struct Sending {
    pub(crate) text: String,
    pub(crate) key: Option<String>,
    pub(crate) files: Vec<String>,
    /// Receives the row that goes to the disk. It counts only once the answer has arrived, and receives
    /// nothing if the key stands for an earlier message.
    pub(crate) row: oneshot::Sender<Message>,
}

/// A closure that reads what the engine knows.
pub(crate) type Looker = Box<dyn FnOnce(EngineView<'_>) + Send>;

/// The reply to a request to go down; it carries what was left running.
pub(crate) type Goodbye = oneshot::Sender<Vec<Left>>;

/// What happens to the agents when the daemon goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentsOnDown {
    /// They are stopped.
    Stopped,
    /// They keep running under their shims.
    Kept,
    /// They keep running, and another daemon takes over.
    HandedOver,
}

/// What became of a changed definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefineOutcome {
    /// It is recorded.
    Done,
    /// Another change came first, which it does not contain: nothing was done.
    Overtaken,
}

/// A changed definition.
pub(crate) struct Define {
    /// The latest definition that it was made from; `None` if it was made just now.
    pub(crate) base: Option<Arc<Definition>>,
    pub(crate) definition: Definition,
    /// What happens to the variables it was given.
    pub(crate) given: VariablesChange,
    pub(crate) by: Option<Arc<By>>,
}

/// A new session.
pub(crate) struct Create {
    pub(crate) name: Name,
    pub(crate) definition: Definition,
    /// Why it cannot run, if it was created by force.
    pub(crate) broken: Option<CannotStart>,
    pub(crate) by: Option<Arc<By>>,
    pub(crate) reply: oneshot::Sender<Result<SessionId, WhyNot>>,
}

/// The handle through which everything reaches the loop.
#[derive(Clone)]
pub(crate) struct Handle {
    /// The caller in whose name it is used; `None` when the daemon acts by itself.
    by: Option<Arc<By>>,
    inputs: mpsc::UnboundedSender<LoopInput>,
    /// Why nothing can be recorded now: the answer to requests that need a record.
    refusal: Arc<Mutex<Option<WhyNot>>>,
}

impl Handle {
    pub(crate) fn new() -> (Handle, mpsc::UnboundedReceiver<LoopInput>) {
        let (inputs, receiver) = mpsc::unbounded_channel();
        (Handle { by: None, inputs, refusal: Arc::default() }, receiver)
    }

    /// Returns a handle that acts in the name of this caller.
    pub(crate) fn of(&self, by: Option<Arc<By>>) -> Handle {
        Handle { by, ..self.clone() }
    }

    /// The caller in whose name it is used.
    pub(crate) fn by(&self) -> Option<Arc<By>> {
        self.by.clone()
    }

    /// The caller, as events name it.
    pub(crate) fn words(&self) -> Option<Value> {
        self.by.as_ref().map(|by| by.words())
    }

    /// Sends an input to the loop; once the loop has ended, the input is dropped.
    pub(crate) fn tell(&self, input: LoopInput) {
        _ = self.inputs.send(input);
    }

    /// Returns when the loop has ended.
    pub(crate) async fn ended(&self) {
        self.inputs.closed().await;
    }

    /// Sets why nothing can be recorded at the moment.
    pub(crate) fn refuse(&self, why: Option<WhyNot>) {
        if let Ok(mut refusal) = self.refusal.lock() {
            *refusal = why;
        }
    }

    /// Why nothing can be recorded at the moment, if so.
    pub(crate) fn refusal(&self) -> Option<WhyNot> {
        self.refusal.lock().ok().and_then(|refusal| refusal.clone())
    }

    /// The reason for clients that will get no answer any more.
    pub(crate) fn going_down(&self) -> WhyNot {
        self.refusal().unwrap_or(WhyNot::GoingDown)
    }

    /// Reads what the engine knows.
    pub(crate) async fn view<T: Send + 'static>(
        &self,
        read: impl FnOnce(EngineView<'_>) -> T + Send + 'static,
    ) -> Result<T, WhyNot> {
        let (sender, receiver) = oneshot::channel();
        self.tell(LoopInput::Look(Box::new(move |view| _ = sender.send(read(view)))));
        self.answer(receiver).await
    }

    /// Reads something of one session.
    pub(crate) async fn session<T: Send + 'static>(
        &self,
        id: SessionId,
        read: impl FnOnce(SessionRef<'_>) -> T + Send + 'static,
    ) -> Result<T, WhyNot> {
        self.view(move |view| view.session(id).map(read)).await?.ok_or(WhyNot::Gone)
    }

    /// Sends a command.
    pub(crate) fn command(&self, command: EngineCommand) {
        self.tell(LoopInput::Command(Box::new(command)));
    }

    /// Sends a command and waits for its result.
    pub(crate) async fn order<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> EngineCommand,
    ) -> Result<T, WhyNot> {
        let (sender, receiver) = oneshot::channel();
        self.command(command(sender));
        self.answer(receiver).await
    }

    /// Sends an event to a session and waits for the answer, which is durable by then.
    pub(crate) async fn ask(&self, id: SessionId, event: Event, facts: Facts) -> Result<Answer, WhyNot> {
        let (reply, receiver) = ReplyHandle::new();
        let (event, facts) = (Box::new(event), Box::new(Facts { by: self.words(), ..facts }));
        self.tell(LoopInput::Happened { id, event, facts, reply: Some(reply) });
        self.answer(receiver).await?
    }

    /// Adds an event; the receiver hears when it is durable.
    pub(crate) fn note(&self, mut event: AuditEvent) -> oneshot::Receiver<()> {
        let (reply, receiver) = oneshot::channel();
        event.data.extend(self.words().map(|by| ("by".to_owned(), by)));
        self.tell(LoopInput::Note { event: Box::new(event), reply });
        receiver
    }

    /// Sends a request to an inbox and waits for the answer, which is durable by then.
    pub(crate) async fn post(&self, id: SessionId, post: Post) -> Result<Answer, WhyNot> {
        let (reply, receiver) = ReplyHandle::new();
        self.tell(LoopInput::Post { id, post, by: self.by(), reply });
        self.answer(receiver).await?
    }

    /// Waits for an answer from the loop.
    pub(crate) async fn answer<T>(&self, receiver: oneshot::Receiver<T>) -> Result<T, WhyNot> {
        receiver.await.map_err(|_| self.going_down())
    }
}

/// The result of the check before a start.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) run: RunNumber,
    pub(crate) purpose: Purpose,
    pub(crate) found: BeforeStartFindings,
    /// Where other users of the vendor session were looked for.
    pub(crate) others: Option<Others>,
    /// Valid only for the session as it was loaded then.
    pub(crate) beginnings: u32,
}
