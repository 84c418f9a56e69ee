//! One case: a machine, a disk, and a daemon that may be dead. The daemon's code is the one that ships.

use super::check::{Checker, Violation};
use super::ground::Ground;
use super::machine::{Shared, VirtualMachine};
use super::ports::ports;
use super::witness::{Decisions, Witnessed};
use super::world::{MachineRoom, SESSIONS, SimulatedHolder};
use crate::define::definition::Definition;
use crate::engine::input::{Create, Handle, LoopInput};
use crate::engine::{Engine, Parts, ResourceLimits, WhyNot};
use crate::ports::journal::StoreJournal;
use crate::ports::shims::LinkNumber;
use pinfold_core::decision::Answer;
use pinfold_core::{Event, MessageEvent, RunEvent, RunNumber, Session};
use pinfold_shim::Report;
use pinfold_store::{Backend, Batch, History, Loaded, SessionId, Solo, Store, Trouble};
use std::collections::VecDeque;
use std::rc::Rc;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

pub(super) struct Case {
    pub(super) shared: Shared,
    pub(super) disk: Store,
    pub(super) daemon: Option<SimulatedDaemon>,
    pub(super) checker: Checker,
    pub(super) ids: Vec<SessionId>,
    ground: Rc<Ground>,
    generation: u64,
    /// The latest run of each session that is on disk.
    pub(super) durable: [RunNumber; SESSIONS],
    /// Each session as its last durable decision left it.
    pub(super) stored: [Option<Session>; SESSIONS],
    pub(super) decisions: Decisions,
    /// The next batch contradicts what is stored.
    pub(super) contradicts: bool,
    /// The disk takes nothing.
    pub(super) held_up: bool,
    /// How many ordered batches are done, over all daemons.
    pub(super) done: u64,
    /// Reads of all sessions: whether recovery had not looked at one of them yet.
    pub(super) looks: Vec<std::sync::mpsc::Receiver<bool>>,
    noted: bool,
}

/// What dies with kill -9.
pub(super) struct SimulatedDaemon {
    pub(super) engine: Engine,
    pub(super) journal: StoreJournal,
    inputs: UnboundedReceiver<LoopInput>,
    pub(super) pending: [VecDeque<LoopInput>; SESSIONS],
    /// Reports of shims, kept to be repeated.
    pub(super) said: [Vec<(LinkNumber, Report)>; SESSIONS],
    /// Answers that are due once their question was taken, in the order of the questions.
    pub(super) asked: [VecDeque<oneshot::Receiver<Result<Answer, WhyNot>>>; SESSIONS],
    pub(super) waiting: Vec<WaitingClient>,
}

/// A client that waits for an answer.
pub(super) struct WaitingClient {
    session: usize,
    answer: oneshot::Receiver<Result<Answer, WhyNot>>,
    /// How many batches must be done first; `None` if that is not known.
    after: Option<u64>,
}

impl Case {
    /// Makes a case; `noted` if stops may have to be written down beside the store.
    pub(super) fn new(ground: &Rc<Ground>, noted: bool) -> Result<Case, Violation> {
        let room = MachineRoom {
            boot: 1_000,
            awake: 1_000,
            wall: 1_700_000_000_000,
            next_pid: 100,
            ..MachineRoom::default()
        };
        ground.sweep();
        let mut case = Case {
            shared: Shared::new(VirtualMachine::new(room)),
            disk: pinfold_store::open(&Backend::Memory(History::All)).expect("memory can be opened"),
            daemon: None,
            checker: Checker::default(),
            ids: Vec::new(),
            ground: Rc::clone(ground),
            generation: 0,
            durable: [RunNumber(0); SESSIONS],
            stored: [const { None }; SESSIONS],
            decisions: Decisions::default(),
            contradicts: false,
            held_up: false,
            done: 0,
            looks: Vec::new(),
            noted,
        };
        case.start_daemon()?;
        for session in 0..SESSIONS {
            case.create(session)?;
        }
        Ok(case)
    }

    fn create(&mut self, session: usize) -> Result<(), Violation> {
        let definition = definition(session, 0);
        let name: pinfold_api::Name = format!("s{session}").parse().expect("a name");
        let (broken, by, reply) = (None, None, oneshot::channel().0);
        self.collect();
        let Some(daemon) = &mut self.daemon else { return Ok(()) };
        let create = Create { name, definition, broken, by, reply };
        daemon.engine.take(LoopInput::Create(Box::new(create)));
        let made = daemon.inputs.try_recv().expect("its folder is made at once");
        daemon.engine.take(made);
        let id = *daemon.engine.names.get(&format!("s{session}")).expect("it was made");
        self.ids.push(id);
        self.shared.lock().ids.push(id);
        self.decisions.ids.push(id);
        self.stored[session] = daemon.engine.sessions.get(&id).map(|tracked| tracked.session.as_stored());
        self.durable[session] =
            self.stored[session].as_ref().map_or(RunNumber(0), |session| session.runs().last);
        self.perform_commit()?;
        Ok(())
    }

    pub(super) fn start_daemon(&mut self) -> Result<(), Violation> {
        if self.daemon.is_some() {
            return Ok(());
        }
        self.generation += 1;
        let mut batch = Batch::new();
        batch.daemon_started(self.generation, "boot");
        // A newly opened store knows nothing of batches that it refused.
        self.ids.iter().for_each(|id| batch.reloaded(*id));
        self.disk.commit(batch).wait().expect("a generation that grows is taken");
        let (handle, inputs) = Handle::new();
        let reader = Rc::new(self.disk.reader().expect("memory can be read"));
        let ports = ports(&self.shared, self.journal(&reader), Trouble::None);
        let mut engine = Engine::with(self.parts(handle, &reader), ports);
        engine.witness = Some(self.decisions.witness());
        engine.load(&reader).expect("memory can be read");
        self.loaded(&reader)?;
        if self.noted {
            engine.stop_as_noted();
        }
        self.decisions.sort_early()?;
        let machine = self.shared.lock().room.machine();
        engine.look_around(machine);
        self.shared.lock().room.machine_restarted = false;
        self.daemon = Some(SimulatedDaemon {
            engine,
            journal: self.journal(&reader),
            inputs,
            pending: [const { VecDeque::new() }; SESSIONS],
            said: [const { Vec::new() }; SESSIONS],
            asked: [const { VecDeque::new() }; SESSIONS],
            waiting: Vec::new(),
        });
        if self.held_up {
            self.tell(0, LoopInput::Trouble(Trouble::Full));
        }
        Ok(())
    }

    fn journal(&self, reader: &Rc<pinfold_store::Reader>) -> StoreJournal {
        let owners = Solo::new(&self.disk, Rc::clone(reader), self.generation);
        StoreJournal::new(owners, self.disk.clone(), Rc::clone(reader))
    }

    fn parts(&self, handle: Handle, reader: &Rc<pinfold_store::Reader>) -> Parts {
        Parts {
            home: self.ground.home.clone(),
            socket: self.ground.home.socket(),
            store: self.disk.clone(),
            alone: None,
            reader: Rc::clone(reader),
            folders: self.ground.folders.clone(),
            generation: self.generation,
            shim_program: ("/virtual/shim".into(), Vec::new()),
            limits: ResourceLimits::default(),
            umask: None,
            last_event: 0,
            handle,
            config: self.ground.config.clone(),
        }
    }

    /// Checks that the disk has what the durable decisions made of it.
    fn loaded(&self, reader: &pinfold_store::Reader) -> Result<(), Violation> {
        for (session, id) in self.ids.iter().enumerate() {
            let Ok(Some(Loaded::Whole(read))) = reader.session(*id) else {
                return Err(format!("session {session} cannot be read"));
            };
            if let Some(stored) = &self.stored[session] {
                self.checker.disk(&read.session, stored)?;
            }
        }
        Ok(())
    }

    /// kill -9: only what is on disk remains, and what shims have read or are about to read.
    pub(super) fn kill_daemon(&mut self) {
        let dead = self.daemon.take();
        let mut machine = self.shared.lock();
        machine.orphan_births();
        let lost = (
            std::mem::take(&mut machine.jobs),
            std::mem::take(&mut machine.commits),
            std::mem::take(&mut machine.reminders),
            std::mem::take(&mut machine.waiters),
        );
        (machine.alarm, machine.ordered) = (None, self.done);
        machine.confirmed.clear();
        machine.watched.clear();
        machine.fading.clear();
        machine.links.iter_mut().flatten().for_each(|link| link.hear = None);
        drop(machine);
        drop((dead, lost));
        let mut machine = self.shared.lock();
        (0..SESSIONS).for_each(|session| machine.room.free(SimulatedHolder::Daemon(session)));
        self.decisions.forget();
    }

    /// Queues an input for a session, as if it came from outside.
    pub(super) fn tell(&mut self, session: usize, input: LoopInput) {
        if let Some(daemon) = &mut self.daemon {
            daemon.pending[session].push_back(input);
        }
    }

    /// Moves what the loop was told into the queues of the sessions.
    pub(super) fn collect(&mut self) {
        let ids = &self.ids;
        let Some(daemon) = &mut self.daemon else { return };
        while let Ok(input) = daemon.inputs.try_recv() {
            let session = about(&input).and_then(|id| ids.iter().position(|known| *known == id));
            daemon.pending[session.unwrap_or(0)].push_back(input);
        }
    }

    /// Lets the loop take the next input of a session.
    pub(super) fn take(&mut self, session: usize) -> Result<bool, Violation> {
        self.collect();
        let Some(daemon) = &mut self.daemon else { return Ok(false) };
        let Some(input) = daemon.pending[session].pop_front() else { return Ok(false) };
        let answer = asks(&input).then(|| daemon.asked[session].pop_front()).flatten();
        if let LoopInput::Shim { link, report: Some(report), .. } = &input
            && repeats(report)
        {
            daemon.said[session].push((*link, report.clone()));
        }
        let id = self.ids[session];
        let early = daemon.engine.early.contains_key(&id) || !daemon.engine.sessions.contains_key(&id);
        let before = self.shared.lock().ordered;
        daemon.engine.take_one(input);
        // The client does not wait for what follows for others of its account.
        let ordered = self.shared.lock().ordered;
        daemon.engine.settle_accounts();
        if let Some(answer) = answer {
            let after = (!early && ordered > before).then_some(ordered);
            daemon.waiting.push(WaitingClient { session, answer, after });
        }
        self.after_a_turn()?;
        Ok(true)
    }

    pub(super) fn tick(&mut self) -> Result<(), Violation> {
        let Some(daemon) = &mut self.daemon else { return Ok(()) };
        daemon.engine.tick();
        self.after_a_turn()
    }

    /// Checks what must hold whenever the loop is about to wait.
    pub(super) fn after_a_turn(&mut self) -> Result<(), Violation> {
        let Some(daemon) = &mut self.daemon else { return Ok(()) };
        daemon.engine.remove_what_rests();
        daemon.engine.end_if_at_rest();
        self.decisions.sort()?;
        for session in 0..SESSIONS {
            self.judge_what_needs_no_record(session)?;
        }
        self.judge_answers()?;
        self.collect();
        if self.daemon.as_ref().is_some_and(|daemon| daemon.engine.is_over()) {
            self.kill_daemon();
        }
        Ok(())
    }

    /// Checks that no client is told of something before it is durable, and that every client gets its own
    /// answer.
    fn judge_answers(&mut self) -> Result<(), Violation> {
        let Some(daemon) = &mut self.daemon else { return Ok(()) };
        if daemon.waiting.is_empty() {
            return Ok(());
        }
        let held_up = self.held_up || daemon.engine.health.holds_up();
        let (done, ids) = (self.done, self.ids.clone());
        let reader = self.disk.reader().expect("memory can be read");
        let mut left = Vec::new();
        for mut waiting in std::mem::take(&mut daemon.waiting) {
            match waiting.answer.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => left.push(waiting),
                Ok(Err(_)) => {}
                // What cannot be recorded is refused on arrival, and so are requests to a session that is set
                // aside.
                Err(oneshot::error::TryRecvError::Closed)
                    if held_up || !daemon.engine.sessions.contains_key(&ids[waiting.session]) => {}
                Err(oneshot::error::TryRecvError::Closed) => {
                    return Err(format!("a question to session {} was dropped", waiting.session));
                }
                Ok(Ok(answer)) => {
                    // A stop that cannot be recorded acts first.
                    if !held_up && waiting.after.is_some_and(|after| after > done) {
                        return Err(format!("{answer:?} was said before it was durable"));
                    }
                    if let Answer::Queued { message, .. } = answer {
                        let row = reader.message(message).ok().flatten();
                        if row.is_none_or(|row| row.session != ids[waiting.session]) {
                            return Err(format!(
                                "{answer:?} was said to a sender of session {}",
                                waiting.session
                            ));
                        }
                    }
                }
            }
        }
        daemon.waiting = left;
        Ok(())
    }

    fn judge_what_needs_no_record(&mut self, session: usize) -> Result<(), Violation> {
        while let Some(decided) = self.decisions.next_unrecorded(session) {
            self.judge(session, &decided)?;
        }
        Ok(())
    }

    /// Checks a decision that has taken effect.
    pub(super) fn judge(&mut self, session: usize, decided: &Witnessed) -> Result<(), Violation> {
        let Witnessed { before, event, decision, after, now, .. } = decided;
        self.checker.decision(session, before, event, decision, after, *now)
    }

    /// The batch of a decision is durable.
    pub(super) fn recorded(&mut self, session: usize) -> Result<(), Violation> {
        self.judge_what_needs_no_record(session)?;
        let Some(decided) = self.decisions.next_recorded(session) else {
            return Err(format!("session {session}: a batch that nothing was decided for"));
        };
        self.judge(session, &decided)?;
        self.stored[session] = Some(decided.after.as_stored());
        self.judge_what_needs_no_record(session)
    }

    /// How many clients still lack an answer when nothing is left that could bring one.
    pub(super) fn unanswered(&self) -> usize {
        self.daemon.as_ref().map_or(0, |daemon| daemon.waiting.len())
    }
}

/// The definition of a session; variants differ in mode and numbers.
pub(super) fn definition(session: usize, variant: u8) -> Definition {
    let mode = match (session + usize::from(variant)) % 4 {
        0 => "always",
        3 if variant != 0 => "once",
        _ => "on-demand",
    };
    let turns = if super::shim::takes_only(session) { "line" } else { "done" };
    let dir = format!("/virtual/d{}", variant % super::ground::VARIANTS);
    serde_json::from_value(serde_json::json!({
        "agent": format!("v{}", variant % super::ground::VARIANTS),
        "command": ["agent", dir],
        "dir": dir,
        "dir_lock": true,
        "mode": mode,
        "memory": super::MEMORY_LIMIT,
        "turns": turns,
        "interactive": ["ui", dir],
        "attach": if (session + usize::from(variant)) % 2 == 1 { "join" } else { "takeover" },
    }))
    .expect("a definition")
}

/// The session that an input is about.
fn about(input: &LoopInput) -> Option<SessionId> {
    match input {
        LoopInput::Happened { id, .. }
        | LoopInput::Post { id, .. }
        | LoopInput::Define { id, .. }
        | LoopInput::Reserved { id, .. }
        | LoopInput::ShimUp { id, .. }
        | LoopInput::Shim { id, .. }
        | LoopInput::ShimGone { id, .. }
        | LoopInput::Tape { id, .. }
        | LoopInput::VendorHeld { id, .. }
        | LoopInput::Looked { id, .. }
        | LoopInput::HolderGone { id }
        | LoopInput::Attaching { id, .. }
        | LoopInput::Observed { id, .. }
        | LoopInput::Memory { id, .. }
        | LoopInput::Filed { id, .. }
        | LoopInput::StopOverdue { id, .. }
        | LoopInput::DownOverdue { id }
        | LoopInput::HolderEnded { id, .. }
        | LoopInput::Kept { id, .. }
        | LoopInput::WriterSeen { id, .. }
        | LoopInput::FilesSeen { id, .. }
        | LoopInput::StopNoted { id, .. }
        | LoopInput::FilesDeleted { id, .. } => Some(*id),
        LoopInput::Committed { of, .. } => of.map(|of| of.id),
        LoopInput::Create(_)
        | LoopInput::Swept { .. }
        | LoopInput::FolderMade { .. }
        | LoopInput::Forgotten(_)
        | LoopInput::ConfigRead(_)
        | LoopInput::StrangersSought(_)
        | LoopInput::Look(_)
        | LoopInput::Command(_)
        | LoopInput::Reload
        | LoopInput::Ping { .. }
        | LoopInput::Moved { .. }
        | LoopInput::Audited
        | LoopInput::AuditStored { .. }
        | LoopInput::StrangerEnded { .. }
        | LoopInput::Trouble(_)
        | LoopInput::Checked(_)
        | LoopInput::Note { .. }
        | LoopInput::Down { .. } => None,
    }
}

fn asks(input: &LoopInput) -> bool {
    matches!(input, LoopInput::Happened { reply: Some(_), .. } | LoopInput::Post { .. })
}

/// Whether a shim may send this report twice.
fn repeats(report: &Report) -> bool {
    matches!(
        report,
        Report::Started { .. }
            | Report::StartFailed { .. }
            | Report::Exited(_)
            | Report::InputTaken { .. }
            | Report::TurnDone(_)
    )
}

/// What may be decided of a session before recovery has looked at it: what its shim recorded of a turn, what
/// was found, what the configuration says, and the time, for which only a noted stop can be waiting.
pub(super) fn may_be_early(event: &Event) -> bool {
    matches!(
        event,
        Event::DaemonStarted(_)
            | Event::SpecChanged(_)
            | Event::Ticked
            | Event::Message(MessageEvent::Taken { .. } | MessageEvent::TurnEnded { .. })
            | Event::Run { event: RunEvent::Unended(_), .. }
    )
}
