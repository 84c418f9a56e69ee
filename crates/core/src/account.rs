//! An account: whether its vendor refuses work, how long, and who tries first when that may be over.
//!
//! The first refusal holds all sessions of the account. When the time has come one of them tries, alone; when its turn goes well, the
//! others follow one after the other. A limit goes on by itself only for sessions that want that; a login only when a person says so.
//! Everything is a matter of what it is told: the shell says who is there and what time it is.

use crate::hold::{Hold, HoldKind};
use crate::rules::refused;
use crate::time::{Moment, Now, Wall};
use crate::usage::Money;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A turn that was not refused for so long counts as one that goes well: vendors refuse at once.
pub const TRIAL: Duration = Duration::from_secs(120);
/// One that does not come to its turn within this keeps the next one waiting no longer.
pub const NEXT: Duration = Duration::from_secs(10);

/// One session of an account, as the shell numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Member(pub u128);

/// How a session of an account stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Which.
    pub member: Member,
    /// What it would do if it could.
    pub wants: Wants,
    /// Whether it goes on by itself when a limit resets.
    pub resumes: bool,
}

/// What a session would do if it could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Nothing: no message waits.
    Nothing,
    /// A turn.
    Turn,
    /// It has one.
    AtWork,
}

/// What is known of one account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// The vendor's limits, by the vendor's words.
    pub windows: BTreeMap<String, Window>,
    /// Whether work is refused.
    pub held: Option<Held>,
    /// What it spent on a day, by the day's first moment, that does not count because a person said so.
    pub waived: Option<(Wall, Money)>,
}

/// One limit of a vendor's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Window {
    /// How much of it is used, in thousandths.
    pub used: Option<u32>,
    /// When it resets.
    pub resets: Option<Wall>,
    /// When that was told.
    pub told: Wall,
}

/// Work is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Why.
    pub kind: HoldKind,
    /// Since when.
    pub since: Wall,
    /// When it is tried again; none where only a person knows.
    pub until: Option<Moment>,
    /// The limit that was met, in the vendor's word.
    #[serde(default)]
    pub window: Option<String>,
    /// The agent's own words.
    #[serde(default)]
    pub text: Option<String>,
    /// How often it was refused in a row.
    #[serde(default)]
    pub refusals: u32,
    /// Those that were to try and did not come to a turn: others are next.
    #[serde(default)]
    pub skipped: BTreeSet<Member>,
    /// A person said that it goes on.
    #[serde(default)]
    pub go_on: bool,
    /// How far it has come since.
    #[serde(default)]
    pub stage: Stage,
}

/// How far an account has come after a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Nobody works.
    #[default]
    Waiting,
    /// One tries, alone.
    Trial {
        /// Which.
        member: Member,
        /// Since when.
        since: Moment,
    },
    /// It works again, and the others follow one after the other.
    Open {
        /// Those that may.
        passed: BTreeSet<Member>,
        /// The last of them, and since when.
        last: Option<(Member, Moment)>,
    },
}

/// A refusal, as an agent told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub kind: HoldKind,
    /// When it ends, as the vendor says.
    pub until: Option<Wall>,
    /// The limit, in the vendor's word.
    pub window: Option<String>,
    /// The agent's own words.
    pub text: Option<String>,
}

/// What a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The account is held from now on.
    Held,
    /// It was held, and is further.
    Again,
}

impl Account {
    /// Notes what the vendor tells of a limit.
    pub fn told(&mut self, window: &str, used: Option<u32>, resets: Option<Wall>, now: Now) {
        let known = self.windows.entry(window.to_owned()).or_default();
        *known = Window { used: used.or(known.used), resets: resets.or(known.resets), told: now.wall };
    }

    /// Work was refused.
    pub fn refused(&mut self, refused: &Refused, now: Now) -> News {
        let graver = |held: &Held| held.stage == Stage::Waiting && held.kind != HoldKind::Overloaded;
        if refused.kind == HoldKind::Overloaded && self.held.as_ref().is_some_and(graver) {
            return News::Again;
        }
        let before = self.held.take().filter(|held| held.kind == refused.kind);
        // One that was refused while others already wait only says the same again.
        let same = before.as_ref().is_some_and(|held| held.stage == Stage::Waiting);
        let in_trial = before.as_ref().is_some_and(|held| matches!(held.stage, Stage::Trial { .. }));
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
            stage: Stage::Waiting,
        });
        if same || in_trial { News::Again } else { News::Held }
    }

    /// When the limit that was met resets, as far as was told before.
    fn resets_of(&self, refused: &Refused) -> Option<Wall> {
        let window = refused.window.as_ref().filter(|_| refused.kind == HoldKind::Limit)?;
        self.windows.get(window)?.resets
    }

    /// A turn of a member went well; says whether that is news.
    pub fn worked(&mut self, member: Member, now: Now) -> bool {
        let Some(held) = &mut self.held else { return false };
        if !matches!(held.stage, Stage::Trial { member: trying, .. } if trying == member) {
            return false;
        }
        held.pass(member, now);
        true
    }

    /// A person says that it goes on, whatever was told.
    pub fn go_on(&mut self, now: Now) -> bool {
        let Some(held) = &mut self.held else { return false };
        held.go_on = true;
        if held.stage == Stage::Waiting {
            held.until = Some(now.moment());
        }
        true
    }

    /// Stored times of another boot mean nothing, and who tried is not known any more.
    pub fn recovered(&mut self, restarted: bool, now: Now) {
        let Some(held) = &mut self.held else { return };
        if let (true, Some(until)) = (restarted, &mut held.until) {
            *until = now.after(now.wall.until(until.wall));
        }
        match &mut held.stage {
            Stage::Waiting => {}
            Stage::Trial { .. } => {
                held.stage = Stage::Waiting;
                held.until = Some(now.moment());
            }
            Stage::Open { last, .. } => *last = None,
        }
    }

    /// Brings it as far as it may be with these sessions, in the order in which they may try. Says whether anything changed.
    pub fn settle(&mut self, all: &[Standing], now: Now) -> bool {
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

    /// What keeps a session from its next turn.
    #[must_use]
    pub fn hold_of(&self, name: &str, member: Member, resumes: bool) -> Option<Hold> {
        let held = self.held.as_ref()?;
        let free = match &held.stage {
            Stage::Waiting => false,
            Stage::Trial { member: trying, .. } => *trying == member,
            Stage::Open { passed, .. } => passed.contains(&member),
        };
        if free {
            return None;
        }
        let by_itself = held.lets(resumes) && held.kind != HoldKind::AccountBudget;
        let asks = !by_itself && !held.go_on && held.kind.asked_as().is_some();
        let window = held.window.as_ref().map(|window| format!(" ({window})")).unwrap_or_default();
        let of = format!("account `{name}`{window}");
        Some(Hold { kind: held.kind, since: held.since, until: held.until, asks, of })
    }

    /// When it has to be settled by the clock alone.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Moment> {
        let held = self.held.as_ref()?;
        match &held.stage {
            Stage::Waiting => held.until,
            Stage::Trial { since, .. } => Some(ahead(*since, TRIAL)),
            Stage::Open { last, .. } => last.map(|(_, since)| ahead(since, NEXT)),
        }
    }
}

impl Held {
    /// Whether a session goes on by itself.
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
        self.stage = Stage::Open { passed: BTreeSet::from([member]), last: Some((member, now.moment())) };
    }

    fn step(&mut self, all: &[Standing], now: Now) {
        let of = |member: Member| all.iter().find(|one| one.member == member);
        match &self.stage {
            Stage::Waiting => {
                let due = self.until.is_some_and(|until| until.boot <= now.boot);
                let may = |one: &&Standing| one.wants == Wants::Turn && self.lets(one.resumes);
                let others = all.iter().filter(may).find(|one| !self.skipped.contains(&one.member));
                let first = others.or_else(|| all.iter().find(may));
                if let (true, Some(first)) = (due, first) {
                    self.stage = Stage::Trial { member: first.member, since: now.moment() };
                }
            }
            Stage::Trial { member, since } => {
                let (member, late) = (*member, now.boot.since(since.boot) >= TRIAL);
                match of(member).map(|one| one.wants) {
                    // It has no turn any more and did not get through one: somebody else tries.
                    Some(Wants::Nothing) | None => self.stage = Stage::Waiting,
                    Some(Wants::AtWork) if late => self.pass(member, now),
                    Some(Wants::Turn) if late => {
                        self.skipped.insert(member);
                        self.stage = Stage::Waiting;
                    }
                    Some(Wants::AtWork | Wants::Turn) => {}
                }
            }
            Stage::Open { passed, last } => {
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
                    self.stage = Stage::Open { passed, last: Some((next.member, now.moment())) };
                }
            }
        }
    }

    /// Whether nobody is kept from anything any more.
    fn is_over(&self, all: &[Standing]) -> bool {
        let Stage::Open { passed, .. } = &self.stage else { return false };
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
