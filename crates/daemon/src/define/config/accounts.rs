//! `[accounts.NAME]`: names for accounts, and bounds for them.

use super::value::{Amount, Count, Quoted};
use pinfold_core::usage::Money;
use serde::Deserialize;
use std::collections::BTreeMap;

/// `[accounts]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct AccountsTable(BTreeMap<String, OfAccount>);

/// `[accounts.NAME]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OfAccount {
    /// The name of the account in `pinfold accounts` without this table; if absent, the table's key is that
    /// name.
    is: Option<Quoted>,
    /// How many of its sessions may start at once.
    starts: Option<Count>,
    /// How many of its sessions may have a turn at once.
    at_work: Option<Count>,
    /// What it may spend on a day before a person is asked.
    budget: Option<Amount>,
}

/// The bounds of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AccountBounds {
    /// How many of its sessions may start at once; 0 means any number.
    pub(crate) starts: u32,
    /// How many of its sessions may have a turn at once; 0 means any number.
    pub(crate) at_work: u32,
    /// What it may spend on a day.
    pub(crate) budget: Option<Money>,
}

impl AccountsTable {
    /// The name of an account: its agent and the name given here, or `made` if there is none.
    pub(super) fn name(&self, made: String) -> String {
        let is = |of: &OfAccount| of.is.as_ref().is_some_and(|is| is.0 == made);
        let Some((name, _)) = self.0.iter().find(|(_, of)| is(of)) else { return made };
        let agent = made.split(':').next().unwrap_or_default();
        format!("{agent}:{name}")
    }

    /// The bounds of the account with this name.
    pub(super) fn bounds(&self, name: &str) -> AccountBounds {
        let short = name.split_once(':').map_or(name, |(_, short)| short);
        let of = self.0.iter().find(|(key, of)| *key == name || of.is.is_some() && *key == short);
        let Some((_, of)) = of else { return AccountBounds::default() };
        let count = |count: &Option<Count>| count.map_or(0, |count| count.0);
        AccountBounds {
            starts: count(&of.starts),
            at_work: count(&of.at_work),
            budget: of.budget.map(|amount| amount.0),
        }
    }

    /// The names of the accounts in this table.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|(key, of)| match &of.is {
            Some(is) => Some(format!("{}:{key}", is.0.split_once(':')?.0)),
            None => key.contains(':').then(|| key.clone()),
        })
    }
}
