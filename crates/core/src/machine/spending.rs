//! What turns use, as reported by their agents.

use super::draft::Draft;
use crate::decision::Change;
use crate::ids::RunNumber;
use crate::rules::spending;
use crate::session::Session;
use crate::usage::{Figures, Spending, Usage, UsageReport};
use crate::why::Why;

impl Session {
    /// Returns what it has used, if its agent reports that.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_deref()
    }
}

impl Draft<'_> {
    /// Counts what a turn used. It was used whatever became of the turn or its run.
    pub(super) fn spent(&mut self, run: RunNumber, report: &UsageReport) -> Why {
        let last = self.session.usage.as_deref().map(|usage| usage.totals).unwrap_or_default();
        let (spent, totals) = spending::count(report.turn, report.total, last);
        let UsageReport { message, model, context_used, context_size, .. } = report.clone();
        let tells = context_used.or(context_size).is_some() || model.is_some() || totals != last;
        if spent == Figures::default() && !tells {
            return Why::Stale;
        }
        let at = self.now.wall;
        let spending = Spending { run, at, message, spent, totals, model, context_used, context_size };
        self.change(Change::Spent(Box::new(spending)));
        Why::Noted
    }
}
