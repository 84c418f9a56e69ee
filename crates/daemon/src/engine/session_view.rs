//! Sessions as seen from outside: how one stands, and a copy to show from. Data only.

use crate::define::definition::Definition;
use pinfold_core::guest::Guest;
use pinfold_core::session::{Runs, Takeover};
use pinfold_core::{RunNumber, Session, State, Wall};
use pinfold_shim::Flow;
use pinfold_store::{RunId, SessionId};
use std::sync::Arc;

/// The state of a session, as far as clients wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionSnapshot {
    pub(crate) state: State,
    pub(crate) runs: Runs,
    /// Whether something is in the way of a run's end.
    pub(crate) unended: bool,
    /// The takeover under way.
    pub(crate) takeover: Option<Takeover>,
    /// The last guest of its runs.
    pub(crate) guest: Option<Guest>,
    /// Whether its shim is connected.
    pub(crate) connected: bool,
}

impl SessionSnapshot {
    pub(crate) fn of(session: &Session, connected: bool) -> SessionSnapshot {
        SessionSnapshot {
            state: session.state(),
            runs: session.runs(),
            unended: session.unended().is_some(),
            takeover: session.takeover(),
            guest: session.guest(),
            connected,
        }
    }
}

/// A copy of one session to show from.
#[derive(Debug, Clone)]
pub(crate) struct SessionView {
    pub(crate) id: SessionId,
    pub(crate) name: String,
    /// The definition in force.
    pub(crate) definition: Arc<Definition>,
    /// The definition from the next run on, if it is another one.
    pub(crate) next: Option<Arc<Definition>>,
    /// An outline: it does not list the queued messages.
    pub(crate) core: Session,
    pub(crate) created_at: Wall,
    pub(crate) account: Option<Arc<str>>,
    /// The latest run.
    pub(crate) run: Option<(RunNumber, RunId)>,
    pub(crate) ready: bool,
    pub(crate) status: Option<String>,
    pub(crate) shim_pid: Option<u32>,
    pub(crate) swap: Option<u64>,
    /// How many messages in its inbox are damaged.
    pub(crate) damaged: u64,
    /// Why its decisions cannot be recorded.
    pub(crate) held_up: Option<Arc<str>>,
    pub(crate) stops_first: bool,
    /// Whether its agent's output is being read.
    pub(crate) flow: Flow,
    /// Why its last turn failed.
    pub(crate) failed: Option<Arc<str>>,
    /// When its agent last printed, if known.
    pub(crate) printed_at: Option<Wall>,
    /// Its agent printed `PINFOLD_DONE` outside a turn and without an id.
    pub(crate) stray_mark: bool,
    /// How often its agent began the answer of its turn again.
    pub(crate) begun_again: u32,
}

/// What keeps a session from going on, besides what its core knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hindrances<'a> {
    pub(crate) name: &'a str,
    /// How many messages in its inbox are damaged.
    pub(crate) damaged: u64,
    /// Why its decisions cannot be recorded.
    pub(crate) held_up: Option<&'a str>,
    pub(crate) stops_first: bool,
    pub(crate) flow: Flow,
    /// Why its last turn failed.
    pub(crate) failed: Option<&'a str>,
    /// When its agent last printed, if known.
    pub(crate) printed_at: Option<Wall>,
    /// Its agent printed `PINFOLD_DONE` outside a turn and without an id.
    pub(crate) stray_mark: bool,
    /// How often its agent began the answer of its turn again.
    pub(crate) begun_again: u32,
}

impl SessionView {
    /// The pid of its agent.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.core.life().at_work().map(|(_, process, _)| process.pid)
    }

    pub(crate) fn hindrances(&self) -> Hindrances<'_> {
        let SessionView { name, damaged, held_up, stops_first, flow, failed, printed_at, .. } = self;
        let (stray_mark, begun_again) = (self.stray_mark, self.begun_again);
        let (held_up, failed) = (held_up.as_deref(), failed.as_deref());
        let (stops_first, flow, printed_at) = (*stops_first, *flow, *printed_at);
        let damaged = *damaged;
        Hindrances { name, damaged, held_up, stops_first, flow, failed, printed_at, stray_mark, begun_again }
    }
}
