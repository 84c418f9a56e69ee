//! The order to start again under a shim that is there: sent by the store's thread the moment the decision is durable.

use super::outbox::Outlet;
use crate::crash;
use pinfold_core::RunNumber;
use pinfold_shim::{Command, Start};

/// An order, and the way to the shim that it is for.
pub(crate) struct Order {
    way: Outlet,
    words: Vec<u8>,
}

impl Order {
    /// To start a run; and which end is stored, where that is to be said first.
    pub(crate) fn start(way: Outlet, stored: Option<RunNumber>, start: Box<Start>) -> Order {
        let mut words = Vec::new();
        if let Some(run) = stored {
            Command::Ack { run }.encode(&mut words);
        }
        Command::Start(start).encode(&mut words);
        Order { way, words }
    }

    pub(crate) fn give(self) {
        crash::point("respawn.before");
        self.way.send(&self.words);
        crash::point("respawn.told");
    }
}
