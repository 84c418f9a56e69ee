//! The loop: take an event, ask the core, commit, then act. Results of actions come back as events.

mod accounts;
mod act;
mod activity;
mod archive;
mod asked_by;
mod attach;
mod attaching;
mod audit;
mod command;
mod conversation;
mod deadlines;
mod declaration;
mod declare;
mod down;
mod effect;
mod failed;
mod feed;
mod fold;
mod gauges;
mod given;
mod health;
mod hold;
mod in_force;
pub(crate) mod input;
mod keep;
mod learn;
mod memory;
mod messages;
mod parts;
mod per_message;
mod permissions;
mod plug;
mod precedence;
mod purge;
mod recognition;
mod recover;
mod rename;
mod reply;
mod reports;
mod run;
mod running;
pub(crate) mod session;
mod session_view;
mod sessions;
#[cfg(test)]
mod simulation;
mod speak;
mod speech;
mod spending;
mod stopping;
mod strangers;
mod taping;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;
mod unended;
mod view;
mod why_not;

pub(crate) use accounts::AccountView;
pub(crate) use attaching::{AttachRequest, AttachStanding, AttachedTo, GuestEnd, NotAttached, Standings};
pub(crate) use command::{EngineCommand, Unsettled};
pub(crate) use declaration::{Declaration, DeclaredChange, DeclaredNew, NotDeclared, Outline};
pub(crate) use health::StoreHealth;
pub(crate) use parts::{EngineFault, ForegroundParts, Parts, ResourceLimits};
pub(crate) use purge::{CallerSocket, PurgeCandidate, PurgeModes};
pub(crate) use reply::ReplyHandle;
pub(crate) use run::DaemonEnd;
pub(crate) use session_view::{Hindrances, SessionSnapshot, SessionView};
pub(crate) use view::{EngineView, FeedChange, SessionChange, SessionRef};
pub(crate) use why_not::{GoesOn, WhyNot};

use crate::caller::By;
use crate::define::config::Config;
use crate::define::home::Home;
use crate::define::values::Values;
use crate::engine::audit::Audit;
use crate::engine::deadlines::Deadlines;
use crate::engine::feed::Feed;
use crate::engine::input::{Goodbye, Handle, LoopInput};
use crate::engine::session::Tracked;
use crate::metrics::Metrics;
use crate::ports::Ports;
use crate::ports::clock::{Alarm, Clock};
use crate::ports::locks::Folders;
use asked_by::in_whose_name;
use pinfold_api::object::{Ping, Starting, Unknown};
use pinfold_core::{Boot, Change, Decision, Event, EventKind, Now, RunNumber};
use pinfold_store::{AuditEvent, DamagedSession, Facts, RunId, SessionId, Store, Ulid};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Instant;
use tokio::sync::watch;
use tracing::debug_span;
use tracing::span::EnteredSpan;

/// All sessions, and everything that the loop needs to act.
pub(crate) struct Engine {
    pub(crate) home: Home,
    /// The API socket, by a path short enough for every client to connect to.
    pub(crate) socket: PathBuf,
    pub(crate) sessions: BTreeMap<SessionId, Box<Tracked>>,
    /// Sessions that are not archived, by name.
    pub(crate) names: BTreeMap<String, SessionId>,
    /// Sessions whose records cannot be read, by id; they are left alone.
    pub(crate) damaged: BTreeMap<String, DamagedSession>,
    /// Agents found in this home that the store does not know.
    pub(crate) unknown: Vec<Unknown>,
    /// How many of those are being looked for or ended.
    strangers: usize,
    /// The state of the store.
    pub(crate) health: StoreHealth,
    pub(crate) generation: u64,
    pub(crate) started: Instant,
    /// For readers outside the loop; the loop itself commits and reads through its port.
    pub(crate) store: Store,
    /// Everything it acts on.
    ports: Ports,
    /// Wakes the loop at the first deadline, if a runtime drives it.
    alarm: Option<Arc<Alarm>>,
    /// Set when running in the foreground (`pinfold run`), without a daemon.
    pub(crate) alone: Option<ForegroundParts>,
    /// The number of the latest durable event.
    pub(crate) last_event: watch::Sender<u64>,
    /// Changes of sessions, for clients.
    feed: Feed,
    pub(crate) shim_program: (PathBuf, Vec<std::ffi::OsString>),
    pub(crate) limits: ResourceLimits,
    pub(crate) umask: Option<u32>,
    config: Config,
    /// Why the configuration file was rejected when it was last read.
    pub(crate) config_refused: Option<String>,
    deadlines: Deadlines,
    /// What is being gathered for one session, to become durable together.
    gathered: Option<taping::GatheredBatch>,
    /// What is being gathered for several sessions, to become durable together.
    together: RefCell<Option<declare::CommonBatch>>,
    /// Sessions whose cursor is behind their fold, and when that is checked.
    unswept: BTreeSet<SessionId>,
    sweep_at: Option<Boot>,
    pub(crate) accounts: accounts::Accounts,
    pub(crate) memory: memory::MemorySetup,
    folders: Folders,
    /// Values given to sessions with `--env`.
    pub(crate) values: Values,
    handle: Handle,
    links: u64,
    /// When the burst under way counts as over.
    calm_at: Option<Instant>,
    /// Whether records of verbs are being committed, and whether more were written meanwhile.
    audit: Audit,
    /// Alive while a thread waits for the lock of the audit file.
    audit_awaited: Weak<()>,
    /// Archived sessions that are removed as soon as their shims have left.
    removing: Vec<(SessionId, Option<Arc<By>>, command::Removal)>,
    closing: Closing,
    /// Whether another daemon follows this one at its end.
    handed_over: bool,
    /// The caller that asked the daemon to go down.
    closed_by: Option<Arc<By>>,
    pub(crate) metrics: Arc<Metrics>,
    /// The sessions that recovery has not looked at yet, and the inputs for each that arrived meanwhile.
    early: BTreeMap<SessionId, Vec<LoopInput>>,
    /// Reads and commands that wait until recovery has looked at every session.
    waiting: Vec<LoopInput>,
    /// Sees every decision as it is made.
    #[cfg(test)]
    witness: Option<simulation::witness::Witness>,
}

/// While the result lives, log lines are about this session and this run.
fn about(tracked: &Tracked, run: Option<RunNumber>) -> (Option<EnteredSpan>, EnteredSpan) {
    let session = debug_span!("session", session = tracked.name, id = %tracked.id).entered();
    (run.map(|run| debug_span!("run", run = run.0).entered()), session)
}

/// How far the daemon's own shutdown is.
enum Closing {
    No,
    Waiting(Vec<Goodbye>),
    Over(Vec<Goodbye>),
}

impl Engine {
    fn take(&mut self, input: LoopInput) {
        self.take_one(input);
        self.settle_accounts();
    }

    fn take_one(&mut self, input: LoopInput) {
        if let Some(input) = self.at_the_door(input) {
            self.take_in(input);
        }
    }

    fn take_in(&mut self, input: LoopInput) {
        match input {
            LoopInput::Happened { id, event, facts, reply } => match self.early(id) {
                Some(early) => early.push(LoopInput::Happened { id, event, facts, reply }),
                None => self.happened_now(id, event, facts, reply),
            },
            LoopInput::StopNoted { id, noted, stop } => self.stop_noted(id, noted, stop),
            LoopInput::Post { id, post, by, reply } => self.post(id, post, by, reply),
            LoopInput::Create(create) => self.create(*create),
            LoopInput::FolderMade { id, create, made } => self.folder_made(id, *create, made),
            LoopInput::Define { id, define, reply } => match self.early(id) {
                Some(early) => early.push(LoopInput::Define { id, define, reply }),
                None => self.define(id, *define, reply),
            },
            // What is stored may no longer be true, so it is not shown before every session was looked at.
            LoopInput::Look(_) | LoopInput::Command(_) if self.unseen() => self.waiting.push(input),
            LoopInput::Look(look) => look(EngineView(self)),
            LoopInput::Command(command) => self.obey(*command),
            LoopInput::Committed { of, outcome } => self.committed(of, outcome),
            LoopInput::Reserved { id, result } => self.reserved(id, result),
            // An order from before its session began again: its shim has it, and the look finds the result.
            LoopInput::ShimUp { id, .. } | LoopInput::ShimGone { id, .. } if self.early(id).is_some() => {}
            LoopInput::ShimUp { id, run, result } => self.shim_up(id, run, result),
            LoopInput::Shim { id, link, report } => self.shim_said(id, link, report),
            LoopInput::ShimGone { id, run, proved } => self.shim_gone(id, run, proved),
            LoopInput::Tape { .. } | LoopInput::Swept { .. } => self.take_taped(input),
            LoopInput::VendorHeld { .. } | LoopInput::Kept { .. } => self.take_taped(input),
            LoopInput::Looked { id, looked } => self.looked(id, *looked),
            LoopInput::HolderGone { id } => self.holder_gone(id),
            LoopInput::Attaching { id, news } => self.attach_news(id, news),
            LoopInput::Observed { id, seen } => self.observed(id, *seen),
            LoopInput::Memory { .. } | LoopInput::Filed { .. } => self.take_watched(input),
            LoopInput::WriterSeen { .. } | LoopInput::FilesSeen { .. } => self.take_watched(input),
            LoopInput::Reload => self.reload(),
            LoopInput::ConfigRead(read) => self.config_read(*read),
            LoopInput::Ping { reply } => _ = reply.send(self.ping()),
            LoopInput::Moved { runtime, socket } => (self.home.runtime, self.socket) = (runtime, socket),
            LoopInput::StopOverdue { id, watch, overdue } => self.stop_overdue(id, watch, overdue),
            LoopInput::DownOverdue { id } => self.down_overdue(id),
            LoopInput::HolderEnded { id, ended } => self.holder_ended(id, ended),
            LoopInput::FilesDeleted { id, deleted, by, done } => {
                self.files_deleted(id, deleted, by.as_deref(), done);
            }
            LoopInput::Forgotten(forgotten) => self.forgotten(*forgotten),
            LoopInput::Audited => self.take_audit(),
            LoopInput::AuditStored { outcome } => self.audit_stored(outcome),
            LoopInput::StrangersSought(_) | LoopInput::StrangerEnded { .. } => self.take_strangers(input),
            LoopInput::Trouble(trouble) => self.troubled(trouble),
            LoopInput::Checked(findings) => self.checked(findings),
            LoopInput::Note { event, reply } => self.note(*event, reply),
            LoopInput::Down { agents, by, reply } => self.go_down(agents, by, reply),
        }
    }

    /// Takes an input about something watched in runs.
    fn take_watched(&mut self, input: LoopInput) {
        if let LoopInput::Memory { id, run, read } = input {
            self.memory_read(id, run, read);
        } else if let LoopInput::Filed { id, run, filed } = input {
            self.filed(id, run, filed);
        } else if let LoopInput::WriterSeen { id, run, holder } = input {
            self.writer_seen(id, run, holder);
        } else if let LoopInput::FilesSeen { id, run, row, given, missing } = input {
            self.files_seen(id, run, *row, given, missing);
        }
    }

    /// Takes an input about sessions that the store does not know.
    fn take_strangers(&mut self, input: LoopInput) {
        if let LoopInput::StrangersSought(there) = input {
            self.strangers_sought(there);
        } else if let LoopInput::StrangerEnded { id } = input {
            self.stranger_ended(&id);
        }
    }

    /// Takes an input about runs with a tape.
    fn take_taped(&mut self, input: LoopInput) {
        if let LoopInput::Tape { id, run, from, passage } = input {
            self.passage(id, run, from, *passage);
        } else if let LoopInput::Swept { all, outcome } = input {
            self.swept(all, outcome);
        } else if let LoopInput::VendorHeld { id, run, vendor, result } = input {
            self.vendor_held(id, run, &vendor, result);
        } else if let LoopInput::Kept { id, run, turns, saved } = input {
            self.transcript_copied(id, run, turns, saved);
        }
    }

    /// Asks the core, and commits what must be remembered. Actions and answer wait for that.
    pub(crate) fn happened(
        &mut self,
        id: SessionId,
        event: &Event,
        facts: &Facts,
        reply: Option<ReplyHandle>,
    ) {
        let now = self.ports.clock.now();
        self.happened_at(now, id, event, facts, reply);
    }

    /// As `happened`, at a moment already known: that moment is recorded.
    fn happened_at(
        &mut self,
        now: Now,
        id: SessionId,
        event: &Event,
        facts: &Facts,
        reply: Option<ReplyHandle>,
    ) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        // The record is about the run that was live when it happened.
        let run = facts.run.or_else(|| run_in(event)).or_else(|| tracked.session.live_run());
        let facts = Facts { run, ..facts.clone() };
        let _about = about(tracked, run);
        let defined = Arc::clone(&tracked.definition);
        let Some(decision) = self.decide(id, event, now) else { return };
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let redefined = !Arc::ptr_eq(&defined, &tracked.definition);
        let facts = in_whose_name(tracked, &decision, facts);
        if let Some(alone) = &mut self.alone {
            (alone.witness)(&decision);
        }
        // A deadline that has passed without result is not waited for again.
        let due = tracked.session.next_deadline().map(|deadline| deadline.at);
        self.wake_at(id, due.filter(|at| *event != Event::Ticked || *at > now.boot));
        self.note_name(id);
        self.follow_run(id);
        self.note_new_run(id, &decision);
        self.follow_memory(id);
        self.follow_terminal(id);
        self.count(id, &decision);
        self.keep(id, decision, (facts, now.wall), reply);
        if redefined {
            self.follow_account(id);
        }
        self.touch_account(id);
    }

    /// An archived session gives up its name; a restored one gets it back.
    fn note_name(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let archived = tracked.session.state() == pinfold_core::State::Archived;
        match (archived, self.names.get(&tracked.name)) {
            (true, Some(owner)) if *owner == id => _ = self.names.remove(&tracked.name),
            (false, None) => _ = self.names.insert(tracked.name.clone(), id),
            (true | false, _) => {}
        }
    }

    /// Gives a run that was just decided its id.
    fn note_new_run(&mut self, id: SessionId, decision: &Decision) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let last = tracked.session.runs().last;
        let decided =
            decision.changes.iter().any(|change| matches!(change, Change::Runs(runs) if runs.last == last));
        if decided && tracked.latest.is_none_or(|(run, _)| run < last) {
            let name = RunId(new_ulid(&mut *self.ports.clock));
            tracked.latest = Some((last, name));
            if let Some(run) = tracked.live(last) {
                run.due = Some(Instant::now());
            }
            self.begin_fold(id, last);
        }
    }

    /// Drops what was known of a run that has ended.
    fn follow_run(&mut self, id: SessionId) {
        let Some(ended) = self.sessions.get_mut(&id).and_then(|tracked| tracked.follow_run()) else { return };
        if ended.taping.is_some() {
            self.forget_tape(id);
        }
        if let running::RunMemory::Watched { .. } = ended.memory {
            self.ports.memory.forget((id, ended.number));
        }
        if ended.terminal.is_watched() {
            self.ports.id_files.forget((id, ended.number));
        }
    }

    pub(crate) fn folders(&self) -> Folders {
        self.folders.clone()
    }

    /// Whether recovery has not looked at some session yet.
    fn unseen(&self) -> bool {
        !self.early.is_empty()
    }

    /// How far the start is, if it is not complete.
    fn ping(&self) -> Ping {
        let of = self.sessions.len() as u64;
        let starting = Starting { seen: of.saturating_sub(self.early.len() as u64), of };
        Ping { starting: self.unseen().then_some(starting) }
    }

    /// Sets or clears the deadline of a session.
    fn wake_at(&mut self, id: SessionId, at: Option<Boot>) {
        let before = self.deadlines.first();
        self.deadlines.set(id, at);
        if self.deadlines.first() != before {
            self.ports.clock.wake_at(self.first_deadline());
        }
    }

    /// When the loop next has to act by itself.
    fn first_deadline(&self) -> Option<Boot> {
        [self.deadlines.first(), self.sweep_at, self.accounts.due].into_iter().flatten().min()
    }

    fn wake_for_sweep(&self) {
        self.ports.clock.wake_at(self.first_deadline());
    }

    /// The queue for inputs of a session that recovery has not looked at yet.
    fn early(&mut self, id: SessionId) -> Option<&mut Vec<LoopInput>> {
        self.early.get_mut(&id)
    }

    pub(crate) fn daemon_event(&self, kind: EventKind, why: &str) -> AuditEvent {
        let mut data = serde_json::Map::new();
        data.insert("pid".into(), std::process::id().into());
        data.insert("generation".into(), self.generation.into());
        let why = why.to_owned();
        AuditEvent { at: self.ports.clock.wall(), session: None, run: None, kind, why, data }
    }

    pub(crate) fn new_id(&mut self) -> Ulid {
        new_ulid(&mut *self.ports.clock)
    }
}

fn new_ulid(clock: &mut dyn Clock) -> Ulid {
    Ulid::new(u64::try_from(clock.wall().0).unwrap_or(0), clock.dice())
}

/// The run that an event is about.
fn run_in(event: &Event) -> Option<pinfold_core::RunNumber> {
    match event {
        Event::Run { run, .. } | Event::Request { run, .. } => Some(*run),
        Event::Message(
            pinfold_core::MessageEvent::Taken { run, .. } | pinfold_core::MessageEvent::TurnEnded { run, .. },
        ) => Some(*run),
        Event::Message(_)
        | Event::Created
        | Event::DaemonStarted(_)
        | Event::DownAsked
        | Event::Ticked
        | Event::Asked(_)
        | Event::Answered { .. }
        | Event::SpecChanged(_)
        | Event::ConsumerJoined { .. }
        | Event::ConsumerLeft { .. }
        | Event::Held(_)
        | Event::BudgetRaised
        | Event::Looked
        | Event::HolderGone
        | Event::HolderFound(_)
        | Event::ShimLeft => None,
    }
}
