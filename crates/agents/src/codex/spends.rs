//! What a turn cost. Codex counts over the whole thread, across resumes, so a turn's cost is a difference.

use super::wire::{TokenUsage, Tokens};
use crate::turn::{Spent, Usage};
use serde::{Deserialize, Serialize};

/// What is known of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ThreadSpending {
    /// Count at the end of the last turn.
    before: Count,
    now: Count,
    context_used: Option<u64>,
    context_size: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Count {
    input: u64,
    output: u64,
    #[serde(skip_serializing_if = "is_none")]
    cached: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

impl ThreadSpending {
    /// Codex reports what the thread has cost; `under_way` is false if no turn is under way, as after a
    /// resume.
    pub(crate) fn heard(&mut self, usage: &TokenUsage, under_way: bool) {
        let Some(total) = usage.total.as_ref().and_then(count) else { return };
        self.now = total;
        // A count that went down is a new count.
        if !under_way || total.input < self.before.input || total.output < self.before.output {
            self.before = if under_way { Count::default() } else { total };
        }
        self.context_used = usage.last.as_ref().and_then(|last| last.total_tokens).or(self.context_used);
        self.context_size = usage.model_context_window.or(self.context_size);
    }

    /// Returns the cost of the turn that ends here.
    pub(crate) fn end(&mut self, model: Option<&str>) -> Usage {
        let ThreadSpending { before, now, context_used, context_size } = *self;
        self.before = now;
        let turn = Count {
            input: now.input - before.input,
            output: now.output - before.output,
            cached: now.cached.saturating_sub(before.cached),
        };
        let model = model.map(str::to_owned);
        Usage { turn: spent(turn), session: spent(now), model, context_used, context_size }
    }
}

fn count(tokens: &Tokens) -> Option<Count> {
    let cached = tokens.cached_input_tokens.unwrap_or(0);
    Some(Count { input: tokens.input_tokens?, output: tokens.output_tokens?, cached })
}

fn spent(count: Count) -> Spent {
    let Count { input, output, cached } = count;
    Spent {
        input_tokens: Some(input),
        output_tokens: Some(output),
        cached_tokens: Some(cached),
        cost_usd: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64) -> TokenUsage {
        let tokens = |scale: u64| Tokens {
            total_tokens: Some((input + output) * scale),
            input_tokens: Some(input),
            output_tokens: Some(output),
            cached_input_tokens: Some(output),
        };
        TokenUsage { total: Some(tokens(1)), last: Some(tokens(1)), model_context_window: Some(1000) }
    }

    #[test]
    fn a_turn_costs_what_the_count_has_grown_by() {
        // For each turn: the counts heard before its end, each with whether a turn was under way; and what
        // the turn cost.
        type Heard<'a> = &'a [(u64, u64, bool)];
        let rows: [(Heard<'_>, (u64, u64)); 6] = [
            (&[(10, 1, true), (30, 5, true)], (30, 5)),
            (&[], (0, 0)),
            (&[(31, 6, true)], (1, 1)),
            // A count after a resume is of earlier turns.
            (&[(100, 50, false), (110, 51, true)], (10, 1)),
            // A new count, and one that is new only in part.
            (&[(7, 2, true)], (7, 2)),
            (&[(8, 1, true)], (8, 1)),
        ];
        let mut spending = ThreadSpending::default();
        for (heard, (input, output)) in rows {
            for (input, output, under_way) in heard {
                spending.heard(&usage(*input, *output), *under_way);
            }
            let cost = spending.end(Some("m"));
            assert_eq!((cost.turn.input_tokens, cost.turn.output_tokens), (Some(input), Some(output)));
        }
        let last = spending.end(None);
        assert_eq!(
            (last.session.input_tokens, last.context_used, last.context_size),
            (Some(8), Some(9), Some(1000))
        );
    }
}
