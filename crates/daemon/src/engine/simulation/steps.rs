//! What happens in a case, step by step.

use super::case::{Case, definition};
use super::check::Violation;
use super::machine::Commit;
use super::script::{self, Asking, Coming, Ending, Step as Common, Work};
use super::world::{DIRECTORIES, Holder, SESSIONS, pick};
use super::{MEMORY_LIMIT, shim};
use crate::engine::input::{Agents, Define, Given, Input, Post, Sending};
use crate::engine::reply::Reply;
use crate::memory::Read;
use pinfold_core::event::{Ask, ConsumerKind};
use pinfold_core::exit::{Ended, Exit, Recognised, Said};
use pinfold_core::inbox::MessageChange;
use pinfold_core::rules::LONGEST_GAP;
use pinfold_core::rules::memory::{Reading, Source};
use pinfold_core::{ConsumerId, Event, EventKind, MessageId, Wall};
use pinfold_shim::{Notice, Report};
use pinfold_store::{Batch, RunStep, Step as Stored, Trouble};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;
use tokio::sync::oneshot;

/// One thing that happens: what the core's simulation knows, or what only a whole daemon has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) enum Step {
    Common(Common),
    /// The next batch contradicts what is stored.
    Contradict,
    /// A batch becomes durable, and the daemon dies before anybody hears of it.
    DieWithCommit,
    /// The disk takes nothing more, or takes everything again.
    Disk {
        full: bool,
    },
    /// The next shim of a session takes the locks and does not answer.
    Stillborn(u8),
    /// Somebody wants to look at all sessions.
    Look,
}

/// The script that a seed stands for.
pub(super) fn generate(seed: u64, length: usize) -> Vec<Step> {
    let mut dice = script::Dice::new(seed ^ 0xD1CE);
    // Stops that cannot be recorded are written to a real file, which takes its time: some cases have them.
    let fills = seed.is_multiple_of(8);
    let mut other = |common: Common| match dice.roll() % 500 {
        0..=1 => Step::Contradict,
        2..=4 => Step::DieWithCommit,
        5..=6 if fills => Step::Disk { full: true },
        7..=13 if fills => Step::Disk { full: false },
        14..=16 => Step::Stillborn(dice.roll() as u8),
        17..=19 => Step::Look,
        _ => Step::Common(common),
    };
    script::generate(seed, length).into_iter().map(&mut other).collect()
}

impl Case {
    pub(super) fn play(&mut self, step: Step) -> Result<(), Violation> {
        match step {
            Step::Common(common) => self.happen(common)?,
            Step::Contradict => self.contradicts = true,
            Step::DieWithCommit => self.die_with_commit()?,
            Step::Disk { full } => self.disk_is(full),
            Step::Stillborn(s) => self.shared.lock().stillborn[usize::from(s) % SESSIONS] = true,
            Step::Look => self.look(),
        }
        self.go_on()
    }

    fn happen(&mut self, step: Common) -> Result<(), Violation> {
        let at = |number: u8| usize::from(number) % SESSIONS;
        let with_agent = |case: &Case, number: u8| case.shared.lock().room.with_agent(number);
        match step {
            Common::Perform(s) => return self.perform_some(s),
            Common::Take(s) => return self.take_some(s),
            Common::Again(s, which) => self.again(at(s), which),
            Common::Pass(millis) => self.shared.lock().room.pass(u64::from(millis)),
            Common::Tick(_) => return self.tick(),
            Common::ClockJumps(minutes) => self.shared.lock().room.wall += i64::from(minutes) * 60_000,
            Common::Suspend(minutes) => self.shared.lock().room.suspend(u64::from(minutes) * 60_000),
            Common::Reboot => self.reboot(),
            Common::KillDaemon => self.kill_daemon(),
            Common::StartDaemon => return self.start_daemon(),
            Common::Down => self.tell(0, Input::Down { agents: Agents::Stopped, by: None, reply: None }),
            Common::AgentEnds(s, ending) => self.agent_ends(with_agent(self, s), ending),
            Common::AgentWorks(s, work) => self.agent_works(with_agent(self, s), work),
            Common::KillShim(s, stray) => self.kill_shim(at(s), stray),
            Common::BreakSpawn(s, broken) => self.shared.lock().room.broken[at(s)] = Some(broken),
            Common::Foreign(directory, takes) => self.foreign(usize::from(directory) % DIRECTORIES, takes),
            Common::Ask(s, asking) => self.ask(at(s), asking),
            Common::Send(s, key) => {
                let key = (key > 0).then(|| format!("key-{key}"));
                let row = oneshot::channel().0;
                self.post(at(s), Post::Send(Sending { text: "do it".to_owned(), key, row }));
            }
            Common::Cancel(s) => self.cancel(at(s)),
            Common::Retry(s) => {
                if let Some(message) = self.checker.a_failed_message(at(s)) {
                    self.post(at(s), Post::Retry { message });
                }
            }
            Common::Consumer(s, who, coming) => self.consumer(at(s), who, coming),
            Common::Memory(s, percent) => self.memory(with_agent(self, s), percent),
            Common::Mute(s) => self.shared.lock().room.mute[at(s)] = true,
            // Nothing in a daemon tells this yet.
            Common::VendorBusy(_) => {}
            Common::Redefine(s, variant) => self.redefine(at(s), variant),
        }
        Ok(())
    }

    fn take_some(&mut self, number: u8) -> Result<(), Violation> {
        self.collect();
        let machine = self.shared.lock();
        let rings = machine.alarm.is_some_and(|at| at.0 <= machine.room.boot);
        drop(machine);
        // The alarm and an input may both be there: either is taken first.
        if rings && number.is_multiple_of(2) {
            return self.tick();
        }
        let Some(daemon) = &self.daemon else { return Ok(()) };
        match pick(number, |session| !daemon.pending[session].is_empty()) {
            Some(session) => self.take(session).map(drop),
            None => Ok(()),
        }
    }

    /// The store's thread, a thread of the pool or a shim does the next thing that it has before it.
    fn perform_some(&mut self, number: u8) -> Result<(), Violation> {
        if number >= 128 && self.perform_commit()? {
            return Ok(());
        }
        let machine = self.shared.lock();
        let busy = |session: usize| {
            let told = machine.links[session].as_ref().is_some_and(|link| !link.commands.is_empty());
            told || !machine.jobs[session].is_empty()
        };
        let session = pick(number, busy);
        drop(machine);
        match session {
            Some(session) => self.perform(session, number),
            None => self.perform_commit().map(drop),
        }
    }

    /// A thread of the pool or the shim of a session does something.
    pub(super) fn perform(&mut self, session: usize, number: u8) -> Result<(), Violation> {
        let mut machine = self.shared.lock();
        let obeyed =
            number.is_multiple_of(2) && machine.obey(session, &mut self.checker, self.durable[session]);
        let job = if obeyed { None } else { machine.jobs[session].pop_front() };
        if job.is_none() && !obeyed {
            machine.obey(session, &mut self.checker, self.durable[session]);
        }
        drop(machine);
        if let Some(job) = job {
            shim::perform(&self.shared, session, job);
        }
        Ok(())
    }

    /// The store's thread makes the next batch durable, or refuses it. Whether there was one.
    pub(super) fn perform_commit(&mut self) -> Result<bool, Violation> {
        if self.held_up {
            return Ok(false);
        }
        let Some(Commit { mut batch, with, then }) = self.shared.lock().commits.pop_front() else {
            return Ok(false);
        };
        let about = self.about(&batch);
        if let Some(session) = about
            && std::mem::take(&mut self.contradicts)
        {
            batch.steps.push(contradiction(self.ids[session]));
        }
        let written = Written::of(&batch, about, self.ids.as_slice());
        let (sender, told) = channel();
        let Some(daemon) = &self.daemon else { return Ok(false) };
        crate::ports::journal::Journal::commit(
            &daemon.journal,
            batch,
            with,
            Box::new(move |outcome| {
                _ = sender.send(outcome.is_ok());
                then(outcome);
            }),
        );
        let durable = told.try_recv().map_err(|_| "a batch without an outcome".to_owned())?;
        self.note(&written, durable)?;
        Ok(true)
    }

    fn note(&mut self, written: &Written, durable: bool) -> Result<(), Violation> {
        self.done += 1;
        let Some(session) = written.session else { return Ok(()) };
        if durable && written.reloaded {
            self.decisions.begin_again(session);
        }
        // What builds on a batch that was refused has not been decided, even where its events are on record.
        if !durable || self.decisions.is_refused(session) {
            self.decisions.refuse(session);
            return Ok(());
        }
        if let Some(run) = written.run {
            self.durable[session] = self.durable[session].max(run);
        }
        self.recorded(session)
    }

    /// The batch is on disk, and that is the last thing that this daemon did.
    fn die_with_commit(&mut self) -> Result<(), Violation> {
        let next = if self.held_up { None } else { self.shared.lock().commits.pop_front() };
        let Some(Commit { batch, .. }) = next else { return Ok(()) };
        let written = Written::of(&batch, self.about(&batch), self.ids.as_slice());
        let durable = self.disk.commit(batch).wait().is_ok();
        self.note(&written, durable)?;
        self.kill_daemon();
        Ok(())
    }

    /// The session whose decision a batch records.
    fn about(&self, batch: &Batch) -> Option<usize> {
        let id = batch.steps.iter().find_map(|step| match step {
            Stored::Update { id, .. } => Some(*id),
            Stored::Message { session, .. } | Stored::Run { session, .. } => Some(*session),
            Stored::Event(event) if ![EventKind::BegunAgain, EventKind::LeftAlone].contains(&event.kind) => {
                event.session
            }
            Stored::Create { .. }
            | Stored::Define { .. }
            | Stored::Remove { .. }
            | Stored::Event(_)
            | Stored::OwnedBy { .. }
            | Stored::Generation { .. }
            | Stored::Prune(_)
            | Stored::PruneRuns { .. }
            | Stored::PruneMessages { .. } => None,
        });
        let made = batch.steps.iter().any(|step| matches!(step, Stored::Create { .. }));
        id.filter(|_| !made).and_then(|id| self.ids.iter().position(|known| *known == id))
    }

    fn disk_is(&mut self, full: bool) {
        if std::mem::replace(&mut self.held_up, full) != full {
            self.tell(0, Input::Trouble(if full { Trouble::Full } else { Trouble::None }));
        }
    }

    /// A request that wants to see all sessions is answered when all were looked at, and not before.
    fn look(&mut self) {
        let (checked, looked) = channel();
        self.tell(0, Input::Look(Box::new(move |view| _ = checked.send(view.0.unseen()))));
        self.looks.push(looked);
    }

    fn again(&mut self, session: usize, which: u8) {
        let Some(daemon) = &self.daemon else { return };
        let said = &daemon.said[session];
        let Some((link, report)) = said.get(usize::from(which) % said.len().max(1)).cloned() else { return };
        let id = self.ids[session];
        self.tell(session, Input::Shim { id, link, report: Some(report) });
    }

    fn reboot(&mut self) {
        self.kill_daemon();
        let mut machine = self.shared.lock();
        machine.room.reboot();
        machine.links = [const { None }; SESSIONS];
    }

    fn agent_ends(&mut self, session: usize, ending: Ending) {
        let mut machine = self.shared.lock();
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
            Work::Answers => machine.answer_message(session),
            // An agent that fails a turn has no word for that: it ends, or says nothing.
            Work::Fails => None,
        };
        if let Some(message) = answered {
            self.checker.answered(message);
        }
    }

    fn kill_shim(&mut self, session: usize, stray: bool) {
        let mut machine = self.shared.lock();
        machine.room.kill_shim(session, stray);
        machine.hang_up(session);
    }

    fn foreign(&mut self, directory: usize, takes: bool) {
        let lock = &mut self.shared.lock().room.directory_locks[directory];
        match (*lock, takes) {
            (Holder::Nobody, true) => *lock = Holder::Outsider,
            (Holder::Outsider, false) => *lock = Holder::Nobody,
            (Holder::Nobody | Holder::Daemon(_) | Holder::Shim(_) | Holder::Outsider, _) => {}
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
        let (reply, receiver) = Reply::new();
        let (id, event) = (self.ids[session], Box::new(Event::Asked(ask)));
        let Some(daemon) = &mut self.daemon else { return };
        daemon.asked[session].push_back(receiver);
        self.tell(session, Input::Happened { id, event, facts: Box::default(), reply: Some(reply) });
    }

    fn post(&mut self, session: usize, post: Post) {
        let (reply, receiver) = Reply::new();
        let id = self.ids[session];
        let Some(daemon) = &mut self.daemon else { return };
        daemon.asked[session].push_back(receiver);
        self.tell(session, Input::Post { id, post, by: None, reply });
    }

    fn cancel(&mut self, session: usize) {
        let Some(daemon) = &self.daemon else { return };
        let Some(tracked) = daemon.engine.sessions.get(&self.ids[session]) else { return };
        let Some(message) = tracked.session.inbox().waiting().last().map(|queued| queued.message) else {
            return;
        };
        self.post(session, Post::Cancel { message });
    }

    fn consumer(&mut self, session: usize, who: u8, coming: Coming) {
        let consumer = consumer_id(session, who);
        let event = match coming {
            Coming::Attaches => Event::ConsumerJoined { consumer, kind: ConsumerKind::Attach },
            Coming::Watches => Event::ConsumerJoined { consumer, kind: ConsumerKind::Watch },
            Coming::Leaves => Event::ConsumerLeft { consumer },
        };
        let (id, event) = (self.ids[session], Box::new(event));
        self.tell(session, Input::Happened { id, event, facts: Box::default(), reply: None });
    }

    fn memory(&mut self, session: usize, percent: Option<u8>) {
        let Some(run) = self.shared.lock().room.agent(session).map(|agent| agent.run) else { return };
        let reading = percent
            .map_or(Reading::Unknown, |percent| Reading::Bytes(u64::from(percent) * MEMORY_LIMIT / 100));
        let source =
            if percent.is_some_and(|percent| percent % 2 == 0) { Source::Cgroup } else { Source::Sum };
        let (id, read) = (self.ids[session], Read { reading, source, swap: 0 });
        self.tell(session, Input::Memory { id, run, read });
    }

    fn redefine(&mut self, session: usize, variant: u8) {
        let define = Define { definition: definition(session, variant), given: Given::AsBefore, by: None };
        let (id, define) = (self.ids[session], Box::new(define));
        self.tell(session, Input::Define { id, define, reply: oneshot::channel().0 });
    }

    /// What follows by itself from whatever has just happened; the promises hold after it.
    pub(super) fn go_on(&mut self) -> Result<(), Violation> {
        self.remind();
        for session in 0..SESSIONS {
            let boot = self.shared.lock().room.boot;
            let due = |machine: &mut super::machine::Machine| {
                machine.room.agent(session).is_some_and(|agent| agent.ends_at.is_some_and(|at| at <= boot))
            };
            if due(&mut self.shared.lock()) {
                self.agent_ends(session, Ending::Signal(15));
            }
            self.leave_alone(session);
            self.wake_waiter(session);
        }
        self.confirm_memory();
        self.collect();
        if self.looks.iter().any(|looked| looked.try_recv() == Ok(true)) {
            return Err("a request was answered before every session was looked at".to_owned());
        }
        self.checker.world(&self.shared.lock().room)
    }

    /// A shim without a run leaves when its gap is over, or when it has no daemon.
    fn leave_alone(&mut self, session: usize) {
        let mut machine = self.shared.lock();
        let Some(shim) = machine.room.shims[session].as_ref().filter(|shim| shim.agent.is_none()) else {
            return;
        };
        let gap = Duration::from_millis(machine.room.boot - shim.idle_since);
        let unread = machine.links[session].as_ref().is_some_and(|link| !link.commands.is_empty());
        if gap > LONGEST_GAP || (!machine.connected(session) && !unread) {
            machine.leave(session);
        }
    }

    fn wake_waiter(&mut self, session: usize) {
        let mut machine = self.shared.lock();
        if !machine.is_free(session) {
            return;
        }
        let Some(waiter) = machine.waiters[session].take() else { return };
        drop(machine);
        if !waiter.cancelled.load(Ordering::Relaxed) {
            (waiter.then)(());
        }
    }

    /// Reminders that are due are given.
    fn remind(&mut self) {
        let mut machine = self.shared.lock();
        let now = machine.began + Duration::from_millis(machine.room.awake);
        let (due, later) = std::mem::take(&mut machine.reminders).into_iter().partition(|(at, _)| *at <= now);
        machine.reminders = later;
        drop(machine);
        let mut due: Vec<_> = due;
        due.sort_by_key(|(at, _)| *at);
        due.into_iter().for_each(|(_, then)| then(()));
    }

    fn confirm_memory(&mut self) {
        let confirmed = std::mem::take(&mut self.shared.lock().confirmed);
        for (session, run) in confirmed {
            let reading = Reading::Bytes(MEMORY_LIMIT / 2);
            let (id, read) = (self.ids[session], Read { reading, source: Source::Shares, swap: 0 });
            self.tell(session, Input::Memory { id, run, read });
        }
    }
}

/// What has to be known of a batch after it was written.
struct Written {
    session: Option<usize>,
    /// The latest run that it decides.
    run: Option<pinfold_core::RunNumber>,
    /// The session began again with it.
    reloaded: bool,
}

impl Written {
    fn of(batch: &Batch, session: Option<usize>, ids: &[pinfold_store::SessionId]) -> Written {
        let runs = batch.steps.iter().filter_map(|step| match step {
            Stored::Run { run: RunStep::Decided { run, .. }, .. } => Some(*run),
            _ => None,
        });
        let reloaded = session.is_some_and(|session| batch.reloaded.contains(&ids[session]));
        Written { session, run: runs.max(), reloaded }
    }
}

/// Nobody sent this message.
fn contradiction(session: pinfold_store::SessionId) -> Stored {
    let change = MessageChange::Taken { message: MessageId(u128::MAX) };
    Stored::Message { session, at: Wall(0), change, words: None, from: None, place: None }
}

fn consumer_id(session: usize, who: u8) -> ConsumerId {
    ConsumerId(session as u64 * 10 + u64::from(who % 3))
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
