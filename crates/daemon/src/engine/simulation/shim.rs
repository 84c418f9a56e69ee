//! Virtual shims: how they react to the daemon's commands, and what they notice themselves.

use super::check::Checker;
use super::machine::{PoolJob, Shared, VirtualGrant, VirtualLink, VirtualMachine};
use super::nursery::VirtualCradle;
use super::ports::VirtualConnection;
use super::script::SpawnFault;
use super::world::{SESSIONS, SimulatedAgent, SimulatedHolder};
use crate::ports::locks::{HolderEnded, LocksRefused};
use crate::ports::shims::ShimUp;
use crate::ports::shims::birth::open;
use crate::ports::shims::observe::{SessionLook, SessionSeen, guest_seen};
use pinfold_core::event::{ShimSeen, TurnEnd};
use pinfold_core::exit::{Ended, Exit};
use pinfold_core::life::{Process, StartRefused};
use pinfold_core::{MessageId, RunNumber, Wall, World};
use pinfold_lock::Resource;
use pinfold_shim::log::Position;
use pinfold_shim::turn::{DoneLine, Turn};
use pinfold_shim::{
    Can, Command, GuestReport, GuestStanding, InputRefused, Keeping, Presence, Report, StartFailure, Welcome,
};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// EMFILE: the errno of a process without free descriptors.
const NO_DESCRIPTORS: i32 = 24;

impl VirtualMachine {
    /// The shim reads the next command, if there is one.
    pub(super) fn obey(&mut self, session: usize, checker: &mut Checker, durable: RunNumber) -> bool {
        let Some(command) = self.links[session].as_mut().and_then(|link| link.commands.pop_front()) else {
            return false;
        };
        let nothing = matches!(command, Command::Go | Command::Follow { .. });
        match command {
            Command::Start(start) => {
                checker.spawned_durably(durable, session, start.run);
                // The agents of a case are given the directory that their definition has.
                let (own, locked) = (start.arguments.get(1), self.locked[session].as_ref());
                if own.map(PathBuf::from).as_ref() != locked {
                    let run = start.run;
                    checker.complain(format!(
                        "session {session}: {run} is for {own:?}, and its locks for {locked:?}"
                    ));
                }
                self.start(session, start.run, checker);
            }
            Command::Stop { run, grace } => self.stop(session, run, grace),
            Command::Interrupt { run } if self.has(session, run) => {
                self.end_turn(session, TurnEnd::Interrupted);
            }
            Command::Interrupt { run } => self.answer_for(session, run),
            Command::Input { run, message, attempt, .. } => self.input(session, run, message, attempt),
            Command::Guest(guest) => self.start_guest(session, guest.run, guest.number, checker),
            Command::Release => self.release(session),
            Command::Ack { run } => self.room.records[session].retain(|(ended, _)| *ended > run),
            Command::Keep(_)
            | Command::Hello { .. }
            | Command::Go
            | Command::CloseInput { .. }
            | Command::Follow { .. }
            | Command::Say(_)
            | Command::Heard { .. }
            | Command::Hold { .. }
            | Command::GuestStop { .. } => {}
            Command::Listen => self.socket_removed[session] &= self.cannot_listen[session],
        }
        // A command that changes nothing is read together with the next.
        if nothing {
            self.obey(session, checker, durable);
        }
        true
    }

    fn has(&self, session: usize, run: RunNumber) -> bool {
        let agent = self.room.shims[session].as_ref().and_then(|shim| shim.agent.as_ref());
        agent.is_some_and(|agent| agent.run == run)
    }

    /// A shim's answer about a run that is not live: its end, if recorded.
    fn answer_for(&mut self, session: usize, run: RunNumber) {
        let answer = match self.exits(session).into_iter().find(|exited| exited.run == run) {
            Some(exited) => told(exited),
            None => Report::NoSuchRun { run },
        };
        self.report(session, answer);
    }

    fn start(&mut self, session: usize, run: RunNumber, checker: &mut Checker) {
        let Some(shim) = &self.room.shims[session] else { return };
        match &shim.agent {
            Some(agent) if agent.run == run => return self.started(session),
            Some(agent) => {
                let other = agent.run;
                return checker.complain(format!("a shim that keeps {other} was told to start {run}"));
            }
            None => {}
        }
        let last = self.room.records[session].iter().map(|(run, _)| *run).max().max(Some(shim.last_run));
        if let Some(last) = last.filter(|last| run <= *last) {
            let of = self.exits(session).into_iter().find(|exited| exited.run == run);
            let outdated = Report::StartFailed { run, why: StartFailure::Outdated { last } };
            return self.report(session, of.map_or(outdated, told));
        }
        match self.room.broken[session].take() {
            Some(SpawnFault::Refused) => {
                self.start_failed(session, run, StartFailure::Refused { errno: NO_DESCRIPTORS });
            }
            Some(SpawnFault::ProgramMissing) => self.start_failed(session, run, StartFailure::ProgramMissing),
            None => self.run(session, run),
        }
    }

    fn run(&mut self, session: usize, run: RunNumber) {
        let (pid, since_awake) = (self.room.next_pid, self.room.awake);
        self.room.next_pid += 1;
        if let Some(shim) = &mut self.room.shims[session] {
            let given = BTreeMap::new();
            shim.agent = Some(SimulatedAgent {
                run,
                pid,
                since_awake,
                ends_at: None,
                turn: None,
                said: None,
                given,
                guest: None,
                guests: 0,
            });
        }
        self.started(session);
    }

    fn started(&mut self, session: usize) {
        let at = Wall(self.room.wall);
        let Some(agent) = self.room.agent(session) else { return };
        let (run, process) = (agent.run, Process { pid: agent.pid, fence: agent.run.0 });
        self.report(session, Report::Started { run, process, at });
    }

    /// Starts a guest, once for each number.
    fn start_guest(&mut self, session: usize, run: RunNumber, number: u64, checker: &mut Checker) {
        let pid = self.room.next_pid;
        let broken = self.room.broken[session].take();
        let Some(agent) = self.room.agent(session).filter(|agent| agent.run == run) else {
            return self.answer_for(session, run);
        };
        let started = |pid| GuestReport::Started { run, guest: number, pid };
        let ended = |exit, why| GuestReport::Ended { run, guest: number, exit, why };
        let report = match agent.guest {
            Some(pid) if agent.guests == number => started(pid),
            Some(_) => {
                return checker.complain(format!("{run} has a guest and was to start guest {number} of it"));
            }
            None if number <= agent.guests => ended(Exit::Code(0), None),
            None if broken.is_some() => {
                agent.guests = number;
                ended(Exit::NeverStarted, Some(StartFailure::ProgramMissing))
            }
            None => {
                (agent.guest, agent.guests) = (Some(pid), number);
                self.room.next_pid += 1;
                started(pid)
            }
        };
        self.report(session, Report::Guest(report));
    }

    /// The guest of a run ends, by itself or with the run.
    pub(super) fn end_guest(&mut self, session: usize, exit: Exit) {
        let Some(agent) = self.room.agent(session) else { return };
        let (run, guest) = (agent.run, agent.guests);
        if agent.guest.take().is_some() {
            self.report(session, Report::Guest(GuestReport::Ended { run, guest, exit, why: None }));
        }
    }

    /// A failed start is recorded like an end.
    fn start_failed(&mut self, session: usize, run: RunNumber, why: StartFailure) {
        self.failures[session].insert(run, why);
        self.room.records[session].push((run, Ended::new(Exit::NeverStarted, Duration::ZERO)));
        let boot = self.room.boot;
        if let Some(shim) = &mut self.room.shims[session] {
            (shim.last_run, shim.idle_since) = (run, boot);
        }
        self.report(session, Report::StartFailed { run, why });
    }

    fn stop(&mut self, session: usize, run: RunNumber, grace: Duration) {
        let at = self.room.boot + grace.as_millis() as u64;
        match self.room.agent(session).filter(|agent| agent.run == run) {
            Some(agent) => agent.ends_at = Some(agent.ends_at.map_or(at, |earlier| earlier.min(at))),
            None => self.answer_for(session, run),
        }
    }

    fn input(&mut self, session: usize, run: RunNumber, message: MessageId, attempt: u32) {
        let Some(agent) = self.room.agent(session).filter(|agent| agent.run == run) else {
            let why = InputRefused::Closed;
            return self.report(session, Report::InputRefused { run, message, attempt, why });
        };
        if agent.given.insert(message, u64::from(attempt)) != Some(u64::from(attempt)) {
            (agent.turn, agent.said) = (Some((message, false)), None);
            return;
        }
        // The same delivery again: repeat what is known of it.
        let turn = self.turns[session].clone().filter(|turn| turn.is(run, message, attempt));
        let Some(turn) = turn else { return };
        self.report(session, Report::InputTaken { run, message, attempt, from: turn.from });
        if turn.done.is_some() {
            self.report(session, Report::TurnDone(Box::new(turn)));
        }
    }

    fn release(&mut self, session: usize) {
        if self.room.shims[session].as_ref().is_some_and(|shim| shim.agent.is_none()) {
            self.leave(session);
        }
    }

    /// The shim gives the locks back and leaves.
    pub(super) fn leave(&mut self, session: usize) {
        self.room.shim_leaves(session);
        self.part(session, Some(Report::Leaving));
    }

    /// The agent takes the message it was given; for some agents that completes the turn.
    pub(super) fn take_message(&mut self, session: usize) -> Option<MessageId> {
        let agent = self.room.agent(session)?;
        let (message, _) = agent.turn.filter(|(_, taken)| !taken)?;
        let (run, attempt) = (agent.run, *agent.given.get(&message)? as u32);
        agent.turn = Some((message, true));
        let from = Position(0);
        self.turns[session] = Some(Turn { run, message, attempt, from, done: None });
        self.report(session, Report::InputTaken { run, message, attempt, from });
        Some(message)
    }

    /// A turn ends without an answer.
    pub(super) fn end_turn(&mut self, session: usize, how: TurnEnd) {
        let Some(agent) = self.room.agent(session) else { return };
        let Some((message, _)) = agent.turn.take() else { return };
        agent.said = Some((message, how));
    }

    /// The agent says that its turn is over.
    pub(super) fn answer_message(&mut self, session: usize) -> Option<MessageId> {
        let agent = self.room.agent(session)?;
        let (message, _) = agent.turn.filter(|(_, taken)| *taken)?;
        agent.turn = None;
        if agent.said.replace((message, TurnEnd::Answered)).is_some_and(|(said, _)| said == message) {
            return None;
        }
        let turn = self.turns[session].as_mut()?;
        let answer = b" \"well\"".to_vec();
        turn.done = Some(DoneLine { to: Position(1), answer, whole: true, named: None });
        let turn = Box::new(turn.clone());
        self.report(session, Report::TurnDone(turn));
        Some(message)
    }
}

/// The report a shim sends for an end.
fn told(exited: pinfold_shim::Exited) -> Report {
    match exited.failure {
        Some(why) => Report::StartFailed { run: exited.run, why },
        None => Report::Exited(exited),
    }
}

/// A pool thread carries out a job and tells the one who ordered it.
pub(super) fn perform(shared: &Shared, session: usize, job: PoolJob) {
    match job {
        PoolJob::Reserve(directory, then) => then(reserve(shared, session, directory)),
        PoolJob::Open(birth, held, then) => {
            let cradle = VirtualCradle::new(session, shared);
            then(open(&cradle, held, birth.settled, birth.start));
        }
        PoolJob::Observe(look, then) => then(observe(shared, session, &look)),
        PoolJob::Prove(then) => {
            // Taking the lock of a session ends what is left of its last run.
            let mut machine = shared.lock();
            let free = machine.room.session_locks[session] == SimulatedHolder::Nobody;
            if free {
                machine.room.strays[session] = false;
            }
            drop(machine);
            then(free);
        }
        // No session of a case has a tape yet.
        PoolJob::ReadTape(wanted, then) => {
            then(crate::ports::tapes::Passage { next: wanted.from, ..Default::default() });
        }
        PoolJob::FindSocket(sockets, then) => {
            let removed = shared.lock().socket_removed[session];
            then(sockets.into_iter().next().filter(|_| !removed));
        }
        PoolJob::EndHolder(then) => {
            let mut machine = shared.lock();
            machine.room.kill_shim(session, false);
            machine.hang_up(session);
            while machine.unborn[session] > 0 {
                machine.unborn_leaves(session);
            }
            drop(machine);
            then(HolderEnded::Gone);
        }
    }
}

fn reserve(
    shared: &Shared,
    session: usize,
    directory: Option<PathBuf>,
) -> Result<Box<dyn crate::ports::locks::RunLocks>, LocksRefused> {
    let mut machine = shared.lock();
    if machine.room.broken[session] == Some(SpawnFault::Refused) {
        machine.room.broken[session] = None;
        let text = "too many open files".to_owned();
        return Err(LocksRefused::System(StartRefused { errno: Some(NO_DESCRIPTORS), text }));
    }
    let attached = machine.links[session].as_ref().is_some_and(|link| link.hear.is_some());
    if attached && machine.connected(session) && machine.room.shims[session].is_some() {
        machine.wrong =
            Some(format!("session {session}: its locks are asked for while its own shim has them"));
    }
    // The kernel does not grant again what the daemon already has.
    let ours = machine.room.reserved(session);
    if !ours && machine.room.reserve(session) {
        machine.locked[session] = directory;
        return Ok(Box::new(VirtualGrant::new(session, shared.clone())));
    }
    // The virtual locks learn from the name which session waits.
    let resource = Resource::Directory(PathBuf::from(format!("/virtual/s{session}")));
    Err(LocksRefused::Busy { resource, holder: None, run: None })
}

/// What a look finds of a session.
fn observe(shared: &Shared, session: usize, look: &SessionLook) -> SessionSeen {
    let (mut machine, on) = (shared.lock(), look.machine);
    let records = machine.exits(session);
    if machine.room.reserved(session) {
        // A start is under way, so the lock cannot be taken to prove that nothing is alive.
        return SessionSeen::of(on, ShimSeen::Mute, records);
    }
    if machine.room.shims[session].is_none() {
        machine.room.mute[session] = false;
        let free = machine.room.session_locks[session] == SimulatedHolder::Nobody;
        // Taking the lock to prove that nothing is alive ends what is left of the last run.
        machine.room.strays[session] &= !(free && look.subject.may_live);
        let seen = if free || !look.subject.may_live { ShimSeen::Nobody } else { ShimSeen::Mute };
        return SessionSeen::of(on, seen, records);
    }
    if std::mem::take(&mut machine.room.mute[session]) {
        return SessionSeen::of(on, ShimSeen::Mute, records);
    }
    let up = connect(&mut machine, shared, session);
    let seen = match up.welcome.keeping {
        Keeping::Running { run, process, .. } => ShimSeen::Keeping { run, process },
        Keeping::Standing | Keeping::Starting { .. } => ShimSeen::Standing,
    };
    let guest = up.welcome.guest.map(guest_seen);
    let seen = SessionSeen::of(on, seen, records);
    SessionSeen { shim: Some(up), world: World { guest, ..seen.world }, ..seen }
}

/// A new link to the session's shim; an older one ends.
pub(super) fn connect(machine: &mut VirtualMachine, shared: &Shared, session: usize) -> ShimUp {
    machine.hang_up(session);
    let open = Arc::new(());
    machine.links[session] = Some(VirtualLink {
        open: Arc::downgrade(&open),
        hear: None,
        unheard: VecDeque::new(),
        commands: VecDeque::new(),
        dismissed: false,
    });
    let welcome = Box::new(welcome(machine, session));
    let connection = Box::new(VirtualConnection { session, machine: shared.clone(), open });
    ShimUp { socket: PathBuf::from("/virtual/shim"), connection, welcome }
}

/// A shim's first report.
pub(super) fn welcome(machine: &VirtualMachine, session: usize) -> Welcome {
    let agent = machine.room.shims[session].as_ref().and_then(|shim| shim.agent.as_ref());
    let keeping = agent.map_or(Keeping::Standing, |agent| {
        let process = Process { pid: agent.pid, fence: agent.run.0 };
        Keeping::Running { run: agent.run, process, at: Wall(machine.room.wall) }
    });
    Welcome {
        version: pinfold_shim::VERSION,
        shim: 1000 + session as u32,
        generation: 1,
        keeping,
        exits: machine.exits(session),
        log: Position(0),
        can: Can { guest: true, ..Can::default() },
        tape: None,
        guest: agent.filter(|agent| agent.guests > 0).map(|agent| GuestStanding {
            guest: agent.guests,
            presence: agent.guest.map_or(Presence::Gone(Exit::Code(0)), Presence::Here),
        }),
    }
}

/// Whether the agents of this session end a turn by taking the message.
pub(super) fn takes_only(session: usize) -> bool {
    session + 1 == SESSIONS
}
