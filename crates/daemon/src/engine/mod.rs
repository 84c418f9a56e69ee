//! The loop: take an event, ask the core, commit, then act. Results of actions come back as events.

mod act;
mod archive;
mod asked_by;
mod down;
mod failed;
mod gauges;
mod given;
mod health;
pub(crate) mod input;
mod memory;
mod messages;
mod notes;
mod recover;
mod reports;
pub(crate) mod session;
mod sessions;
mod speech;
mod stops;
mod strangers;
mod timer;
mod unended;

pub(crate) use archive::{Candidate, Modes};
pub(crate) use down::{Farewell, Goodbye};
pub(crate) use health::Health;
pub(crate) use sessions::gone;
pub(crate) use unended::{Heard, Overdue, Watch};

use crate::caller::By;
use crate::clock::Clock;
use crate::crash;
use crate::define::config::Config;
use crate::define::home::Home;
use crate::define::values::Values;
use crate::engine::input::{Handle, Input, Looker, Reply};
use crate::engine::session::{Pending, Snapshot, Tracked};
use crate::engine::stops::Stops;
use crate::engine::timer::Timer;
use crate::foreground::Alone;
use crate::life::{Limits, StartError};
use crate::log::log;
use crate::metrics::Metrics;
use crate::ports::locks::Folders;
use act::restart_order::Order;
use asked_by::in_whose_name;
use pinfold_api::object::{Ping, Starting, Unknown};
use pinfold_core::decision::{Answer, TakeoverEnd};
use pinfold_core::inbox::MessageChange;
use pinfold_core::{Change, Decision, Event, MessageId, Record};
use pinfold_shim::nursery::Nursery;
use pinfold_store::{
    AuditEvent, Batch, DamagedSession, Decided, Facts, Outcome, Reader, RunId, SessionId, Store, Ulid,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc, watch};

/// So many locks are taken and shims started at once: more would only make all of them slow.
const STARTS_AT_ONCE: usize = 8;
/// So long after the last shim was connected, what the burst left behind goes back to the kernel.
const CALM: Duration = Duration::from_secs(3);

/// All sessions, and everything that the loop needs to act.
pub(crate) struct Engine {
    pub(crate) home: Home,
    /// The API socket, by a name that everybody can connect to.
    pub(crate) socket: PathBuf,
    pub(crate) sessions: BTreeMap<SessionId, Box<Tracked>>,
    /// Sessions that are not archived, by name.
    pub(crate) names: BTreeMap<String, SessionId>,
    /// Sessions whose records cannot be read, by id; they are left alone.
    pub(crate) damaged: BTreeMap<String, DamagedSession>,
    /// What of this home the store does not know.
    pub(crate) unknown: Vec<Unknown>,
    /// How many of those are being ended.
    strangers: usize,
    /// How the store is.
    pub(crate) health: Health,
    /// Stops that acted and are not recorded.
    stops: Stops,
    pub(crate) generation: u64,
    pub(crate) started: Instant,
    pub(crate) store: Store,
    /// What is different without a daemon around it.
    pub(crate) alone: Option<Alone>,
    /// For what the loop itself must know before it can go on: one row by its key.
    reader: Option<Reader>,
    /// The number of the latest durable event.
    pub(crate) last_event: watch::Sender<u64>,
    pub(crate) shim_program: (PathBuf, Vec<std::ffi::OsString>),
    /// Where shims come from, unless there is only one.
    nursery: Option<Arc<Nursery>>,
    pub(crate) limits: Limits,
    pub(crate) umask: Option<u32>,
    config: Config,
    /// Why the file was not taken over when it was read last.
    pub(crate) config_refused: Option<String>,
    clock: Clock,
    timer: Timer,
    pub(crate) memory: memory::Memory,
    folders: Folders,
    /// What was given to sessions with `--env`.
    pub(crate) values: Values,
    handle: Handle,
    starts: Arc<Semaphore>,
    links: u64,
    /// When the burst that is under way counts as over.
    calm_at: Option<tokio::time::Instant>,
    closing: Closing,
    /// Who asked for its end.
    closed_by: Option<Arc<By>>,
    pub(crate) metrics: Arc<Metrics>,
    /// Who came before every session was looked at.
    lookers: Vec<Looker>,
}

/// How far the daemon's own end has come.
enum Closing {
    No,
    Waiting(Vec<Goodbye>),
    Over(Vec<Goodbye>),
}

/// What an engine is made of.
pub(crate) struct Parts {
    pub(crate) home: Home,
    pub(crate) store: Store,
    pub(crate) alone: Option<Alone>,
    pub(crate) reader: Option<Reader>,
    pub(crate) folders: Folders,
    pub(crate) generation: u64,
    pub(crate) shim_program: (PathBuf, Vec<std::ffi::OsString>),
    pub(crate) limits: Limits,
    pub(crate) umask: Option<u32>,
    pub(crate) last_event: u64,
    pub(crate) handle: Handle,
    pub(crate) config: Config,
}

impl Engine {
    pub(crate) fn new(parts: Parts) -> std::io::Result<Engine> {
        let (program, words) = parts.shim_program.clone();
        let crash_at = std::env::var_os(pinfold_shim::crash::VARIABLE);
        let nursery = || Arc::new(Nursery::new(program, words, crash_at));
        Ok(Engine {
            nursery: parts.alone.is_none().then(nursery),
            socket: match parts.alone {
                Some(_) => parts.home.socket(),
                None => crate::life::socket_link::make(&parts.home.socket(), &parts.home.state).path,
            },
            values: parts.home.values(),
            home: parts.home,
            sessions: BTreeMap::new(),
            names: BTreeMap::new(),
            damaged: BTreeMap::new(),
            unknown: Vec::new(),
            strangers: 0,
            health: Health::default(),
            stops: Stops::default(),
            generation: parts.generation,
            started: Instant::now(),
            store: parts.store,
            alone: parts.alone,
            reader: parts.reader,
            last_event: watch::Sender::new(parts.last_event),
            shim_program: parts.shim_program,
            limits: parts.limits,
            umask: parts.umask,
            config: parts.config,
            config_refused: None,
            clock: Clock::new(),
            timer: Timer::new()?,
            memory: memory::Memory::new(),
            folders: parts.folders,
            handle: parts.handle,
            starts: Arc::new(Semaphore::new(STARTS_AT_ONCE)),
            links: 0,
            calm_at: None,
            closing: Closing::No,
            closed_by: None,
            metrics: Arc::default(),
            lookers: Vec::new(),
        })
    }

    /// Runs until the daemon goes down; the store is left open for those who still read.
    pub(crate) async fn run(
        mut self,
        mut inputs: mpsc::UnboundedReceiver<Input>,
    ) -> (Result<(), StartError>, Store) {
        let ended = self.take_all(&mut inputs).await;
        (ended, self.store)
    }

    async fn take_all(&mut self, inputs: &mut mpsc::UnboundedReceiver<Input>) -> Result<(), StartError> {
        while !matches!(self.closing, Closing::Over(_)) {
            tokio::select! {
                input = inputs.recv() => match input {
                    Some(input) => self.take(input),
                    None => break,
                },
                fired = self.timer.fired() => {
                    fired?;
                    self.tick();
                }
                () = until(self.calm_at) => {
                    self.calm_at = None;
                    pinfold_shim::memory::trim();
                    pinfold_shim::memory::forget_program();
                }
            }
            self.end_if_at_rest();
        }
        self.say_goodbye();
        Ok(())
    }

    fn tick(&mut self) {
        for id in self.timer.take_due(crate::clock::boot()) {
            self.happened(id, &Event::Ticked, &Facts::default(), None);
        }
    }

    fn take(&mut self, input: Input) {
        let Some(input) = self.at_the_door(input) else { return };
        match input {
            Input::Happened { id, event, facts, reply } => match self.early(id) {
                Some(early) => early.push(Input::Happened { id, event, facts, reply }),
                None => self.happened(id, &event, &facts, reply),
            },
            Input::Post { id, post, by, reply } => self.post(id, post, by, reply),
            Input::Create(create) => self.create(*create),
            Input::Define { id, define, reply } => match self.early(id) {
                Some(early) => early.push(Input::Define { id, define, reply }),
                None => self.define(id, *define, reply),
            },
            // What is stored is not shown as what is: every session is looked at first.
            Input::Look(look) if self.unseen() => self.lookers.push(look),
            Input::Look(look) => look(self),
            Input::Committed { id, outcome } => self.committed(id, outcome),
            Input::Reserved { id, result } => self.reserved(id, result),
            Input::ShimUp { id, run, result } => self.shim_up(id, run, result),
            Input::Shim { id, link, report } => self.shim_said(id, link, report),
            Input::ShimGone { id, run, proved } => self.shim_gone(id, run, proved),
            Input::HolderGone { id } => self.holder_gone(id),
            Input::Observed { id, seen } => self.observed(id, *seen),
            Input::Memory { id, run, read } => self.memory_read(id, run, read),
            Input::Reload => self.reload(),
            Input::Ping { reply } => _ = reply.send(self.ping()),
            Input::Moved { runtime, socket } => (self.home.runtime, self.socket) = (runtime, socket),
            Input::StopOverdue { id, watch, overdue } => self.stop_overdue(id, watch, overdue),
            Input::DownOverdue { id } => self.down_overdue(id),
            Input::HolderEnded { id, ended } => self.holder_ended(id, ended),
            Input::Audited => self.take_audit(),
            Input::StrangerEnded { id } => self.stranger_ended(&id),
            Input::Trouble(trouble) => self.troubled(trouble),
            Input::Checked(findings) => self.checked(findings),
            Input::Note { event, reply } => self.note(*event, reply),
            Input::Down { agents, by, reply } => self.go_down(agents, by, reply),
        }
    }

    /// Asks the core, and sends what must be remembered to the disk. Actions and answer wait for that.
    pub(crate) fn happened(&mut self, id: SessionId, event: &Event, facts: &Facts, reply: Option<Reply>) {
        let now = self.clock.now();
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        // What is recorded is about the run that lived when it happened.
        let run = facts.run.or_else(|| run_in(event)).or_else(|| tracked.session.live_run());
        let facts = Facts { run, ..facts.clone() };
        let decision = tracked.session.handle(event, now);
        let facts = in_whose_name(tracked, &decision, facts);
        if let Some(alone) = &mut self.alone {
            (alone.witness)(&decision);
        }
        // A deadline that has passed and that nothing came of is not waited for again.
        let due = tracked.session.next_deadline().map(|deadline| deadline.at);
        self.timer.set(id, due.filter(|at| *event != Event::Ticked || *at > now.boot));
        self.note_name(id);
        self.note_new_run(id, &decision);
        self.follow_memory(id);
        self.count(id, &decision);
        self.note_stop(id, event);
        self.keep(id, decision, facts, reply);
    }

    /// An archived session gives its name up, and a restored one has it again.
    fn note_name(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let archived = tracked.session.state() == pinfold_core::State::Archived;
        match (archived, self.names.get(&tracked.name)) {
            (true, Some(owner)) if *owner == id => _ = self.names.remove(&tracked.name),
            (false, None) => _ = self.names.insert(tracked.name.clone(), id),
            (true | false, _) => {}
        }
    }

    /// Gives a run that was just decided its name.
    fn note_new_run(&mut self, id: SessionId, decision: &Decision) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let last = tracked.session.runs().last;
        let decided =
            decision.changes.iter().any(|change| matches!(change, Change::Runs(runs) if runs.last == last));
        if decided && tracked.run.is_none_or(|(run, _)| run < last) {
            let name = RunId(new_ulid(&mut self.clock));
            tracked.run = Some((last, name));
            (tracked.ready, tracked.status) = (false, None);
            self.note_due(id);
        }
    }

    fn keep(&mut self, id: SessionId, decision: Decision, facts: Facts, reply: Option<Reply>) {
        let mut decision = decision;
        let mut settles = exit_in(&decision);
        let durable = decision.changes.iter().any(Change::is_durable);
        if durable {
            let order = self.order(id, &decision, settles);
            let batch = self.batch(id, &decision, facts);
            if order.is_some() {
                decision.actions.clear();
                settles = None;
            }
            self.commit_then(Some(id), batch, order);
        }
        let reply = self.act_first(id, &mut decision, reply);
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        tracked.takeover_end = takeover_end_in(&decision).or(tracked.takeover_end);
        let settled = settled_in(&decision);
        let pending = Pending {
            durable: !durable,
            actions: decision.actions,
            answer: decision.answer,
            reply,
            settles,
            snapshot: Snapshot::of(&tracked.session),
            settled,
        };
        tracked.pending.push_back(pending);
        self.drain(id);
    }

    fn batch(&mut self, id: SessionId, decision: &Decision, mut facts: Facts) -> Batch {
        let mut batch = Batch::new();
        let at = crate::clock::wall();
        let Some(tracked) = self.sessions.get_mut(&id) else { return batch };
        if std::mem::take(&mut tracked.reloaded) {
            batch.reloaded(id);
        }
        facts.run_ids.extend(tracked.run);
        batch.decided(Decided { id, session: &tracked.session, decision, at }, &facts);
        batch
    }

    pub(crate) fn commit(&self, id: Option<SessionId>, batch: Batch) {
        self.commit_then(id, batch, None);
    }

    /// Commits; the writer itself gives the order as soon as that is done.
    fn commit_then(&self, id: Option<SessionId>, batch: Batch, order: Option<Order>) {
        crash::point("commit.before");
        let (handle, metrics, begun) = (self.handle.clone(), Arc::clone(&self.metrics), Instant::now());
        self.store.commit_then(batch, move |outcome| {
            if let (Some(order), Ok(_)) = (order, &outcome) {
                order.give();
            }
            metrics.commit.took(begun.elapsed());
            handle.tell(Input::Committed { id, outcome });
        });
    }

    fn committed(&mut self, id: Option<SessionId>, outcome: Outcome) {
        match outcome {
            Ok(committed) if !committed.seqs.is_empty() => {
                self.last_event.send_replace(committed.seqs.end - 1);
            }
            Ok(_) => {}
            Err(error) => return self.not_durable(id, &error),
        }
        crash::point("commit.after");
        let Some(id) = id else { return };
        if let Some(tracked) = self.sessions.get_mut(&id)
            && let Some(waiting) = tracked.pending.iter_mut().find(|pending| !pending.durable)
        {
            waiting.durable = true;
            tracked.unborn = false;
        }
        self.drain(id);
    }

    /// Acts on every decision that is durable, in order.
    fn drain(&mut self, id: SessionId) {
        loop {
            let Some(tracked) = self.sessions.get_mut(&id) else { return };
            if !tracked.pending.front().is_some_and(|pending| pending.durable) {
                return;
            }
            let Some(pending) = tracked.pending.pop_front() else { return };
            if tracked.pending.is_empty() {
                tracked.keys.clear();
            }
            if tracked.pending.is_empty() && std::mem::take(&mut tracked.stop_noted) {
                self.stops
                    .settle(id)
                    .unwrap_or_else(|error| log(format_args!("a stop stays noted: {error}")));
            }
            tracked.publish(pending.snapshot);
            for waiter in
                pending.settled.iter().filter_map(|message| tracked.waiters.remove(message)).flatten()
            {
                _ = waiter.send(());
            }
            if let (Some(run), Some(shim)) = (pending.settles, &tracked.shim) {
                crash::point("acknowledge.before");
                shim.send(&pinfold_shim::Command::Ack { run });
                crash::point("acknowledge.told");
            }
            if let Some(reply) = pending.reply {
                reply.give(pending.answer.unwrap_or(Answer::Done));
            }
            for action in &pending.actions {
                self.perform(id, action);
            }
        }
    }

    /// Where to put what comes for a session that was not looked at yet.
    fn unseen(&self) -> bool {
        self.sessions.values().any(|tracked| tracked.early.is_some())
    }

    /// How far the start has come, if it is not over.
    fn ping(&self) -> Ping {
        let (of, seen) =
            (self.sessions.len(), self.sessions.values().filter(|tracked| tracked.early.is_none()));
        let starting = Starting { seen: seen.count() as u64, of: of as u64 };
        Ping { starting: (starting.seen < starting.of).then_some(starting) }
    }

    fn early(&mut self, id: SessionId) -> Option<&mut Vec<Input>> {
        self.sessions.get_mut(&id)?.early.as_mut()
    }

    pub(crate) fn daemon_event(&self, kind: &str, why: &str) -> AuditEvent {
        let mut data = serde_json::Map::new();
        data.insert("pid".into(), std::process::id().into());
        data.insert("generation".into(), self.generation.into());
        let (kind, why) = (kind.to_owned(), why.to_owned());
        AuditEvent { at: crate::clock::wall(), session: None, run: None, kind, why, data }
    }

    pub(crate) fn new_id(&mut self) -> Ulid {
        new_ulid(&mut self.clock)
    }
}

async fn until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn new_ulid(clock: &mut Clock) -> Ulid {
    let random = (u128::from(clock.draw()) << 64) | u128::from(clock.draw());
    Ulid::new(u64::try_from(crate::clock::wall().0).unwrap_or(0), random)
}

/// The run that an event is about.
fn run_in(event: &Event) -> Option<pinfold_core::RunNumber> {
    match event {
        Event::Run { run, .. } => Some(*run),
        Event::Message(
            pinfold_core::MessageEvent::Taken { run, .. } | pinfold_core::MessageEvent::TurnEnded { run, .. },
        ) => Some(*run),
        Event::Message(_)
        | Event::Created
        | Event::DaemonStarted(_)
        | Event::DownAsked
        | Event::Ticked
        | Event::Asked(_)
        | Event::SpecChanged(_)
        | Event::ConsumerJoined { .. }
        | Event::ConsumerLeft { .. }
        | Event::HolderGone
        | Event::ShimLeft => None,
    }
}

/// How a takeover ended with a decision.
fn takeover_end_in(decision: &Decision) -> Option<TakeoverEnd> {
    decision.changes.iter().find_map(|change| {
        if let Change::Record(Record::TakeoverDone { how }) = change { Some(*how) } else { None }
    })
}

/// The messages that a decision settles.
fn settled_in(decision: &Decision) -> Vec<MessageId> {
    let settled = |change: &Change| {
        let Change::Message(MessageChange::Done { message } | MessageChange::Failed { message, .. }) = change
        else {
            return None;
        };
        Some(*message)
    };
    decision.changes.iter().filter_map(settled).collect()
}

/// The run whose end a decision settles, or whose start came to nothing.
fn exit_in(decision: &Decision) -> Option<pinfold_core::RunNumber> {
    let exit = |change: &Change| {
        if let Change::Record(Record::RunExited(exited)) = change {
            return Some(exited.run);
        }
        if let Change::Record(Record::StartFailed { run, .. }) = change { Some(*run) } else { None }
    };
    decision.changes.iter().find_map(exit)
}

#[cfg(test)]
mod tests;
