//! What agents report about what they use: tokens, money, and how full their context is.

use crate::ids::{MessageId, RunNumber};
use crate::time::{Boot, Wall};
use serde::{Deserialize, Serialize};
use std::ops::Add;
use std::time::Duration;

/// US dollars, in billionths, so that sums are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money(pub u64);

/// Billionths per dollar.
const PER_DOLLAR: f64 = 1e9;

impl Money {
    /// Returns the amount nearest to `usd` dollars; `None` if that is not an amount of money.
    #[must_use]
    pub fn of_usd(usd: f64) -> Option<Money> {
        let amount = (usd * PER_DOLLAR).round();
        // Beyond this a float is not exact, and no bill is that large.
        let known = amount.is_finite() && (0.0..=9e15).contains(&amount);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was looked at"
        )]
        known.then_some(Money(amount as u64))
    }

    /// Returns the amount in dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for people, who do not look at the sixteenth digit")]
    pub fn usd(self) -> f64 {
        self.0 as f64 / PER_DOLLAR
    }

    /// Returns what is left after taking `other` off, at least zero.
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

/// Tokens and money, each as far as it is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Tokens read, whether or not from the vendor's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// The tokens read that came from the vendor's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// The cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
}

impl Figures {
    /// Whether nothing is reported, or everything reported is zero.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        let Figures { input, output, cached, cost } = *self;
        [input, output, cached, cost.map(|cost| cost.0)].into_iter().flatten().all(|figure| figure == 0)
    }

    /// Returns the sum; a figure that neither side reports stays unknown.
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
pub struct UsageReport {
    /// The message whose turn it was; `None` for a turn of the agent's own.
    pub message: Option<MessageId>,
    /// What the turn used, according to the agent.
    pub turn: Figures,
    /// What the whole conversation has used so far, according to the agent.
    pub total: Figures,
    /// The model that was used.
    pub model: Option<String>,
    /// How many tokens of its context are in use.
    pub context_used: Option<u64>,
    /// The size of its context, in tokens.
    pub context_size: Option<u64>,
}

/// What a turn used, as it is counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// The run that reported it.
    pub run: RunNumber,
    /// When it was reported.
    #[serde(default)]
    pub at: Wall,
    /// The message whose turn it was.
    pub message: Option<MessageId>,
    /// What was used.
    pub spent: Figures,
    /// The totals to compare the next report with.
    pub totals: Figures,
    /// The model that was used, if reported.
    pub model: Option<String>,
    /// How many tokens of its context are in use.
    pub context_used: Option<u64>,
    /// The size of its context, in tokens.
    pub context_size: Option<u64>,
}

/// How long a turn took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Took {
    /// The duration of the turn.
    #[serde(with = "crate::time::millis")]
    pub time: Duration,
    /// When the turn was over.
    pub at: Wall,
}

/// The part of a session's usage that no longer counts against its limits, because a person said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Allowance {
    /// Money that no longer counts.
    pub cost: Money,
    /// Time of turns that no longer counts.
    #[serde(with = "crate::time::millis")]
    pub time: Duration,
}

/// What a session has used since it was created.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Everything used so far.
    pub sum: Figures,
    /// The time its turns took, if that is counted.
    #[serde(with = "crate::time::millis")]
    pub time: Duration,
    /// The part of that which no longer counts.
    pub allowed: Allowance,
    /// When the turn under way began.
    pub turn_since: Option<Boot>,
    /// When something was last counted.
    pub at: Wall,
    /// The totals that its agent reported last.
    pub totals: Figures,
    /// The model of the last turn.
    pub model: Option<String>,
    /// How many tokens of its context were in use after the last turn.
    pub context_used: Option<u64>,
    /// The size of its context, in tokens.
    pub context_size: Option<u64>,
}

impl Usage {
    /// Adds the time of the turn that is over.
    pub(crate) fn took(&mut self, took: Took) {
        self.time = self.time.saturating_add(took.time);
        (self.turn_since, self.at) = (None, took.at);
    }

    /// Adds what a turn used.
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
