//! A loop on ports that the test controls: nothing happens around it that the test does not do.

mod ports;

use crate::caller::{By, Caller};
use crate::define::config::Config;
use crate::define::definition::Definition;
use crate::define::home::Home;
use crate::engine::command::EngineCommand as Order;
use crate::engine::input::{Create, Handle, LoopInput, Post, Sending};
use crate::engine::view::EngineView;
use crate::engine::{Engine, Parts, ReplyHandle, ResourceLimits, WhyNot};
use crate::ports::journal::{Journal, StoreJournal};
use crate::ports::locks::{Folders, LocksRefused, RunLocks};
use crate::ports::shims::ShimUp;
use pinfold_core::caller::CallerStanding;
use pinfold_core::decision::Answer;
use pinfold_core::event::Ask;
use pinfold_core::exit::{Ended, Exit};
use pinfold_core::life::Process;
use pinfold_core::{Decision, Event, MessageId, RunNumber, State, Wall};
use pinfold_shim::log::Position;
use pinfold_shim::{Can, Command, Exited, Keeping, Report, Welcome};
use pinfold_store::{
    Backend, EventQuery, Facts, History, Message, SessionId, Solo, Store, StoredEvent as Stored, Take,
};
pub(crate) use ports::Desk;
use ports::Locked;
use serde_json::{Value, json};
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

pub(crate) const FIRST: RunNumber = RunNumber(1);
pub(crate) const SECOND: RunNumber = RunNumber(2);
/// The pids of all shims and agents here: no process has them.
pub(crate) const SHIM: u32 = 4_000_001;
pub(crate) const AGENT: u32 = 4_000_002;
pub(crate) const PROCESS: Process = Process { pid: AGENT, fence: 7 };
/// A run that lived this long is not part of a crash streak.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

pub(crate) struct Room {
    pub(crate) engine: Engine,
    pub(crate) desk: Desk,
    pub(crate) disk: Store,
    journal: Rc<StoreJournal>,
    inputs: UnboundedReceiver<LoopInput>,
    folder: Rc<tempfile::TempDir>,
}

impl Room {
    pub(crate) fn new() -> Room {
        Room::with(&Config::default())
    }

    pub(crate) fn configured(text: &str) -> Room {
        Room::with(&Config::parse(text).unwrap())
    }

    fn with(config: &Config) -> Room {
        let folder = Rc::new(tempfile::tempdir().unwrap());
        let disk = pinfold_store::open(&Backend::Memory(History::All)).unwrap();
        Room::on(folder, disk, 1, config)
    }

    fn on(folder: Rc<tempfile::TempDir>, disk: Store, generation: u64, config: &Config) -> Room {
        let home = Home {
            state: folder.path().join("home"),
            runtime: folder.path().join("run"),
            config: folder.path().join("config.toml"),
            user_locks: folder.path().join("locks"),
            variables: Vec::new(),
            refused: None,
        };
        for made in [&home.state, &home.runtime] {
            pinfold_kernel::private::make_private(made, pinfold_kernel::private::Wider::Refuse).unwrap();
        }
        let (handle, inputs) = Handle::new();
        let reader = Rc::new(disk.reader().unwrap());
        let owners = Solo::new(&disk, Rc::clone(&reader), generation);
        let journal = Rc::new(StoreJournal::new(owners, disk.clone(), Rc::clone(&reader)));
        let (desk, ports) = ports::new(&journal);
        let parts = Parts {
            socket: home.socket(),
            folders: folders(&home),
            home,
            reader,
            store: disk.clone(),
            alone: None,
            generation,
            shim_program: ("shim".into(), vec!["a-word".into()]),
            limits: ResourceLimits { open_files: Some((1024, 4096)), core: Some((0, 1)) },
            umask: Some(0o027),
            last_event: 0,
            handle,
            config: config.clone(),
        };
        Room { engine: Engine::with(parts, ports), desk, disk, journal, inputs, folder }
    }

    /// The same home under the next daemon, which has loaded what is stored and ordered a look at each
    /// session.
    pub(crate) fn again(self) -> Room {
        self.again_on(pinfold_core::event::Machine::Same)
    }

    /// The same, on a machine that may have rebooted.
    pub(crate) fn again_on(self, machine: pinfold_core::event::Machine) -> Room {
        let Room { engine, desk, disk, journal, inputs, folder } = self;
        let (generation, config) = (engine.generation + 1, engine.config.clone());
        let now = desk.lock().now;
        let drawn = desk.lock().drawn;
        drop((engine, desk, journal, inputs));
        let mut room = Room::on(folder, disk, generation, &config);
        room.desk.lock().now = now;
        // No id is drawn twice.
        room.desk.lock().drawn = drawn;
        let reader = room.disk.reader().unwrap();
        room.engine.load(&reader).unwrap();
        room.engine.look_around(machine);
        room
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Takes all inputs, and those that result from them.
    pub(crate) fn settle(&mut self) {
        while let Ok(input) = self.inputs.try_recv() {
            self.engine.take(input);
        }
    }

    /// Takes the input of a thread, and those that result from it.
    pub(crate) fn hear(&mut self) {
        let told = async { tokio::time::timeout(Duration::from_secs(30), self.inputs.recv()).await };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let input = runtime.block_on(told).expect("a thread tells something within 30 s").unwrap();
        self.tell(input);
    }

    pub(crate) fn tell(&mut self, input: LoopInput) {
        self.engine.take(input);
        self.settle();
    }

    /// A session that waits for a message; `more` has fields of its definition.
    pub(crate) fn create(&mut self, name: &str, more: &Value) -> SessionId {
        self.try_create(name, more).unwrap()
    }

    pub(crate) fn try_create(&mut self, name: &str, more: &Value) -> Result<SessionId, WhyNot> {
        let (reply, mut made) = oneshot::channel();
        let (definition, by, broken) = (definition(more), None, None);
        let name = name.parse().unwrap();
        self.tell(LoopInput::Create(Box::new(Create { name, definition, broken, by, reply })));
        made.try_recv().unwrap_or_else(|_| Err(self.engine.handle.going_down()))
    }

    pub(crate) fn event(&mut self, id: SessionId, event: Event) -> Option<Result<Answer, WhyNot>> {
        let (reply, mut answer) = ReplyHandle::new();
        let (event, facts) = (Box::new(event), Box::<Facts>::default());
        self.tell(LoopInput::Happened { id, event, facts, reply: Some(reply) });
        answer.try_recv().ok()
    }

    pub(crate) fn ask(&mut self, id: SessionId, ask: Ask) -> Option<Result<Answer, WhyNot>> {
        self.event(id, Event::Asked(ask))
    }

    pub(crate) fn stop(&mut self, id: SessionId) {
        self.ask(id, Ask::Stop { grace: None });
    }

    pub(crate) fn post(&mut self, id: SessionId, post: Post) -> Option<Result<Answer, WhyNot>> {
        let (reply, mut answer) = ReplyHandle::new();
        self.tell(LoopInput::Post { id, post, by: None, reply });
        answer.try_recv().ok()
    }

    /// Sends a message, which must be accepted; returns its id.
    pub(crate) fn send(&mut self, id: SessionId, text: &str, key: Option<&str>) -> MessageId {
        let post = sending(text, key);
        match self.post(id, post) {
            Some(Ok(Answer::Queued { message, .. })) => message,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn order<T>(&mut self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Option<T> {
        let (sender, mut receiver) = oneshot::channel();
        self.tell(LoopInput::Command(Box::new(order(sender))));
        receiver.try_recv().ok()
    }

    pub(crate) fn view(&self) -> EngineView<'_> {
        EngineView(&self.engine)
    }

    pub(crate) fn state(&self, id: SessionId) -> State {
        self.engine.sessions[&id].session.state()
    }

    pub(crate) fn row(&self, message: MessageId) -> Message {
        self.disk.reader().unwrap().message(message).unwrap().unwrap()
    }

    /// All events.
    pub(crate) fn events(&self) -> Vec<Stored> {
        let query = EventQuery { take: Take::First(1000), ..EventQuery::default() };
        self.disk.reader().unwrap().events(&query).unwrap()
    }

    /// The latest event of a kind.
    pub(crate) fn last_event(&self, kind: &str) -> Stored {
        let found = self.events().into_iter().rfind(|event| event.kind.to_string() == kind);
        found.unwrap_or_else(|| panic!("no event {kind}: {:?}", self.kinds()))
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.events().into_iter().map(|event| event.kind.to_string()).collect()
    }

    /// Grants the locks that were requested.
    pub(crate) fn grant(&mut self) {
        let asked = std::mem::take(&mut self.desk.lock().reservations);
        assert!(!asked.is_empty(), "nobody asks for locks");
        asked.into_iter().for_each(|(_, then)| then(Ok(lock(&self.desk))));
        self.settle();
    }

    pub(crate) fn refuse(&mut self, refused: LocksRefused) {
        let (_, then) = self.desk.lock().reservations.pop().expect("somebody asks for locks");
        then(Err(refused));
        self.settle();
    }

    /// The shim that was ordered last says welcome.
    pub(crate) fn shim_comes(&mut self, id: SessionId) {
        let (_, held, then) = self.desk.lock().births.pop().expect("a shim is to be started");
        held.surrender();
        then(Ok(Box::new(self.up(id, Keeping::Standing, Vec::new()))));
        self.settle();
    }

    /// A shim that has just said welcome.
    pub(crate) fn up(&self, id: SessionId, keeping: Keeping, exits: Vec<Exited>) -> ShimUp {
        let (generation, log) = (self.engine.generation, Position(0));
        let welcome = Welcome {
            version: 1,
            shim: SHIM,
            generation,
            keeping,
            exits,
            log,
            can: Can::default(),
            tape: None,
            guest: None,
        };
        let socket = self.engine.home.shim_socket(id);
        ShimUp { socket, connection: self.desk.connection(id), welcome: Box::new(welcome) }
    }

    /// The shim of a session sends a report.
    pub(crate) fn says(&mut self, id: SessionId, report: Report) {
        self.desk.say(id, Some(report));
        self.settle();
    }

    /// The link to the shim of a session ends.
    pub(crate) fn hangs_up(&mut self, id: SessionId) {
        self.desk.say(id, None);
        self.settle();
    }

    /// What the shim of a session was told since the last call.
    pub(crate) fn heard(&mut self, id: SessionId) -> Vec<Command> {
        self.desk.heard(id)
    }

    /// A session whose run is to be started; its shim has not connected yet.
    pub(crate) fn starting(&mut self, name: &str, more: &Value) -> SessionId {
        let mut always = json!({ "mode": "always" });
        always.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let id = self.create(name, &always);
        self.grant();
        id
    }

    /// A session whose first run is live.
    pub(crate) fn running(&mut self, name: &str, more: &Value) -> SessionId {
        let id = self.starting(name, more);
        self.shim_comes(id);
        self.starts(id, FIRST);
        id
    }

    pub(crate) fn starts(&mut self, id: SessionId, run: RunNumber) {
        self.says(id, Report::Started { run, process: PROCESS, at: Wall(0) });
        assert!([State::Running, State::Held].contains(&self.state(id)), "{:?}", self.state(id));
        self.heard(id);
    }

    /// The run of a session ends, and its shim stays.
    pub(crate) fn ends(&mut self, id: SessionId, run: RunNumber, exit: Exit) {
        self.says(id, Report::Exited(exited(run, exit, LONG)));
    }

    /// An archived session, at rest.
    pub(crate) fn archived(&mut self, name: &str, more: &Value) -> SessionId {
        let id = self.create(name, more);
        self.ask(id, Ask::Archive);
        assert_eq!(self.state(id), State::Archived);
        id
    }

    /// Collects every decision from now on.
    pub(crate) fn decisions(&mut self) -> Arc<Mutex<Vec<Decision>>> {
        let seen = Arc::<Mutex<Vec<Decision>>>::default();
        let noted = Arc::clone(&seen);
        self.engine.witness = Some(Box::new(move |decided| noted.lock().unwrap().push(decided.decision)));
        seen
    }

    /// The disk takes what waits for it, and everything from now on.
    pub(crate) fn write(&mut self) {
        self.desk.lock().held_up = false;
        let waiting = std::mem::take(&mut self.desk.lock().commits);
        waiting.into_iter().for_each(|(batch, with, then)| self.journal.commit(batch, with, then));
        self.settle();
    }

    /// The disk takes the first batch that waits.
    pub(crate) fn write_first(&mut self) {
        let (batch, with, then) = self.desk.lock().commits.remove(0);
        self.journal.commit(batch, with, then);
        self.settle();
    }

    /// Lets time pass while the machine is awake; what comes due happens.
    pub(crate) fn pass(&mut self, time: Duration) {
        let due = self.desk.pass(time);
        due.into_iter().for_each(|then| then(()));
        self.settle();
        self.engine.tick();
        self.settle();
    }
}

/// Lock folders, opened once: that takes a few processes, and no lock is taken in them here.
fn folders(home: &Home) -> Folders {
    static FOLDERS: OnceLock<Folders> = OnceLock::new();
    FOLDERS.get_or_init(|| Folders::open(home).unwrap()).clone()
}

/// Granted locks.
pub(crate) fn lock(desk: &Desk) -> Box<dyn RunLocks> {
    Box::new(Locked::new(desk))
}

pub(crate) fn definition(more: &Value) -> Definition {
    let mut definition = json!({
        "agent": "command", "command": ["cat"], "dir": "/", "dir_lock": false, "mode": "on-demand",
    });
    definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(definition).unwrap()
}

/// A message to send; its row goes to no one.
pub(crate) fn sending(text: &str, key: Option<&str>) -> Post {
    let row = oneshot::channel().0;
    Post::Send(Sending { text: text.to_owned(), key: key.map(str::to_owned), files: Vec::new(), row })
}

pub(crate) fn exited(run: RunNumber, exit: Exit, lived: Duration) -> Exited {
    let (ended, log) = (Ended::new(exit, lived), Position(run.0));
    Exited { run, ended, failure: None, pid: PROCESS.pid, fence: PROCESS.fence, at: Wall(5), log, tape: None }
}

/// A person, whose process is not alive.
pub(crate) fn person() -> Arc<By> {
    by(Vec::new(), None)
}

/// A process of a session's run.
pub(crate) fn run_of(id: SessionId, name: &str) -> Arc<By> {
    by(vec![SHIM], Some((id, name.to_owned())))
}

fn by(shims: Vec<u32>, session: Option<(SessionId, String)>) -> Arc<By> {
    let standing = CallerStanding { confined: Vec::new(), shims };
    Arc::new(By::new(Arc::new(Caller { pid: None, user: 77, standing }), session))
}
