//! The ports: what the loop orders stays on the desk until the test carries it out.

use crate::define::before_start::{BeforeStart, BeforeStartFindings};
use crate::define::config::{Config, LoadError};
use crate::define::home::Home;
use crate::define::id_files::IdFiles;
use crate::define::values::Values;
use crate::memory::RunWatch;
use crate::ports::clock::Clock;
use crate::ports::files::{Files, NotMade, delete, make_session, writer};
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
use pinfold_lock::{Folder, Guard};
use pinfold_shim::log::LogEntry;
use pinfold_shim::turn::Turn;
use pinfold_shim::{Command, Decoder, Exited, Report};
use pinfold_store::{
    Batch, Cursor, Message, Outcome, ReadError, RunId, SessionId, StoredEvent, Trouble, Ulid,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// What is on the desk.
#[derive(Default)]
pub(crate) struct Ordered {
    /// How long this world has existed.
    pub(crate) now: Duration,
    /// By how many milliseconds the wall clock was stepped.
    pub(crate) stepped: i64,
    pub(super) drawn: u128,
    pub(crate) alarm: Option<Boot>,
    reminders: Vec<(Instant, Then<()>)>,
    pub(crate) reservations: Vec<(LocksWanted, Granted)>,
    /// How many granted locks the daemon holds.
    pub(crate) locked: usize,
    pub(crate) waiters: Vec<(Obstacle, Then<()>)>,
    pub(crate) cancelled: usize,
    pub(crate) proofs: Vec<(Lost, Then<bool>)>,
    pub(crate) holders: Vec<(String, Then<HolderEnded>)>,
    pub(crate) births: Vec<Birthing>,
    pub(crate) looks: Vec<(SessionLook, Then<SessionSeen>)>,
    pub(crate) stretches: Vec<(TapeStretch, Then<Passage>)>,
    pub(crate) searches: Vec<(u32, Then<Vec<Survivor>>)>,
    /// What shims have left on disk.
    pub(crate) records: Vec<Exited>,
    pub(crate) turn: Option<Turn>,
    pub(crate) printed: Vec<LogEntry>,
    /// What a hook of the terminal program told.
    pub(crate) spool: Vec<u8>,
    /// The CPU time that shims have used.
    pub(crate) ran: Option<u64>,
    pub(crate) beside: Vec<(u32, String)>,
    pub(crate) memory: Vec<(&'static str, RunNumber)>,
    pub(crate) watch: Option<RunWatch>,
    /// Whose files are watched, and the pid of each.
    pub(crate) filed: Vec<(RunNumber, IdFiles, u32)>,
    /// Whether batches wait for the test.
    pub(crate) held_up: bool,
    pub(crate) commits: Vec<(Batch, Option<Order>, Then<Outcome>)>,
    pub(crate) trouble: Trouble,
    /// Whether rows cannot be read.
    pub(crate) unreadable: bool,
    links: BTreeMap<SessionId, Line>,
    stops: Stops,
}

type Granted = Then<Result<Box<dyn RunLocks>, LocksRefused>>;
type Birthing = (Birth, Box<dyn RunLocks>, Then<Result<Box<ShimUp>, StartRefused>>);

/// A link, as a shim has it.
#[derive(Default)]
struct Line {
    hear: Option<Hear>,
    told: Vec<Command>,
    decoder: Decoder,
}

#[derive(Clone)]
pub(crate) struct Desk {
    ordered: Arc<Mutex<Ordered>>,
    began: Instant,
}

pub(super) fn new(journal: &Rc<StoreJournal>) -> (Desk, Ports) {
    let desk = Desk { ordered: Arc::default(), began: Instant::now() };
    let ports = Ports {
        clock: Box::new(desk.clone()),
        locks: Box::new(desk.clone()),
        shims: Box::new(desk.clone()),
        tapes: Box::new(desk.clone()),
        journal: Box::new(HandJournal { desk: desk.clone(), journal: Rc::clone(journal) }),
        memory: Box::new(desk.clone()),
        id_files: Box::new(desk.clone()),
        files: Arc::new(desk.clone()),
    };
    (desk, ports)
}

impl Desk {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Ordered> {
        self.ordered.lock().unwrap()
    }

    /// Lets time pass; returns the reminders that are due.
    pub(super) fn pass(&self, time: Duration) -> Vec<Then<()>> {
        let mut ordered = self.lock();
        ordered.now += time;
        let now = self.began + ordered.now;
        let (due, later) = std::mem::take(&mut ordered.reminders).into_iter().partition(|(at, _)| *at <= now);
        ordered.reminders = later;
        let due: Vec<(Instant, Then<()>)> = due;
        due.into_iter().map(|(_, then)| then).collect()
    }

    /// How long until each reminder.
    pub(crate) fn reminders(&self) -> Vec<Duration> {
        let ordered = self.lock();
        let now = self.began + ordered.now;
        ordered.reminders.iter().map(|(at, _)| at.saturating_duration_since(now)).collect()
    }

    pub(super) fn connection(&self, id: SessionId) -> Box<dyn Connection> {
        Box::new(HandConnection { desk: self.clone(), id })
    }

    pub(super) fn say(&self, id: SessionId, report: Option<Report>) {
        let hear = self.lock().links.get_mut(&id).and_then(|line| line.hear.take()).expect("a connection");
        hear(report);
        self.lock().links.entry(id).or_default().hear.get_or_insert(hear);
    }

    /// Whether a daemon hears the reports of a session's shim.
    pub(crate) fn is_heard(&self, id: SessionId) -> bool {
        self.lock().links.get(&id).is_some_and(|line| line.hear.is_some())
    }

    pub(super) fn heard(&self, id: SessionId) -> Vec<Command> {
        self.lock().links.get_mut(&id).map(|line| std::mem::take(&mut line.told)).unwrap_or_default()
    }
}

impl Clock for Desk {
    fn wall(&self) -> Wall {
        let ordered = self.lock();
        Wall(1_700_000_000_000 + ordered.now.as_millis() as i64 + ordered.stepped)
    }

    fn boot(&self) -> Boot {
        Boot(1_000 + self.lock().now.as_millis() as u64)
    }

    fn awake(&self) -> Instant {
        self.began + self.lock().now
    }

    fn jitter(&mut self) -> Jitter {
        Jitter::default()
    }

    fn dice(&mut self) -> u128 {
        let mut ordered = self.lock();
        ordered.drawn += 1;
        ordered.drawn
    }

    fn wake_at(&self, at: Option<Boot>) {
        self.lock().alarm = at;
    }

    fn remind(&self, at: Instant, then: Then<()>) {
        self.lock().reminders.push((at, then));
    }
}

impl Locks for Desk {
    fn reserve(&self, wanted: LocksWanted, then: Then<Result<Box<dyn RunLocks>, LocksRefused>>) {
        self.lock().reservations.push((wanted, then));
    }

    fn wait_for(&self, awaited: Obstacle, then: Then<()>) -> io::Result<Box<dyn CancellableWait>> {
        self.lock().waiters.push((awaited, then));
        Ok(Box::new(self.clone()))
    }

    fn prove_absent(&self, lost: Lost, then: Then<bool>) {
        self.lock().proofs.push((lost, then));
    }

    fn end_holder(&self, name: String, then: Then<HolderEnded>) {
        self.lock().holders.push((name, then));
    }
}

impl CancellableWait for Desk {
    fn cancel(&self) {
        self.lock().cancelled += 1;
    }
}

/// Granted locks, until a shim has them or they are given back.
pub(super) struct Locked(Desk);

impl Locked {
    pub(super) fn new(desk: &Desk) -> Locked {
        desk.lock().locked += 1;
        Locked(desk.clone())
    }
}

impl RunLocks for Locked {
    fn lend(&self) -> Vec<(&Folder, &Guard)> {
        Vec::new()
    }

    fn surrender(self: Box<Self>) {}
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.0.lock().locked -= 1;
    }
}

impl Shims for Desk {
    fn open(&self, birth: Birth, held: Box<dyn RunLocks>, then: Then<Result<Box<ShimUp>, StartRefused>>) {
        self.lock().births.push((birth, held, then));
    }

    fn observe(&self, look: SessionLook, then: Then<SessionSeen>) {
        self.lock().looks.push((look, then));
    }

    fn survivors(&self, shim: u32, then: Then<Vec<Survivor>>) {
        self.lock().searches.push((shim, then));
    }

    fn find_socket(&self, _id: SessionId, sockets: Vec<PathBuf>, then: Then<Option<PathBuf>>) {
        then(sockets.into_iter().find(|socket| socket.exists()));
    }

    fn strangers(&self, _home: Home, _kept: BTreeSet<String>, then: Then<There>) {
        then(There::default());
    }

    fn end_stranger(&self, _id: String, _socket: PathBuf, _generation: u64, then: Then<()>) {
        then(());
    }

    fn records(&self, _home: &Home, _id: SessionId) -> Vec<Exited> {
        self.lock().records.clone()
    }

    fn latest_turn(&self, _home: &Home, _id: SessionId) -> Option<Turn> {
        self.lock().turn.clone()
    }

    fn tail(&self, _home: &Home, _id: SessionId, run: RunNumber, _lines: usize) -> Vec<LogEntry> {
        self.lock().printed.iter().filter(|entry| entry.run == run).cloned().collect()
    }

    fn spool(&self, _home: &Home, _id: SessionId) -> Vec<u8> {
        self.lock().spool.clone()
    }

    fn beside(&self, _shim: u32, _agent: u32) -> Vec<(u32, String)> {
        self.lock().beside.clone()
    }

    fn ran(&self, _shim: u32) -> Option<u64> {
        self.lock().ran
    }
}

impl Tapes for Desk {
    fn read(&self, wanted: TapeStretch, then: Then<Passage>) {
        self.lock().stretches.push((wanted, then));
    }

    fn forget(&self, _id: SessionId) {}
}

impl RunMemoryWatch for Desk {
    fn watch(&mut self, (_, run): Watched, watch: RunWatch) {
        self.lock().memory.push(("watch", run));
        self.lock().watch = Some(watch);
    }

    fn forget(&mut self, (_, run): Watched) {
        self.lock().memory.push(("forget", run));
    }

    fn confirm(&mut self, (_, run): Watched) {
        self.lock().memory.push(("confirm", run));
    }
}

impl IdFileWatch for Desk {
    fn watch(&mut self, (_, run): Watched, files: IdFiles, agent: u32) {
        self.lock().filed.push((run, files, agent));
    }

    fn forget(&mut self, (_, run): Watched) {
        self.lock().filed.retain(|(watched, ..)| *watched != run);
    }
}

/// Files are made, read and removed at once; `files.rs` beside this tests what happens when that takes a
/// while.
impl Files for Desk {
    fn make_session(&self, folder: PathBuf, then: Then<Result<(), NotMade>>) {
        then(make_session(&folder));
    }

    fn remove_empty(&self, folder: PathBuf) {
        _ = std::fs::remove_dir(folder);
    }

    fn delete(&self, folder: PathBuf, _listen: PathBuf, then: Then<Result<u64, String>>) {
        then(delete(&folder));
    }

    fn remove_values(&self, values: Values, file: Ulid, then: Then<()>) {
        values.remove(file);
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
        self.lock().stops = stops;
        Ok(left)
    }

    fn note_stop(&self, noted: NotedStop, then: Then<io::Result<()>>) {
        let done = self.lock().stops.note(noted);
        then(done);
    }

    fn settle_stop(&self, session: SessionId) {
        self.lock().stops.settle(session).unwrap();
    }
}

/// A store in memory, written at once or when the test says so.
struct HandJournal {
    desk: Desk,
    journal: Rc<StoreJournal>,
}

impl Journal for HandJournal {
    fn commit(&self, batch: Batch, with: Option<Order>, then: Then<Outcome>) {
        if self.desk.lock().held_up {
            self.desk.lock().commits.push((batch, with, then));
        } else {
            self.journal.commit(batch, with, then);
        }
    }

    fn commit_last(&self, batch: Batch) -> Outcome {
        self.journal.commit_last(batch)
    }

    fn trouble(&self) -> Trouble {
        self.desk.lock().trouble.clone()
    }

    fn message(&self, message: MessageId) -> Result<Option<Message>, ReadError> {
        if self.desk.lock().unreadable {
            let (path, what, problem) = ("store".into(), "message", "torn".to_owned());
            return Err(ReadError::Row { path, what, id: message.0.to_string(), problem });
        }
        self.journal.message(message)
    }

    fn message_by_key(&self, session: SessionId, key: &str) -> Result<Option<MessageId>, ReadError> {
        self.journal.message_by_key(session, key)
    }

    fn waiting_bytes(&self, session: SessionId) -> u64 {
        self.journal.waiting_bytes(session)
    }

    fn cursor(&self, session: SessionId) -> Result<Option<Cursor>, String> {
        self.journal.cursor(session)
    }

    fn session_of_run(&self, run: RunId) -> Option<SessionId> {
        self.journal.session_of_run(run)
    }

    fn recent_events(&self, session: SessionId, most: u32) -> Vec<StoredEvent> {
        self.journal.recent_events(session, most)
    }

    fn session(&self, id: SessionId) -> Result<Option<Remembered>, String> {
        self.journal.session(id)
    }
}

struct HandConnection {
    desk: Desk,
    id: SessionId,
}

impl Connection for HandConnection {
    fn follow(self: Box<Self>, hear: Hear) -> io::Result<(Outlet, Option<JoinHandle<()>>)> {
        self.desk.lock().links.insert(self.id, Line { hear: Some(hear), ..Line::default() });
        Ok((Outlet::new(Arc::new(*self)), None))
    }
}

impl ShimWire for HandConnection {
    fn send(self: Arc<Self>, bytes: &[u8]) {
        let mut ordered = self.desk.lock();
        let line = ordered.links.entry(self.id).or_default();
        line.decoder.feed(bytes);
        while let Some(frame) = line.decoder.frame().unwrap() {
            line.told.extend(Command::decode(&frame).unwrap());
        }
    }
}
