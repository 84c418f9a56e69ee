//! One session as the core knows it: what it remembers.
//!
//! What to do about an event is decided in [`crate::machine`], where [`Session::handle`] is, and in
//! [`crate::rules`]. It changes in no other way than by [`Change`]s, so replaying them gives it back.

use crate::budgets::Budgets;
use crate::decision::{Change, InForce};
use crate::event::{ConsumerKind, Shim};
use crate::guest::Guest;
use crate::hold::Hold;
use crate::ids::{ConsumerId, RunNumber};
use crate::inbox::{Inbox, MessageChange, Queued};
use crate::last_exit::LastExit;
use crate::life::{BlockedOn, IdleSince, Life, State};
use crate::policy::{Mode, Spec};
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
    #[serde(skip)]
    pub(crate) live: Live,
}

/// What is true only while this daemon lives; a restart begins without it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Live {
    pub(crate) consumers: BTreeMap<ConsumerId, ConsumerKind>,
    pub(crate) unneeded: Option<Boot>,
    pub(crate) takeover: Option<Takeover>,
    /// Who waits for a guest, in the order in which they came.
    pub(crate) awaiting_guest: Vec<ConsumerId>,
    pub(crate) standing: Option<Box<Standing>>,
    /// What its account keeps it from.
    pub(crate) hold: Option<Box<Hold>>,
    pub(crate) memory: MemoryWatch,
    pub(crate) sign_of_life: Option<Boot>,
    pub(crate) closing: bool,
    /// Its lock is held and its shim does not answer: nothing is decided until the world was seen.
    pub(crate) mute: bool,
    /// Its agent was asked by word to leave.
    pub(crate) leaving: Option<Leaving>,
    /// Who is in the way of its run's end.
    pub(crate) unended: Option<Box<Unended>>,
    /// The last run that was given a message.
    pub(crate) served: Option<RunNumber>,
}

/// The next thing that happens by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// When.
    pub at: Boot,
    /// What.
    pub what: Upcoming,
}

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Upcoming {
    /// The next run after a wait.
    Restart,
    /// A try to get past somebody else's lock.
    Retry,
    /// Parking.
    Park,
    /// The end of a takeover's patience.
    TakeoverDeadline,
    /// The end of the watchdog's patience.
    Watchdog,
    /// The end of what a person's `start` keeps alive.
    NotNeeded,
    /// The stop signal for an agent that was asked to leave.
    Signal,
    /// The end of what its account keeps it from.
    Reset,
}

impl Upcoming {
    /// The word of the contract for `next.what`.
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
    /// A session that nothing has happened to yet; send it [`crate::Event::Created`].
    #[must_use]
    pub fn new(spec: Spec) -> Session {
        Session {
            spec,
            next_spec: None,
            life: Life::Idle { since: IdleSince::Created },
            runs: Runs::default(),
            shim: Shim::Absent,
            budgets: Budgets::default(),
            last_exit: None,
            inbox: Inbox::default(),
            talk: Talk::default(),
            last_consumer: None,
            keep_until: None,
            interrupted: false,
            guest: None,
            usage: None,
            live: Live::default(),
        }
    }

    /// Applies one change of an earlier decision: replaying all of them gives the session back.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Life(life) => self.life = life.clone(),
            Change::Runs(runs) => self.runs = *runs,
            Change::Budgets(budgets) => self.budgets = (**budgets).clone(),
            Change::LastExit(exit) => self.last_exit = Some(exit.clone()),
            Change::Shim(shim) => self.shim = *shim,
            Change::Message(step) => {
                if let MessageChange::Delivering { .. } = step {
                    self.live.served = self.live_run();
                }
                self.inbox.apply(step);
            }
            Change::Request(step) => self.talk.apply(step),
            Change::Vendor(vendor) => self.talk.learn(vendor),
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
            Change::Record(_) => {}
        }
    }

    /// What a daemon that starts would load: everything but what dies with this one.
    #[must_use]
    pub fn as_stored(&self) -> Session {
        Session { live: Live::default(), ..self.clone() }
    }

    /// A copy to show from: it explains itself as the session does, and says how many messages wait, but not which.
    #[must_use]
    pub fn outline(&self) -> Session {
        Session {
            spec: self.spec.clone(),
            next_spec: self.next_spec.clone(),
            life: self.life.clone(),
            runs: self.runs,
            shim: self.shim,
            budgets: self.budgets.clone(),
            last_exit: self.last_exit.clone(),
            inbox: self.inbox.outline(),
            talk: self.talk.clone(),
            last_consumer: self.last_consumer,
            keep_until: self.keep_until,
            interrupted: self.interrupted,
            guest: self.guest,
            usage: self.usage.clone(),
            live: self.live.clone(),
        }
    }

    /// Puts back the messages that wait, which are stored one by one and not with the session.
    pub fn refill(&mut self, waiting: impl IntoIterator<Item = Queued>) {
        self.inbox.refill(waiting);
    }

    /// Puts back how its last run ended, from a record of the time before that was stored with the session.
    pub fn recall(&mut self, exit: LastExit) {
        self.last_exit.get_or_insert_with(|| Box::new(exit));
    }

    fn define(&mut self, spec: &Spec, in_force: InForce) {
        match in_force {
            InForce::Now => (self.spec, self.next_spec) = (spec.clone(), None),
            InForce::NextRun => self.next_spec = Some(Box::new(spec.clone())),
        }
    }

    /// The state in the contract's words.
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

    /// The state with what belongs to it.
    #[must_use]
    pub fn life(&self) -> &Life {
        &self.life
    }

    /// Whether its agent was asked by word to leave, and is waited for.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.live.leaving.is_some()
    }

    /// Whether a person interrupted the turn under way.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The definition in force.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The definition that the next run will have, if it is another one.
    #[must_use]
    pub fn next_spec(&self) -> Option<&Spec> {
        self.next_spec.as_deref()
    }

    /// The numbers of its runs.
    #[must_use]
    pub fn runs(&self) -> Runs {
        self.runs
    }

    /// The counters of the restart rules.
    #[must_use]
    pub fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// How its last run ended, if one has.
    #[must_use]
    pub fn last_exit(&self) -> Option<&LastExit> {
        self.last_exit.as_deref()
    }

    /// Its messages.
    #[must_use]
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// What is known of the conversation with its agent.
    #[must_use]
    pub fn talk(&self) -> &Talk {
        &self.talk
    }

    /// What its agent does now, where it says so.
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

    /// What is known of what its agent does, with how and since when.
    #[must_use]
    pub fn standing(&self) -> Option<&Standing> {
        self.live.standing.as_deref()
    }

    /// Whether its terminal asks something, so that no message is typed into it.
    #[must_use]
    pub fn dialog(&self) -> Dialog {
        self.standing().map_or(Dialog::None, |standing| standing.dialog)
    }

    /// How many consumers are connected.
    #[must_use]
    pub fn consumers(&self) -> usize {
        self.live.consumers.len()
    }

    /// Who is connected, and how.
    pub fn connected(&self) -> impl Iterator<Item = (ConsumerId, ConsumerKind)> {
        self.live.consumers.iter().map(|(consumer, kind)| (*consumer, *kind))
    }

    /// When a consumer was last connected.
    #[must_use]
    pub fn last_consumer(&self) -> Option<Wall> {
        self.last_consumer
    }

    /// The latest memory reading of the run.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        self.live.memory.bytes
    }

    /// Whether a shim keeps the locks while nothing runs.
    #[must_use]
    pub fn shim(&self) -> Shim {
        self.shim
    }

    /// The takeover under way.
    #[must_use]
    pub fn takeover(&self) -> Option<Takeover> {
        self.live.takeover
    }

    /// Who is in the way of its run's end, if it should have ended and has not.
    #[must_use]
    pub fn unended(&self) -> Option<&Unended> {
        self.live.unended.as_deref()
    }

    /// The run that may have processes now.
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

    /// Why it must run now, if it must.
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

    /// The reasons that are not a matter of time.
    pub(crate) fn occupied(&self) -> Option<Need> {
        if let Some(need) = self.inbox_needs() {
            return Some(need);
        }
        if self.standing().is_some_and(|standing| standing.own_work) {
            return Some(Need::OwnWork);
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

    /// When something is due by itself next. Send [`crate::Event::Ticked`] then; early or late does no harm.
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

    /// A wait that only a person's `start` keeps up ends with that.
    fn need_runs_out(&self) -> Option<Deadline> {
        let only_person = self.spec.mode == Mode::OnDemand && self.occupied().is_none();
        let at = self.keep_until.filter(|_| only_person)?;
        Some(Deadline { at, what: Upcoming::NotNeeded })
    }
}

impl Change {
    /// Whether it must be stored: the rest is true only while this daemon lives.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        match self {
            Change::Life(_)
            | Change::Runs(_)
            | Change::Budgets(_)
            | Change::LastExit(_)
            | Change::Shim(_)
            | Change::Message(_)
            | Change::Request(_)
            | Change::Vendor(_)
            | Change::Spent(_)
            | Change::BudgetRaised(_)
            | Change::TurnSince(_)
            | Change::TurnTook(_)
            | Change::LastConsumer(_)
            | Change::KeepUntil(_)
            | Change::Interrupted(_)
            | Change::Guest(_)
            | Change::Spec(..)
            | Change::Record(_) => true,
            Change::Joined(..)
            | Change::Left(_)
            | Change::Unneeded(_)
            | Change::Takeover(_)
            | Change::AwaitingGuest(_)
            | Change::Standing(_)
            | Change::Hold(_)
            | Change::Memory(_)
            | Change::SignOfLife(_)
            | Change::Closing(_)
            | Change::Mute(_)
            | Change::Leaving(_)
            | Change::Unended(_) => false,
        }
    }
}

fn earlier(one: Option<Deadline>, other: Option<Deadline>) -> Option<Deadline> {
    match (one, other) {
        (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
        (a, b) => a.or(b),
    }
}
