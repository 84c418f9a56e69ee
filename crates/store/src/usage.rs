//! What turns took: a row each, and sums of them.

use crate::ulid::{SessionId, Ulid};
use pinfold_core::usage::Figures;
use pinfold_core::{RunNumber, Wall};
use std::collections::BTreeMap;

/// What one turn took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// When it was reported.
    pub at: Wall,
    /// By which session.
    pub session: SessionId,
    /// By which of its runs.
    pub run: RunNumber,
    /// The message whose turn it was; none for a turn of the agent's own.
    pub message: Option<Ulid>,
    /// The account that it was charged to.
    pub account: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// How much.
    pub figures: Figures,
}

/// What all turns of a message took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// How much.
    pub figures: Figures,
    /// The model of the last one.
    pub model: Option<String>,
}

/// By what sums are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// The session, by its id.
    Session,
    /// The account.
    Account,
    /// The model.
    Model,
    /// A quarter of an hour, by its first millisecond: days begin at one of them wherever they do.
    Quarter,
}

/// Which turns, and by what their sums are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageQuery {
    /// By what.
    pub by: UsageBy,
    /// Only those not older than this.
    pub since: Option<Wall>,
}

/// What some turns took together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageSum {
    /// What they have in common; nothing where none of them tells.
    pub of: Option<String>,
    /// The name of the session, as it was at the last of them.
    pub name: Option<String>,
    /// How many turns.
    pub turns: u64,
    /// How much.
    pub figures: Figures,
}

/// A quarter of an hour: zones differ by whole ones.
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

    /// Counts a turn in; `name` is that of its session.
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
