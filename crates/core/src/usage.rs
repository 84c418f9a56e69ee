//! What agents report of what they use: tokens, money, and how full their context is.

use crate::ids::{MessageId, RunNumber};
use crate::time::{Boot, Wall};
use serde::{Deserialize, Serialize};
use std::ops::Add;
use std::time::Duration;

/// US dollars, in billionths: sums of them are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money(pub u64);

/// So many of them are a dollar.
const PER_DOLLAR: f64 = 1e9;

impl Money {
    /// The nearest amount to so many dollars; what is not an amount is nothing.
    #[must_use]
    pub fn of_usd(usd: f64) -> Option<Money> {
        let amount = (usd * PER_DOLLAR).round();
        // Beyond this a float is not exact, and nobody has so much.
        let known = amount.is_finite() && (0.0..=9e15).contains(&amount);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was looked at"
        )]
        known.then_some(Money(amount as u64))
    }

    /// So many dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for people, who do not look at the sixteenth digit")]
    pub fn usd(self) -> f64 {
        self.0 as f64 / PER_DOLLAR
    }

    /// What is left without another amount.
    #[must_use]
    pub fn less(self, other: Money) -> Money {
        Money(self.0.saturating_sub(other.0))
    }
}

impl Add for Money {
    type Output = Money;

    fn add(self, other: Money) -> Money {
        Money(self.0.saturating_add(other.0))
    }
}

/// Tokens and money, each as far as it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Tokens read, from the vendor's cache or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Those of the tokens read that came from the vendor's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// What it cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
}

impl Figures {
    /// Whether nothing is told, or all that is told is nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        let Figures { input, output, cached, cost } = *self;
        [input, output, cached, cost.map(|cost| cost.0)].into_iter().flatten().all(|figure| figure == 0)
    }

    /// Both together; what neither tells stays untold.
    #[must_use]
    pub fn plus(self, more: Figures) -> Figures {
        let both = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Figures {
            input: both(self.input, more.input),
            output: both(self.output, more.output),
            cached: both(self.cached, more.cached),
            cost: both(self.cost.map(|cost| cost.0), more.cost.map(|cost| cost.0)).map(Money),
        }
    }
}

/// What an agent reports at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// The message whose turn it was; none for a turn of the agent's own.
    pub message: Option<MessageId>,
    /// What it says that the turn took.
    pub turn: Figures,
    /// What it says that the whole conversation took up to now.
    pub total: Figures,
    /// The model.
    pub model: Option<String>,
    /// How many tokens of its context are in use.
    pub context_used: Option<u64>,
    /// How many there are.
    pub context_size: Option<u64>,
}

/// What a turn took, as it is counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// The run that reported it.
    pub run: RunNumber,
    /// When.
    #[serde(default)]
    pub at: Wall,
    /// The message whose turn it was.
    pub message: Option<MessageId>,
    /// How much.
    pub spent: Figures,
    /// The totals that the next report is compared with.
    pub totals: Figures,
    /// The model, where it is told.
    pub model: Option<String>,
    /// How many tokens of its context are in use.
    pub context_used: Option<u64>,
    /// How many there are.
    pub context_size: Option<u64>,
}

/// How long a turn took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Took {
    /// So long.
    #[serde(with = "crate::time::millis")]
    pub time: Duration,
    /// When it was over.
    pub at: Wall,
}

/// What is used up already of what a session may use, and does not count any more because a person said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Allowance {
    /// Money.
    pub cost: Money,
    /// The time that turns took.
    #[serde(with = "crate::time::millis")]
    pub time: Duration,
}

/// What a session has used since it was created.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// All of it.
    pub sum: Figures,
    /// The time that its turns took, where that is counted.
    #[serde(with = "crate::time::millis")]
    pub time: Duration,
    /// What of that does not count any more.
    pub allowed: Allowance,
    /// Since when the turn under way goes on.
    pub turn_since: Option<Boot>,
    /// When any of it was counted last.
    pub at: Wall,
    /// The totals that its agent told last.
    pub totals: Figures,
    /// The model of the last turn.
    pub model: Option<String>,
    /// How many tokens of its context were in use after the last turn.
    pub context_used: Option<u64>,
    /// How many there are.
    pub context_size: Option<u64>,
}

impl Usage {
    /// The turn under way is over, and took this long.
    pub(crate) fn took(&mut self, took: Took) {
        self.time = self.time.saturating_add(took.time);
        (self.turn_since, self.at) = (None, took.at);
    }

    /// Counts a turn in.
    pub(crate) fn count(&mut self, spending: &Spending) {
        self.sum = self.sum.plus(spending.spent);
        (self.totals, self.at) = (spending.totals, spending.at);
        self.model = spending.model.clone().or(self.model.take());
        self.context_used = spending.context_used.or(self.context_used);
        self.context_size = spending.context_size.or(self.context_size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_counted_in_billionths_and_what_is_not_an_amount_is_not_counted() {
        assert_eq!(Money::of_usd(0.1).map(|tenth| tenth + Money::of_usd(0.2).unwrap()), Money::of_usd(0.3));
        assert_eq!(Money::of_usd(1e-9), Some(Money(1)));
        for odd in [-0.5, f64::NAN, f64::INFINITY, 1e9] {
            assert_eq!(Money::of_usd(odd), None, "{odd}");
        }
        assert!((Money(30_000_000).usd() - 0.03).abs() < 1e-12);
        assert_eq!(Money(5).less(Money(7)), Money(0));
    }

    #[test]
    fn what_nobody_tells_stays_untold_in_a_sum() {
        let one = Figures { input: Some(3), cost: Some(Money(5)), ..Figures::default() };
        let other = Figures { input: Some(4), output: Some(2), ..Figures::default() };
        let sum = Figures { input: Some(7), output: Some(2), cached: None, cost: Some(Money(5)) };
        assert_eq!(one.plus(other), sum);
        assert!(Figures { input: Some(0), ..Figures::default() }.is_nothing());
        assert!(!one.is_nothing());
    }
}
