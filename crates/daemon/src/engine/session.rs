//! One session in the daemon: the core's value, and the handles that belong to it while it is alive.

use crate::define::definition::{self, Definition, TurnEndRule};
use crate::define::kept::SaidTurn;
use crate::engine::attaching::AttachQueue;
use crate::engine::feed::FeedNews;
use crate::engine::reply::ReplyHandle;
use crate::engine::running::LiveRun;
use crate::engine::session_view::{SessionSnapshot, SessionView};
use crate::engine::stopping::Farewell;
use crate::engine::taping::NotedCursor;
use crate::ports::locks::{CancellableWait, Obstacle, RunLocks};
use crate::ports::shims::ShimLink;
use pinfold_core::decision::Answer;
use pinfold_core::life::{Goal, HolderSeen, Life};
use pinfold_core::{Action, MessageId, RunNumber, Session, ShimSetup, State, Wall};
use pinfold_shim::log::Position;
use pinfold_shim::{Flow, Size};
use pinfold_store::{Cursor, RunId, SessionId, Ulid};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::{oneshot, watch};

/// Every state, in the order people think of them.
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
    /// The definition in force: that of the live run, if there is one.
    pub(crate) definition: Arc<Definition>,
    /// The definition from the next run on, if it was changed during this one.
    pub(crate) next: Option<Arc<Definition>>,
    /// Files with values of variables that no definition names any more.
    pub(crate) outdated: Vec<Ulid>,
    pub(crate) created_at: Wall,
    /// The account that its runs use.
    pub(crate) account: Option<Arc<str>>,
    pub(crate) session: Session,
    /// Number and id of the latest run, which may have ended.
    pub(crate) latest: Option<(RunNumber, RunId)>,
    /// The live run.
    pub(crate) run: Option<Box<LiveRun>>,
    /// Decisions whose changes are not durable yet, in order.
    pub(crate) pending: VecDeque<Pending>,
    pub(crate) reservation: Reservation,
    /// What the locks of the reservation are for.
    pub(crate) reserving: ShimSetup,
    pub(crate) shim: Option<ShimLink>,
    /// How far it is with the daemon's shutdown.
    pub(crate) farewell: Farewell,
    /// What was last refused, and the wait for it.
    pub(crate) awaited: Option<Obstacle>,
    pub(crate) waiting: Option<Box<dyn CancellableWait>>,
    /// The size of the terminal for its next run: that of the client that attached last.
    pub(crate) terminal: Size,
    /// Clients that are attaching.
    pub(crate) attaching: AttachQueue,
    /// How it stands, for clients that wait for it; the feed publishes to it.
    pub(crate) seen: watch::Sender<SessionSnapshot>,
    /// Messages with keys that may not be durable yet.
    pub(crate) keys: BTreeMap<String, MessageId>,
    /// An upper bound on the bytes of text queued in its inbox, once they were counted.
    pub(crate) inbox_bytes: Option<u64>,
    /// Clients that wait for a message to be done or failed.
    pub(crate) waiters: BTreeMap<MessageId, Vec<oneshot::Sender<()>>>,
    /// Why its decisions cannot be recorded, as text; all of them wait for that.
    pub(crate) held_up: Option<Arc<str>>,
    /// It is new and not recorded yet.
    pub(crate) unborn: bool,
    /// The process that has the conversation of its run, and for which it waits.
    pub(crate) yields_to: Option<Box<HolderSeen>>,
    /// Why its last turn failed, if it did.
    pub(crate) failed: Option<Arc<str>>,
    /// Its agent printed `PINFOLD_DONE` outside a turn and without an id.
    pub(crate) stray_mark: bool,
    /// It was asked to stop while nothing could be recorded: it stops first.
    pub(crate) stops_first: bool,
    /// How many messages in its inbox are damaged: they are not delivered.
    pub(crate) damaged: u64,
    /// A stop of it is in the file of unrecorded stops.
    pub(crate) stop_noted: bool,
    /// It was read from the store again, and the writer has not been told yet.
    pub(crate) reloaded: bool,
    /// How often it began again from what is stored.
    pub(crate) beginnings: u32,
    /// The caller that asked for what is under way.
    pub(crate) asked: Option<Box<Value>>,
    /// The end of its log at the last exit that was reported.
    pub(crate) logged: Option<Position>,
    /// The highest position of its tape that is stored.
    pub(crate) floor: u64,
    /// The position from which its tape is still needed.
    pub(crate) heard: u64,
    /// The last cursor of a run that ended: it is stored with the end.
    pub(crate) parting: Option<(Cursor, NotedCursor)>,
    /// The processes beside the agent of a run that is being parked.
    pub(crate) beside: Vec<(u32, String)>,
    /// Locks that are being handed to its shim.
    pub(crate) handing: Vec<Handing>,
    /// Whoever has it reads or writes the copy of its transcript.
    pub(crate) keeping: Arc<Mutex<()>>,
    /// Turns that were answered and have not been looked for in its transcript.
    pub(crate) unkept: Vec<SaidTurn>,
}

/// A lock on its way to a shim: the daemon keeps it too until the shim confirms it.
pub(crate) struct Handing {
    pub(crate) resource: String,
    pub(crate) held: Box<dyn RunLocks>,
}

/// The locks of a run between the decision and its shim.
pub(crate) enum Reservation {
    Nothing,
    /// Our own last shim has them and was told to leave; then they are taken.
    Behind,
    /// They are being taken for this run; a later run may replace it.
    UnderWay(RunNumber),
    /// They are being taken but no longer wanted.
    Unwanted,
    Taken(Box<dyn RunLocks>),
}

/// A decision that is being committed.
pub(crate) struct Pending {
    pub(crate) durable: bool,
    /// What the loop does once it is durable.
    pub(crate) deeds: Deeds,
    pub(crate) answer: Option<Answer>,
    pub(crate) reply: Option<ReplyHandle>,
    /// How the session stands with it.
    pub(crate) snapshot: SessionSnapshot,
    /// Messages that it settles.
    pub(crate) settled: Vec<MessageId>,
    /// What it changes for clients.
    pub(crate) news: FeedNews,
    /// It becomes durable together with the one before it.
    pub(crate) joined: bool,
    /// The cursor that is stored with it.
    pub(crate) noted: Option<NotedCursor>,
}

/// What the loop does for a decision.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    /// The exit that the decision settles: the shim may forget it.
    pub(crate) settles: Option<RunNumber>,
    pub(crate) actions: Vec<Action>,
}

impl Pending {
    /// A decision that waits for its record; the reply is sent when it is durable.
    pub(crate) fn recorded(snapshot: SessionSnapshot, actions: Vec<Action>, reply: ReplyHandle) -> Pending {
        Pending {
            durable: false,
            deeds: Deeds { settles: None, actions },
            answer: None,
            reply: Some(reply),
            snapshot,
            settled: Vec::new(),
            news: FeedNews::Change,
            joined: false,
            noted: None,
        }
    }

    /// A cursor that waits for its record; nothing else follows from it.
    pub(crate) fn of_cursor(snapshot: SessionSnapshot, noted: NotedCursor) -> Pending {
        Pending {
            durable: false,
            deeds: Deeds::default(),
            answer: None,
            reply: None,
            snapshot,
            settled: Vec::new(),
            news: FeedNews::Nothing,
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
        let seen = watch::Sender::new(SessionSnapshot::of(&session, false));
        Tracked {
            id,
            name,
            definition: Arc::new(definition),
            next: None,
            outdated: Vec::new(),
            created_at: at,
            account: None,
            session,
            latest: None,
            run: None,
            pending: VecDeque::new(),
            reservation: Reservation::Nothing,
            reserving: ShimSetup::default(),
            shim: None,
            farewell: Farewell::default(),
            awaited: None,
            waiting: None,
            terminal: Size::default(),
            attaching: AttachQueue::default(),
            seen,
            keys: BTreeMap::new(),
            inbox_bytes: None,
            waiters: BTreeMap::new(),
            held_up: None,
            stops_first: false,
            yields_to: None,
            failed: None,
            stray_mark: false,
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
            beside: Vec::new(),
            handing: Vec::new(),
            keeping: Arc::default(),
            unkept: Vec::new(),
        }
    }

    /// Stops waiting for another holder's lock.
    pub(crate) fn forget_holder(&mut self) {
        if let Some(cancel) = self.waiting.take() {
            cancel.cancel();
        }
    }

    /// Whether nothing of it is under way, so that the daemon may exit.
    pub(crate) fn at_rest(&self, held_up: bool) -> bool {
        self.session.live_run().is_none()
            // What cannot be recorded is not waited for.
            && (self.pending.is_empty() || held_up)
            && self.shim.is_none()
    }

    /// Adds a client that waits for a message; drops those that have gone.
    pub(crate) fn wait_for(&mut self, message: MessageId, waiter: oneshot::Sender<()>) {
        self.waiters.retain(|_, waiters| {
            waiters.retain(|waiter| !waiter.is_closed());
            !waiters.is_empty()
        });
        self.waiters.entry(message).or_default().push(waiter);
    }

    /// How the agent of a run is talked to.
    pub(crate) fn speech(&self, run: RunNumber) -> (definition::MessageFormat, TurnEndRule) {
        let spoken = self.run.as_ref().filter(|live| live.number == run).and_then(|live| live.spoken);
        spoken.unwrap_or((self.definition.input, self.definition.turns))
    }

    /// Its present state, as far as clients wait for it.
    pub(crate) fn snapshot(&self) -> SessionSnapshot {
        SessionSnapshot::of(&self.session, self.shim.is_some())
    }

    /// A copy to show from.
    pub(crate) fn view(&self) -> SessionView {
        SessionView {
            id: self.id,
            name: self.name.clone(),
            definition: Arc::clone(&self.definition),
            next: self.next.clone(),
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
            stray_mark: self.stray_mark,
            begun_again: self.begun_again(),
        }
    }

    /// When its agent last printed, if it has a tape.
    pub(crate) fn begun_again(&self) -> u32 {
        let taping = self.run.as_ref().and_then(|run| run.taping.as_ref());
        taping.map_or(0, |taping| taping.fold.begun_again())
    }

    pub(crate) fn printed_at(&self) -> Option<Wall> {
        self.run.as_ref().and_then(|run| run.taping.as_ref()).and_then(|taping| taping.printed_at)
    }

    /// Whether its agent's output is being read.
    pub(crate) fn flow(&self) -> Flow {
        let taping = self.run.as_ref().and_then(|run| run.taping.as_ref());
        taping.map_or(Flow::Flows, |taping| taping.flow)
    }

    /// The pid of its agent.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.session.life().at_work().map(|(_, process, _)| process.pid)
    }

    /// Whether its run is ended because it is not needed.
    pub(crate) fn is_being_parked(&self) -> bool {
        matches!(self.session.life(), Life::Stopping { goal: Goal::Park, .. })
    }

    /// The id of the latest run, if it is this one.
    pub(crate) fn run_id(&self, run: RunNumber) -> Option<RunId> {
        self.latest.filter(|(number, _)| *number == run).map(|(_, id)| id)
    }

    /// The live run, if it is this one.
    pub(crate) fn live(&mut self, run: RunNumber) -> Option<&mut LiveRun> {
        self.run.as_deref_mut().filter(|live| live.number == run)
    }

    /// Begins to track the run that is live now; returns what was known of the previous one, if that was
    /// another.
    pub(crate) fn follow_run(&mut self) -> Option<Box<LiveRun>> {
        let live = self.session.live_run();
        if self.run.as_ref().map(|run| run.number) == live {
            return None;
        }
        std::mem::replace(&mut self.run, live.map(|run| Box::new(LiveRun::new(run))))
    }
}
