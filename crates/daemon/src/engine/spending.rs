//! What turns cost, as their agents report it.

use super::Engine;
use crate::engine::session::Tracked;
use pinfold_agents::{Spent, TurnOwner, Usage};
use pinfold_core::usage::{Figures, Money, UsageReport};
use pinfold_core::{Event, RunEvent, RunNumber};
use pinfold_store::{Facts, SessionId};

impl Engine {
    /// Counts what a turn cost; returns how much that is, if the agent reports it.
    pub(super) fn spent(
        &mut self,
        id: SessionId,
        run: RunNumber,
        turn: TurnOwner,
        usage: Usage,
    ) -> Option<Figures> {
        let message = match turn {
            TurnOwner::Of(delivery) => Some(delivery.message),
            TurnOwner::Own => None,
        };
        let before = self.sessions.get(&id).map(|tracked| sum(tracked)).unwrap_or_default();
        let Usage { turn, session, model, context_used, context_size } = usage;
        let (turn, total) = (figures(turn), figures(session));
        let report = UsageReport { message, turn, total, model, context_used, context_size };
        let tracked = self.sessions.get(&id)?;
        let account = tracked.account.as_deref().map(str::to_owned);
        let facts = Facts { account, ..Facts::default() };
        let event = Event::Run { run, event: RunEvent::Spent(Box::new(report)) };
        self.happened(id, &event, &facts, None);
        let spent = since(before, sum(self.sessions.get(&id)?));
        self.metrics.spent(spent);
        Some(spent).filter(|spent| *spent != Figures::default())
    }
}

fn sum(tracked: &Tracked) -> Figures {
    tracked.session.usage().map(|usage| usage.sum).unwrap_or_default()
}

/// The difference between two totals.
fn since(before: Figures, now: Figures) -> Figures {
    let grown = |before: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(before.unwrap_or(0)));
    let cost = grown(before.cost.map(|cost| cost.0), now.cost.map(|cost| cost.0));
    Figures {
        input: grown(before.input, now.input),
        output: grown(before.output, now.output),
        cached: grown(before.cached, now.cached),
        cost: cost.map(Money),
    }
}

/// An agent's figures as exact numbers.
fn figures(spent: Spent) -> Figures {
    let Spent { input_tokens, output_tokens, cached_tokens, cost_usd } = spent;
    let cost = cost_usd.and_then(Money::of_usd);
    Figures { input: input_tokens, output: output_tokens, cached: cached_tokens, cost }
}
