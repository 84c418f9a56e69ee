//! The daemon of the virtual world: the loop of the real one, with every step visible and every step fatal.

use super::check::{Checker, Violation};
use super::script::{self, Asking, Broken, Coming, Ending, Step, Work};
use super::world::{Agent, DIRECTORIES, Holder, Room, SESSIONS, directory_of, pick};
use pinfold_core::event::{
    Ask, ConsumerKind, MessageEvent, RunEvent, Shim, ShimSeen, StartFailure, TurnEnd, World,
};
use pinfold_core::exit::{Ended, Exit, Recognised, Said};
use pinfold_core::inbox::MessageChange;
use pinfold_core::life::{CannotStart, Process, StartRefused};
use pinfold_core::rules::LONGEST_GAP;
use pinfold_core::rules::memory::{Reading, Source};
use pinfold_core::session::Upcoming;
use pinfold_core::{
    Action, Boot, Change, ConsumerId, Event, MessageId, Mode, Policy, RunNumber, Session, Spec,
};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub(crate) const MEMORY_LIMIT: u64 = 1000;

/// One case: a machine room, what is on disk, and a daemon that may be dead.
pub(crate) struct Case {
    pub(crate) room: Room,
    pub(crate) disk: Vec<Session>,
    pub(crate) daemon: Option<Daemon>,
    pub(crate) checker: Checker,
    next_message: u128,
    keys: BTreeMap<(usize, String), MessageId>,
    pub(crate) sent: [Vec<MessageId>; SESSIONS],
}

/// What dies with kill -9.
pub(crate) struct Daemon {
    pub(crate) sessions: Vec<Session>,
    pub(crate) actions: [VecDeque<Action>; SESSIONS],
    /// Events on their way to the daemon, in order for each session.
    pub(crate) pending: [VecDeque<Event>; SESSIONS],
    taken: [Vec<Event>; SESSIONS],
    waiting: [bool; SESSIONS],
    consumers: BTreeMap<(usize, u8), ConsumerId>,
    pub(crate) closing: bool,
}

fn spec(session: usize, variant: u8) -> Spec {
    let mode = match (session + usize::from(variant)) % 4 {
        0 => Mode::Always,
        3 if variant != 0 => Mode::Once,
        _ => Mode::OnDemand,
    };
    let policy = Policy {
        crash_soft_limit: 3,
        contention_limit: 3,
        crash_hard_limit: if variant % 3 == 2 { 0 } else { 6 },
        watchdog: Duration::from_secs(if variant % 5 == 4 { 90 } else { 0 }),
        limit_resume: variant % 2 == 1,
        idle_after: Duration::from_secs(20),
        ..Policy::default()
    };
    Spec { mode, policy, memory_limit: Some(MEMORY_LIMIT), interactive: true }
}

impl Case {
    pub(crate) fn new() -> Case {
        let room =
            Room { boot: 1_000, awake: 1_000, wall: 1_700_000_000_000, next_pid: 100, ..Room::default() };
        let disk = (0..SESSIONS).map(|session| Session::new(spec(session, 0))).collect();
        let mut case = Case {
            room,
            disk,
            daemon: None,
            checker: Checker::default(),
            next_message: 1,
            keys: BTreeMap::new(),
            sent: [const { Vec::new() }; SESSIONS],
        };
        case.start_daemon();
        for session in 0..SESSIONS {
            case.enqueue(session, Event::Created);
        }
        case
    }

    pub(crate) fn play(&mut self, step: Step) -> Result<(), Violation> {
        self.happen(step)?;
        self.go_on()
    }

    /// What follows by itself from whatever has just happened; the promises hold after it.
    pub(crate) fn go_on(&mut self) -> Result<(), Violation> {
        self.things_that_happen_by_themselves();
        self.checker.world(&self.room)
    }

    fn happen(&mut self, step: Step) -> Result<(), Violation> {
        let at = |number: u8| usize::from(number) % SESSIONS;
        match step {
            Step::Perform(s) => self.perform_some(s),
            Step::Take(s) => return self.take_some(s),
            Step::Again(s, which) => self.again(at(s), which),
            Step::Pass(millis) => self.room.pass(u64::from(millis)),
            Step::Tick(s) => self.enqueue(at(s), Event::Ticked),
            Step::ClockJumps(minutes) => self.room.wall += i64::from(minutes) * 60_000,
            Step::Suspend(minutes) => self.room.suspend(u64::from(minutes) * 60_000),
            Step::Reboot => self.reboot(),
            Step::KillDaemon => self.kill_daemon(),
            Step::StartDaemon => self.start_daemon(),
            Step::Down => self.down(),
            Step::AgentEnds(s, ending) => self.agent_ends(self.room.with_agent(s), ending),
            Step::AgentWorks(s, work) => self.agent_works(self.room.with_agent(s), work),
            Step::KillShim(s, stray) => self.kill_shim(at(s), stray),
            Step::BreakSpawn(s, broken) => self.room.broken[at(s)] = Some(broken),
            Step::Foreign(directory, takes) => self.foreign(usize::from(directory) % DIRECTORIES, takes),
            Step::Ask(s, asking) => self.ask(at(s), asking),
            Step::Send(s, key) => self.send(at(s), key),
            Step::Cancel(s) => self.cancel(at(s)),
            Step::Retry(s) => self.retry(at(s)),
            Step::Consumer(s, who, coming) => self.consumer(at(s), who, coming),
            Step::Memory(s, percent) => self.memory(self.room.with_agent(s), percent),
            Step::Mute(s) => self.room.mute[at(s)] = true,
            Step::VendorBusy(s) => {
                self.of_run(self.room.with_agent(s), RunEvent::VendorBusy { holder: None });
            }
            Step::Redefine(s, variant) => {
                self.enqueue(at(s), Event::SpecChanged(Box::new(spec(at(s), variant))));
            }
        }
        Ok(())
    }

    /// Lets the daemon take an event of some session that has one.
    fn take_some(&mut self, number: u8) -> Result<(), Violation> {
        let Some(daemon) = &self.daemon else { return Ok(()) };
        match pick(number, |session| !daemon.pending[session].is_empty()) {
            Some(session) => self.take(session),
            None => Ok(()),
        }
    }

    fn perform_some(&mut self, number: u8) {
        let Some(daemon) = &self.daemon else { return };
        if let Some(session) = pick(number, |session| !daemon.actions[session].is_empty()) {
            self.perform(session);
        }
    }

    pub(crate) fn enqueue(&mut self, session: usize, event: Event) {
        if let Some(daemon) = &mut self.daemon {
            daemon.pending[session].push_back(event);
        }
    }

    /// The daemon takes one event: decide, commit, and only then queue the actions.
    pub(crate) fn take(&mut self, session: usize) -> Result<(), Violation> {
        let now = self.room.now();
        let Some(daemon) = &mut self.daemon else { return Ok(()) };
        let Some(event) = daemon.pending[session].pop_front() else { return Ok(()) };
        let event = with_known(event, |key| self.keys.get(&(session, key)).copied());
        let before = daemon.sessions[session].clone();
        let decision = daemon.sessions[session].handle(&event, now);
        for change in decision.changes.iter().filter(|change| change.is_durable()) {
            self.disk[session].apply(change);
            if let Change::Message(MessageChange::Queued { message, key: Some(key) }) = change {
                self.keys.insert((session, key.clone()), *message);
            }
        }
        self.checker.decision(session, &before, &event, &decision, &daemon.sessions[session], now)?;
        self.checker.disk(&self.disk[session], &daemon.sessions[session])?;
        daemon.actions[session].extend(decision.actions);
        daemon.taken[session].push(event);
        Ok(())
    }

    fn again(&mut self, session: usize, which: u8) {
        let Some(daemon) = &mut self.daemon else { return };
        let repeatable: Vec<&Event> = daemon.taken[session].iter().filter(|event| repeats(event)).collect();
        if repeatable.is_empty() {
            return;
        }
        let event = repeatable[usize::from(which) % repeatable.len()].clone();
        daemon.pending[session].push_back(event);
    }

    pub(crate) fn perform(&mut self, session: usize) {
        let Some(action) = self.daemon.as_mut().and_then(|daemon| daemon.actions[session].pop_front()) else {
            return;
        };
        match action {
            Action::Reserve { run, .. } => self.reserve(session, run),
            Action::Spawn { run, .. } => self.spawn(session, run),
            Action::Stop { run, grace } => self.stop(session, run, grace),
            Action::Release => self.release(session),
            Action::AwaitHolder => self.waiting(session, true),
            Action::ForgetHolder => self.waiting(session, false),
            Action::LookAgain => {
                self.observe(session);
                self.replay_turns(session);
            }
            Action::Deliver { run, message, delivery, .. } => self.deliver(session, run, message, delivery),
            Action::Interrupt { run } => self.interrupt(session, run),
            Action::ConfirmMemory { run } => {
                let event = RunEvent::MemoryRead {
                    reading: Reading::Bytes(MEMORY_LIMIT / 2),
                    source: Source::Shares,
                };
                self.enqueue(session, Event::Run { run, event });
            }
        }
    }

    fn reserve(&mut self, session: usize, run: RunNumber) {
        let event = if self.room.broken[session] == Some(Broken::Refused) {
            self.room.broken[session] = None;
            RunEvent::StartFailed(refused())
        } else if self.room.reserve(session) {
            RunEvent::Reserved
        } else {
            RunEvent::LockBusy { holder: None }
        };
        self.enqueue(session, Event::Run { run, event });
    }

    fn spawn(&mut self, session: usize, run: RunNumber) {
        self.checker.spawned_durably(self.disk[session].runs().last, session, run);
        if self.room.shims[session].is_none() && self.room.reserved(session) {
            self.room.new_shim(session);
        }
        let failure = match (&self.room.shims[session], self.room.broken[session].take()) {
            (None, _) => Some(StartFailure::ShimGone),
            (Some(_), Some(Broken::Refused)) => Some(refused()),
            (Some(_), Some(Broken::ProgramMissing)) => {
                Some(StartFailure::Hopeless(CannotStart::ProgramMissing { program: "agent".into() }))
            }
            (Some(_), None) => None,
        };
        if let Some(failure) = failure {
            self.enqueue(session, Event::Run { run, event: RunEvent::StartFailed(failure) });
            return;
        }
        let (pid, since_awake) = (self.room.next_pid, self.room.awake);
        let shim = self.room.shims[session].as_mut().expect("checked above");
        match &shim.agent {
            Some(agent) if agent.run != run => {
                let other = agent.run;
                return self.checker.complain(format!("a shim that keeps {other} was told to start {run}"));
            }
            Some(_) => {}
            None if run <= shim.last_run => return,
            None => {
                self.room.next_pid += 1;
                let given = BTreeMap::new();
                shim.agent =
                    Some(Agent { run, pid, since_awake, ends_at: None, turn: None, said: None, given });
            }
        }
        let pid = shim.agent.as_ref().map_or(pid, |agent| agent.pid);
        self.enqueue(session, Event::Run { run, event: RunEvent::Started(Process { pid, fence: run.0 }) });
    }

    fn stop(&mut self, session: usize, run: RunNumber, grace: Duration) {
        let at = self.room.boot + grace.as_millis() as u64;
        if let Some(agent) = self.room.agent(session).filter(|agent| agent.run == run) {
            agent.ends_at = Some(agent.ends_at.map_or(at, |earlier| earlier.min(at)));
        }
    }

    fn release(&mut self, session: usize) {
        self.room.free(Holder::Daemon(session));
        if self.room.shims[session].as_ref().is_some_and(|shim| shim.agent.is_none()) {
            self.room.shim_leaves(session);
        }
    }

    fn waiting(&mut self, session: usize, waiting: bool) {
        if let Some(daemon) = &mut self.daemon {
            daemon.waiting[session] = waiting;
        }
    }

    fn deliver(&mut self, session: usize, run: RunNumber, message: MessageId, delivery: u64) {
        let Some(agent) = self.room.agent(session).filter(|agent| agent.run == run) else { return };
        if agent.given.insert(message, delivery) != Some(delivery) {
            agent.turn = Some((message, false));
        }
    }

    fn interrupt(&mut self, session: usize, run: RunNumber) {
        let Some(agent) = self.room.agent(session).filter(|agent| agent.run == run) else { return };
        let Some((message, _)) = agent.turn.take() else { return };
        let how = TurnEnd::Interrupted;
        agent.said = Some((message, how));
        self.enqueue(session, Event::Message(MessageEvent::TurnEnded { run, message, how }));
    }

    /// What a daemon that starts finds for one session.
    fn observe(&mut self, session: usize) {
        let mute = std::mem::take(&mut self.room.mute[session]);
        let shim = match &self.room.shims[session] {
            Some(_) if mute => ShimSeen::Mute,
            None => ShimSeen::Nobody,
            Some(shim) => match &shim.agent {
                None => ShimSeen::Standing,
                Some(agent) => {
                    let process = Process { pid: agent.pid, fence: agent.run.0 };
                    ShimSeen::Keeping { run: agent.run, process }
                }
            },
        };
        let world = World::new(self.room.machine(), shim, self.room.records[session].clone());
        self.enqueue(session, Event::DaemonStarted(world));
    }

    pub(crate) fn start_daemon(&mut self) {
        if self.daemon.is_some() {
            return;
        }
        self.daemon = Some(Daemon {
            sessions: self.disk.clone(),
            actions: [const { VecDeque::new() }; SESSIONS],
            pending: [const { VecDeque::new() }; SESSIONS],
            taken: [const { Vec::new() }; SESSIONS],
            waiting: [false; SESSIONS],
            consumers: BTreeMap::new(),
            closing: false,
        });
        for session in 0..SESSIONS {
            self.observe(session);
            self.replay_turns(session);
        }
        self.room.machine_restarted = false;
    }

    /// A shim tells a new daemon what its agent said meanwhile.
    fn replay_turns(&mut self, session: usize) {
        let Some(agent) = self.room.agent(session) else { return };
        let run = agent.run;
        let (turn, said) = (agent.turn, agent.said);
        if let Some((message, how)) = said {
            self.enqueue(session, Event::Message(MessageEvent::TurnEnded { run, message, how }));
        }
        if let Some((message, true)) = turn {
            self.enqueue(session, Event::Message(MessageEvent::Taken { run, message }));
        }
    }

    pub(crate) fn kill_daemon(&mut self) {
        self.daemon = None;
        for session in 0..SESSIONS {
            self.room.free(Holder::Daemon(session));
        }
    }

    fn reboot(&mut self) {
        self.kill_daemon();
        self.room.reboot();
    }

    fn down(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        daemon.closing = true;
        for session in 0..SESSIONS {
            self.enqueue(session, Event::DownAsked);
        }
    }

    fn of_run(&mut self, session: usize, event: RunEvent) {
        let Some(run) = self.room.agent(session).map(|agent| agent.run) else { return };
        self.enqueue(session, Event::Run { run, event });
    }

    fn agent_ends(&mut self, session: usize, ending: Ending) {
        let ended = self.room.agent_ends(session, |lived| end(ending, lived));
        self.report_end(session, ended);
    }

    fn report_end(&mut self, session: usize, ended: Option<(RunNumber, Ended)>) {
        let Some((run, ended)) = ended else { return };
        if self.daemon.is_none() {
            // With no daemon connected the shim records, closes the locks and leaves.
            self.room.shim_leaves(session);
            return;
        }
        let shim = if self.room.shims[session].is_some() { Shim::Standing } else { Shim::Absent };
        self.enqueue(session, Event::Run { run, event: RunEvent::Exited { ended, shim, holder: None } });
    }

    pub(crate) fn agent_works(&mut self, session: usize, work: Work) {
        let Some(agent) = self.room.agent(session) else { return };
        let run = agent.run;
        if work == Work::Feeds {
            return self.enqueue(session, Event::Run { run, event: RunEvent::SignOfLife });
        }
        let Some((message, taken)) = agent.turn else { return };
        let how = match (work, taken) {
            (Work::Takes | Work::Feeds, _) => {
                agent.turn = Some((message, true));
                return self.enqueue(session, Event::Message(MessageEvent::Taken { run, message }));
            }
            (Work::Answers | Work::Fails, false) => return,
            (Work::Answers, true) => TurnEnd::Answered,
            (Work::Fails, true) => TurnEnd::Failed,
        };
        agent.turn = None;
        agent.said = Some((message, how));
        if how == TurnEnd::Answered {
            self.checker.answered(message);
        }
        self.enqueue(session, Event::Message(MessageEvent::TurnEnded { run, message, how }));
    }

    fn kill_shim(&mut self, session: usize, stray: bool) {
        let had_agent = self.room.agent(session).is_some();
        let lost = self.room.kill_shim(session, stray);
        match lost {
            Some((run, ended)) => {
                let event = RunEvent::Exited { ended, shim: Shim::Absent, holder: None };
                self.enqueue(session, Event::Run { run, event });
            }
            None if !had_agent => self.enqueue(session, Event::ShimLeft),
            None => {}
        }
    }

    fn foreign(&mut self, directory: usize, takes: bool) {
        let lock = &mut self.room.directory_locks[directory];
        match (*lock, takes) {
            (Holder::Nobody, true) => *lock = Holder::Outsider,
            (Holder::Outsider, false) => *lock = Holder::Nobody,
            _ => {}
        }
    }

    fn ask(&mut self, session: usize, asking: Asking) {
        let ask = match asking {
            Asking::Start => Ask::Start,
            Asking::Stop => Ask::Stop { grace: None },
            Asking::Restart => Ask::Restart,
            Asking::Interrupt => Ask::Interrupt,
            Asking::Archive => Ask::Archive,
            Asking::Restore => Ask::Restore,
            Asking::Purge(include_active) => Ask::Purge { include_active, own: false },
            Asking::Takeover(who, urgent) => Ask::Takeover { consumer: consumer_id(session, who), urgent },
            Asking::Attach(who, joining, urgent) => {
                script::attach(consumer_id(session, who), joining, urgent)
            }
        };
        self.enqueue(session, Event::Asked(ask));
    }

    fn send(&mut self, session: usize, key: u8) {
        if self.daemon.is_none() {
            return;
        }
        let message = MessageId(self.next_message);
        self.next_message += 1;
        self.sent[session].push(message);
        let key = (key > 0).then(|| format!("key-{key}"));
        self.enqueue(session, Event::Message(MessageEvent::Sent { message, key, known: None }));
    }

    fn cancel(&mut self, session: usize) {
        let Some(daemon) = &self.daemon else { return };
        let Some(queued) = daemon.sessions[session].inbox().waiting().last() else { return };
        self.enqueue(session, Event::Message(MessageEvent::Cancelled { message: queued.message }));
    }

    fn retry(&mut self, session: usize) {
        // The real shell checks in the same step that the message has failed: so nothing may come between.
        let Some(message) = self.checker.a_failed_message(session) else { return };
        let Some(daemon) = &mut self.daemon else { return };
        if daemon.pending[session].is_empty() {
            self.enqueue(session, Event::Message(MessageEvent::Retried { message }));
        }
    }

    fn consumer(&mut self, session: usize, who: u8, coming: Coming) {
        let Some(daemon) = &mut self.daemon else { return };
        let consumer = consumer_id(session, who);
        let event = match coming {
            Coming::Attaches => Event::ConsumerJoined { consumer, kind: ConsumerKind::Attach },
            Coming::Watches => Event::ConsumerJoined { consumer, kind: ConsumerKind::Watch },
            Coming::Leaves => Event::ConsumerLeft { consumer },
        };
        match coming {
            Coming::Leaves => _ = daemon.consumers.remove(&(session, who)),
            Coming::Attaches | Coming::Watches => _ = daemon.consumers.insert((session, who), consumer),
        }
        self.enqueue(session, event);
    }

    fn memory(&mut self, session: usize, percent: Option<u8>) {
        let reading = percent
            .map_or(Reading::Unknown, |percent| Reading::Bytes(u64::from(percent) * MEMORY_LIMIT / 100));
        let source =
            if percent.is_some_and(|percent| percent % 2 == 0) { Source::Cgroup } else { Source::Sum };
        self.of_run(session, RunEvent::MemoryRead { reading, source });
    }

    /// Grace periods end, shims give up after their gap, freed locks wake their waiters, `down` completes.
    fn things_that_happen_by_themselves(&mut self) {
        for session in 0..SESSIONS {
            let boot = self.room.boot;
            if self.room.agent(session).is_some_and(|agent| agent.ends_at.is_some_and(|at| at <= boot)) {
                self.agent_ends(session, Ending::Signal(15));
            }
            let gap = Duration::from_millis(
                self.room.shims[session].as_ref().map_or(0, |shim| boot - shim.idle_since),
            );
            let standing = self.room.shims[session].as_ref().is_some_and(|shim| shim.agent.is_none());
            if standing && (gap > LONGEST_GAP || self.daemon.is_none()) {
                self.room.shim_leaves(session);
                self.enqueue(session, Event::ShimLeft);
            }
            self.wake_waiter(session);
        }
        if self.daemon.as_ref().is_some_and(|daemon| daemon.closing && daemon.at_rest()) {
            self.kill_daemon();
        }
    }

    fn wake_waiter(&mut self, session: usize) {
        let free = self.room.session_locks[session] == Holder::Nobody
            && self.room.directory_locks[directory_of(session)] == Holder::Nobody;
        let Some(daemon) = &mut self.daemon else { return };
        if free && daemon.waiting[session] {
            daemon.waiting[session] = false;
            self.enqueue(session, Event::HolderGone);
        }
    }

    /// The earliest deadline of any session, in a world where agents feed their watchdogs.
    pub(crate) fn next_deadline(&self) -> Option<(usize, Boot)> {
        let daemon = self.daemon.as_ref()?;
        let due = |(at, session): (usize, &Session)| {
            let deadline = session.next_deadline()?;
            (deadline.what != Upcoming::Watchdog).then_some((at, deadline.at))
        };
        daemon.sessions.iter().enumerate().filter_map(due).min_by_key(|(_, at)| *at)
    }
}

impl Daemon {
    fn at_rest(&self) -> bool {
        let quiet =
            self.pending.iter().all(VecDeque::is_empty) && self.actions.iter().all(VecDeque::is_empty);
        quiet && self.sessions.iter().all(|session| session.live_run().is_none())
    }
}

/// The shell knows which message has a key: the store says so.
fn with_known(mut event: Event, of: impl FnOnce(String) -> Option<MessageId>) -> Event {
    if let Event::Message(MessageEvent::Sent { key: Some(key), known, .. }) = &mut event {
        *known = of(key.clone());
    }
    event
}

fn consumer_id(session: usize, who: u8) -> ConsumerId {
    ConsumerId(session as u64 * 10 + u64::from(who % 3))
}

/// What a real shell may see twice: reports of runs and turns, timers, wake-ups. A person's word counts each time,
/// and a message id is new each time.
/// What a system that is out of descriptors says.
fn refused() -> StartFailure {
    StartFailure::Refused(StartRefused { errno: Some(24), text: "too many open files".into() })
}

fn repeats(event: &Event) -> bool {
    matches!(
        event,
        Event::Run { .. }
            | Event::Ticked
            | Event::HolderGone
            | Event::ShimLeft
            | Event::Message(MessageEvent::Taken { .. } | MessageEvent::TurnEnded { .. })
    )
}

fn end(ending: Ending, lived: Duration) -> Ended {
    match ending {
        Ending::Code(code) => Ended::new(Exit::Code(i32::from(code)), lived),
        Ending::Signal(signal) => Ended::new(Exit::Signal(i32::from(signal)), lived),
        Ending::Drained => Ended { said: Some(Said::Drained), ..Ended::new(Exit::Code(0), lived) },
        Ending::Contended => Ended::new(Exit::Code(75), lived),
        Ending::StaleId => {
            Ended { recognised: Some(Recognised::StaleId), ..Ended::new(Exit::Code(1), lived) }
        }
        Ending::Limit => Ended {
            recognised: Some(Recognised::UsageLimit { resets: None }),
            ..Ended::new(Exit::Code(1), lived)
        },
        Ending::OutOfMemory => Ended { oom_killed: true, ..Ended::new(Exit::Signal(9), lived) },
    }
}
