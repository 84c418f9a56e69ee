//! Accounts: the first refusal by a vendor holds every session of the account; they resume in the order the
//! core gives.
//!
//! What is known of an account is stored together with the refusal that revealed it. What keeps a session
//! from its next turn is not stored with the session but derived again whenever it may have changed: at
//! start-up, when a session is added, and after every input that touched a session of a held or bounded
//! account.

use super::Engine;
use crate::define::account;
use crate::define::config::AccountBounds;
use crate::engine::session::Tracked;
use pinfold_agents::{FailureKind, LimitReach, LimitStatus, TurnFailure};
use pinfold_core::account::{Account, Member, MemberStanding, RefusalEffect, Refused, Wants};
use pinfold_core::event::Machine;
use pinfold_core::hold::{Hold, HoldKind};
use pinfold_core::life::{Life, StartStage};
use pinfold_core::usage::Money;
use pinfold_core::{Boot, Change, Event, EventKind, MessageId, Now, Wall};
use pinfold_store::{AuditEvent, Batch, Facts, Read, Reader, SessionId, Ulid, UsageBy, UsageQuery};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tracing::{info, warn};

/// Everything known about all accounts.
#[derive(Default)]
pub(crate) struct Accounts {
    /// The key of the hashes in account names.
    pub(crate) key: account::HashKey,
    pub(crate) known: BTreeMap<Arc<str>, KnownAccount>,
    /// Accounts to which something happened that may let one of their sessions go on.
    touched: BTreeSet<Arc<str>>,
    /// Sessions of which another definition came into force, maybe with another account.
    moved: BTreeSet<SessionId>,
    /// When the next account has to be looked at because of the clock alone.
    pub(super) due: Option<Boot>,
}

/// What is known of one account.
#[derive(Debug, Default)]
pub(crate) struct KnownAccount {
    pub(crate) core: Account,
    /// How many of its sessions may start or work at once, and what they may spend.
    bounds: AccountBounds,
    /// The start of a day, and what the account has spent on that day.
    pub(crate) today: (Wall, Money),
}

impl KnownAccount {
    fn is_quiet(&self) -> bool {
        self.core.held.is_none() && self.bounds == AccountBounds::default()
    }
}

impl Engine {
    /// Reads the stored accounts and what they spent today. Must run before sessions are loaded.
    pub(super) fn load_accounts(&mut self, reader: &Reader) -> Read<()> {
        for (name, state) in reader.accounts()? {
            match serde_json::from_str(&state) {
                Ok(core) => self.accounts.known.entry(name.as_str().into()).or_default().core = core,
                Err(problem) => warn!(account = name, "what is stored of it cannot be read: {problem}"),
            }
        }
        let today = crate::clock::midnight(self.ports.clock.wall());
        for sum in reader.usage(&UsageQuery { by: UsageBy::Account, since: Some(today) })? {
            let (Some(name), Some(cost)) = (sum.of, sum.figures.cost) else { continue };
            self.accounts.known.entry(name.as_str().into()).or_default().today = (today, cost);
        }
        Ok(())
    }

    /// Adjusts accounts after a restart: times of another boot mean nothing.
    pub(super) fn accounts_recovered(&mut self, machine: Machine) {
        let (now, restarted) = (self.ports.clock.now(), machine != Machine::Same);
        self.accounts.known.values_mut().for_each(|known| known.core.recovered(restarted, now));
        let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        ids.into_iter().for_each(|id| self.hold_quietly(id));
        self.touch_all_accounts();
    }

    /// Notes which account a session uses.
    fn know_account(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let preset = self.config.preset(&tracked.definition.agent);
        let made = account::of(&tracked.definition, preset.as_ref(), self.accounts.key);
        let name = made.filter(|_| self.alone.is_none()).map(|made| self.config.account_name(made));
        let name: Option<Arc<str>> = name.map(Into::into);
        if let Some(name) = &name {
            let bounds = self.config.account_bounds(name);
            let known = self.accounts.known.entry(Arc::clone(name)).or_default();
            known.bounds = bounds;
            // It may be the session that the others of its account wait for.
            if !known.is_quiet() {
                self.accounts.touched.insert(Arc::clone(name));
            }
        }
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.account = name;
        }
    }

    /// As `know_account`, for a session for which nothing has been decided yet, or is about to be.
    pub(super) fn know_account_first(&mut self, id: SessionId) {
        self.know_account(id);
        self.hold_quietly(id);
    }

    /// Sets what keeps a session from its next turn, before anything is decided for it.
    fn hold_quietly(&mut self, id: SessionId) {
        let hold = self.hold_of(id);
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.session.apply(&Change::Hold(hold.map(Box::new)));
        }
    }

    /// Applies a changed configuration: account names and bounds may have changed.
    pub(super) fn follow_accounts(&mut self) {
        let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in ids {
            self.know_account(id);
            self.hold_session(id);
        }
        self.touch_all_accounts();
    }

    /// Another definition of a session came into force: it may use another account. What follows from that
    /// waits until the input has been handled.
    pub(super) fn follow_account(&mut self, id: SessionId) {
        self.know_account(id);
        self.accounts.moved.insert(id);
    }

    fn touch_all_accounts(&mut self) {
        let held = self.accounts.known.iter().filter(|(_, known)| !known.is_quiet());
        self.accounts.touched.extend(held.map(|(name, _)| Arc::clone(name)));
    }

    /// Something happened to a session: others of its account may now go on, or must wait.
    pub(super) fn touch_account(&mut self, id: SessionId) {
        let Some(name) = self.sessions.get(&id).and_then(|tracked| tracked.account.clone()) else { return };
        if self.accounts.known.get(&name).is_some_and(|known| !known.is_quiet()) {
            self.accounts.touched.insert(name);
        }
    }

    /// Records what an agent reported about a usage limit.
    pub(super) fn told_of_limit(&mut self, id: SessionId, limit: &LimitStatus) {
        let now = self.ports.clock.now();
        let Some(name) = self.sessions.get(&id).and_then(|tracked| tracked.account.clone()) else { return };
        let Some(known) = self.accounts.known.get_mut(&name) else { return };
        let window = limit.window.as_deref().unwrap_or("limit");
        let used = limit.used.or((limit.reach == LimitReach::Reached).then_some(1.0));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was bounded before")]
        let used = used.map(|used| (used.clamp(0.0, 10.0) * 1000.0).round() as u32);
        known.core.told(window, used, limit.until, now);
        // A report that the limit is gone counts before the turn is over.
        if limit.reach != LimitReach::Reached && known.core.worked(member(id), now) {
            self.accounts.touched.insert(Arc::clone(&name));
        }
        self.store_account(&name, Some(id), None);
    }

    /// The vendor refused a turn: all sessions of the account wait. Returns whether the turn may be tried
    /// again later.
    pub(super) fn refused(&mut self, id: SessionId, failure: &TurnFailure) -> bool {
        let Some(name) = self.sessions.get(&id).and_then(|tracked| tracked.account.clone()) else {
            return false;
        };
        let kind = match failure.kind {
            FailureKind::Limit => HoldKind::Limit,
            FailureKind::Login => HoldKind::Login,
            FailureKind::Overloaded => HoldKind::Overloaded,
            FailureKind::Model | FailureKind::Server | FailureKind::LineTooLong | FailureKind::Other => {
                return false;
            }
        };
        let window = self.full_window(&name).filter(|_| kind == HoldKind::Limit);
        let (window, until) = window.unzip();
        let refused = Refused { kind, until: until.flatten(), window, text: Some(failure.text.clone()) };
        self.hold_account(&name, id, &refused);
        true
    }

    /// The limit last reported as reached, and when it resets.
    fn full_window(&self, name: &str) -> Option<(String, Option<Wall>)> {
        let windows = &self.accounts.known.get(name)?.core.windows;
        let full = windows.iter().filter(|(_, window)| window.used.is_some_and(|used| used >= 1000));
        let (window, known) = full.max_by_key(|(_, window)| window.told)?;
        Some((window.clone(), known.resets))
    }

    fn hold_account(&mut self, name: &Arc<str>, id: SessionId, refused: &Refused) {
        let now = self.ports.clock.now();
        let Some(known) = self.accounts.known.get_mut(name) else { return };
        let news = known.core.refused(refused, now);
        let event = (news == RefusalEffect::Held).then(|| self.held_event(name, id, now)).flatten();
        if event.is_some() {
            info!(account = &**name, kind = refused.kind.word(), "it is held");
        }
        self.store_account(name, Some(id), event);
        self.accounts.touched.insert(Arc::clone(name));
        // Before the turn counts as over: otherwise the next one would begin at once.
        self.hold_session(id);
    }

    fn held_event(&self, name: &str, id: SessionId, now: Now) -> Option<AuditEvent> {
        let held = self.accounts.known.get(name)?.core.held.as_ref()?;
        let mut data = serde_json::Map::new();
        data.insert("account".into(), name.into());
        data.insert("reason".into(), held.kind.word().into());
        data.insert("window".into(), held.window.clone().into());
        data.insert("resets".into(), held.until.map(|until| crate::clock::time(until.wall)).into());
        data.insert("text".into(), held.text.clone().into());
        let hold = self.hold_of(id)?;
        let (session, kind) = (Some(id), EventKind::AccountHeld);
        let run = self.sessions.get(&id).and_then(|tracked| tracked.latest).map(|(_, run)| run);
        Some(AuditEvent { at: now.wall, session, run, kind, why: hold.to_string(), data })
    }

    /// Stores what is known of an account, in one batch with the decision about the session it was learned
    /// from.
    fn store_account(&mut self, name: &str, id: Option<SessionId>, event: Option<AuditEvent>) {
        let Some(known) = self.accounts.known.get(name) else { return };
        let mut batch = Batch::new();
        batch.account(name, serde_json::to_string(&known.core).unwrap_or_default());
        event.into_iter().for_each(|event| batch.event(event));
        match self.gathered.as_mut().filter(|gathered| id.is_some_and(|id| gathered.is_of(id))) {
            Some(gathered) => gathered.add(batch),
            None => self.commit(None, batch),
        }
    }

    /// A turn of a session succeeded.
    pub(super) fn account_works(&mut self, id: SessionId) {
        let now = self.ports.clock.now();
        let Some(name) = self.sessions.get(&id).and_then(|tracked| tracked.account.clone()) else { return };
        let Some(known) = self.accounts.known.get_mut(&name) else { return };
        if known.core.worked(member(id), now) {
            self.accounts.touched.insert(Arc::clone(&name));
            self.store_account(&name, Some(id), None);
        }
    }

    /// Adds to what an account spent on a day; when that exceeds its budget, a person is asked.
    pub(super) fn account_spent(&mut self, id: SessionId, cost: Option<Money>) {
        let (Some(cost), now) = (cost.filter(|cost| cost.0 > 0), self.ports.clock.now()) else { return };
        let Some(name) = self.sessions.get(&id).and_then(|tracked| tracked.account.clone()) else { return };
        let Some(known) = self.accounts.known.get_mut(&name) else { return };
        let day = crate::clock::midnight(now.wall);
        if known.today.0 != day {
            known.today = (day, Money(0));
        }
        known.today.1 = known.today.1 + cost;
        let waived = known.core.waived.filter(|(of, _)| *of == day).map(|(_, waived)| waived);
        let spent = known.today.1.less(waived.unwrap_or_default());
        if known.core.held.is_none() && known.bounds.budget.is_some_and(|budget| spent >= budget) {
            let until = Some(crate::clock::next_midnight(now.wall));
            let refused = Refused { kind: HoldKind::AccountBudget, until, window: None, text: None };
            self.hold_account(&name, id, &refused);
        }
    }

    /// A person lets an account go on. Returns whether it was held.
    pub(super) fn resume_account(&mut self, name: &str) -> bool {
        let now = self.ports.clock.now();
        let Some((name, known)) = self.accounts.known.get_key_value(name) else { return false };
        let (name, over) = (Arc::clone(name), known.core.held.as_ref().map(|held| held.kind));
        let Some(known) = self.accounts.known.get_mut(&name) else { return false };
        if over == Some(HoldKind::AccountBudget) {
            known.core.waived = Some(known.today);
        }
        let went_on = known.core.go_on(now);
        if went_on {
            self.accounts.touched.insert(Arc::clone(&name));
            self.store_account(&name, None, None);
        }
        self.settle_accounts();
        went_on
    }

    /// Lets sessions go on that may, and holds those that must wait. Runs after every input and at account
    /// deadlines.
    pub(super) fn settle_accounts(&mut self) {
        while let Some(id) = self.accounts.moved.pop_first() {
            self.hold_session(id);
        }
        if self.accounts.touched.is_empty() {
            return;
        }
        while let Some(name) = self.accounts.touched.pop_first() {
            self.settle_account(&name);
        }
        let now = self.ports.clock.boot();
        let all = self.accounts.known.values().filter_map(|known| known.core.next_deadline());
        // A deadline that passed while no daemon ran must not hide another.
        let due = all.map(|due| due.boot).filter(|due| *due > now).min();
        if self.accounts.due != due {
            self.accounts.due = due;
            self.ports.clock.wake_at(self.first_deadline());
        }
    }

    /// Looks at accounts whose deadline has passed.
    pub(super) fn accounts_due(&mut self, now: Boot) {
        if self.accounts.due.is_none_or(|due| due > now) {
            return;
        }
        self.accounts.due = None;
        self.touch_all_accounts();
    }

    fn settle_account(&mut self, name: &Arc<str>) {
        let now = self.ports.clock.now();
        let members = self.members(name);
        let Some(known) = self.accounts.known.get_mut(name) else { return };
        let was_held = known.core.held.is_some();
        if known.core.settle(&members, now) {
            let over = was_held && known.core.held.is_none();
            let event = over.then(|| self.resumed_event(name, now));
            self.store_account(name, None, event);
        }
        for one in members {
            self.hold_session(SessionId(Ulid::from(MessageId(one.member.0))));
        }
    }

    fn resumed_event(&self, name: &str, now: Now) -> AuditEvent {
        let mut data = serde_json::Map::new();
        data.insert("account".into(), name.into());
        let why = format!("account `{name}` works again");
        let kind = EventKind::AccountResumed;
        AuditEvent { at: now.wall, session: None, run: None, kind, why, data }
    }

    /// The sessions of an account that are not archived, in the order in which they may try: the longest
    /// waiting first.
    fn members(&self, name: &Arc<str>) -> Vec<MemberStanding> {
        let of = self.sessions.values().filter(|tracked| tracked.account.as_ref() == Some(name));
        let active = of.filter(|tracked| !tracked.session.life().is_retired());
        let mut all: Vec<_> = active.map(|tracked| (waits_since(tracked), standing(tracked))).collect();
        all.sort_by_key(|(since, one)| (*since, one.member));
        all.into_iter().map(|(_, one)| one).collect()
    }

    fn hold_of(&self, id: SessionId) -> Option<Hold> {
        let tracked = self.sessions.get(&id)?;
        let name = tracked.account.as_ref()?;
        let known = self.accounts.known.get(name)?;
        // It waits for another holder's lock, and a hold would make it forget that; it is held once it has
        // the lock.
        if let Life::Blocked { .. } = tracked.session.life() {
            return None;
        }
        let resumes = tracked.session.spec().policy.limit_resume;
        let held = known.core.hold_of(name, member(id), resumes);
        // A session without work is held only when a message arrives.
        let wants = tracked.session.inbox().queued() > 0;
        held.or_else(|| self.crowded(name, known, tracked).filter(|_| wants))
    }

    /// A message is about to arrive: if enough other sessions of the account are working, it waits.
    pub(super) fn hold_before_message(&mut self, id: SessionId) {
        let Some(name) = self.sessions.get(&id).and_then(|tracked| tracked.account.clone()) else { return };
        let bounded = |known: &KnownAccount| (known.bounds.starts, known.bounds.at_work) != (0, 0);
        let Some(known) = self.accounts.known.get(&name).filter(|known| bounded(known)) else { return };
        let Some(tracked) =
            self.sessions.get(&id).filter(|tracked| tracked.session.held_by_account().is_none())
        else {
            return;
        };
        if let Some(hold) = self.crowded(&name, known, tracked) {
            self.happened(id, &Event::Held(Some(Box::new(hold))), &Facts::default(), None);
        }
    }

    /// Whether enough other sessions of an account are working or starting.
    fn crowded(&self, name: &Arc<str>, known: &KnownAccount, tracked: &Tracked) -> Option<Hold> {
        let AccountBounds { starts, at_work, .. } = known.bounds;
        if (starts, at_work) == (0, 0) || is_at_work(tracked) || is_starting(tracked) {
            return None;
        }
        let others = || {
            self.sessions
                .values()
                .filter(|other| other.account.as_ref() == Some(name) && other.id != tracked.id)
        };
        let starting = others().filter(|other| is_starting(other)).count() as u64;
        let at_work_now = others().filter(|other| is_at_work(other) || is_starting(other)).count() as u64;
        let needs_start = tracked.session.live_run().is_none();
        let full = starts > 0 && needs_start && starting >= u64::from(starts)
            || at_work > 0 && at_work_now >= u64::from(at_work);
        let of = format!("account `{name}`");
        let (kind, since, account) = (HoldKind::Crowded, Wall(0), None);
        full.then_some(Hold { kind, since, until: None, asks: false, of, account })
    }

    /// Tells a session what keeps it from its next turn, if that has changed.
    fn hold_session(&mut self, id: SessionId) {
        let hold = self.hold_of(id);
        let Some(tracked) = self.sessions.get(&id) else { return };
        if tracked.session.held_by_account() != hold.as_ref() && !self.early.contains_key(&id) {
            self.happened(id, &Event::Held(hold.map(Box::new)), &Facts::default(), None);
        } else if self.early.contains_key(&id) {
            self.hold_quietly(id);
        }
    }
}

/// A copy of an account to show from.
pub(crate) struct AccountView {
    pub(crate) name: String,
    pub(crate) core: Account,
    pub(crate) sessions: u64,
    pub(crate) held_sessions: Vec<String>,
    pub(crate) today: Option<Money>,
    pub(crate) budget: Option<Money>,
}

impl Engine {
    /// The accounts that sessions use or the configuration names, and all that are held.
    pub(super) fn account_views(&self) -> Vec<AccountView> {
        let day = crate::clock::midnight(self.ports.clock.wall());
        let named = self.config.account_names().into_iter().map(Arc::from);
        let all: BTreeSet<Arc<str>> = self.accounts.known.keys().cloned().chain(named).collect();
        let views = all.iter().map(|name| self.account_view(name, day));
        views.filter(|view| view.sessions > 0 || view.core.held.is_some() || view.budget.is_some()).collect()
    }

    fn account_view(&self, name: &Arc<str>, day: Wall) -> AccountView {
        let of = || {
            let of = self.sessions.values().filter(|tracked| tracked.account.as_ref() == Some(name));
            of.filter(|tracked| !tracked.session.life().is_retired())
        };
        let held = |tracked: &Tracked| {
            tracked.session.held_by_account().is_some_and(|hold| hold.kind != HoldKind::Crowded)
        };
        let known = self.accounts.known.get(name);
        AccountView {
            name: name.to_string(),
            core: known.map(|known| known.core.clone()).unwrap_or_default(),
            sessions: of().count() as u64,
            held_sessions: of().filter(|tracked| held(tracked)).map(|tracked| tracked.name.clone()).collect(),
            today: known.map(|known| known.today).filter(|today| today.0 == day).map(|today| today.1),
            budget: self.config.account_bounds(name).budget,
        }
    }
}

/// The id under which an account knows a session.
fn member(id: SessionId) -> Member {
    Member(MessageId::from(id.0).0)
}

fn waits_since(tracked: &Tracked) -> Option<MessageId> {
    tracked.session.inbox().next_waiting()
}

fn is_at_work(tracked: &Tracked) -> bool {
    tracked.session.inbox().in_flight().is_some()
}

fn is_starting(tracked: &Tracked) -> bool {
    match tracked.session.life() {
        Life::Starting { stage: StartStage::Reserving | StartStage::Spawning, .. } => true,
        // It has its run, but its message is not delivered yet.
        Life::Running { .. } => {
            let inbox = tracked.session.inbox();
            tracked.definition.has_tape()
                && inbox.queued() > 0
                && tracked.session.held_by_account().is_none()
                && !tracked.run.as_ref().is_some_and(|run| run.ready)
        }
        Life::Idle { .. }
        | Life::Held { .. }
        | Life::Stopping { .. }
        | Life::Backoff { .. }
        | Life::Blocked { .. }
        | Life::Stopped
        | Life::Failed { .. }
        | Life::Archived { .. } => false,
    }
}

fn standing(tracked: &Tracked) -> MemberStanding {
    let session = &tracked.session;
    let wants = match session.life() {
        // A terminal has it: queued messages wait until that ends.
        Life::Held { .. }
        | Life::Stopped
        | Life::Failed { .. }
        | Life::Blocked { .. }
        | Life::Archived { .. } => Wants::Nothing,
        Life::Idle { .. }
        | Life::Starting { .. }
        | Life::Running { .. }
        | Life::Stopping { .. }
        | Life::Backoff { .. } => match session.inbox() {
            // Until its agent has taken the message, the next session waits.
            inbox if inbox.in_flight().is_some_and(|turn| turn.taken) => Wants::AtWork,
            inbox if inbox.in_flight().is_some() => Wants::Turn,
            inbox if inbox.queued() > 0 && session.over_budget().is_none() => Wants::Turn,
            _ => Wants::Nothing,
        },
    };
    MemberStanding { member: member(tracked.id), wants, resumes: session.spec().policy.limit_resume }
}
