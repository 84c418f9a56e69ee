//! The order to start again, under a shim that is there: given the moment the decision is durable, by whoever knows first.

use crate::crash;
use crate::engine::Engine;
use crate::engine::session::Reservation;
use crate::ports::shims::outbox::Outlet;
use pinfold_core::{Action, Decision, RunNumber};
use pinfold_shim::{Command, Start};
use pinfold_store::SessionId;

/// An order, and the way to the shim that it is for.
pub(in crate::engine) struct Order {
    way: Outlet,
    words: Vec<u8>,
}

impl Order {
    /// To start a run; and which end is stored, where that is to be said first.
    pub(in crate::engine) fn start(way: Outlet, stored: Option<RunNumber>, start: Box<Start>) -> Order {
        let mut words = Vec::new();
        if let Some(run) = stored {
            Command::Ack { run }.encode(&mut words);
        }
        Command::Start(start).encode(&mut words);
        Order { way, words }
    }

    pub(in crate::engine) fn give(self) {
        crash::point("respawn.before");
        self.way.send(&self.words);
        crash::point("respawn.told");
    }
}

impl Engine {
    /// The order that this decision comes down to, if it is nothing else: a run under the shim of the last one. Then a
    /// restart need not wait until the loop has heard that the decision is durable. What was decided before is done.
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
        let order = Order::start(shim.outlet(), stored, self.start_of(id, run, purpose)?);
        self.note_speech(id, run);
        Some(order)
    }
}
