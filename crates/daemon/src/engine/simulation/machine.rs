//! The virtual machine: the room of the core's simulation, and everything that was ordered and is not done
//! yet.

use super::check::Violation;
use super::nursery::BirthTrouble;
use super::world::{MachineRoom, SESSIONS, SimulatedHolder, directory_of};
use crate::ports::Then;
use crate::ports::locks::{CancellableWait, HolderEnded, LocksRefused, RunLocks};
use crate::ports::shims::observe::{SessionLook, SessionSeen};
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
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// The machine, shared by the ports of the live daemon.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<VirtualMachine>>);

impl Shared {
    pub(super) fn new(machine: VirtualMachine) -> Shared {
        Shared(Arc::new(Mutex::new(machine)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, VirtualMachine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct VirtualMachine {
    pub(super) room: MachineRoom,
    /// When the clock of graces began.
    pub(super) began: Instant,
    pub(super) jobs: [VecDeque<PoolJob>; SESSIONS],
    /// What the store's thread has yet to do, in order.
    pub(super) commits: VecDeque<Commit>,
    pub(super) reminders: Vec<(Instant, Then<()>)>,
    pub(super) waiters: [Option<Waiter>; SESSIONS],
    pub(super) links: [Option<VirtualLink>; SESSIONS],
    /// Links that have ended, with reports that were not read yet. Each is read by a task of its own, so
    /// those reports may arrive at any time, even after the first of a new link.
    pub(super) fading: Vec<(usize, VirtualLink)>,
    pub(super) alarm: Option<Boot>,
    /// The turn files.
    pub(super) turns: [Option<Turn>; SESSIONS],
    /// Failed starts, as the records have them.
    pub(super) failures: [BTreeMap<RunNumber, StartFailure>; SESSIONS],
    /// What will go wrong with the next birth in each session.
    pub(super) births: [Option<BirthTrouble>; SESSIONS],
    /// How many processes have copies of a session's locks and are not shims yet.
    pub(super) unborn: [u32; SESSIONS],
    /// A promise broken in a port.
    pub(super) wrong: Option<Violation>,
    /// The socket of this session's shim was removed.
    pub(super) socket_removed: [bool; SESSIONS],
    /// The shim of this session cannot make its socket again.
    pub(super) cannot_listen: [bool; SESSIONS],
    /// The file of stops that are not recorded.
    pub(super) stops: Stops,
    pub(super) confirmed: Vec<(usize, RunNumber)>,
    /// The runs whose memory is watched.
    pub(super) watched: BTreeSet<(usize, RunNumber)>,
    /// The latest id drawn.
    pub(super) drawn: u128,
    /// How many batches were ordered.
    pub(super) ordered: u64,
    /// The directory that was locked last for each session.
    pub(super) locked: [Option<PathBuf>; SESSIONS],
    /// The sessions, in their order.
    pub(super) ids: Vec<SessionId>,
}

/// A job for a pool thread.
pub(super) enum PoolJob {
    Reserve(Option<PathBuf>, Then<Result<Box<dyn RunLocks>, LocksRefused>>),
    Open(Box<Birth>, Box<dyn RunLocks>, Then<Result<Box<ShimUp>, StartRefused>>),
    Observe(Box<SessionLook>, Then<SessionSeen>),
    Prove(Then<bool>),
    EndHolder(Then<HolderEnded>),
    ReadTape(crate::ports::tapes::TapeStretch, Then<crate::ports::tapes::Passage>),
    FindSocket(Vec<PathBuf>, Then<Option<PathBuf>>),
}

/// A batch on its way to the disk.
pub(super) struct Commit {
    pub(super) batch: Batch,
    pub(super) with: Option<Order>,
    pub(super) then: Then<Outcome>,
}

/// A wait for the locks of a session.
pub(super) struct Waiter {
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) then: Then<()>,
}

pub(super) struct CancelledWait(pub(super) Arc<AtomicBool>);

impl CancellableWait for CancelledWait {
    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A link, as a shim has it.
pub(super) struct VirtualLink {
    /// Open as long as the daemon holds a part of it.
    pub(super) open: Weak<()>,
    pub(super) hear: Option<Hear>,
    /// Reports not heard yet.
    pub(super) unheard: VecDeque<Option<Report>>,
    /// Commands of the daemon that the shim has not read.
    pub(super) commands: VecDeque<Command>,
    /// The shim was told to leave.
    pub(super) dismissed: bool,
}

impl VirtualMachine {
    pub(super) fn new(room: MachineRoom) -> VirtualMachine {
        VirtualMachine {
            room,
            began: Instant::now(),
            jobs: [const { VecDeque::new() }; SESSIONS],
            commits: VecDeque::new(),
            reminders: Vec::new(),
            waiters: [const { None }; SESSIONS],
            links: [const { None }; SESSIONS],
            fading: Vec::new(),
            alarm: None,
            turns: [const { None }; SESSIONS],
            failures: [const { BTreeMap::new() }; SESSIONS],
            births: [None; SESSIONS],
            locked: [const { None }; SESSIONS],
            unborn: [0; SESSIONS],
            wrong: None,
            socket_removed: [false; SESSIONS],
            cannot_listen: [false; SESSIONS],
            stops: Stops::default(),
            confirmed: Vec::new(),
            watched: BTreeSet::new(),
            drawn: 1,
            ordered: 0,
            ids: Vec::new(),
        }
    }

    /// Whether a daemon is connected to the session's shim.
    pub(super) fn connected(&self, session: usize) -> bool {
        self.links[session].as_ref().is_some_and(|link| link.open.strong_count() > 0)
    }

    /// The shim sends a report.
    pub(super) fn report(&mut self, session: usize, report: Report) {
        let Some(link) = &mut self.links[session] else { return };
        match &link.hear {
            Some(hear) => hear(Some(report)),
            None => link.unheard.push_back(Some(report)),
        }
    }

    /// The shim closes the link.
    pub(super) fn hang_up(&mut self, session: usize) {
        self.part(session, None);
    }

    /// The shim closes the link, after a last report.
    pub(super) fn part(&mut self, session: usize, word: Option<Report>) {
        let Some(mut link) = self.links[session].take() else { return };
        // The daemon that was connected is dead.
        if link.hear.is_none() && link.open.strong_count() == 0 {
            return;
        }
        link.unheard.extend(word.map(Some));
        link.unheard.push_back(None);
        self.fading.push((session, link));
    }

    /// Whether an ended link of this session has a report that can still be read.
    pub(super) fn fades(&self, session: usize) -> bool {
        self.fading.iter().any(|(of, link)| *of == session && link.hear.is_some())
    }

    /// Reads the next report of such a link. Returns whether there was one.
    pub(super) fn fade(&mut self, session: usize) -> bool {
        let heard = |(of, link): &(usize, VirtualLink)| *of == session && link.hear.is_some();
        let Some(at) = self.fading.iter().position(heard) else { return false };
        let (_, link) = &mut self.fading[at];
        if let (Some(hear), Some(word)) = (&link.hear, link.unheard.pop_front()) {
            hear(word);
        }
        if link.unheard.is_empty() {
            self.fading.remove(at);
        }
        true
    }

    /// Whether the alarm rings; it rings once.
    pub(super) fn rings(&mut self) -> bool {
        let boot = self.room.boot;
        self.alarm.take_if(|at| at.0 <= boot).is_some()
    }

    /// Whether a pool thread, a shim, or a reader for the daemon has something to do.
    pub(super) fn is_busy(&self, session: usize) -> bool {
        let told = self.links[session].as_ref().is_some_and(|link| !link.commands.is_empty());
        told || !self.jobs[session].is_empty() || self.fades(session) || self.unborn[session] > 0
    }

    /// Exits that are not acknowledged, as the records have them.
    pub(super) fn exits(&self, session: usize) -> Vec<Exited> {
        self.room.records[session].iter().map(|(run, ended)| self.exited(session, *run, ended)).collect()
    }

    pub(super) fn exited(&self, session: usize, run: RunNumber, ended: &Ended) -> Exited {
        let failure = self.failures[session].get(&run).copied();
        let (at, log) = (pinfold_core::Wall(self.room.wall), Position(run.0));
        Exited { run, ended: ended.clone(), failure, pid: 1, fence: run.0, at, log, tape: None }
    }

    pub(super) fn is_free(&self, session: usize) -> bool {
        self.room.session_locks[session] == SimulatedHolder::Nobody
            && self.room.directory_locks[directory_of(session)] == SimulatedHolder::Nobody
    }
}

/// The locks of a session, held by the daemon.
pub(super) struct VirtualGrant {
    session: usize,
    machine: Shared,
}

impl VirtualGrant {
    pub(super) fn new(session: usize, machine: Shared) -> VirtualGrant {
        VirtualGrant { session, machine }
    }
}

impl RunLocks for VirtualGrant {
    fn lend(&self) -> Vec<(&Folder, &Guard)> {
        Vec::new()
    }

    /// Its copies are closed by dropping it.
    fn surrender(self: Box<Self>) {}
}

impl Drop for VirtualGrant {
    fn drop(&mut self) {
        self.machine.lock().close(self.session);
    }
}
