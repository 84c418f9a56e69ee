//! What agents do, what people ask for, and what outsiders break.

use super::case::{Case, definition};
use super::script::{self, AgentEnding, Asking, Coming, Work};
use super::world::SimulatedHolder;
use super::{MEMORY_LIMIT, shim};
use crate::engine::input::{Define, LoopInput, Post, VariablesChange};
use crate::engine::reply::ReplyHandle;
use crate::memory::MeterReading;
use pinfold_core::event::{Ask, ConsumerKind, MessageEvent, TurnEnd};
use pinfold_core::exit::{Ended, Exit, ExitNotice, Recognised};
use pinfold_core::rules::memory::{Reading, ReadingSource};
use pinfold_core::{ConsumerId, Event};
use pinfold_shim::{Notice, Report};
use std::time::Duration;
use tokio::sync::oneshot;

impl Case {
    pub(super) fn agent_ends(&mut self, session: usize, ending: AgentEnding) {
        let mut machine = self.shared.lock();
        machine.end_guest(session, Exit::Signal(9));
        let Some((run, ended)) = machine.room.agent_ends(session, |lived| end(ending, lived)) else { return };
        let exited = machine.exited(session, run, &ended);
        machine.report(session, Report::Exited(exited));
        if !machine.connected(session) {
            machine.leave(session);
        }
    }

    pub(super) fn agent_works(&mut self, session: usize, work: Work) {
        let mut machine = self.shared.lock();
        let Some(run) = machine.room.agent(session).map(|agent| agent.run) else { return };
        let answered = match work {
            Work::GuestEnds => {
                machine.end_guest(session, Exit::Code(0));
                None
            }
            Work::Feeds => {
                machine.report(session, Report::Notify { run, notice: Notice::Watchdog });
                None
            }
            Work::Takes => {
                let taken = machine.take_message(session);
                if taken.is_some()
                    && shim::takes_only(session)
                    && let Some(agent) = machine.room.agent(session)
                {
                    agent.turn = None;
                }
                taken.filter(|_| shim::takes_only(session))
            }
            Work::Drops => {
                drop(machine);
                return self.drop_message(session);
            }
            Work::Answers => machine.answer_message(session),
            Work::Fails => {
                machine.end_turn(session, TurnEnd::Failed);
                None
            }
        };
        if let Some(message) = answered {
            self.checker.answered(message);
        }
    }

    /// The agent gives up on its message.
    fn drop_message(&mut self, session: usize) {
        if self.shared.lock().room.agent(session).is_some_and(|agent| agent.turn.is_some()) {
            self.agent_works(session, Work::Takes);
            self.agent_ends(session, AgentEnding::Code(1));
        }
    }

    pub(super) fn kill_shim(&mut self, session: usize, stray: bool) {
        let mut machine = self.shared.lock();
        machine.room.kill_shim(session, stray);
        machine.hang_up(session);
    }

    pub(super) fn foreign(&mut self, directory: usize, takes: bool) {
        let lock = &mut self.shared.lock().room.directory_locks[directory];
        match (*lock, takes) {
            (SimulatedHolder::Nobody, true) => *lock = SimulatedHolder::Outsider,
            (SimulatedHolder::Outsider, false) => *lock = SimulatedHolder::Nobody,
            (
                SimulatedHolder::Nobody
                | SimulatedHolder::Daemon(_)
                | SimulatedHolder::Shim(_)
                | SimulatedHolder::Unborn(_)
                | SimulatedHolder::Outsider,
                _,
            ) => {}
        }
    }

    pub(super) fn ask(&mut self, session: usize, asking: Asking) {
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
        let (reply, receiver) = ReplyHandle::new();
        let (id, event) = (self.ids[session], Box::new(Event::Asked(ask)));
        let Some(daemon) = &mut self.daemon else { return };
        daemon.asked[session].push_back(receiver);
        self.tell(session, LoopInput::Happened { id, event, facts: Box::default(), reply: Some(reply) });
    }

    pub(super) fn post(&mut self, session: usize, post: Post) {
        let (reply, receiver) = ReplyHandle::new();
        let id = self.ids[session];
        let Some(daemon) = &mut self.daemon else { return };
        daemon.asked[session].push_back(receiver);
        self.tell(session, LoopInput::Post { id, post, by: None, reply });
    }

    pub(super) fn cancel(&mut self, session: usize) {
        let Some(daemon) = &self.daemon else { return };
        let Some(tracked) = daemon.engine.sessions.get(&self.ids[session]) else { return };
        let Some(message) = tracked.session.inbox().waiting().last().map(|queued| queued.message) else {
            return;
        };
        self.post(session, Post::Cancel { message });
    }

    pub(super) fn consumer(&mut self, session: usize, who: u8, coming: Coming) {
        let consumer = consumer_id(session, who);
        let event = match coming {
            Coming::Attaches => Event::ConsumerJoined { consumer, kind: ConsumerKind::Attach },
            Coming::Watches => Event::ConsumerJoined { consumer, kind: ConsumerKind::Watch },
            Coming::Leaves => Event::ConsumerLeft { consumer },
        };
        self.happens(session, event);
    }

    pub(super) fn happens(&mut self, session: usize, event: Event) {
        let (id, event) = (self.ids[session], Box::new(event));
        self.tell(session, LoopInput::Happened { id, event, facts: Box::default(), reply: None });
    }

    /// No shim reports yet that a turn ended without an answer: the loop is told, as it is of answers, until
    /// it knows.
    pub(super) fn tell_of_turn(&mut self, session: usize) -> bool {
        let ended = self.shared.lock().room.agent(session).and_then(|agent| Some((agent.run, agent.said?)));
        let Some((run, (message, how @ (TurnEnd::Failed | TurnEnd::Interrupted)))) = ended else {
            return false;
        };
        let Some(daemon) = &self.daemon else { return false };
        let tracked = daemon.engine.sessions.get(&self.ids[session]);
        let current = tracked.and_then(|tracked| tracked.session.inbox().in_flight());
        let told = !daemon.pending[session].is_empty();
        if told || current.is_none_or(|turn| turn.message != message) {
            return false;
        }
        self.happens(session, Event::Message(MessageEvent::TurnEnded { run, message, how }));
        true
    }

    pub(super) fn memory(&mut self, session: usize, percent: Option<u8>) {
        let Some(run) = self.shared.lock().room.agent(session).map(|agent| agent.run) else { return };
        let reading = percent
            .map_or(Reading::Unknown, |percent| Reading::Bytes(u64::from(percent) * MEMORY_LIMIT / 100));
        let source = if percent.is_some_and(|percent| percent % 2 == 0) {
            ReadingSource::Cgroup
        } else {
            ReadingSource::Sum
        };
        let (id, read) = (self.ids[session], MeterReading { reading, source, swap: 0 });
        self.tell(session, LoopInput::Memory { id, run, read });
    }

    pub(super) fn redefine(&mut self, session: usize, variant: u8) {
        let define = Define {
            base: None,
            definition: definition(session, variant),
            given: VariablesChange::AsBefore,
            by: None,
        };
        let (id, define) = (self.ids[session], Box::new(define));
        self.tell(session, LoopInput::Define { id, define, reply: oneshot::channel().0 });
    }
}

fn consumer_id(session: usize, who: u8) -> ConsumerId {
    ConsumerId(session as u64 * 10 + u64::from(who % 3))
}

fn end(ending: AgentEnding, lived: Duration) -> Ended {
    match ending {
        AgentEnding::Code(code) => Ended::new(Exit::Code(i32::from(code)), lived),
        AgentEnding::Signal(signal) => Ended::new(Exit::Signal(i32::from(signal)), lived),
        AgentEnding::Drained => Ended { said: Some(ExitNotice::Drained), ..Ended::new(Exit::Code(0), lived) },
        AgentEnding::Contended => Ended::new(Exit::Code(75), lived),
        AgentEnding::StaleId => {
            Ended { recognised: Some(Recognised::StaleId), ..Ended::new(Exit::Code(1), lived) }
        }
        AgentEnding::Limit => Ended {
            recognised: Some(Recognised::UsageLimit { resets: None }),
            ..Ended::new(Exit::Code(1), lived)
        },
        AgentEnding::OutOfMemory => Ended { oom_killed: true, ..Ended::new(Exit::Signal(9), lived) },
    }
}
