//! What turns used: one row each, and sums of them.

use crate::ulid::{SessionId, Ulid};
use pinfold_core::usage::Figures;
use pinfold_core::{RunNumber, Wall};
use std::collections::BTreeMap;

/// What one turn used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// When it was reported.
    pub at: Wall,
    /// The session that reported it.
    pub session: SessionId,
    /// The run that reported it.
    pub run: RunNumber,
    /// The message whose turn it was; `None` for a turn of the agent's own.
    pub message: Option<Ulid>,
    /// The account it was charged to.
    pub account: Option<String>,
    /// The model that was used.
    pub model: Option<String>,
    /// What was used.
    pub figures: Figures,
}

/// What all turns of a message used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// What was used.
    pub figures: Figures,
    /// The model of the last turn.
    pub model: Option<String>,
}

/// What sums are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// The session, by its id.
    Session,
    /// The account.
    Account,
    /// The model.
    Model,
    /// The quarter of an hour, by its first millisecond: days begin at a whole quarter in every time zone.
    Quarter,
}

/// Which turns to sum, and how to group them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageQuery {
    /// How to group them.
    pub by: UsageBy,
    /// Only turns that are not older than this.
    pub since: Option<Wall>,
}

/// What some turns used together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageSum {
    /// What they are grouped by; `None` if that is not known.
    pub of: Option<String>,
    /// The name of the session at the last of them.
    pub name: Option<String>,
    /// The number of turns.
    pub turns: u64,
    /// What was used.
    pub figures: Figures,
}

/// A quarter of an hour: time zones differ by whole ones.
const QUARTER_MS: i64 = 15 * 60 * 1000;

/// Sums under way.
#[derive(Debug)]
pub(crate) struct Sums {
    by: UsageBy,
    sums: BTreeMap<Option<String>, UsageSum>,
}

impl Sums {
    pub(crate) fn new(by: UsageBy) -> Sums {
        Sums { by, sums: BTreeMap::new() }
    }

    /// Adds a turn; `name` is that of its session.
    pub(crate) fn add(&mut self, spent: &Spent, name: Option<&str>) {
        let of = match self.by {
            UsageBy::Session => Some(spent.session.to_string()),
            UsageBy::Account => spent.account.clone(),
            UsageBy::Model => spent.model.clone(),
            UsageBy::Quarter => Some((spent.at.0.div_euclid(QUARTER_MS) * QUARTER_MS).to_string()),
        };
        let sum = self.sums.entry(of.clone()).or_default();
        let name = name.filter(|_| self.by == UsageBy::Session).map(str::to_owned).or(sum.name.take());
        *sum = UsageSum { of, name, turns: sum.turns + 1, figures: sum.figures.plus(spent.figures) };
    }

    pub(crate) fn done(self) -> Vec<UsageSum> {
        self.sums.into_values().collect()
    }
}
