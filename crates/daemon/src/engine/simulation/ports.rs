//! Virtual ports: what the loop orders waits in the machine until the script carries it out.

use super::machine::{CancelledWait, Commit, PoolJob, Shared, VirtualLink, Waiter};
use crate::define::before_start::{BeforeStart, BeforeStartFindings};
use crate::define::config::{Config, LoadError};
use crate::define::home::Home;
use crate::define::id_files::IdFiles;
use crate::define::values::Values;
use crate::memory::RunWatch;
use crate::ports::clock::Clock;
use crate::ports::files::{Files, NotMade, writer};
use crate::ports::id_files::IdFileWatch;
use crate::ports::journal::{Journal, Remembered, StoreJournal};
use crate::ports::locks::{
    CancellableWait, HolderEnded, Locks, LocksRefused, LocksWanted, Lost, Obstacle, RunLocks,
};
use crate::ports::memory::{RunMemoryWatch, Watched};
use crate::ports::shims::observe::{SessionLook, SessionSeen};
use crate::ports::shims::order::Order;
use crate::ports::shims::outbox::{Outlet, ShimWire};
use crate::ports::shims::strangers::There;
use crate::ports::shims::{Birth, Connection, Hear, ShimUp, Shims};
use crate::ports::stops::{NotedStop, Stops};
use crate::ports::tapes::{Passage, TapeStretch, Tapes};
use crate::ports::{Ports, Then};
use pinfold_core::life::HolderSeen;
use pinfold_core::life::StartRefused;
use pinfold_core::unended::Survivor;
use pinfold_core::{Boot, Jitter, MessageId, RunNumber, Wall};
use pinfold_lock::Resource;
use pinfold_shim::log::LogEntry;
use pinfold_shim::turn::Turn;
use pinfold_shim::{Command, Decoder, Exited};
use pinfold_store::{
    Batch, Cursor, Message, Outcome, ReadError, RunId, SessionId, StoredEvent, Trouble, Ulid,
};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// The ports of one daemon.
pub(super) fn ports(machine: &Shared, store: StoreJournal, trouble: Trouble) -> Ports {
    let world = World { machine: machine.clone() };
    Ports {
        clock: Box::new(VirtualClock(machine.clone())),
        locks: Box::new(world.clone()),
        shims: Box::new(world.clone()),
        tapes: Box::new(world.clone()),
        journal: Box::new(VirtualJournal { machine: machine.clone(), store, trouble }),
        memory: Box::new(world.clone()),
        id_files: Box::new(world.clone()),
        files: Arc::new(world),
    }
}

struct VirtualClock(Shared);

impl Clock for VirtualClock {
    fn wall(&self) -> Wall {
        Wall(self.0.lock().room.wall)
    }

    fn boot(&self) -> Boot {
        Boot(self.0.lock().room.boot)
    }

    fn awake(&self) -> Instant {
        let machine = self.0.lock();
        machine.began + Duration::from_millis(machine.room.awake)
    }

    fn jitter(&mut self) -> Jitter {
        self.0.lock().room.now().jitter
    }

    fn dice(&mut self) -> u128 {
        let mut machine = self.0.lock();
        machine.drawn += 1;
        machine.drawn
    }

    fn wake_at(&self, at: Option<Boot>) {
        self.0.lock().alarm = at;
    }

    fn remind(&self, at: Instant, then: Then<()>) {
        self.0.lock().reminders.push((at, then));
    }
}

/// Locks, shims and memory of the machine room.
#[derive(Clone)]
struct World {
    machine: Shared,
}

impl World {
    fn order(&self, session: usize, job: PoolJob) {
        self.machine.lock().jobs[session].push_back(job);
    }

    fn at(&self, id: SessionId) -> usize {
        let machine = self.machine.lock();
        machine.ids.iter().position(|known| *known == id).expect("only sessions of the case are asked for")
    }
}

/// The number of the session with this name: the last letter of the name.
pub(super) fn number_of(name: &str) -> usize {
    name.trim_start_matches('s').parse().expect("sessions are called s and their number")
}

impl Locks for World {
    fn reserve(&self, wanted: LocksWanted, then: Then<Result<Box<dyn RunLocks>, LocksRefused>>) {
        let directory = wanted.directory().map(Path::to_owned);
        self.order(number_of(wanted.session_name()), PoolJob::Reserve(directory, then));
    }

    fn wait_for(&self, awaited: Obstacle, then: Then<()>) -> io::Result<Box<dyn CancellableWait>> {
        let Obstacle::Lock(Resource::Directory(path)) = &awaited else {
            return Err(io::Error::other("never refused"));
        };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let cancelled = Arc::<AtomicBool>::default();
        let waiter = Waiter { cancelled: Arc::clone(&cancelled), then };
        self.machine.lock().waiters[number_of(name)] = Some(waiter);
        Ok(Box::new(CancelledWait(cancelled)))
    }

    fn prove_absent(&self, lost: Lost, then: Then<bool>) {
        self.order(number_of(&lost.name), PoolJob::Prove(then));
    }

    fn end_holder(&self, name: String, then: Then<HolderEnded>) {
        self.order(number_of(&name), PoolJob::EndHolder(then));
    }
}

impl Shims for World {
    fn open(&self, birth: Birth, held: Box<dyn RunLocks>, then: Then<Result<Box<ShimUp>, StartRefused>>) {
        self.order(number_of(&birth.opening.session), PoolJob::Open(Box::new(birth), held, then));
    }

    fn observe(&self, look: SessionLook, then: Then<SessionSeen>) {
        self.order(self.at(look.subject.id), PoolJob::Observe(Box::new(look), then));
    }

    fn survivors(&self, _shim: u32, then: Then<Vec<Survivor>>) {
        then(Vec::new());
    }

    fn find_socket(&self, id: SessionId, sockets: Vec<PathBuf>, then: Then<Option<PathBuf>>) {
        self.order(self.at(id), PoolJob::FindSocket(sockets, then));
    }

    fn strangers(&self, _home: Home, _kept: BTreeSet<String>, then: Then<There>) {
        then(There::default());
    }

    fn end_stranger(&self, _id: String, _socket: PathBuf, _generation: u64, then: Then<()>) {
        then(());
    }

    fn records(&self, _home: &Home, id: SessionId) -> Vec<Exited> {
        let session = self.at(id);
        self.machine.lock().exits(session)
    }

    fn latest_turn(&self, _home: &Home, id: SessionId) -> Option<Turn> {
        let session = self.at(id);
        self.machine.lock().turns[session].clone()
    }

    fn tail(&self, _home: &Home, _id: SessionId, _run: RunNumber, _lines: usize) -> Vec<LogEntry> {
        Vec::new()
    }

    fn spool(&self, _home: &Home, _id: SessionId) -> Vec<u8> {
        Vec::new()
    }

    fn beside(&self, _shim: u32, _agent: u32) -> Vec<(u32, String)> {
        Vec::new()
    }

    fn ran(&self, _shim: u32) -> Option<u64> {
        None
    }
}

impl Tapes for World {
    fn read(&self, wanted: TapeStretch, then: Then<Passage>) {
        self.order(self.at(wanted.id), PoolJob::ReadTape(wanted, then));
    }

    fn forget(&self, _id: SessionId) {}
}

impl RunMemoryWatch for World {
    fn watch(&mut self, (id, run): Watched, _watch: RunWatch) {
        let session = self.at(id);
        self.machine.lock().watched.insert((session, run));
    }

    fn forget(&mut self, (id, run): Watched) {
        let session = self.at(id);
        self.machine.lock().watched.remove(&(session, run));
    }

    fn confirm(&mut self, (id, run): Watched) {
        let session = self.at(id);
        self.machine.lock().confirmed.push((session, run));
    }
}

impl IdFileWatch for World {
    fn watch(&mut self, _run: Watched, _files: IdFiles, _agent: u32) {}

    fn forget(&mut self, _run: Watched) {}
}

impl Files for World {
    fn make_session(&self, _folder: PathBuf, then: Then<Result<(), NotMade>>) {
        then(Ok(()));
    }

    fn remove_empty(&self, _folder: PathBuf) {}

    fn delete(&self, _folder: PathBuf, _listen: PathBuf, then: Then<Result<u64, String>>) {
        then(Ok(0));
    }

    fn remove_values(&self, _values: Values, _file: Ulid, then: Then<()>) {
        then(());
    }

    fn read_config(&self, file: PathBuf, then: Then<Result<Config, LoadError>>) {
        then(crate::define::config::load(&file));
    }

    fn look_for(&self, before: BeforeStart, then: Then<BeforeStartFindings>) {
        then(before.look());
    }

    fn writer_of(&self, lock: PathBuf, resource: String, then: Then<Option<HolderSeen>>) {
        then(writer(&lock, resource));
    }

    fn open_stops(&self, file: PathBuf) -> io::Result<Vec<NotedStop>> {
        let stops = Stops::open(file)?;
        let left = stops.all();
        self.machine.lock().stops = stops;
        Ok(left)
    }

    fn note_stop(&self, noted: NotedStop, then: Then<io::Result<()>>) {
        let done = self.machine.lock().stops.note(noted);
        then(done);
    }

    fn settle_stop(&self, session: SessionId) {
        self.machine.lock().stops.settle(session).expect("a file in memory can be written");
    }
}

/// A store written by a thread of its own, at times the script chooses. What is durable can be read at once.
struct VirtualJournal {
    machine: Shared,
    store: StoreJournal,
    trouble: Trouble,
}

impl Journal for VirtualJournal {
    fn commit(&self, batch: Batch, with: Option<Order>, then: Then<Outcome>) {
        let mut machine = self.machine.lock();
        machine.ordered += 1;
        machine.commits.push_back(Commit { batch, with, then });
    }

    fn commit_last(&self, batch: Batch) -> Outcome {
        self.store.commit_last(batch)
    }

    fn trouble(&self) -> Trouble {
        self.trouble.clone()
    }

    fn message(&self, message: MessageId) -> Result<Option<Message>, ReadError> {
        self.store.message(message)
    }

    fn message_by_key(&self, session: SessionId, key: &str) -> Result<Option<MessageId>, ReadError> {
        self.store.message_by_key(session, key)
    }

    fn waiting_bytes(&self, session: SessionId) -> u64 {
        self.store.waiting_bytes(session)
    }

    fn cursor(&self, session: SessionId) -> Result<Option<Cursor>, String> {
        self.store.cursor(session)
    }

    fn session_of_run(&self, run: RunId) -> Option<SessionId> {
        self.store.session_of_run(run)
    }

    fn recent_events(&self, session: SessionId, most: u32) -> Vec<StoredEvent> {
        self.store.recent_events(session, most)
    }

    fn session(&self, id: SessionId) -> Result<Option<Remembered>, String> {
        self.store.session(id)
    }
}

/// The daemon's end of a link to one life of a shim.
pub(super) struct VirtualConnection {
    pub(super) session: usize,
    pub(super) machine: Shared,
    pub(super) open: Arc<()>,
}

impl Connection for VirtualConnection {
    fn follow(self: Box<Self>, hear: Hear) -> io::Result<(Outlet, Option<JoinHandle<()>>)> {
        let mut machine = self.machine.lock();
        let ours = |link: &VirtualLink| std::ptr::eq(link.open.as_ptr(), Arc::as_ptr(&self.open));
        if let Some(link) = machine.links[self.session].as_mut().filter(|link| ours(link)) {
            link.unheard.drain(..).for_each(&hear);
            link.hear = Some(hear);
        } else if let Some((_, link)) = machine.fading.iter_mut().find(|(_, link)| ours(link)) {
            // The shim has gone meanwhile, or a newer link replaced this one: its reports are still read.
            link.hear = Some(hear);
        } else {
            hear(None);
        }
        drop(machine);
        let decoder = Arc::new(std::sync::Mutex::new(Decoder::default()));
        let wire = VirtualWire { session: self.session, machine: self.machine, open: self.open, decoder };
        Ok((Outlet::new(Arc::new(wire)), None))
    }
}

struct VirtualWire {
    session: usize,
    machine: Shared,
    open: Arc<()>,
    decoder: Arc<std::sync::Mutex<Decoder>>,
}

impl ShimWire for VirtualWire {
    fn send(self: Arc<Self>, bytes: &[u8]) {
        let mut decoder = self.decoder.lock().unwrap_or_else(PoisonError::into_inner);
        decoder.feed(bytes);
        let mut machine = self.machine.lock();
        while let Some(frame) = decoder.frame().expect("the daemon speaks the language of shims") {
            let command = Command::decode(&frame).expect("the daemon speaks the language of shims");
            let link = machine.links[self.session]
                .as_mut()
                .filter(|link| std::ptr::eq(link.open.as_ptr(), Arc::as_ptr(&self.open)));
            let (Some(command), Some(link)) = (command, link) else { continue };
            let late = link.dismissed && matches!(command, Command::Start(_));
            link.dismissed |= matches!(command, Command::Release);
            link.commands.push_back(command);
            if late {
                let session = self.session;
                machine.wrong =
                    Some(format!("session {session}: a shim that was told to leave is told to start"));
            }
        }
    }
}
