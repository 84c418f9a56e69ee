//! What keeps a session from its next turn: its account or its budget. A turn under way is never touched.

use super::draft::Draft;
use crate::decision::{Answer, Change, Refusal};
use crate::hold::{Hold, HoldKind};
use crate::session::Session;
use crate::usage::{Allowance, Took};
use crate::why::{AccountStep, Why};
use crate::words;
use std::borrow::Cow;
use std::time::Duration;

impl Session {
    /// Returns what keeps it from its next turn.
    #[must_use]
    pub fn hold(&self) -> Option<Cow<'_, Hold>> {
        self.live.hold.as_deref().map(Cow::Borrowed).or_else(|| self.over_budget().map(Cow::Owned))
    }

    /// Returns the hold that its account puts on it.
    #[must_use]
    pub fn held_by_account(&self) -> Option<&Hold> {
        self.live.hold.as_deref()
    }

    pub(crate) fn is_held(&self) -> bool {
        self.live.hold.is_some() || self.over_budget().is_some()
    }

    /// Whether it has work and may not do it. A session that only waits for its turn among others is not
    /// shown as held.
    pub(crate) fn is_paused(&self) -> bool {
        let shown = |hold: Cow<'_, Hold>| hold.kind != HoldKind::Crowded;
        self.inbox.in_flight().is_none() && self.hold().is_some_and(shown)
    }

    /// Returns the budget it has used up, if any.
    #[must_use]
    pub fn over_budget(&self) -> Option<Hold> {
        let usage = self.usage.as_deref()?;
        let spec = self.latest_spec();
        let spent = usage.sum.cost.unwrap_or_default().less(usage.allowed.cost);
        let took = usage.time.saturating_sub(usage.allowed.time);
        let hold = |kind, of| Hold { kind, since: usage.at, until: None, asks: true, of, account: None };
        if let Some(budget) = spec.budget.filter(|budget| spent >= *budget) {
            return Some(hold(HoldKind::Budget, format!("{} USD", budget.usd())));
        }
        let time = spec.turn_time.map(Duration::from_millis).filter(|time| took >= *time)?;
        Some(hold(HoldKind::TurnTime, words::duration(time)))
    }
}

impl Draft<'_> {
    pub(super) fn held(&mut self, hold: Option<&Hold>) -> Why {
        if self.session.live.hold.as_deref() == hold {
            return Why::Stale;
        }
        let why = match hold {
            Some(_) => Why::Account(AccountStep::Held),
            None => Why::Account(AccountStep::Free),
        };
        self.change(Change::Hold(hold.cloned().map(Box::new)));
        why
    }

    /// Lets the session go on because a person said so: what it has used so far no longer counts.
    pub(super) fn budget_raised(&mut self) -> Why {
        if self.session.over_budget().is_none() {
            return self.refuse(Refusal::NoSuchRequest);
        }
        let usage = self.session.usage.as_deref().cloned().unwrap_or_default();
        let cost = usage.sum.cost.unwrap_or_default();
        self.change(Change::BudgetRaised(Allowance { cost, time: usage.time }));
        self.answer(Answer::Done);
        Why::Account(AccountStep::BudgetRaised)
    }

    /// Begins to count the time of a turn, if it is limited.
    pub(super) fn turn_begins(&mut self) {
        if self.session.latest_spec().turn_time.is_some() {
            self.change(Change::TurnSince(Some(self.now.boot)));
        }
    }

    /// Counts the time of a turn that is over, however it ended.
    pub(super) fn turn_took(&mut self) {
        let since = self.session.usage.as_deref().and_then(|usage| usage.turn_since);
        if let Some(since) = since {
            let took = Took { time: self.now.boot.since(since), at: self.now.wall };
            self.change(Change::TurnTook(took));
        }
    }
}
