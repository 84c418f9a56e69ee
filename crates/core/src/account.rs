//! An account: whether its vendor refuses work, how long, and who tries first when that may be over.
//!
//! The first refusal holds every session of the account. When the hold may be over, one session tries alone;
//! if its turn goes well, the others follow one after the other. After a usage limit only the sessions that
//! asked for it resume by themselves; after a lost login nothing resumes until a person says so. The account
//! only knows what it is told: the shell passes in the sessions and the time.

use crate::hold::{Hold, HoldKind};
use crate::rules::refused;
use crate::time::{Moment, Now, Wall};
use crate::usage::Money;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A turn that runs this long without being refused counts as a success: vendors refuse at once.
pub const TRIAL: Duration = Duration::from_secs(120);
/// A session that was let through and does not begin its turn within this time no longer delays the next one.
pub const NEXT: Duration = Duration::from_secs(10);

/// One session of an account, as the shell numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Member(pub u128);

/// The state of one session of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberStanding {
    /// The session.
    pub member: Member,
    /// What it would do next if it could.
    pub wants: Wants,
    /// Whether it goes on by itself when a limit resets.
    pub resumes: bool,
}

/// What a session would do next if it could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Nothing: no message waits.
    Nothing,
    /// A turn: a message waits.
    Turn,
    /// It already has a turn.
    AtWork,
}

/// What is known about one account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// The vendor's limits, by the vendor's own name for each.
    pub windows: BTreeMap<String, Window>,
    /// The hold, while the vendor refuses work.
    pub held: Option<Held>,
    /// Money spent on one day, keyed by the start of that day, that a person has excluded from the budget.
    pub waived: Option<(Wall, Money)>,
}

/// One usage limit of a vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Window {
    /// How much of it is used up, in thousandths.
    pub used: Option<u32>,
    /// When it resets.
    pub resets: Option<Wall>,
    /// When the vendor last reported it.
    pub told: Wall,
}

/// The vendor refuses work for this account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Why it refuses.
    pub kind: HoldKind,
    /// When the hold began.
    pub since: Wall,
    /// When to try again; `None` if only a person can know.
    pub until: Option<Moment>,
    /// The limit that was reached, by the vendor's name for it.
    #[serde(default)]
    pub window: Option<String>,
    /// What the agent said, in its own words.
    #[serde(default)]
    pub text: Option<String>,
    /// How many refusals there were in a row.
    #[serde(default)]
    pub refusals: u32,
    /// Sessions that were picked to try but did not begin a turn; others are picked before them.
    #[serde(default)]
    pub skipped: BTreeSet<Member>,
    /// Whether a person said to go on.
    #[serde(default)]
    pub go_on: bool,
    /// How far the account has recovered since.
    #[serde(default)]
    pub stage: HoldStage,
}

/// How far an account has recovered from a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldStage {
    /// No session works.
    #[default]
    Waiting,
    /// One session tries, alone.
    Trial {
        /// The session that tries.
        member: Member,
        /// When it was picked.
        since: Moment,
    },
    /// Work is accepted again, and the other sessions follow one after the other.
    Open {
        /// The sessions that may work.
        passed: BTreeSet<Member>,
        /// The session let through last, and when.
        last: Option<(Member, Moment)>,
    },
}

/// A refusal, as reported by an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why work was refused.
    pub kind: HoldKind,
    /// When it ends, according to the vendor.
    pub until: Option<Wall>,
    /// The limit that was reached, by the vendor's name for it.
    pub window: Option<String>,
    /// What the agent said, in its own words.
    pub text: Option<String>,
}

/// What a refusal changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalEffect {
    /// The account is held from now on.
    Held,
    /// The account was held already; the hold is updated.
    Again,
}

impl Account {
    /// Notes what the vendor reports about one limit.
    pub fn told(&mut self, window: &str, used: Option<u32>, resets: Option<Wall>, now: Now) {
        let known = self.windows.entry(window.to_owned()).or_default();
        *known = Window { used: used.or(known.used), resets: resets.or(known.resets), told: now.wall };
    }

    /// Notes that work was refused.
    pub fn refused(&mut self, refused: &Refused, now: Now) -> RefusalEffect {
        let graver = |held: &Held| held.stage == HoldStage::Waiting && held.kind != HoldKind::Overloaded;
        if refused.kind == HoldKind::Overloaded && self.held.as_ref().is_some_and(graver) {
            return RefusalEffect::Again;
        }
        let before = self.held.take().filter(|held| held.kind == refused.kind);
        // A refusal that arrives while the others already wait repeats what is known.
        let same = before.as_ref().is_some_and(|held| held.stage == HoldStage::Waiting);
        let in_trial = before.as_ref().is_some_and(|held| matches!(held.stage, HoldStage::Trial { .. }));
        let refusals = before.as_ref().filter(|_| same || in_trial).map_or(0, |held| held.refusals);
        let refusals = if same { refusals } else { refusals + 1 };
        let told = refused.until.or_else(|| self.resets_of(refused));
        let until = refused::until(refused.kind, told, refusals, now);
        let since = before.as_ref().filter(|_| same || in_trial).map_or(now.wall, |held| held.since);
        let until = if same { later(before.and_then(|held| held.until), until) } else { until };
        self.held = Some(Held {
            kind: refused.kind,
            since,
            until,
            window: refused.window.clone(),
            text: refused.text.clone(),
            refusals,
            skipped: BTreeSet::new(),
            go_on: false,
            stage: HoldStage::Waiting,
        });
        if same || in_trial { RefusalEffect::Again } else { RefusalEffect::Held }
    }

    /// Returns when the limit that was reached resets, if the vendor has reported that before.
    fn resets_of(&self, refused: &Refused) -> Option<Wall> {
        let window = refused.window.as_ref().filter(|_| refused.kind == HoldKind::Limit)?;
        self.windows.get(window)?.resets
    }

    /// Notes that a turn of a member succeeded; returns whether that changed anything.
    pub fn worked(&mut self, member: Member, now: Now) -> bool {
        let Some(held) = &mut self.held else { return false };
        if !matches!(held.stage, HoldStage::Trial { member: trying, .. } if trying == member) {
            return false;
        }
        held.pass(member, now);
        true
    }

    /// Lets the account go on because a person said so, whatever the vendor reported.
    pub fn go_on(&mut self, now: Now) -> bool {
        let Some(held) = &mut self.held else { return false };
        held.go_on = true;
        if held.stage == HoldStage::Waiting {
            held.until = Some(now.moment());
        }
        true
    }

    /// Adjusts a stored hold to a new daemon: times of another boot mean nothing, and it is not known which
    /// session tried.
    pub fn recovered(&mut self, restarted: bool, now: Now) {
        let Some(held) = &mut self.held else { return };
        if let (true, Some(until)) = (restarted, &mut held.until) {
            *until = now.after(now.wall.until(until.wall));
        }
        match &mut held.stage {
            HoldStage::Waiting => {}
            HoldStage::Trial { .. } => {
                held.stage = HoldStage::Waiting;
                held.until = Some(now.moment());
            }
            HoldStage::Open { last, .. } => *last = None,
        }
    }

    /// Advances the hold as far as these sessions allow; they are listed in the order in which they may try.
    /// Returns whether anything changed.
    pub fn settle(&mut self, all: &[MemberStanding], now: Now) -> bool {
        let before = self.held.clone();
        while let Some(held) = &mut self.held {
            let stage = held.stage.clone();
            held.step(all, now);
            if held.is_over(all) {
                self.held = None;
            } else if held.stage == stage {
                break;
            }
        }
        self.held != before
    }

    /// Returns what keeps a session from its next turn.
    #[must_use]
    pub fn hold_of(&self, name: &str, member: Member, resumes: bool) -> Option<Hold> {
        let held = self.held.as_ref()?;
        let free = match &held.stage {
            HoldStage::Waiting => false,
            HoldStage::Trial { member: trying, .. } => *trying == member,
            HoldStage::Open { passed, .. } => passed.contains(&member),
        };
        if free {
            return None;
        }
        let by_itself = held.lets(resumes) && held.kind != HoldKind::AccountBudget;
        let asks = !by_itself && !held.go_on && held.kind.asked_as().is_some();
        let window = held.window.as_ref().map(|window| format!(" ({window})")).unwrap_or_default();
        let of = format!("account `{name}`{window}");
        let account = Some(name.to_owned());
        Some(Hold { kind: held.kind, since: held.since, until: held.until, asks, of, account })
    }

    /// Returns when the account must be settled again because of the clock alone.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Moment> {
        let held = self.held.as_ref()?;
        match &held.stage {
            HoldStage::Waiting => held.until,
            HoldStage::Trial { since, .. } => Some(ahead(*since, TRIAL)),
            HoldStage::Open { last, .. } => last.map(|(_, since)| ahead(since, NEXT)),
        }
    }
}

impl Held {
    /// Whether a session resumes by itself.
    fn lets(&self, resumes: bool) -> bool {
        match self.kind {
            _ if self.go_on => true,
            HoldKind::Limit => resumes,
            // Another day has another budget.
            HoldKind::Overloaded | HoldKind::AccountBudget => true,
            HoldKind::Login | HoldKind::Budget | HoldKind::TurnTime | HoldKind::Crowded => false,
        }
    }

    fn pass(&mut self, member: Member, now: Now) {
        self.refusals = 0;
        self.stage = HoldStage::Open { passed: BTreeSet::from([member]), last: Some((member, now.moment())) };
    }

    fn step(&mut self, all: &[MemberStanding], now: Now) {
        let of = |member: Member| all.iter().find(|one| one.member == member);
        match &self.stage {
            HoldStage::Waiting => {
                let due = self.until.is_some_and(|until| until.boot <= now.boot);
                let may = |one: &&MemberStanding| one.wants == Wants::Turn && self.lets(one.resumes);
                let others = all.iter().filter(may).find(|one| !self.skipped.contains(&one.member));
                let first = others.or_else(|| all.iter().find(may));
                if let (true, Some(first)) = (due, first) {
                    self.stage = HoldStage::Trial { member: first.member, since: now.moment() };
                }
            }
            HoldStage::Trial { member, since } => {
                let (member, late) = (*member, now.boot.since(since.boot) >= TRIAL);
                match of(member).map(|one| one.wants) {
                    // Its turn is gone and did not succeed: another session tries.
                    Some(Wants::Nothing) | None => self.stage = HoldStage::Waiting,
                    Some(Wants::AtWork) if late => self.pass(member, now),
                    Some(Wants::Turn) if late => {
                        self.skipped.insert(member);
                        self.stage = HoldStage::Waiting;
                    }
                    Some(Wants::AtWork | Wants::Turn) => {}
                }
            }
            HoldStage::Open { passed, last } => {
                let waits = last.is_some_and(|(last, since)| {
                    let wants = of(last).map(|one| one.wants);
                    wants == Some(Wants::Turn) && now.boot.since(since.boot) < NEXT
                });
                let next = all.iter().find(|one| {
                    one.wants == Wants::Turn && self.lets(one.resumes) && !passed.contains(&one.member)
                });
                if let (false, Some(next)) = (waits, next) {
                    let mut passed = passed.clone();
                    passed.insert(next.member);
                    self.stage = HoldStage::Open { passed, last: Some((next.member, now.moment())) };
                }
            }
        }
    }

    /// Whether no session is held back any more.
    fn is_over(&self, all: &[MemberStanding]) -> bool {
        let HoldStage::Open { passed, .. } = &self.stage else { return false };
        all.iter()
            .all(|one| self.lets(one.resumes) && (one.wants != Wants::Turn || passed.contains(&one.member)))
    }
}

fn ahead(from: Moment, wait: Duration) -> Moment {
    Moment { wall: from.wall + wait, boot: from.boot + wait }
}

fn later(one: Option<Moment>, other: Option<Moment>) -> Option<Moment> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.boot > one.boot { other } else { one }),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;
