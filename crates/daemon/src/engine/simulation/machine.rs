//! The virtual machine: the room of the core's simulation, and everything that was ordered of it and is not done yet.

use super::world::{Holder, Room, SESSIONS, directory_of};
use crate::ports::Then;
use crate::ports::locks::{Held, HolderEnded, Refused, Waiting};
use crate::ports::shims::observe::{Look, Seen};
use crate::ports::shims::order::Order;
use crate::ports::shims::{Birth, Hear, ShimUp};
use crate::ports::stops::Stops;
use pinfold_core::life::StartRefused;
use pinfold_core::{Boot, Ended, RunNumber};
use pinfold_lock::{Folder, Guard};
use pinfold_shim::log::Position;
use pinfold_shim::turn::Turn;
use pinfold_shim::{Command, Exited, Report, StartFailure};
use pinfold_store::{Batch, Outcome, SessionId};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// All of it, shared by the ports of the daemon that lives.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Machine>>);

impl Shared {
    pub(super) fn new(machine: Machine) -> Shared {
        Shared(Arc::new(Mutex::new(machine)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Machine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Machine {
    pub(super) room: Room,
    /// Where the clock of graces began.
    pub(super) began: Instant,
    pub(super) jobs: [VecDeque<Job>; SESSIONS],
    /// What the store's thread has before it, in order.
    pub(super) commits: VecDeque<Commit>,
    pub(super) reminders: Vec<(Instant, Then<()>)>,
    pub(super) waiters: [Option<Waiter>; SESSIONS],
    pub(super) links: [Option<Link>; SESSIONS],
    pub(super) alarm: Option<Boot>,
    /// The files of turns.
    pub(super) turns: [Option<Turn>; SESSIONS],
    /// Starts that came to nothing, as the records have them.
    pub(super) failures: [BTreeMap<RunNumber, StartFailure>; SESSIONS],
    /// The next shim of this session takes the locks and says nothing.
    pub(super) stillborn: [bool; SESSIONS],
    /// The socket of this session's shim was removed.
    pub(super) socket_removed: [bool; SESSIONS],
    /// The shim of this session cannot make its socket again.
    pub(super) cannot_listen: [bool; SESSIONS],
    /// The file of stops that are not recorded.
    pub(super) stops: Stops,
    pub(super) confirmed: Vec<(usize, RunNumber)>,
    /// The latest of all ids.
    pub(super) drawn: u128,
    /// How many batches were ordered.
    pub(super) ordered: u64,
    /// The sessions, in their order.
    pub(super) ids: Vec<SessionId>,
}

/// Something that a thread of the pool is to do.
pub(super) enum Job {
    Reserve(Then<Result<Box<dyn Held>, Refused>>),
    Open(Box<Birth>, Box<dyn Held>, Then<Result<Box<ShimUp>, StartRefused>>),
    Observe(Box<Look>, Then<Seen>),
    Prove(Then<bool>),
    EndHolder(Then<HolderEnded>),
    FindSocket(Vec<PathBuf>, Then<Option<PathBuf>>),
}

/// A batch on its way to the disk.
pub(super) struct Commit {
    pub(super) batch: Batch,
    pub(super) with: Option<Order>,
    pub(super) then: Then<Outcome>,
}

/// Somebody who waits for the locks of a session.
pub(super) struct Waiter {
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) then: Then<()>,
}

pub(super) struct Cancelled(pub(super) Arc<AtomicBool>);

impl Waiting for Cancelled {
    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A connection, as a shim has it.
pub(super) struct Link {
    /// It is open as long as the daemon has something of it.
    pub(super) open: Weak<()>,
    pub(super) hear: Option<Hear>,
    /// What was said before somebody heard.
    pub(super) unheard: Vec<Option<Report>>,
    /// What the daemon said, and the shim has not read.
    pub(super) commands: VecDeque<Command>,
}

impl Machine {
    pub(super) fn new(room: Room) -> Machine {
        Machine {
            room,
            began: Instant::now(),
            jobs: [const { VecDeque::new() }; SESSIONS],
            commits: VecDeque::new(),
            reminders: Vec::new(),
            waiters: [const { None }; SESSIONS],
            links: [const { None }; SESSIONS],
            alarm: None,
            turns: [const { None }; SESSIONS],
            failures: [const { BTreeMap::new() }; SESSIONS],
            stillborn: [false; SESSIONS],
            socket_removed: [false; SESSIONS],
            cannot_listen: [false; SESSIONS],
            stops: Stops::default(),
            confirmed: Vec::new(),
            drawn: 1,
            ordered: 0,
            ids: Vec::new(),
        }
    }

    /// Whether a daemon is connected with the session's shim.
    pub(super) fn connected(&self, session: usize) -> bool {
        self.links[session].as_ref().is_some_and(|link| link.open.strong_count() > 0)
    }

    /// The shim says something.
    pub(super) fn report(&mut self, session: usize, report: Report) {
        self.tell(session, Some(report));
    }

    /// The connection ends from the shim's side.
    pub(super) fn hang_up(&mut self, session: usize) {
        self.tell(session, None);
        self.links[session] = None;
    }

    fn tell(&mut self, session: usize, report: Option<Report>) {
        let Some(link) = &mut self.links[session] else { return };
        match &link.hear {
            Some(hear) => hear(report),
            None => link.unheard.push(report),
        }
    }

    /// Ends that are not acknowledged, as the records have them.
    pub(super) fn exits(&self, session: usize) -> Vec<Exited> {
        self.room.records[session].iter().map(|(run, ended)| self.exited(session, *run, ended)).collect()
    }

    pub(super) fn exited(&self, session: usize, run: RunNumber, ended: &Ended) -> Exited {
        let failure = self.failures[session].get(&run).copied();
        let (at, log) = (pinfold_core::Wall(self.room.wall), Position(run.0));
        Exited { run, ended: ended.clone(), failure, pid: 1, fence: run.0, at, log, tape: None }
    }

    pub(super) fn is_free(&self, session: usize) -> bool {
        self.room.session_locks[session] == Holder::Nobody
            && self.room.directory_locks[directory_of(session)] == Holder::Nobody
    }
}

/// The locks of a session, in the daemon's hand.
pub(super) struct Grant {
    session: usize,
    machine: Shared,
    /// A shim has them.
    surrendered: bool,
}

impl Grant {
    pub(super) fn new(session: usize, machine: Shared) -> Grant {
        Grant { session, machine, surrendered: false }
    }
}

impl Held for Grant {
    fn lend(&self) -> Vec<(&Folder, &Guard)> {
        Vec::new()
    }

    fn surrender(mut self: Box<Self>) {
        self.surrendered = true;
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if !self.surrendered {
            self.machine.lock().room.free(Holder::Daemon(self.session));
        }
    }
}
