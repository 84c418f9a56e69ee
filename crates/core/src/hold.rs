//! What keeps a session from its next turn, other than locks: a limit of its account, a lost login, an
//! overloaded vendor, its own budget.

use crate::time::{Moment, Wall};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why no turn is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldKind {
    /// The account reached a usage limit.
    Limit,
    /// The account is not logged in.
    Login,
    /// The vendor is overloaded.
    Overloaded,
    /// The account has spent its budget for the day.
    AccountBudget,
    /// The session has spent its budget.
    Budget,
    /// The session has used up the time allowed for its turns.
    TurnTime,
    /// Enough sessions of the account are already at work.
    Crowded,
}

impl HoldKind {
    /// Returns its word in events and in `accounts`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            HoldKind::Limit => "limit",
            HoldKind::Login => "login",
            HoldKind::Overloaded => "overloaded",
            HoldKind::AccountBudget | HoldKind::Budget => "budget",
            HoldKind::TurnTime => "turn_time",
            HoldKind::Crowded => "crowded",
        }
    }

    /// Returns the subject of the question to a person, if one is asked.
    #[must_use]
    pub fn asked_as(self) -> Option<&'static str> {
        match self {
            HoldKind::Limit => Some("limit"),
            HoldKind::Login => Some("login"),
            HoldKind::AccountBudget | HoldKind::Budget | HoldKind::TurnTime => Some("budget"),
            HoldKind::Overloaded | HoldKind::Crowded => None,
        }
    }
}

/// What keeps a session from its next turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Why it is held.
    pub kind: HoldKind,
    /// When the hold began.
    pub since: Wall,
    /// When it ends by itself, or could.
    pub until: Option<Moment>,
    /// Whether a person has to let it go on.
    pub asks: bool,
    /// What is used up, in words: the account and its limit, or the amount.
    pub of: String,
    /// The account, if it is the account that is held.
    #[serde(default)]
    pub account: Option<String>,
}

impl Hold {
    /// Returns the command with which a person lets it go on.
    #[must_use]
    pub fn remedy(&self) -> String {
        match &self.account {
            Some(account) => format!("`pinfold accounts --resume {account}`"),
            None => "`pinfold answer S allow`".to_owned(),
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = &self.of;
        match self.kind {
            HoldKind::Limit => write!(f, "{of} has met its usage limit"),
            HoldKind::Login => write!(f, "{of} has no login"),
            HoldKind::Overloaded => write!(f, "the vendor of {of} has too much to do"),
            HoldKind::AccountBudget => write!(f, "{of} has spent its budget of the day"),
            HoldKind::Budget => write!(f, "it has spent its budget of {of}"),
            HoldKind::TurnTime => write!(f, "its turns have taken the {of} that they may"),
            HoldKind::Crowded => write!(f, "enough sessions of {of} are at work"),
        }
    }
}
