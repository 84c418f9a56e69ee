//! Finds the decisions that amount to one order for a shim that is already there: that order is sent with the
//! commit.

use crate::engine::Engine;
use crate::engine::session::Reservation;
use crate::ports::shims::order::Order;
use pinfold_core::guest::Attaching;
use pinfold_core::{Action, Decision, RunNumber};
use pinfold_store::SessionId;

impl Engine {
    /// Returns the order if the decision amounts to exactly one: a run under the shim of the last one. Such a
    /// restart need not wait until the loop has heard that the decision is durable. Requires that earlier
    /// decisions have been carried out.
    pub(in crate::engine) fn order(
        &mut self,
        id: SessionId,
        decision: &Decision,
        stored: Option<RunNumber>,
    ) -> Option<Order> {
        let [Action::Spawn { run, purpose }] = decision.actions[..] else { return None };
        let tracked = self.sessions.get(&id).filter(|tracked| tracked.pending.is_empty())?;
        let shim = tracked.shim.as_ref().filter(|shim| !shim.leaving)?;
        let Reservation::Nothing = tracked.reservation else { return None };
        if self.sought(id).is_some() {
            return None;
        }
        let start = self.start_of(id, run, purpose, None)?;
        if matches!(tracked.session.spec().attach, Attaching::Join(_)) && !shim.can.guest {
            return None;
        }
        if start.tape.is_some() && (!shim.can.tape || self.is_told_by_argument(id)) {
            return None;
        }
        let order = Order::start(shim.outlet(), stored, start);
        self.note_speech(id, run);
        Some(order)
    }
}
