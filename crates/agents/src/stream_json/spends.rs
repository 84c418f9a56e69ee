//! What a turn cost. Counts over the whole session are reported as such; for the turn, Claude Code itself
//! says what came since the last result, which also holds after a resume.

use super::wire::{Ending, ModelUsage, Tokens};
use crate::turn::{Spent, Usage};

/// Returns the cost of the turn that ends here.
pub(crate) fn usage(ending: &Ending, model: Option<&str>, context: Option<u64>) -> Usage {
    let nothing =
        Spent { input_tokens: Some(0), output_tokens: Some(0), cached_tokens: Some(0), cost_usd: Some(0.0) };
    let by_model = ending.of_turn.as_ref().map(|models| match models.is_empty() {
        true => nothing,
        false => sum(models.values()),
    });
    let turn = by_model.or_else(|| ending.usage.as_ref().map(of_tokens)).unwrap_or_default();
    let whole = ending.of_session.as_ref().map(|models| sum(models.values())).unwrap_or_default();
    let size = || ending.of_session.as_ref()?.get(model?)?.context_window;
    Usage {
        turn,
        session: Spent { cost_usd: ending.total_cost_usd, ..whole },
        model: model.map(str::to_owned),
        context_used: context,
        context_size: size(),
    }
}

/// Returns how many tokens of context a message took.
pub(crate) fn context(tokens: &Tokens) -> Option<u64> {
    let read = of_tokens(tokens);
    Some(read.input_tokens?.saturating_add(read.output_tokens.unwrap_or(0)))
}

fn of_tokens(tokens: &Tokens) -> Spent {
    let cached = [tokens.cache_creation_input_tokens, tokens.cache_read_input_tokens];
    Spent {
        input_tokens: tokens.input_tokens.map(|input| with(input, cached)),
        output_tokens: tokens.output_tokens,
        cached_tokens: tokens.cache_read_input_tokens,
        cost_usd: None,
    }
}

/// Adds the cached tokens: everything read counts, cached or not.
fn with(input: u64, cached: [Option<u64>; 2]) -> u64 {
    cached.into_iter().flatten().fold(input, u64::saturating_add)
}

fn sum<'m>(models: impl Iterator<Item = &'m ModelUsage>) -> Spent {
    models.fold(Spent::default(), |sum, one| {
        let cached = [one.cache_creation_input_tokens, one.cache_read_input_tokens];
        let input = one.input_tokens.map(|input| with(input, cached));
        Spent {
            input_tokens: both(sum.input_tokens, input, u64::saturating_add),
            output_tokens: both(sum.output_tokens, one.output_tokens, u64::saturating_add),
            cached_tokens: both(sum.cached_tokens, one.cache_read_input_tokens, u64::saturating_add),
            cost_usd: both(sum.cost_usd, one.cost_usd, |a, b| a + b),
        }
    })
}

fn both<T>(one: Option<T>, other: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(add(one, other)),
        (one, other) => one.or(other),
    }
}
