//! Everything that can reach the loop, and the handle by which it does.

use crate::caller::By;
use crate::define::before_start::Found;
use crate::define::config::{Config, LoadError};
use crate::define::definition::Definition;
use crate::define::others::Others;
use crate::define::preset::IdFile;
use crate::engine::attaching::AttachNews;
use crate::engine::command::{Command, Removal};
use crate::engine::reply::Reply;
use crate::engine::stopping::{Overdue, Watch};
use crate::engine::taping::{self, Noted};
use crate::engine::view::{Known, View};
use crate::engine::why_not::WhyNot;
use crate::ports::files::NotMade;
use crate::ports::locks::{Held, HolderEnded, Refused};
use crate::ports::shims::observe::Seen;
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

/// One thing for the loop to take.
pub(crate) enum Input {
    /// Something happened to a session.
    Happened { id: SessionId, event: Box<Event>, facts: Box<Facts>, reply: Option<Reply> },
    /// Somebody wants something of a session's inbox.
    Post { id: SessionId, post: Post, by: Option<Arc<By>>, reply: Reply },
    /// Somebody wants a new session.
    Create(Box<Create>),
    /// The folder of a session that somebody wants was made, or could not be.
    FolderMade { id: SessionId, create: Box<Create>, made: Result<(), NotMade> },
    /// A stop that cannot be recorded was noted, or could not be.
    StopNoted { id: SessionId, noted: std::io::Result<()>, stop: Box<Unrecorded> },
    /// Somebody changed a session's definition.
    Define { id: SessionId, define: Box<Define>, reply: oneshot::Sender<()> },
    /// Somebody wants to read what the engine knows.
    Look(Looker),
    /// Somebody wants something done that no session decides.
    Command(Box<Command>),
    /// A batch is durable, or could not be made so. Nobody's is one of the daemon itself.
    Committed { of: Option<Committer>, outcome: Outcome },
    /// The locks of a session were taken, or not.
    Reserved { id: SessionId, result: Result<Box<dyn Held>, Refused> },
    /// A shim was started, or not.
    ShimUp { id: SessionId, run: RunNumber, result: Result<Box<ShimUp>, StartRefused> },
    /// A shim said something; nothing when its connection ended.
    Shim { id: SessionId, link: LinkNumber, report: Option<Report> },
    /// A shim died; whether it was proved that nothing of its run lives any more.
    ShimGone { id: SessionId, run: RunNumber, proved: bool },
    /// A part of the tape of a run was read.
    Tape { id: SessionId, run: RunNumber, from: u64, passage: Box<Passage> },
    /// Cursors that were far behind are durable, or could not be made so.
    Swept { all: Vec<Swept>, outcome: Outcome },
    /// The lock of a conversation of the vendor's was taken, or not.
    VendorHeld { id: SessionId, run: RunNumber, vendor: String, result: Result<Box<dyn Held>, Refused> },
    /// What its vendor has of a session was looked at, before a run of it is started.
    Looked { id: SessionId, looked: Box<Looked> },
    /// Whoever was waited for has gone.
    HolderGone { id: SessionId },
    /// Something that an attach waited for.
    Attaching { id: SessionId, news: AttachNews },
    /// What was found of a session when the daemon started, or later.
    Observed { id: SessionId, seen: Box<Seen> },
    /// The memory of a run was read.
    Memory { id: SessionId, run: RunNumber, read: crate::memory::Read },
    /// The file of a program on a terminal was read; nothing where there is none.
    Filed { id: SessionId, run: RunNumber, filed: Option<IdFile> },
    /// The configuration shall be read again.
    Reload,
    /// The configuration was read again, or cannot be.
    ConfigRead(Box<Result<Config, LoadError>>),
    /// Somebody wants a sign of life.
    Ping { reply: oneshot::Sender<Ping> },
    /// The API socket was removed, and is elsewhere now, or there again.
    Moved { runtime: PathBuf, socket: PathBuf },
    /// A stop that was told to a shim is behind its grace, so far.
    StopOverdue { id: SessionId, watch: Watch, overdue: Overdue },
    /// A session had long enough to come to rest for the daemon's end.
    DownOverdue { id: SessionId },
    /// Whoever held a session's lock was to be ended for that.
    HolderEnded { id: SessionId, ended: HolderEnded },
    /// The vendor refused a run its conversation, and this is who has that.
    WriterSeen { id: SessionId, run: RunNumber, holder: Option<HolderSeen> },
    /// The files of a message were looked for before it is said; the first that is not there.
    FilesSeen {
        id: SessionId,
        run: RunNumber,
        row: Box<Message>,
        given: taping::Given,
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
    /// What there is in the home was looked for.
    StrangersSought(There),
    /// An agent that the store does not know was ended, as far as it could be.
    StrangerEnded { id: String },
    /// Something keeps the store from being written, or does so no more.
    Trouble(Trouble),
    /// The store was looked at all over; what is wrong with it.
    Checked(Vec<String>),
    /// Something that no session decides belongs into the events; whoever waits hears when it is durable.
    Note { event: Box<AuditEvent>, reply: oneshot::Sender<()> },
    /// The daemon shall go down.
    Down { agents: Agents, by: Option<Arc<By>>, reply: Option<Goodbye> },
}

/// A session whose record was to be removed.
pub(crate) struct Forgotten {
    pub(crate) removed: Removed,
    /// The file of the values that the record named.
    pub(crate) values: Option<Ulid>,
    pub(crate) outcome: Outcome,
    pub(crate) done: Removal,
}

/// A cursor that was stored by itself.
pub(crate) struct Swept {
    pub(crate) id: SessionId,
    /// How often its session had begun again.
    pub(crate) beginnings: u32,
    pub(crate) noted: Noted,
}

/// A stop that acts first and is recorded later.
pub(crate) struct Unrecorded {
    pub(crate) event: Event,
    pub(crate) facts: Facts,
    pub(crate) reply: Option<Reply>,
}

/// Whose decision a batch records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Committer {
    pub(crate) id: SessionId,
    /// How often it had begun again from what is stored: what was decided before that has not happened.
    pub(crate) beginnings: u32,
}

/// What somebody wants of an inbox.
pub(crate) enum Post {
    /// A new message, unless there is one with its key.
    Send(Sending),
    /// A message that waits shall not be delivered.
    Cancel { message: MessageId },
    /// A failed message shall be delivered again.
    Retry { message: MessageId },
}

/// A text for an inbox.
pub(crate) struct Sending {
    pub(crate) text: String,
    pub(crate) key: Option<String>,
    pub(crate) files: Vec<String>,
    /// Told the row that goes to the disk. It counts when the answer is there, and nobody is told one where the key
    /// stands for an earlier message.
    pub(crate) row: oneshot::Sender<Message>,
}

/// Somebody who reads what the engine knows.
pub(crate) type Looker = Box<dyn FnOnce(View<'_>) + Send>;

/// Whoever asked for the end, and is told what was left behind.
pub(crate) type Goodbye = oneshot::Sender<Vec<Left>>;

/// What becomes of the agents when the daemon goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agents {
    /// They are stopped.
    Stopped,
    /// They stay under their shims.
    Kept,
}

/// A changed definition.
pub(crate) struct Define {
    pub(crate) definition: Definition,
    /// What becomes of the variables that it was given.
    pub(crate) given: Given,
    pub(crate) by: Option<Arc<By>>,
}

/// Whether a change is about variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// They are those of the new definition.
    Changed,
    /// They stay what they are when the change is made.
    AsBefore,
}

/// A new session.
pub(crate) struct Create {
    pub(crate) name: Name,
    pub(crate) definition: Definition,
    /// Why it cannot run, where it was forced.
    pub(crate) broken: Option<CannotStart>,
    pub(crate) by: Option<Arc<By>>,
    pub(crate) reply: oneshot::Sender<Result<SessionId, WhyNot>>,
}

/// How everybody reaches the loop.
#[derive(Clone)]
pub(crate) struct Handle {
    /// In whose name it is used; nobody's where the daemon acts by itself.
    by: Option<Arc<By>>,
    inputs: mpsc::UnboundedSender<Input>,
    /// What is said to those who ask for what cannot be recorded now.
    refusal: Arc<Mutex<Option<WhyNot>>>,
}

impl Handle {
    pub(crate) fn new() -> (Handle, mpsc::UnboundedReceiver<Input>) {
        let (inputs, receiver) = mpsc::unbounded_channel();
        (Handle { by: None, inputs, refusal: Arc::default() }, receiver)
    }

    /// The same, in somebody's name.
    pub(crate) fn of(&self, by: Option<Arc<By>>) -> Handle {
        Handle { by, ..self.clone() }
    }

    /// In whose name it is used.
    pub(crate) fn by(&self) -> Option<Arc<By>> {
        self.by.clone()
    }

    /// Who asks, for the events.
    pub(crate) fn words(&self) -> Option<Value> {
        self.by.as_ref().map(|by| by.words())
    }

    /// Tells the loop; when the loop has ended nobody is interested any more.
    pub(crate) fn tell(&self, input: Input) {
        _ = self.inputs.send(input);
    }

    /// Returns when the loop has ended.
    pub(crate) async fn ended(&self) {
        self.inputs.closed().await;
    }

    /// Notes why nothing can be recorded at the moment.
    pub(crate) fn refuse(&self, why: Option<WhyNot>) {
        if let Ok(mut refusal) = self.refusal.lock() {
            *refusal = why;
        }
    }

    /// Why nothing can be recorded at the moment, if so.
    pub(crate) fn refusal(&self) -> Option<WhyNot> {
        self.refusal.lock().ok().and_then(|refusal| refusal.clone())
    }

    /// What is said to those who get no answer any more.
    pub(crate) fn going_down(&self) -> WhyNot {
        self.refusal().unwrap_or(WhyNot::GoingDown)
    }

    /// Reads what the engine knows.
    pub(crate) async fn view<T: Send + 'static>(
        &self,
        read: impl FnOnce(View<'_>) -> T + Send + 'static,
    ) -> Result<T, WhyNot> {
        let (sender, receiver) = oneshot::channel();
        self.tell(Input::Look(Box::new(move |view| _ = sender.send(read(view)))));
        self.answer(receiver).await
    }

    /// Reads something of one session.
    pub(crate) async fn session<T: Send + 'static>(
        &self,
        id: SessionId,
        read: impl FnOnce(Known<'_>) -> T + Send + 'static,
    ) -> Result<T, WhyNot> {
        self.view(move |view| view.session(id).map(read)).await?.ok_or(WhyNot::Gone)
    }

    /// Wants something done.
    pub(crate) fn command(&self, command: Command) {
        self.tell(Input::Command(Box::new(command)));
    }

    /// Wants something done, and waits for what came of it.
    pub(crate) async fn order<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, WhyNot> {
        let (sender, receiver) = oneshot::channel();
        self.command(command(sender));
        self.answer(receiver).await
    }

    /// Tells a session something and waits for its answer, which is durable then.
    pub(crate) async fn ask(&self, id: SessionId, event: Event, facts: Facts) -> Result<Answer, WhyNot> {
        let (reply, receiver) = Reply::new();
        let (event, facts) = (Box::new(event), Box::new(Facts { by: self.words(), ..facts }));
        self.tell(Input::Happened { id, event, facts, reply: Some(reply) });
        self.answer(receiver).await?
    }

    /// Puts something into the events; the receiver hears when it is durable.
    pub(crate) fn note(&self, mut event: AuditEvent) -> oneshot::Receiver<()> {
        let (reply, receiver) = oneshot::channel();
        event.data.extend(self.words().map(|by| ("by".to_owned(), by)));
        self.tell(Input::Note { event: Box::new(event), reply });
        receiver
    }

    /// Wants something of an inbox and waits for the answer, which is durable then.
    pub(crate) async fn post(&self, id: SessionId, post: Post) -> Result<Answer, WhyNot> {
        let (reply, receiver) = Reply::new();
        self.tell(Input::Post { id, post, by: self.by(), reply });
        self.answer(receiver).await?
    }

    /// Waits for an answer of the loop.
    pub(crate) async fn answer<T>(&self, receiver: oneshot::Receiver<T>) -> Result<T, WhyNot> {
        receiver.await.map_err(|_| self.going_down())
    }
}

/// What was found of what its vendor has of a session.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) run: RunNumber,
    pub(crate) purpose: Purpose,
    pub(crate) found: Found,
    /// Where it was looked for who else is in it.
    pub(crate) others: Option<Others>,
    /// Counts for the session as it was loaded then.
    pub(crate) beginnings: u32,
}
