//! What must hold after every step, whatever has happened.

use super::world::{MachineRoom, SESSIONS, SimulatedHolder, directory_of};
use pinfold_core::budgets::Budgets;
use pinfold_core::decision::{Record, RunExited};
use pinfold_core::event::{Ask, Joins, MessageEvent, RunEvent};
use pinfold_core::inbox::{MessageChange, MessageFailure};
use pinfold_core::life::{Goal, Life, Purpose};
use pinfold_core::rules::Warning;
use pinfold_core::{Action, Change, Decision, Event, MessageId, Mode, Now, RunNumber, Session, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A broken promise, as text.
pub(crate) type Violation = String;

#[derive(Default)]
pub(crate) struct Checker {
    /// The starts for which locks were requested.
    asked: BTreeSet<(usize, RunNumber)>,
    started: BTreeSet<(usize, RunNumber)>,
    exited: BTreeSet<(usize, RunNumber)>,
    pub(crate) messages: BTreeMap<MessageId, (usize, Fate)>,
    /// Messages in the order in which they were queued: ids follow the wall clock, which jumps.
    queued: BTreeMap<MessageId, u64>,
    /// The message of each dedupe key of a session.
    keys: BTreeMap<(usize, String), MessageId>,
    first_deliveries: [Vec<MessageId>; SESSIONS],
    answered: BTreeSet<MessageId>,
    /// Retried messages, which are at the end of the queue again.
    retried: BTreeSet<MessageId>,
    /// Crash-limit warnings since the streak last began.
    warned: [u32; SESSIONS],
    pub(crate) decisions: u64,
    /// How often each rule decided.
    pub(crate) rules: BTreeMap<String, u64>,
    complaint: Option<Violation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    Done,
    Failed,
}

fn ensure(holds: bool, violation: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(violation()) }
}

impl Checker {
    /// The machine room: at most one holder acts, and a lock is held as long as its run lives.
    pub(crate) fn world(&mut self, room: &MachineRoom) -> Result<(), Violation> {
        if let Some(violation) = self.complaint.take() {
            return Err(violation);
        }
        let alive = |session: usize| room.shims[session].as_ref().is_some_and(|shim| shim.agent.is_some());
        for session in 0..SESSIONS {
            if !alive(session) {
                continue;
            }
            let directory = directory_of(session);
            let twin = (0..SESSIONS)
                .find(|other| *other != session && directory_of(*other) == directory && alive(*other));
            ensure(twin.is_none(), || format!("sessions {session} and {twin:?} run in one directory"))?;
            let holds = room.session_locks[session] == SimulatedHolder::Shim(session)
                && room.directory_locks[directory] == SimulatedHolder::Shim(session);
            ensure(holds, || format!("session {session} runs without its locks"))?;
            ensure(!room.strays[session], || {
                format!("session {session} runs beside what is left of its last run")
            })?;
        }
        Ok(())
    }

    /// The disk has what the daemon knows, except what dies with it.
    pub(crate) fn disk(&self, disk: &Session, memory: &Session) -> Result<(), Violation> {
        ensure(*disk == memory.as_stored(), || format!("disk and memory differ:\n{disk:?}\n{memory:?}"))
    }

    /// Every spawn is preceded by a durable change.
    pub(crate) fn spawned_durably(&mut self, durable: RunNumber, session: usize, run: RunNumber) {
        if durable < run {
            self.complain(format!("session {session}: {run} is spawned and not on disk"));
        }
    }

    /// Reports something seen while an action was performed.
    pub(crate) fn complain(&mut self, violation: Violation) {
        self.complaint = Some(violation);
    }

    pub(crate) fn answered(&mut self, message: MessageId) {
        self.answered.insert(message);
    }

    pub(crate) fn a_failed_message(&self, session: usize) -> Option<MessageId> {
        let failed = |(_, fate): &(&MessageId, &(usize, Fate))| **fate == (session, Fate::Failed);
        self.messages.iter().find(failed).map(|(message, _)| *message)
    }

    pub(crate) fn decision(
        &mut self,
        at: usize,
        before: &Session,
        event: &Event,
        decision: &Decision,
        after: &Session,
        now: Now,
    ) -> Result<(), Violation> {
        self.decisions += 1;
        *self.rules.entry(decision.why.rule()).or_default() += 1;
        let told = |what: &str| {
            let life = before.life();
            format!("session {at}: {what}\nevent {event:?}\nbefore {life:?}\ndecision {decision:?}")
        };
        for rule in [
            resting_states_stay,
            waits_keep_their_word,
            starts_need_a_reason,
            asked_ends_are_free,
            refused_starts_are_free,
            last_exit_is_the_last_exit,
            guests_disturb_nobody,
            held_sessions_get_no_turn,
            shape,
        ] {
            rule(before, event, decision, after, now).map_err(|what| told(&what))?;
        }
        self.numbers(at, decision).map_err(|what| told(&what))?;
        self.records(at, decision, after).map_err(|what| told(&what))?;
        self.messages(at, decision, after).map_err(|what| told(&what))?;
        self.warnings(at, before, decision, after).map_err(|what| told(&what))
    }

    /// A number stands for one start: a repeated report is never about the next one.
    fn numbers(&mut self, at: usize, decision: &Decision) -> Result<(), Violation> {
        for action in &decision.actions {
            if let Action::Reserve { run, .. } = action {
                ensure(self.asked.insert((at, *run)), || format!("{run} stands for two starts"))?;
            }
        }
        Ok(())
    }

    /// One start and one end for each run.
    fn records(&mut self, at: usize, decision: &Decision, after: &Session) -> Result<(), Violation> {
        for record in records(decision) {
            match record {
                Record::RunStarted { run, .. } => {
                    ensure(self.started.insert((at, *run)), || format!("{run} started twice"))?;
                }
                Record::RunExited(exited) => {
                    let run = exited.run;
                    ensure(self.exited.insert((at, run)), || format!("{run} ended twice"))?;
                    ensure(after.runs().settled >= run, || format!("{run} ended and is not settled"))?;
                    ensure(exited.crashes == after.budgets().crashes, || {
                        "the record miscounts crashes".into()
                    })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Every run that is over has its end on record, once the world is quiet.
    pub(crate) fn all_ends_known(&self, at: usize, live: Option<RunNumber>) -> Result<(), Violation> {
        for (session, run) in &self.started {
            let over = *session == at && Some(*run) != live;
            ensure(!over || self.exited.contains(&(at, *run)), || format!("session {at}: {run} has no end"))?;
        }
        Ok(())
    }

    /// Never lost, never done twice, in order, bounded tries.
    fn messages(&mut self, at: usize, decision: &Decision, after: &Session) -> Result<(), Violation> {
        for change in &decision.changes {
            let Change::Message(step) = change else { continue };
            self.message_step(at, step)?;
        }
        if let Some(turn) = after.inbox().in_flight() {
            let running = matches!(after.life(), Life::Running { .. } | Life::Stopping { .. });
            ensure(running, || "a turn is under way without a run".into())?;
            ensure(turn.tries <= after.spec().policy.message_tries.max(1), || {
                "a message was tried too often".into()
            })?;
        }
        for (message, (session, fate)) in &self.messages {
            if *session != at {
                continue;
            }
            let turn = after.inbox().in_flight().is_some_and(|turn| turn.message == *message);
            let waits = after.inbox().waits(*message);
            let places = usize::from(turn) + usize::from(waits);
            let expected = usize::from(*fate == Fate::Open);
            ensure(places == expected, || format!("{message:?} is {fate:?} and stands in {places} places"))?;
        }
        Ok(())
    }

    fn message_step(&mut self, at: usize, step: &MessageChange) -> Result<(), Violation> {
        match step {
            MessageChange::Queued { message, key } => {
                if let Some(key) = key {
                    let known = self.keys.insert((at, key.clone()), *message);
                    ensure(known.is_none(), || format!("{message:?} has the key `{key}` of {known:?}"))?;
                }
                self.queued.insert(*message, self.queued.len() as u64);
                let old = self.messages.insert(*message, (at, Fate::Open));
                ensure(old.is_none(), || format!("{message:?} was queued twice"))
            }
            MessageChange::Delivering { message } => self.delivering(at, *message),
            MessageChange::Taken { .. } | MessageChange::Requeued { .. } => Ok(()),
            MessageChange::Done { message } => {
                ensure(self.answered.contains(message), || {
                    format!("{message:?} is done and was never answered")
                })?;
                self.settle(at, *message, Fate::Done)
            }
            MessageChange::Failed { message, why } => {
                if *why == MessageFailure::TriesUsedUp {
                    *self.rules.entry("tries_used_up".to_owned()).or_default() += 1;
                }
                self.settle(at, *message, Fate::Failed)
            }
            MessageChange::Retried { message, .. } => {
                self.retried.insert(*message);
                let old = self.messages.insert(*message, (at, Fate::Open));
                ensure(old == Some((at, Fate::Failed)), || format!("{message:?} was retried as {old:?}"))
            }
        }
    }

    fn settle(&mut self, at: usize, message: MessageId, fate: Fate) -> Result<(), Violation> {
        let old = self.messages.insert(message, (at, fate));
        ensure(old == Some((at, Fate::Open)), || format!("{message:?} became {fate:?} from {old:?}"))
    }

    fn delivering(&mut self, at: usize, message: MessageId) -> Result<(), Violation> {
        let earlier = &mut self.first_deliveries[at];
        if earlier.contains(&message) || self.retried.contains(&message) {
            return Ok(());
        }
        let place = |message: &MessageId| self.queued.get(message).copied();
        let in_order = earlier.last().is_none_or(|last| place(last) < place(&message));
        earlier.push(message);
        ensure(in_order, || format!("{message:?} overtook an older message"))
    }

    /// One warning per streak.
    fn warnings(
        &mut self,
        at: usize,
        before: &Session,
        decision: &Decision,
        after: &Session,
    ) -> Result<(), Violation> {
        if after.budgets().crashes < before.budgets().crashes || after.budgets().crashes == 1 {
            self.warned[at] = 0;
        }
        let warned =
            |record: &&Record| matches!(record, Record::HealthWarn { reason: Warning::CrashSoftLimit });
        self.warned[at] += records(decision).filter(warned).count() as u32;
        ensure(self.warned[at] <= 1, || "the soft limit was warned of twice in one streak".into())
    }
}

fn records(decision: &Decision) -> impl Iterator<Item = &Record> {
    decision.changes.iter().filter_map(|change| match change {
        Change::Record(record) => Some(record),
        _ => None,
    })
}

fn starts(decision: &Decision) -> bool {
    decision.actions.iter().any(|action| matches!(action, Action::Reserve { .. } | Action::Spawn { .. }))
}

type Rule = fn(&Session, &Event, &Decision, &Session, Now) -> Result<(), Violation>;
const _: Rule = shape;

/// Stopped, failed and archived sessions are moved by people (and a failed one by a message), never by rules.
fn resting_states_stay(
    before: &Session,
    event: &Event,
    decision: &Decision,
    after: &Session,
    _: Now,
) -> Result<(), Violation> {
    let takes_over = matches!(event, Event::Asked(Ask::Attach { joins: Joins::Takeover, .. }));
    let by_person =
        takes_over || matches!(event, Event::Asked(Ask::Start | Ask::Restart | Ask::Takeover { .. }));
    let by_message =
        matches!(event, Event::Message(MessageEvent::Sent { .. } | MessageEvent::Retried { .. }));
    let allowed = match before.life() {
        Life::Archived { .. } => {
            let wanted = before.inbox().queued() > 0 || before.consumers() > 0;
            matches!(event, Event::Asked(Ask::Restore)) && wanted
        }
        Life::Stopped => by_person,
        Life::Failed { .. } => by_person || by_message,
        Life::Stopping { goal: Goal::Archive, .. } => false,
        Life::Stopping { goal: Goal::Stop, .. } => false,
        _ => true,
    };
    ensure(allowed || !starts(decision), || "a session at rest was started".into())?;
    let archived = matches!(after.life(), Life::Archived { .. });
    ensure(!archived || !starts(decision), || "an archived session was started".into())?;
    let left_archive = matches!(before.life(), Life::Archived { .. }) && !archived;
    let restored = matches!(event, Event::Asked(Ask::Restore));
    ensure(!left_archive || restored, || "a session left the archive by itself".into())
}

/// No spawn before its deadline; no delay above its ceiling.
fn waits_keep_their_word(
    before: &Session,
    event: &Event,
    decision: &Decision,
    after: &Session,
    now: Now,
) -> Result<(), Violation> {
    if let (Life::Backoff { until, .. }, Event::Ticked) = (before.life(), event) {
        ensure(!starts(decision) || now.boot >= until.boot, || "a wait was cut short by a timer".into())?;
    }
    let policy = &before.spec().policy;
    let ceiling =
        policy.backoff_max.max(policy.contention_max).max(policy.drain_backoff).max(Duration::from_secs(600));
    for record in records(decision) {
        if let Record::Backoff { wait, .. } = record {
            ensure(*wait <= ceiling, || format!("a wait of {wait:?}"))?;
        }
    }
    let failed = matches!(after.life(), Life::Failed { .. });
    let waits = records(decision).any(|record| matches!(record, Record::Backoff { .. }));
    ensure(!(failed && waits), || "failed and waiting at once".into())
}

/// No run without a reason; none while the daemon goes down; a hopeless session is never restarted.
fn starts_need_a_reason(
    _: &Session,
    event: &Event,
    decision: &Decision,
    after: &Session,
    now: Now,
) -> Result<(), Violation> {
    if let Life::Starting { purpose: Purpose::Headless, .. } = after.life() {
        let needed = after.spec().mode != Mode::OnDemand || after.need(now.boot).is_some();
        ensure(!starts(decision) || needed, || "a run that nobody needs".into())?;
    }
    let hopeless =
        |record: &Record| matches!(record, Record::RunExited(exited) if exited.verdict == Verdict::Hopeless);
    if records(decision).any(hopeless) && !matches!(event, Event::DaemonStarted(_)) {
        let by_takeover = matches!(after.life(), Life::Starting { purpose: Purpose::Interactive(_), .. });
        let was_interactive = decision.why.rule().starts_with("takeover");
        ensure(!starts(decision) || by_takeover || was_interactive, || {
            "a hopeless run was restarted".into()
        })?;
    }
    Ok(())
}

/// Ends that we asked for change no counter; contention is never a crash.
fn asked_ends_are_free(
    before: &Session,
    event: &Event,
    decision: &Decision,
    after: &Session,
    _: Now,
) -> Result<(), Violation> {
    let Event::Run { event: RunEvent::Exited { .. }, .. } = event else { return Ok(()) };
    let asked = matches!(
        before.life(),
        Life::Stopping {
            goal: Goal::Stop | Goal::Park | Goal::Restart | Goal::Takeover | Goal::Archive | Goal::Down,
            ..
        }
    );
    // A long run gives messages back their rights, however it ends.
    let counters = |of: &Session| Budgets { hurried: false, tried: false, ..of.budgets().clone() };
    ensure(!asked || counters(before) == counters(after), || "an asked end was charged".into())?;
    let uncounted = |exited: &RunExited| !matches!(exited.verdict, Verdict::Crash | Verdict::OutOfMemory);
    for record in records(decision) {
        if let Record::RunExited(exited) = record
            && uncounted(exited)
        {
            ensure(before.budgets().crashes == after.budgets().crashes, || "counted as a crash".into())?;
        }
    }
    Ok(())
}

/// A refused start counts as no crash, is not a run, and has no end.
fn refused_starts_are_free(
    before: &Session,
    event: &Event,
    decision: &Decision,
    after: &Session,
    _: Now,
) -> Result<(), Violation> {
    let Event::Run { event: RunEvent::StartFailed(_), .. } = event else { return Ok(()) };
    let (budgets, runs) = (before.budgets(), before.runs());
    ensure(budgets.crashes == after.budgets().crashes, || "a refused start was charged as a crash".into())?;
    ensure(runs.count == after.runs().count, || "a refused start was counted as a run".into())?;
    let exited = records(decision).any(|record| matches!(record, Record::RunExited(_)));
    ensure(!exited, || "a refused start has an end".into())
}

/// The last exit is that of the last run that ended, and nothing else writes it.
fn last_exit_is_the_last_exit(
    before: &Session,
    _: &Event,
    decision: &Decision,
    after: &Session,
    _: Now,
) -> Result<(), Violation> {
    let exits = records(decision).filter_map(|record| match record {
        Record::RunExited(exited) => Some((exited.exit, exited.verdict)),
        _ => None,
    });
    match exits.last() {
        None => ensure(before.last_exit() == after.last_exit(), || "a last exit without an end".into()),
        Some(ended) => {
            let told = after.last_exit().map(|exit| (exit.exit, exit.verdict));
            ensure(told == Some(ended), || format!("the last exit is {told:?}, not {ended:?}"))
        }
    }
}

/// A guest belongs to the live run, there is at most one, and it changes nothing of the run by coming and
/// going.
fn guests_disturb_nobody(
    before: &Session,
    event: &Event,
    decision: &Decision,
    after: &Session,
    _: Now,
) -> Result<(), Violation> {
    let here = after.guest_here();
    ensure(here.is_none_or(|guest| after.live_run() == Some(guest.run)), || {
        "a guest outlives its run".into()
    })?;
    let asked = decision.actions.iter().any(|action| matches!(action, Action::StartGuest { .. }));
    ensure(!asked || before.guest_here().is_none() || before.live_run() != after.live_run(), || {
        "a second guest was asked for".into()
    })?;
    if !matches!(event, Event::Run { event: RunEvent::Guest { .. }, .. }) {
        return Ok(());
    }
    let of_run = |change: &Change| matches!(change, Change::Life(_) | Change::Runs(_) | Change::Message(_));
    ensure(!decision.changes.iter().any(of_run), || "a guest changed the run beside it".into())?;
    let ends = |action: &Action| matches!(action, Action::Stop { .. } | Action::Interrupt { .. });
    ensure(!decision.actions.iter().any(ends), || "a guest ended the run beside it".into())
}

/// No turn begins while the account of a session is held, or its budget is spent.
fn held_sessions_get_no_turn(
    _: &Session,
    _: &Event,
    decision: &Decision,
    after: &Session,
    _: Now,
) -> Result<(), Violation> {
    let delivers = |change: &Change| matches!(change, Change::Message(MessageChange::Delivering { .. }));
    let begins = decision.changes.iter().any(delivers);
    ensure(!begins || after.hold().is_none(), || "a turn begins although its account is held".into())
}

/// States are well formed, and stale events change nothing that is stored.
fn shape(before: &Session, _: &Event, decision: &Decision, after: &Session, _: Now) -> Result<(), Violation> {
    if after.takeover().is_some() {
        let fits =
            matches!(after.life(), Life::Starting { .. } | Life::Running { .. } | Life::Stopping { .. });
        ensure(fits, || "a takeover is under way without anything to take over".into())?;
    }
    if decision.why.rule() == "stale" {
        ensure(before.as_stored() == after.as_stored(), || "a stale event changed something".into())?;
        ensure(!starts(decision), || "a stale event started something".into())?;
    }
    let live = after.live_run();
    ensure(live.is_none_or(|run| run > after.runs().settled), || "a settled run is alive".into())
}
