//! Usage, and accounts, as the objects of the API.

use crate::clock::time;
use crate::engine::{AccountView, EngineView};
use pinfold_api::object::{Account, Usage, UsageSum, Window};
use pinfold_api::time::local_day;
use pinfold_api::word::AccountHold;
use pinfold_core::account::Held;
use pinfold_core::usage::{Figures, Money};
use pinfold_core::{Session, usage};
use pinfold_store::{Taken, UsageBy};
use std::collections::BTreeMap;

/// What a session has used.
pub(crate) fn of_session(core: &Session) -> Option<Usage> {
    let usage::Usage { sum, model, context_used, context_size, .. } = core.usage()?;
    let tells = *sum != Figures::default() || context_used.is_some();
    tells.then(|| Usage {
        model: model.clone(),
        context_used: *context_used,
        context_size: *context_size,
        ..of_figures(*sum)
    })
}

/// What the turns of a message cost.
pub(crate) fn of_message(taken: Taken) -> Usage {
    Usage { model: taken.model, ..of_figures(taken.figures) }
}

fn of_figures(figures: Figures) -> Usage {
    Usage {
        input_tokens: figures.input,
        output_tokens: figures.output,
        cached_tokens: figures.cached,
        cost_usd: figures.cost.map(Money::usd),
        model: None,
        context_used: None,
        context_size: None,
    }
}

/// The present names of sessions, by their ids.
pub(crate) fn names(view: EngineView<'_>) -> BTreeMap<String, String> {
    view.sessions().map(|known| (known.id().to_string(), known.name().to_owned())).collect()
}

/// Sums, with the present names of sessions; for removed ones, their last.
pub(crate) fn sums(
    by: UsageBy,
    sums: Vec<pinfold_store::UsageSum>,
    names: &BTreeMap<String, String>,
) -> Vec<UsageSum> {
    if by == UsageBy::Quarter {
        return by_day(sums);
    }
    let one = |sum: pinfold_store::UsageSum| {
        let id = sum.of.clone().filter(|_| by == UsageBy::Session);
        let of = match &id {
            Some(id) => names.get(id).cloned().or(sum.name),
            None => sum.of,
        };
        object(of, id, sum.turns, sum.figures)
    };
    sums.into_iter().map(one).collect()
}

/// Quarters of an hour, added up to local days.
fn by_day(sums: Vec<pinfold_store::UsageSum>) -> Vec<UsageSum> {
    let mut days: BTreeMap<String, (u64, Figures)> = BTreeMap::new();
    for sum in sums {
        let began = sum.of.and_then(|began| began.parse().ok()).unwrap_or(0);
        let (turns, figures) = days.entry(local_day(began)).or_default();
        (*turns, *figures) = (*turns + sum.turns, figures.plus(sum.figures));
    }
    days.into_iter().map(|(day, (turns, figures))| object(Some(day), None, turns, figures)).collect()
}

fn object(of: Option<String>, id: Option<String>, turns: u64, figures: Figures) -> UsageSum {
    UsageSum {
        of,
        id,
        turns,
        input_tokens: figures.input,
        output_tokens: figures.output,
        cached_tokens: figures.cached,
        cost_usd: figures.cost.map(Money::usd),
    }
}

/// The accounts that sessions use or the configuration names.
pub(crate) fn accounts(view: EngineView<'_>) -> Vec<Account> {
    view.accounts().into_iter().map(account).collect()
}

fn account(view: AccountView) -> Account {
    let AccountView { name, core, sessions, held_sessions, today, budget } = view;
    let windows = core.windows.iter().map(|(window, known)| Window {
        window: window.clone(),
        used: known.used.map(|used| f64::from(used) / 1000.0),
        resets: known.resets.map(time),
        told: time(known.told),
    });
    let held = core.held.as_ref();
    Account {
        account: name,
        sessions,
        held: held.map(|held: &Held| AccountHold::from(held.kind.word())),
        window: held.and_then(|held| held.window.clone()),
        held_since: held.map(|held| time(held.since)),
        resets: held.and_then(|held| held.until).map(|until| time(until.wall)),
        held_sessions,
        windows: windows.collect(),
        spent_today_usd: today.map(Money::usd),
        budget_usd: budget.map(Money::usd),
    }
}
