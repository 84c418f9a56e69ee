//! Runs that should be over and are not. Nothing is given up: what was asked for happens as soon as it can.

use super::draft::Draft;
use crate::decision::{Change, Record};
use crate::ids::RunNumber;
use crate::rules::Warning;
use crate::unended::Unended;
use crate::why::Why;

impl Draft<'_> {
    /// Notes what keeps a run from ending. It is recorded once per episode; the latest report counts.
    pub(super) fn unended(&mut self, run: RunNumber, by: &Unended) -> Why {
        if self.session.live_run() != Some(run) {
            return Why::Stale;
        }
        let known = self.session.live.unended.as_deref().map(warning);
        if self.session.live.unended.as_deref() != Some(by) {
            self.change(Change::Unended(Some(Box::new(by.clone()))));
        }
        // A daemon that has just started knows only that it has had no answer yet.
        if known != Some(warning(by)) && !self.session.live.mute {
            self.record(Record::HealthWarn { reason: warning(by) });
        }
        Why::Unended { by: by.clone() }
    }

    /// Notes that a silent shim answers again.
    pub(super) fn shim_answered(&mut self, run: RunNumber) -> Why {
        let silent = matches!(self.session.live.unended.as_deref(), Some(Unended::Silent { .. }));
        if self.session.live_run() != Some(run) || !silent {
            return Why::Stale;
        }
        self.change(Change::Unended(None));
        Why::Noted
    }
}

fn warning(by: &Unended) -> Warning {
    match by {
        Unended::Silent { .. } => Warning::ShimSilent,
        Unended::Survivors { .. } => Warning::Survivors,
    }
}
