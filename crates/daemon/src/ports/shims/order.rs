//! The order to start again under an existing shim: sent by the store's thread as soon as the decision is
//! durable.

use super::outbox::Outlet;
use crate::crash;
use pinfold_core::RunNumber;
use pinfold_shim::{Command, Start};

/// An order, and the way to its shim.
pub(crate) struct Order {
    way: Outlet,
    words: Vec<u8>,
}

impl Order {
    /// Starts a run; first acknowledges a stored exit, if there is one.
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
