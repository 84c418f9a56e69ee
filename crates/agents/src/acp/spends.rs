//! What a turn cost: in the answer to its prompt or, with some agents, in updates.

use super::state::ContextUsage;
use super::wire::{Prompted, Tokens, Update};
use crate::note;
use crate::turn::{Spent, Usage};
use serde::Deserialize;
use serde_json::Value;

/// Returns what a turn cost, if the agent says.
pub(crate) fn usage(line: &Prompted, context: &ContextUsage) -> Option<Usage> {
    let turn = spent(line);
    if turn == Spent::default() && *context == ContextUsage::default() {
        return None;
    }
    Some(Usage {
        turn,
        session: Spent { cost_usd: context.cost_usd, ..Spent::default() },
        model: model(line).or_else(|| context.model.clone()),
        context_used: context.used,
        context_size: context.size,
    })
}

/// Returns whether any tokens were spent.
pub(crate) fn any(line: &Prompted) -> bool {
    let spent = spent(line);
    [spent.input_tokens, spent.output_tokens].into_iter().flatten().any(|tokens| tokens > 0)
}

/// Keeps what is reported in the middle of a turn.
pub(crate) fn update(context: &mut ContextUsage, update: &Update) {
    if update.kind.as_deref() != Some("usage_update") {
        return;
    }
    context.used = update.used.or(context.used);
    context.size = update.size.or(context.size);
    let cost = update.cost.as_ref().filter(|cost| cost["currency"] == "USD");
    context.cost_usd = cost.and_then(|cost| cost["amount"].as_f64()).or(context.cost_usd);
    let model = update.meta.as_ref().and_then(|meta| meta.get("_claude/model")?.as_str());
    context.model = model.map(|model| note::short(model, 200)).or(context.model.take());
}

fn spent(line: &Prompted) -> Spent {
    let usage = line.usage.as_ref().filter(|usage| !usage.is_null());
    let quota = || line.meta.as_ref()?.pointer("/quota/token_count");
    let tokens = usage.or_else(quota).and_then(|usage| Tokens::deserialize(usage).ok()).unwrap_or_default();
    Spent {
        input_tokens: tokens.read(),
        output_tokens: tokens.output_tokens,
        cached_tokens: tokens.cached_read_tokens,
        cost_usd: None,
    }
}

impl Tokens {
    /// Returns all tokens read, cached or not: some agents include the cached ones in the input, others do
    /// not.
    fn read(&self) -> Option<u64> {
        let written = [self.output_tokens, self.thought_tokens].into_iter().flatten().sum::<u64>();
        let rest = self.total_tokens.map(|total| total.saturating_sub(written));
        self.input_tokens.max(rest)
    }
}

/// Returns the model, if there was only one.
fn model(line: &Prompted) -> Option<String> {
    let models = line.meta.as_ref()?.pointer("/quota/model_usage").and_then(Value::as_array)?;
    let [one] = &models[..] else { return None };
    Some(note::short(one.get("model")?.as_str()?, 200))
}
