//! One session as the daemon has it: the core's value, and the handles that belong to it while it lives.

use crate::define::definition::{self, Definition, TurnEndRule};
use crate::engine::attaching::Attaching;
use crate::engine::feed::News;
use crate::engine::reply::Reply;
use crate::engine::running::Run;
use crate::engine::session_view::{SessionView, Snapshot};
use crate::engine::stopping::Farewell;
use crate::engine::taping::Noted;
use crate::ports::locks::{Awaited, Held, Waiting};
use crate::ports::shims::ShimLink;
use pinfold_core::decision::Answer;
use pinfold_core::life::HolderSeen;
use pinfold_core::{Action, MessageId, RunNumber, Session, State, Wall};
use pinfold_shim::log::Position;
use pinfold_shim::{Flow, Size};
use pinfold_store::{Cursor, RunId, SessionId};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// Every state, in the order in which people think of them.
pub(crate) const STATES: [State; 10] = [
    State::Idle,
    State::Starting,
    State::Running,
    State::Stopping,
    State::Backoff,
    State::Blocked,
    State::Held,
    State::Stopped,
    State::Failed,
    State::Archived,
];

/// One session and what the daemon holds for it.
pub(crate) struct Tracked {
    pub(crate) id: SessionId,
    pub(crate) name: String,
    pub(crate) definition: Arc<Definition>,
    pub(crate) created_at: Wall,
    /// The account that its runs use.
    pub(crate) account: Option<Arc<str>>,
    pub(crate) session: Session,
    /// The name of the latest run, which may have ended.
    pub(crate) latest: Option<(RunNumber, RunId)>,
    /// The run that lives.
    pub(crate) run: Option<Box<Run>>,
    /// Decisions whose changes are not durable yet, in order.
    pub(crate) pending: VecDeque<Pending>,
    pub(crate) reservation: Reservation,
    pub(crate) shim: Option<ShimLink>,
    /// How the daemon's end stands with it.
    pub(crate) farewell: Farewell,
    /// What was refused last, and who waits for it.
    pub(crate) awaited: Option<Awaited>,
    pub(crate) waiting: Option<Box<dyn Waiting>>,
    /// The size of the terminal that its next run is given: that of whoever attached last.
    pub(crate) terminal: Size,
    /// Those who attach and are not there yet.
    pub(crate) attaching: Attaching,
    /// Tells those who wait for it how it stands; what is told is published by the feed.
    pub(crate) seen: watch::Sender<Snapshot>,
    /// Messages with keys that may not be durable yet.
    pub(crate) keys: BTreeMap<String, MessageId>,
    /// No less than the bytes of text that wait in its inbox, once they were counted.
    pub(crate) inbox_bytes: Option<u64>,
    /// Who waits for a message to be done or failed.
    pub(crate) waiters: BTreeMap<MessageId, Vec<oneshot::Sender<()>>>,
    /// What keeps its decisions from being recorded, in words; all of them wait for it.
    pub(crate) held_up: Option<Arc<str>>,
    /// It is new, and not recorded yet.
    pub(crate) unborn: bool,
    /// It was asked to stop while nothing could be recorded: it stops first.
    /// Who has the conversation that its run is in, and is let have it.
    pub(crate) yields_to: Option<Box<HolderSeen>>,
    /// Why its last turn failed, if it did.
    pub(crate) failed: Option<Arc<str>>,
    pub(crate) stops_first: bool,
    /// Messages in its inbox that are damaged: they are not delivered.
    pub(crate) damaged: u64,
    /// A stop of it stands in the file of those that are not recorded.
    pub(crate) stop_noted: bool,
    /// It was read from the store again, and the writer has not heard of that yet.
    pub(crate) reloaded: bool,
    /// How often it began again from what is stored.
    pub(crate) beginnings: u32,
    /// Who asked for what is under way.
    pub(crate) asked: Option<Box<Value>>,
    /// How far its log went at the last end that was told.
    pub(crate) logged: Option<Position>,
    /// The highest position of its tape that is stored.
    pub(crate) floor: u64,
    /// From where on its tape is needed.
    pub(crate) heard: u64,
    /// The last cursor of a run that ended: it goes with the end.
    pub(crate) parting: Option<(Cursor, Noted)>,
    /// Locks that are being handed to its shim.
    pub(crate) handing: Vec<Handing>,
}

/// A lock that is on its way to a shim: the daemon has it too until the shim says that it does.
pub(crate) struct Handing {
    pub(crate) resource: String,
    pub(crate) held: Box<dyn Held>,
}

/// The locks of a run between the decision and its shim.
pub(crate) enum Reservation {
    Nothing,
    /// Our own last shim has them and was told to leave; then they are taken.
    Behind,
    /// They are being taken, for this run; a later run takes an earlier one's place.
    UnderWay(RunNumber),
    /// They are being taken, and nobody wants them any more.
    Unwanted,
    Taken(Box<dyn Held>),
}

/// A decision on its way to the disk.
pub(crate) struct Pending {
    pub(crate) durable: bool,
    /// What the loop does once it is durable.
    pub(crate) deeds: Deeds,
    pub(crate) answer: Option<Answer>,
    pub(crate) reply: Option<Reply>,
    /// How things stand with it.
    pub(crate) snapshot: Snapshot,
    /// Messages that it settles.
    pub(crate) settled: Vec<MessageId>,
    /// What it is news of.
    pub(crate) news: News,
    /// It becomes durable with the one before it.
    pub(crate) joined: bool,
    /// The cursor that is stored with it.
    pub(crate) noted: Option<Noted>,
}

/// What the loop does for a decision.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    /// The exit that the decision settles: the shim may forget it.
    pub(crate) settles: Option<RunNumber>,
    pub(crate) actions: Vec<Action>,
}

impl Pending {
    /// A decision that waits for its record; whoever made the request hears when it is there.
    pub(crate) fn recorded(snapshot: Snapshot, actions: Vec<Action>, reply: Reply) -> Pending {
        Pending {
            durable: false,
            deeds: Deeds { settles: None, actions },
            answer: None,
            reply: Some(reply),
            snapshot,
            settled: Vec::new(),
            news: News::Change,
            joined: false,
            noted: None,
        }
    }

    /// A cursor that waits for its record; nothing else comes of it.
    pub(crate) fn of_cursor(snapshot: Snapshot, noted: Noted) -> Pending {
        Pending {
            durable: false,
            deeds: Deeds::default(),
            answer: None,
            reply: None,
            snapshot,
            settled: Vec::new(),
            news: News::Nothing,
            joined: false,
            noted: Some(noted),
        }
    }
}

impl Tracked {
    pub(crate) fn new(
        id: SessionId,
        name: String,
        definition: Definition,
        session: Session,
        at: Wall,
    ) -> Tracked {
        let seen = watch::Sender::new(Snapshot::of(&session, false));
        Tracked {
            id,
            name,
            definition: Arc::new(definition),
            created_at: at,
            account: None,
            session,
            latest: None,
            run: None,
            pending: VecDeque::new(),
            reservation: Reservation::Nothing,
            shim: None,
            farewell: Farewell::default(),
            awaited: None,
            waiting: None,
            terminal: Size::default(),
            attaching: Attaching::default(),
            seen,
            keys: BTreeMap::new(),
            inbox_bytes: None,
            waiters: BTreeMap::new(),
            held_up: None,
            stops_first: false,
            yields_to: None,
            failed: None,
            unborn: false,
            damaged: 0,
            stop_noted: false,
            reloaded: false,
            beginnings: 0,
            asked: None,
            logged: None,
            floor: 0,
            heard: 0,
            parting: None,
            handing: Vec::new(),
        }
    }

    /// Stops waiting for somebody else's lock.
    pub(crate) fn forget_holder(&mut self) {
        if let Some(cancel) = self.waiting.take() {
            cancel.cancel();
        }
    }

    /// Whether nothing of it is under way any more, so that the daemon may go.
    pub(crate) fn at_rest(&self, held_up: bool) -> bool {
        self.session.live_run().is_none()
            // What cannot be recorded is not waited for.
            && (self.pending.is_empty() || held_up)
            && self.shim.is_none()
    }

    /// Notes who waits for a message; those who have gone are forgotten.
    pub(crate) fn wait_for(&mut self, message: MessageId, waiter: oneshot::Sender<()>) {
        self.waiters.retain(|_, waiters| {
            waiters.retain(|waiter| !waiter.is_closed());
            !waiters.is_empty()
        });
        self.waiters.entry(message).or_default().push(waiter);
    }

    /// How the agent of a run is spoken to.
    pub(crate) fn speech(&self, run: RunNumber) -> (definition::MessageFormat, TurnEndRule) {
        let spoken = self.run.as_ref().filter(|live| live.number == run).and_then(|live| live.spoken);
        spoken.unwrap_or((self.definition.input, self.definition.turns))
    }

    /// How it stands.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.session, self.shim.is_some())
    }

    /// A copy to show from.
    pub(crate) fn view(&self) -> SessionView {
        SessionView {
            id: self.id,
            name: self.name.clone(),
            definition: Arc::clone(&self.definition),
            core: self.session.outline(),
            created_at: self.created_at,
            account: self.account.clone(),
            run: self.latest,
            ready: self.run.as_ref().is_some_and(|run| run.ready),
            status: self.run.as_ref().and_then(|run| run.status.clone()),
            shim_pid: self.shim.as_ref().map(|shim| shim.pid),
            swap: self.run.as_ref().and_then(|run| run.swap()),
            damaged: self.damaged,
            held_up: self.held_up.clone(),
            stops_first: self.stops_first,
            flow: self.flow(),
            failed: self.failed.clone(),
            printed_at: self.printed_at(),
        }
    }

    /// When its agent printed last, where it has a tape.
    pub(crate) fn printed_at(&self) -> Option<Wall> {
        self.run.as_ref().and_then(|run| run.taping.as_ref()).and_then(|taping| taping.printed_at)
    }

    /// Whether what its agent prints is read.
    pub(crate) fn flow(&self) -> Flow {
        let taping = self.run.as_ref().and_then(|run| run.taping.as_ref());
        taping.map_or(Flow::Flows, |taping| taping.flow)
    }

    /// The pid of its agent.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.session.life().at_work().map(|(_, process, _)| process.pid)
    }

    /// The name of the latest run, if it is this one.
    pub(crate) fn run_id(&self, run: RunNumber) -> Option<RunId> {
        self.latest.filter(|(number, _)| *number == run).map(|(_, id)| id)
    }

    /// The run that lives, if it is this one.
    pub(crate) fn live(&mut self, run: RunNumber) -> Option<&mut Run> {
        self.run.as_deref_mut().filter(|live| live.number == run)
    }

    /// Begins to know of the run that lives now; gives back what was known of the one before, where that was another.
    pub(crate) fn follow_run(&mut self) -> Option<Box<Run>> {
        let live = self.session.live_run();
        if self.run.as_ref().map(|run| run.number) == live {
            return None;
        }
        std::mem::replace(&mut self.run, live.map(|run| Box::new(Run::new(run))))
    }
}
