//! The steps of a case.

use super::case::Case;
use super::check::Violation;
use super::machine::Commit;
use super::nursery::BirthTrouble as Birth;
use super::script::{self, AgentEnding, CommonStep as Common};
use super::world::{DIRECTORIES, SESSIONS, pick};
use super::{MEMORY_LIMIT, shim};
use crate::engine::input::{AgentsOnDown, LoopInput, Post, Sending};
use crate::memory::MeterReading;
use pinfold_core::inbox::MessageChange;
use pinfold_core::rules::LONGEST_GAP;
use pinfold_core::rules::memory::{Reading, ReadingSource};
use pinfold_core::{Event, EventKind, MessageId, Wall};
use pinfold_store::{Batch, RunStep, Step as Stored, Trouble};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;
use tokio::sync::oneshot;

/// One step: one that the core's simulation knows, or one that only a whole daemon has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) enum SimulationStep {
    Common(Common),
    /// The next batch contradicts what is stored.
    Contradict,
    /// A batch becomes durable, and the daemon dies before hearing of it.
    DieWithCommit,
    /// The disk takes nothing more, or takes everything again.
    Disk {
        full: bool,
    },
    /// Something goes wrong with the birth of a session's next shim.
    Birth(u8, Birth),
    /// A client wants to look at all sessions.
    Look,
}

/// The script of a seed.
pub(super) fn generate(seed: u64, length: usize) -> Vec<SimulationStep> {
    let mut dice = script::Dice::new(seed ^ 0xD1CE);
    // Stops that cannot be recorded are written to a real file, which is slow: only some cases have them.
    let fills = seed.is_multiple_of(8);
    // A daemon that is killed too often never gets far: in most cases it is killed seldom.
    let calm = !seed.is_multiple_of(4);
    let mut other = |common: Common| match dice.roll() % 500 {
        spare if calm && spare >= 60 && common == Common::KillDaemon => {
            let who = dice.roll() as u8;
            SimulationStep::Common(if who.is_multiple_of(2) {
                Common::Perform(who)
            } else {
                Common::Take(who)
            })
        }
        0..=1 => SimulationStep::Contradict,
        2..=4 => SimulationStep::DieWithCommit,
        5..=6 if fills => SimulationStep::Disk { full: true },
        7..=13 if fills => SimulationStep::Disk { full: false },
        14..=20 => SimulationStep::Birth(dice.roll() as u8, birth(dice.roll())),
        21..=23 => SimulationStep::Look,
        _ => SimulationStep::Common(common),
    };
    script::generate(seed, length).into_iter().map(&mut other).collect()
}

/// Events that name a session but do not come from a decision of it.
const BESIDE: [EventKind; 3] = [EventKind::BegunAgain, EventKind::LeftAlone, EventKind::AccountHeld];

impl Case {
    pub(super) fn play(&mut self, step: SimulationStep) -> Result<(), Violation> {
        match step {
            SimulationStep::Common(common) => self.happen(common)?,
            SimulationStep::Contradict => self.contradicts = true,
            SimulationStep::DieWithCommit => self.die_with_commit()?,
            SimulationStep::Disk { full } => self.disk_is(full),
            SimulationStep::Birth(s, trouble) => {
                self.shared.lock().births[usize::from(s) % SESSIONS] = Some(trouble);
            }
            SimulationStep::Look => self.look(),
        }
        self.go_on()
    }

    fn happen(&mut self, step: Common) -> Result<(), Violation> {
        let at = |number: u8| usize::from(number) % SESSIONS;
        let with_agent = |case: &Case, number: u8| case.shared.lock().room.with_agent(number);
        match step {
            Common::Perform(s) => return bursts(s).try_for_each(|number| self.perform_some(number)),
            Common::Take(s) => return bursts(s).try_for_each(|number| self.take_some(number)),
            Common::Again(s, which) => self.again(at(s), which),
            Common::Pass(millis) => self.shared.lock().room.pass(u64::from(millis)),
            Common::Tick(s) if s.is_multiple_of(2) => self.happens(at(s), Event::Ticked),
            Common::Tick(_) => return self.tick(),
            Common::ClockJumps(minutes) => self.shared.lock().room.wall += i64::from(minutes) * 60_000,
            Common::Suspend(minutes) => self.shared.lock().room.suspend(u64::from(minutes) * 60_000),
            Common::Reboot => self.reboot(),
            Common::KillDaemon => self.kill_daemon(),
            Common::StartDaemon => return self.start_daemon(),
            Common::Down => {
                self.tell(0, LoopInput::Down { agents: AgentsOnDown::Stopped, by: None, reply: None });
            }
            Common::AgentEnds(s, ending) => self.agent_ends(with_agent(self, s), ending),
            Common::AgentWorks(s, work) => self.agent_works(with_agent(self, s), work),
            Common::KillShim(s, stray) => self.kill_shim(at(s), stray),
            Common::BreakSpawn(s, broken) => self.shared.lock().room.broken[at(s)] = Some(broken),
            Common::Foreign(directory, takes) => self.foreign(usize::from(directory) % DIRECTORIES, takes),
            Common::Ask(s, asking) => self.ask(at(s), asking),
            Common::Send(s, key) => {
                let key = (key > 0).then(|| format!("key-{key}"));
                let row = oneshot::channel().0;
                self.post(
                    at(s),
                    Post::Send(Sending { text: "do it".to_owned(), key, files: Vec::new(), row }),
                );
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
            Common::VendorBusy(s) => return self.vendor(at(s), s),
            Common::Redefine(s, variant) => self.redefine(at(s), variant),
        }
        Ok(())
    }

    /// The vendor is too busy for the account of a session, or a person lets the account go on.
    fn vendor(&mut self, session: usize, number: u8) -> Result<(), Violation> {
        let id = self.ids[session];
        let Some(daemon) = &mut self.daemon else { return Ok(()) };
        let Some(account) = daemon.engine.sessions.get(&id).and_then(|tracked| tracked.account.clone())
        else {
            return Ok(());
        };
        if number >= 192 {
            daemon.engine.resume_account(&account);
        } else {
            let kind = pinfold_agents::FailureKind::Overloaded;
            daemon.engine.refused(id, &pinfold_agents::TurnFailure { kind, text: "529".to_owned() });
            daemon.engine.settle_accounts();
        }
        self.after_a_turn()
    }

    fn take_some(&mut self, number: u8) -> Result<(), Violation> {
        self.collect();
        // The alarm and an input may be there at once: either may come first.
        if number.is_multiple_of(2) && self.shared.lock().rings() {
            return self.tick();
        }
        let Some(daemon) = &self.daemon else { return Ok(()) };
        match pick(number, |session| !daemon.pending[session].is_empty()) {
            Some(session) => self.take(session).map(drop),
            None => Ok(()),
        }
    }

    /// The store's thread, a pool thread or a shim does its next task.
    fn perform_some(&mut self, number: u8) -> Result<(), Violation> {
        if number >= 128 && self.perform_commit()? {
            return Ok(());
        }
        let machine = self.shared.lock();
        let session = pick(number, |session| machine.is_busy(session));
        drop(machine);
        match session {
            Some(session) => self.perform(session, number),
            None => self.perform_commit().map(drop),
        }
    }

    /// A pool thread or the shim of a session does something.
    pub(super) fn perform(&mut self, session: usize, number: u8) -> Result<(), Violation> {
        let mut machine = self.shared.lock();
        let done = match number % 4 {
            0 | 2 => machine.obey(session, &mut self.checker, self.durable[session]),
            1 => false,
            _ => machine.fade(session) || machine.orphan_leaves(session),
        };
        let job = if done { None } else { machine.jobs[session].pop_front() };
        if job.is_none() && !done {
            _ = machine.obey(session, &mut self.checker, self.durable[session])
                || machine.fade(session)
                || machine.orphan_leaves(session);
        }
        drop(machine);
        if let Some(job) = job {
            shim::perform(&self.shared, session, job);
        }
        Ok(())
    }

    /// The store's thread makes the next batch durable, or refuses it. Returns whether there was one.
    pub(super) fn perform_commit(&mut self) -> Result<bool, Violation> {
        if self.held_up {
            return Ok(false);
        }
        let Some(Commit { mut batch, with, then }) = self.shared.lock().commits.pop_front() else {
            return Ok(false);
        };
        let about = self.about(&batch);
        let contradicted = about.is_some() && std::mem::take(&mut self.contradicts);
        if let Some(session) = about.filter(|_| contradicted) {
            batch.steps.push(contradiction(self.ids[session]));
        }
        let written = Written { contradicted, ..Written::of(&batch, about, self.ids.as_slice()) };
        let (sender, told) = channel();
        let Some(daemon) = &self.daemon else { return Ok(false) };
        crate::ports::journal::Journal::commit(
            &daemon.journal,
            batch,
            with,
            Box::new(move |outcome| {
                _ = sender.send(outcome.as_ref().map(drop).map_err(ToString::to_string));
                then(outcome);
            }),
        );
        let durable = told.try_recv().map_err(|_| "a batch without an outcome".to_owned())?;
        let unexpected = |why: &String| !written.contradicted && !why.contains("builds on a change");
        if let Err(why) = durable.as_ref()
            && unexpected(why)
        {
            return Err(format!("a batch was refused that nothing contradicts: {why}"));
        }
        self.note(&written, durable.is_ok())?;
        Ok(true)
    }

    fn note(&mut self, written: &Written, durable: bool) -> Result<(), Violation> {
        self.done += 1;
        let Some(session) = written.session else { return Ok(()) };
        if durable && written.reloaded {
            self.decisions.begin_again(session);
        }
        // What builds on a refused batch has not been decided, even if its events are recorded.
        if !durable || self.decisions.is_refused(session) {
            self.decisions.refuse(session);
            return Ok(());
        }
        if let Some(run) = written.run {
            self.durable[session] = self.durable[session].max(run);
        }
        self.recorded(session)
    }

    /// The batch is on disk, and that is the last thing this daemon did.
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
            Stored::Event(event) if !BESIDE.contains(&event.kind) => event.session,
            Stored::Create { .. }
            | Stored::Define { .. }
            | Stored::Rename { .. }
            | Stored::Remove { .. }
            | Stored::Event(_)
            | Stored::Cursor(_)
            | Stored::Spent(_)
            | Stored::Files { .. }
            | Stored::Account { .. }
            | Stored::OwnedBy { .. }
            | Stored::Generation { .. }
            | Stored::Prune(_)
            | Stored::Told { .. }
            | Stored::GiveBack { .. } => None,
        });
        let made = batch.steps.iter().any(|step| matches!(step, Stored::Create { .. }));
        id.filter(|_| !made).and_then(|id| self.ids.iter().position(|known| *known == id))
    }

    fn disk_is(&mut self, full: bool) {
        if std::mem::replace(&mut self.held_up, full) != full {
            self.tell(0, LoopInput::Trouble(if full { Trouble::Full } else { Trouble::None }));
        }
    }

    /// A request to see all sessions is answered only after all were looked at.
    fn look(&mut self) {
        let (checked, looked) = channel();
        self.tell(0, LoopInput::Look(Box::new(move |view| _ = checked.send(view.0.unseen()))));
        self.looks.push(looked);
    }

    fn again(&mut self, session: usize, which: u8) {
        let Some(daemon) = &self.daemon else { return };
        let said = &daemon.said[session];
        let Some((link, report)) = said.get(usize::from(which) % said.len().max(1)).cloned() else { return };
        let id = self.ids[session];
        self.tell(session, LoopInput::Shim { id, link, report: Some(report) });
    }

    fn reboot(&mut self) {
        self.kill_daemon();
        let mut machine = self.shared.lock();
        machine.room.reboot();
        machine.links = [const { None }; SESSIONS];
        machine.unborn = [0; SESSIONS];
    }

    /// Does what follows by itself from the last step; then the promises must hold.
    pub(super) fn go_on(&mut self) -> Result<(), Violation> {
        self.remind();
        for session in 0..SESSIONS {
            let boot = self.shared.lock().room.boot;
            let due = |machine: &mut super::machine::VirtualMachine| {
                machine.room.agent(session).is_some_and(|agent| agent.ends_at.is_some_and(|at| at <= boot))
            };
            if due(&mut self.shared.lock()) {
                self.agent_ends(session, AgentEnding::Signal(15));
            }
            self.leave_alone(session);
            self.wake_waiter(session);
            self.tell_of_turn(session);
        }
        self.confirm_memory();
        self.collect();
        let answers: Vec<_> = self.looks.iter().map(Receiver::try_recv).collect();
        if answers.contains(&Ok(true)) {
            return Err("a request was answered before every session was looked at".to_owned());
        }
        let mut waits = answers.into_iter().map(|answer| answer == Err(TryRecvError::Empty));
        self.looks.retain(|_| waits.next() == Some(true));
        let mut machine = self.shared.lock();
        match machine.wrong.take() {
            Some(violation) => Err(violation),
            None => self.checker.world(&machine.room),
        }
    }

    /// A shim without a run leaves when its gap is over, or when it has no daemon.
    fn leave_alone(&mut self, session: usize) {
        let mut machine = self.shared.lock();
        let Some(shim) = machine.room.shims[session].as_ref().filter(|shim| shim.agent.is_none()) else {
            return;
        };
        let gap = Duration::from_millis(machine.room.boot - shim.idle_since);
        let unread = machine.links[session].as_ref().is_some_and(|link| !link.commands.is_empty());
        if !unread && (gap > LONGEST_GAP || !machine.connected(session)) {
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

    /// Gives the reminders that are due.
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
            let (id, read) =
                (self.ids[session], MeterReading { reading, source: ReadingSource::Shares, swap: 0 });
            self.tell(session, LoopInput::Memory { id, run, read });
        }
    }
}

/// The daemon mostly does one thing at a time, and sometimes several in a row: otherwise it would never get
/// far.
fn bursts(number: u8) -> impl Iterator<Item = u8> {
    let times = if number.is_multiple_of(4) { 6 } else { 1 };
    (0..times).map(move |turn: u8| number.wrapping_add(turn.wrapping_mul(67)))
}

/// What has to be known of a batch after it was written.
struct Written {
    session: Option<usize>,
    /// The latest run that it decides.
    run: Option<pinfold_core::RunNumber>,
    /// The session began again with it.
    reloaded: bool,
    /// The script made it contradict what is stored.
    contradicted: bool,
}

impl Written {
    fn of(batch: &Batch, session: Option<usize>, ids: &[pinfold_store::SessionId]) -> Written {
        let runs = batch.steps.iter().filter_map(|step| match step {
            Stored::Run { run: RunStep::Decided { run, .. }, .. } => Some(*run),
            _ => None,
        });
        let reloaded = session.is_some_and(|session| batch.reloaded.contains(&ids[session]));
        Written { session, run: runs.max(), reloaded, contradicted: false }
    }
}

fn birth(roll: u64) -> Birth {
    let all = [
        Birth::NoNursery,
        Birth::NoProgram,
        Birth::NurseryKilled,
        Birth::NurseryStopped,
        Birth::ShimSlow,
        Birth::ShimMute,
    ];
    all[roll as usize % all.len()]
}

/// A change of a message that was never sent.
fn contradiction(session: pinfold_store::SessionId) -> Stored {
    let change = MessageChange::Taken { message: MessageId(u128::MAX) };
    Stored::Message {
        session,
        at: Wall(0),
        change,
        words: None,
        told: Default::default(),
        from: None,
        place: None,
    }
}
