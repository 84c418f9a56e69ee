//! One session as the core knows it: everything it remembers.
//!
//! [`crate::machine`], where [`Session::handle`] is, and [`crate::rules`] decide what to do about an event. A
//! session changes only by [`Change`]s, so replaying them reproduces it.

use crate::budgets::Budgets;
use crate::decision::{Change, InForce};
use crate::event::{ConsumerKind, Shim};
use crate::guest::Guest;
use crate::hold::Hold;
use crate::ids::{ConsumerId, RunNumber};
use crate::inbox::{Inbox, Queued};
use crate::last_exit::LastExit;
use crate::life::{BlockedOn, IdleSince, Life, State};
use crate::policy::{Mode, ShimSetup, Spec};
use crate::regard::Regard;
use crate::rules::memory::MemoryWatch;
pub use crate::running::{Leaving, Need, Runs, Takeover};
use crate::talk::{Activity, Dialog, Standing, Talk};
use crate::time::{Boot, Wall};
use crate::unended::Unended;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// One session: give it events, get decisions.
///
/// ```
/// use pinfold_core::{Action, Event, Mode, Now, Session, Spec};
/// let mut session = Session::new(Spec::new(Mode::Always));
/// let decision = session.handle(&Event::Created, Now::default());
/// assert!(matches!(decision.actions[..], [Action::Reserve { .. }]));
/// assert_eq!(decision.why.to_string(), "mode `always` wants it to run");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub(crate) spec: Spec,
    pub(crate) next_spec: Option<Box<Spec>>,
    pub(crate) life: Life,
    pub(crate) runs: Runs,
    pub(crate) shim: Shim,
    /// What the latest shim was opened for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opened: Option<ShimSetup>,
    pub(crate) budgets: Budgets,
    #[serde(default)]
    pub(crate) last_exit: Option<Box<LastExit>>,
    pub(crate) inbox: Inbox,
    #[serde(default)]
    pub(crate) talk: Talk,
    pub(crate) last_consumer: Option<Wall>,
    pub(crate) keep_until: Option<Boot>,
    pub(crate) interrupted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) guest: Option<Guest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Box<Usage>>,
    #[serde(default, skip_serializing_if = "Regard::is_seen")]
    pub(crate) regard: Regard,
    #[serde(skip)]
    pub(crate) live: LiveState,
}

/// What is true only while this daemon lives; the next daemon starts without it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LiveState {
    pub(crate) consumers: BTreeMap<ConsumerId, ConsumerKind>,
    pub(crate) unneeded: Option<Boot>,
    pub(crate) takeover: Option<Takeover>,
    /// The consumers that wait for a guest, in the order in which they came.
    pub(crate) awaiting_guest: Vec<ConsumerId>,
    pub(crate) standing: Option<Box<Standing>>,
    /// The hold that its account puts on it.
    pub(crate) hold: Option<Box<Hold>>,
    pub(crate) memory: MemoryWatch,
    pub(crate) sign_of_life: Option<Boot>,
    pub(crate) closing: bool,
    /// Its lock is held and its shim does not answer: nothing is decided until the world has been seen.
    pub(crate) mute: bool,
    /// Its agent was asked to leave.
    pub(crate) leaving: Option<Leaving>,
    /// What keeps its run from ending.
    pub(crate) unended: Option<Box<Unended>>,
    /// The latest run that was given a message.
    pub(crate) served: Option<RunNumber>,
    /// The vendor has not written down everything that was answered in this run.
    pub(crate) unsaved: bool,
}

/// The next thing that happens by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// When it is due.
    pub at: Boot,
    /// What is due.
    pub what: Upcoming,
}

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Upcoming {
    /// The next run after a wait.
    Restart,
    /// The next try while another process holds the lock.
    Retry,
    /// The run is parked.
    Park,
    /// A takeover stops waiting for the turn.
    TakeoverDeadline,
    /// The watchdog loses patience.
    Watchdog,
    /// A person's `start` no longer counts as a need.
    NotNeeded,
    /// The stop signal is sent to an agent that was asked to leave.
    Signal,
    /// The hold of its account ends.
    Reset,
}

impl Upcoming {
    /// Returns the word of the contract for `next.what`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Upcoming::Restart => "restart",
            Upcoming::Retry => "retry",
            Upcoming::Park => "park",
            Upcoming::TakeoverDeadline => "takeover_deadline",
            Upcoming::Watchdog => "watchdog",
            Upcoming::NotNeeded => "idle",
            Upcoming::Signal => "signal",
            Upcoming::Reset => "reset",
        }
    }
}

impl Session {
    /// Creates a session that nothing has happened to yet; send it [`crate::Event::Created`].
    #[must_use]
    pub fn new(spec: Spec) -> Session {
        Session {
            spec,
            next_spec: None,
            life: Life::Idle { since: IdleSince::Created },
            runs: Runs::default(),
            shim: Shim::Absent,
            opened: None,
            budgets: Budgets::default(),
            last_exit: None,
            inbox: Inbox::default(),
            talk: Talk::default(),
            last_consumer: None,
            keep_until: None,
            interrupted: false,
            guest: None,
            usage: None,
            regard: Regard::default(),
            live: LiveState::default(),
        }
    }

    /// Applies one change of an earlier decision: replaying all of them reproduces the session.
    pub fn apply(&mut self, change: &Change) {
        self.regard = self.regard.after(change, self.spec.mode, self.is_watched());
        match change {
            Change::Life(life) => self.life = life.clone(),
            Change::Runs(runs) => self.runs = *runs,
            Change::Budgets(budgets) => self.budgets = (**budgets).clone(),
            Change::LastExit(exit) => self.last_exit = Some(exit.clone()),
            Change::Shim(shim) => self.shim = *shim,
            Change::Opened(setup) => self.opened = Some(*setup),
            Change::Message(step) => self.message_steps(step),
            Change::Doubted { latest, deliveries } => self.inbox.doubt(*latest, *deliveries),
            Change::Request(step) => self.talk.apply(step),
            Change::Vendor(vendor) => self.talk.learn(vendor),
            Change::VendorForgotten => self.talk.forget_vendor(self.inbox.settled().0),
            Change::ConversationLost(lost) => self.talk.lose(lost),
            Change::Hold(hold) => self.live.hold.clone_from(hold),
            Change::BudgetRaised(allowed) => self.usage.get_or_insert_default().allowed = *allowed,
            Change::TurnTook(took) => self.usage.get_or_insert_default().took(*took),
            Change::TurnSince(since) => self.usage.get_or_insert_default().turn_since = *since,
            Change::Spent(spending) => self.usage.get_or_insert_default().count(spending),
            Change::Standing(standing) => self.live.standing.clone_from(standing),
            Change::Joined(consumer, kind) => _ = self.live.consumers.insert(*consumer, *kind),
            Change::Left(consumer) => {
                self.live.consumers.remove(consumer);
                self.live.awaiting_guest.retain(|waiting| waiting != consumer);
            }
            Change::Guest(guest) => self.guest = *guest,
            Change::AwaitingGuest(waiting) => self.live.awaiting_guest.clone_from(waiting),
            Change::LastConsumer(at) => self.last_consumer = Some(*at),
            Change::KeepUntil(until) => self.keep_until = *until,
            Change::Unneeded(since) => self.live.unneeded = *since,
            Change::Takeover(takeover) => self.live.takeover = *takeover,
            Change::Memory(watch) => self.live.memory = *watch,
            Change::SignOfLife(at) => self.live.sign_of_life = *at,
            Change::Interrupted(interrupted) => self.interrupted = *interrupted,
            Change::Spec(spec, in_force) => self.define(spec, *in_force),
            Change::Closing(closing) => self.live.closing = *closing,
            Change::Mute(mute) => self.live.mute = *mute,
            Change::Leaving(leaving) => self.live.leaving = *leaving,
            Change::Unended(by) => self.live.unended.clone_from(by),
            Change::Unsaved(unsaved) => self.live.unsaved = *unsaved,
            Change::Looked | Change::Record(_) => {}
        }
    }

    /// Returns what a starting daemon would load: everything except what dies with this one.
    #[must_use]
    pub fn as_stored(&self) -> Session {
        Session { live: LiveState::default(), ..self.clone() }
    }

    /// Returns a copy for display: it explains itself as the session does and knows how many messages wait,
    /// but not which.
    #[must_use]
    pub fn outline(&self) -> Session {
        Session {
            spec: self.spec.clone(),
            next_spec: self.next_spec.clone(),
            life: self.life.clone(),
            runs: self.runs,
            shim: self.shim,
            opened: self.opened,
            budgets: self.budgets.clone(),
            last_exit: self.last_exit.clone(),
            inbox: self.inbox.outline(),
            talk: self.talk.clone(),
            last_consumer: self.last_consumer,
            keep_until: self.keep_until,
            interrupted: self.interrupted,
            guest: self.guest,
            usage: self.usage.clone(),
            regard: self.regard,
            live: self.live.clone(),
        }
    }

    /// Puts back the waiting messages, which are stored one by one and not with the session.
    pub fn refill(&mut self, waiting: impl IntoIterator<Item = Queued>) {
        self.inbox.refill(waiting);
    }

    /// Restores how its last run ended, for a session that was stored before it kept that itself.
    pub fn recall(&mut self, exit: LastExit) {
        self.last_exit.get_or_insert_with(|| Box::new(exit));
    }

    fn define(&mut self, spec: &Spec, in_force: InForce) {
        match in_force {
            InForce::Now => (self.spec, self.next_spec) = (spec.clone(), None),
            InForce::NextRun => self.next_spec = Some(Box::new(spec.clone())),
        }
    }

    /// Returns the state as the word of the contract.
    #[must_use]
    pub fn state(&self) -> State {
        match self.life {
            Life::Idle { .. } | Life::Running { .. } | Life::Backoff { .. } if self.is_paused() => {
                State::Blocked
            }
            Life::Idle { .. } => State::Idle,
            Life::Starting { .. } => State::Starting,
            Life::Running { .. } => State::Running,
            Life::Held { .. } => State::Held,
            Life::Stopping { .. } => State::Stopping,
            Life::Backoff { .. } => State::Backoff,
            Life::Blocked { .. } => State::Blocked,
            Life::Stopped => State::Stopped,
            Life::Failed { .. } => State::Failed,
            Life::Archived { .. } => State::Archived,
        }
    }

    /// Returns the state with the facts that belong to it.
    #[must_use]
    pub fn life(&self) -> &Life {
        &self.life
    }

    /// Whether its agent was asked to leave and is given time to.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.live.leaving.is_some()
    }

    /// Whether a person interrupted the turn under way.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Returns the definition in force.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the definition of the next run, if it is a different one.
    #[must_use]
    pub fn next_spec(&self) -> Option<&Spec> {
        self.next_spec.as_deref()
    }

    /// Returns the latest definition: what it may use counts from now on, even during a run.
    pub(crate) fn latest_spec(&self) -> &Spec {
        self.next_spec().unwrap_or(&self.spec)
    }

    /// Returns the numbers of its runs.
    #[must_use]
    pub fn runs(&self) -> Runs {
        self.runs
    }

    /// Returns the counters of the restart rules.
    #[must_use]
    pub fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// Returns how its last run ended, if one has.
    #[must_use]
    pub fn last_exit(&self) -> Option<&LastExit> {
        self.last_exit.as_deref()
    }

    /// Returns its messages.
    #[must_use]
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// Returns what is known about the conversation with its agent.
    #[must_use]
    pub fn talk(&self) -> &Talk {
        &self.talk
    }

    /// Returns what its agent is doing now, if it says so.
    #[must_use]
    pub fn activity(&self) -> Activity {
        match self.live.standing.as_deref() {
            _ if self.is_paused() => Activity::Limited,
            Some(_) if self.talk.open().next().is_some() => Activity::Waiting,
            Some(Standing { activity: Activity::Idle, own_work: true, .. }) => Activity::Working,
            Some(Standing { activity, .. }) => *activity,
            None => Activity::Unknown,
        }
    }

    /// Returns what its agent is doing, how that is known, and since when.
    #[must_use]
    pub fn standing(&self) -> Option<&Standing> {
        self.live.standing.as_deref()
    }

    /// Whether its terminal shows a dialog, so that no message may be typed into it.
    #[must_use]
    pub fn dialog(&self) -> Dialog {
        self.standing().map_or(Dialog::None, |standing| standing.dialog)
    }

    /// Returns how many consumers are connected.
    #[must_use]
    pub fn consumers(&self) -> usize {
        self.live.consumers.len()
    }

    /// Returns the connected consumers and their kinds.
    pub fn connected(&self) -> impl Iterator<Item = (ConsumerId, ConsumerKind)> {
        self.live.consumers.iter().map(|(consumer, kind)| (*consumer, *kind))
    }

    /// Returns when a consumer was last connected.
    #[must_use]
    pub fn last_consumer(&self) -> Option<Wall> {
        self.last_consumer
    }

    /// Returns the latest memory reading of the run, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        self.live.memory.bytes
    }

    /// Returns whether a shim keeps the locks while nothing runs.
    #[must_use]
    pub fn shim(&self) -> Shim {
        self.shim
    }

    /// Whether the shim that stands was opened for the locks and the command of the definition in force.
    #[must_use]
    pub fn fits_shim(&self) -> bool {
        self.opened == Some(self.spec.setup)
    }

    /// Returns the takeover under way.
    #[must_use]
    pub fn takeover(&self) -> Option<Takeover> {
        self.live.takeover
    }

    /// Returns what keeps its run from ending, if it should have ended and has not.
    #[must_use]
    pub fn unended(&self) -> Option<&Unended> {
        self.live.unended.as_deref()
    }

    /// Returns the run that may have processes now.
    #[must_use]
    pub fn live_run(&self) -> Option<RunNumber> {
        match self.life {
            Life::Starting { run, .. }
            | Life::Running { run, .. }
            | Life::Held { run, .. }
            | Life::Stopping { run, .. } => Some(run),
            Life::Idle { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => None,
        }
    }

    /// Whether a person has looked at what it did last.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.regard.is_seen()
    }

    /// Whether a person is connected to it.
    fn is_watched(&self) -> bool {
        self.live.consumers.values().any(|kind| *kind != ConsumerKind::Overhear)
    }

    /// Returns why it must run now, if it must.
    #[must_use]
    pub fn need(&self, now: Boot) -> Option<Need> {
        let idle = matches!(self.life, Life::Idle { .. });
        let restored = matches!(self.life, Life::Idle { since: IdleSince::Restored });
        if self.spec.run_per_message {
            return self.inbox_needs();
        }
        match self.spec.mode {
            Mode::Always if !restored => return Some(Need::Always),
            Mode::Once if !restored && (!idle || self.runs.count == 0) => return Some(Need::Once),
            Mode::Always | Mode::Once | Mode::OnDemand => {}
        }
        self.occupied().or_else(|| self.keep_until.filter(|until| now < *until).map(|_| Need::Person))
    }

    /// Returns the need, if there is one that does not depend on the time.
    pub(crate) fn occupied(&self) -> Option<Need> {
        if let Some(need) = self.inbox_needs() {
            return Some(need);
        }
        if self.standing().is_some_and(|standing| standing.own_work) {
            return Some(Need::OwnWork);
        }
        if self.live.unsaved {
            return Some(Need::Unsaved);
        }
        let attached = self.live.consumers.values().any(|kind| *kind == ConsumerKind::Attach);
        attached.then_some(Need::Attach)
    }

    fn inbox_needs(&self) -> Option<Need> {
        if self.inbox.in_flight().is_some() {
            return Some(Need::Turn);
        }
        (self.inbox.queued() > 0 && !self.is_held()).then_some(Need::Message)
    }

    /// Returns when something is due next. Send [`crate::Event::Ticked`] then; early or late does no harm.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Deadline> {
        let deadline = |at, what| Some(Deadline { at, what });
        match &self.life {
            Life::Backoff { until, .. } => {
                earlier(deadline(until.boot, Upcoming::Restart), self.need_runs_out())
            }
            Life::Blocked { on: BlockedOn::VendorLock { retry }, .. } => {
                earlier(deadline(retry.boot, Upcoming::Retry), self.need_runs_out())
            }
            Life::Blocked { on: BlockedOn::OurLock, .. } => self.need_runs_out(),
            Life::Running { since, .. } => {
                let takeover = self
                    .live
                    .takeover
                    .and_then(|takeover| deadline(takeover.until.boot, Upcoming::TakeoverDeadline));
                earlier(takeover, earlier(self.watchdog_due(since.boot), self.park_due()))
            }
            Life::Stopping { .. } => {
                self.live.leaving.and_then(|leaving| deadline(leaving.until, Upcoming::Signal))
            }
            Life::Idle { .. }
            | Life::Starting { .. }
            | Life::Held { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => None,
        }
    }

    pub(crate) fn park_due(&self) -> Option<Deadline> {
        let at = self.live.unneeded? + self.spec.policy.idle_after;
        Some(Deadline { at, what: Upcoming::Park })
    }

    pub(crate) fn watchdog_due(&self, since: Boot) -> Option<Deadline> {
        if self.spec.policy.watchdog == Duration::ZERO {
            return None;
        }
        let at = self.live.sign_of_life.unwrap_or(since) + self.spec.policy.watchdog;
        Some(Deadline { at, what: Upcoming::Watchdog })
    }

    /// Returns when a wait ends that is kept up only by a person's `start`.
    fn need_runs_out(&self) -> Option<Deadline> {
        let only_person = self.spec.mode == Mode::OnDemand && self.occupied().is_none();
        let at = self.keep_until.filter(|_| only_person)?;
        Some(Deadline { at, what: Upcoming::NotNeeded })
    }
}

fn earlier(one: Option<Deadline>, other: Option<Deadline>) -> Option<Deadline> {
    match (one, other) {
        (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
        (a, b) => a.or(b),
    }
}
