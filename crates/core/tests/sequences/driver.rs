//! Drives one session in virtual time, as a shell would: unless told otherwise, locks are granted and spawns succeed.

use pinfold_core::decision::{Answer, Record};
use pinfold_core::event::{Ask, MessageEvent, RunEvent, Shim, ShimSeen, StartFailure, TurnEnd};
use pinfold_core::exit::{ExitNotice, Recognised};
use pinfold_core::life::{HolderSeen, Process, StartRefused};
use pinfold_core::{
    Action, Boot, Change, Decision, Ended, Event, Exit, MessageId, Mode, Now, Policy, RunNumber, Session,
    Spec, Wall, World,
};
use std::rc::Rc;
use std::time::Duration;

pub(crate) struct Driver {
    pub(crate) session: Session,
    pub(crate) now: Now,
    pub(crate) records: Vec<Record>,
    pub(crate) actions: Vec<Action>,
    pub(crate) answer: Option<Answer>,
    /// How many agents were started.
    pub(crate) starts: usize,
    shim: Shim,
    next_message: u128,
}

/// How a run ends.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
    Says(ExitNotice),
    Recognised(Recognised),
    Oom,
}

pub(crate) fn always(policy: Policy) -> Driver {
    Driver::new(Spec { policy, ..Spec::new(Mode::Always) })
}

pub(crate) fn on_demand() -> Driver {
    Driver::new(Spec::new(Mode::OnDemand))
}

impl Driver {
    pub(crate) fn new(spec: Spec) -> Driver {
        let now = Now { wall: Wall(1_700_000_000_000), boot: Boot(1_000_000), ..Now::default() };
        let mut driver = Driver {
            session: Session::new(spec),
            now,
            records: Vec::new(),
            actions: Vec::new(),
            answer: None,
            starts: 0,
            shim: Shim::Absent,
            next_message: 1,
        };
        driver.send(Event::Created);
        driver
    }

    /// Gives the session an event and does at once what it asks for. The decision is shared, so that a test
    /// may ignore it.
    pub(crate) fn send(&mut self, event: Event) -> Rc<Decision> {
        let decision = self.hear(event);
        for action in decision.actions.clone() {
            self.perform(&action);
        }
        decision
    }

    /// Sends the session an event and carries out nothing.
    pub(crate) fn hear(&mut self, event: Event) -> Rc<Decision> {
        let decision = self.session.handle(&event, self.now);
        self.records.extend(decision.changes.iter().filter_map(|change| match change {
            Change::Record(record) => Some(record.clone()),
            _ => None,
        }));
        self.actions.extend(decision.actions.clone());
        if decision.answer.is_some() {
            self.answer.clone_from(&decision.answer);
        }
        Rc::new(decision)
    }

    fn perform(&mut self, action: &Action) {
        match action {
            Action::Reserve { run, .. } => _ = self.of_run(*run, RunEvent::Reserved),
            Action::Spawn { run, .. } => {
                self.starts += 1;
                self.shim = Shim::Absent;
                self.of_run(*run, RunEvent::Started(Process { pid: 100 + run.0 as u32, fence: run.0 }));
            }
            Action::Release => self.shim = Shim::Absent,
            Action::Stop { .. }
            | Action::AwaitHolder
            | Action::ForgetHolder
            | Action::LookAgain
            | Action::Deliver { .. }
            | Action::Interrupt { .. }
            | Action::Close { .. }
            | Action::Answer { .. }
            | Action::HoldVendor { .. }
            | Action::StartGuest { .. }
            | Action::ConfirmMemory { .. } => {}
        }
    }

    pub(crate) fn of_run(&mut self, run: RunNumber, event: RunEvent) -> Rc<Decision> {
        self.send(Event::Run { run, event })
    }

    pub(crate) fn run(&self) -> RunNumber {
        self.session.live_run().expect("a run")
    }

    /// Ends the live run after this many milliseconds of life.
    pub(crate) fn ends(&mut self, end: End, lived: u64) -> Rc<Decision> {
        self.ends_held_by(end, lived, None)
    }

    pub(crate) fn ends_held_by(&mut self, end: End, lived: u64, holder: Option<&str>) -> Rc<Decision> {
        self.pass(lived);
        self.shim = Shim::Standing;
        let holder = holder.map(|command| {
            Box::new(HolderSeen {
                resource: "thread".into(),
                pid: Some(4711),
                command: Some(command.into()),
                session: None,
                since: None,
            })
        });
        let event = RunEvent::Exited { ended: ended(end, lived), shim: Shim::Standing, holder };
        self.of_run(self.run(), event)
    }

    pub(crate) fn exits(&mut self, code: i32) -> Rc<Decision> {
        self.ends(End::Code(code), 1_000)
    }

    pub(crate) fn pass(&mut self, millis: u64) {
        self.now.boot = self.now.boot + Duration::from_millis(millis);
        self.now.wall = self.now.wall + Duration::from_millis(millis);
    }

    /// Jumps to the next deadline and lets it fire; returns how long that took.
    pub(crate) fn wait(&mut self) -> Duration {
        let deadline = self.session.next_deadline().expect("a deadline");
        let wait = deadline.at.since(self.now.boot);
        self.pass(wait.as_millis() as u64);
        self.send(Event::Ticked);
        wait
    }

    /// Ends the live run and waits until the next one runs; returns the wait in whole seconds.
    pub(crate) fn ends_and_waits(&mut self, end: End, lived: u64) -> u64 {
        self.ends(end, lived);
        match self.session.state() {
            pinfold_core::State::Running => 0,
            pinfold_core::State::Backoff => self.wait().as_secs(),
            other => panic!("{other:?}: {}", self.session.explain(self.now)),
        }
    }

    pub(crate) fn ask(&mut self, ask: Ask) -> Rc<Decision> {
        self.send(Event::Asked(ask))
    }

    pub(crate) fn message(&mut self) -> MessageId {
        let message = MessageId(self.next_message);
        self.next_message += 1;
        self.send(Event::Message(MessageEvent::Sent { message, key: None, known: None }));
        message
    }

    /// Makes the agent take the message whose turn it is.
    pub(crate) fn takes(&mut self) -> MessageId {
        let message = self.session.inbox().in_flight().expect("a turn").message;
        let run = self.run();
        self.send(Event::Message(MessageEvent::Taken { run, message }));
        message
    }

    pub(crate) fn answers(&mut self) -> MessageId {
        let message = self.takes();
        let run = self.run();
        self.send(Event::Message(MessageEvent::TurnEnded { run, message, how: TurnEnd::Answered }));
        message
    }

    /// Kills the daemon with -9 and brings it back: only what is stored is left.
    pub(crate) fn daemon_restarts(&mut self, shim: ShimSeen, exits: Vec<(RunNumber, Ended)>) -> Rc<Decision> {
        self.session = self.session.as_stored();
        let machine = pinfold_core::event::Machine::Same;
        self.send(Event::DaemonStarted(World::new(machine, shim, exits)))
    }

    pub(crate) fn crashes(&self) -> u32 {
        self.session.budgets().crashes
    }

    /// Returns how often something was recorded.
    pub(crate) fn count(&self, wanted: impl Fn(&Record) -> bool) -> usize {
        self.records.iter().filter(|record| wanted(record)).count()
    }

    pub(crate) fn warnings(&self, word: &str) -> usize {
        self.count(|record| matches!(record, Record::HealthWarn { reason } if reason.word() == word))
    }

    /// Makes a start fail: the shell reports that instead of a running agent.
    pub(crate) fn start_fails(&mut self, failure: StartFailure) {
        let decision = self.hear(Event::Asked(Ask::Start));
        let run = self.run();
        assert!(
            decision
                .actions
                .contains(&Action::Reserve { run, purpose: pinfold_core::life::Purpose::Headless })
        );
        self.hear(Event::Run { run, event: RunEvent::Reserved });
        self.hear(Event::Run { run, event: RunEvent::StartFailed(failure) });
    }
}

/// What a system without free descriptors says.
pub(crate) fn shortage() -> StartFailure {
    StartFailure::Refused(StartRefused { errno: Some(24), text: "`agent`: too many open files".into() })
}

pub(crate) fn ended(end: End, lived: u64) -> Ended {
    let lived = Duration::from_millis(lived);
    match end {
        End::Code(code) => Ended::new(Exit::Code(code), lived),
        End::Signal(signal) => Ended::new(Exit::Signal(signal), lived),
        End::Says(said) => Ended { said: Some(said), ..Ended::new(Exit::Code(3), lived) },
        End::Recognised(what) => Ended { recognised: Some(what), ..Ended::new(Exit::Code(1), lived) },
        End::Oom => Ended { oom_killed: true, ..Ended::new(Exit::Signal(9), lived) },
    }
}
