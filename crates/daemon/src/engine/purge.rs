//! Which sessions purge takes, and which it spares.

use super::Engine;
use super::session::Tracked;
use pinfold_api::request::{Caller, Purge};
use pinfold_core::{Mode, Refusal, State};
use pinfold_store::SessionId;
use std::path::PathBuf;

/// What purge does with one session.
pub(crate) struct PurgeCandidate {
    pub(crate) id: SessionId,
    pub(crate) name: String,
    pub(crate) own: bool,
    /// Why it is left alone.
    pub(crate) spared: Option<Refusal>,
}

/// Which modes purge takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PurgeModes {
    Only(Mode),
    All,
}

/// The socket that a caller was given, and what it resolves to.
pub(crate) struct CallerSocket {
    named: PathBuf,
    real: PathBuf,
}

impl CallerSocket {
    /// Resolves the link. Blocks.
    pub(crate) fn read(socket: &str) -> CallerSocket {
        let named = PathBuf::from(socket);
        CallerSocket { real: std::fs::read_link(&named).unwrap_or_else(|_| named.clone()), named }
    }
}

impl Engine {
    /// The sessions that purge considers, in order, without archived ones.
    pub(super) fn to_purge(
        &self,
        modes: PurgeModes,
        purge: &Purge,
        socket: Option<&CallerSocket>,
    ) -> Vec<PurgeCandidate> {
        let of_mode = |tracked: &&Tracked| match modes {
            PurgeModes::All => true,
            PurgeModes::Only(mode) => tracked.session.spec().mode == mode,
        };
        let live = self
            .sessions
            .values()
            .map(Box::as_ref)
            .filter(|tracked| tracked.session.state() != State::Archived);
        live.filter(of_mode)
            .map(|tracked| {
                let own = self.is_callers(tracked, &purge.caller, socket);
                let spared = tracked.session.spared_by_purge(purge.include_active, own);
                PurgeCandidate { id: tracked.id, name: tracked.name.clone(), own, spared }
            })
            .collect()
    }

    /// Whether the caller is part of this session: by its environment, or by its parent processes.
    fn is_callers(&self, tracked: &Tracked, caller: &Caller, socket: Option<&CallerSocket>) -> bool {
        let here = socket.is_none_or(|socket| self.is_our_socket(socket));
        let named = |text: &String| *text == tracked.name || *text == tracked.id.to_string();
        let by_name = here && caller.session.as_ref().is_some_and(named);
        let by_run = caller.run.is_some() && caller.run == tracked.latest.map(|(_, run)| run.to_string());
        let pid = tracked.pid();
        let shim = tracked.shim.as_ref().map(|shim| shim.pid);
        let by_blood = caller.ancestors.iter().any(|pid_above| [pid, shim].contains(&Some(*pid_above)));
        by_name || by_run || by_blood
    }

    fn is_our_socket(&self, socket: &CallerSocket) -> bool {
        socket.named == self.socket || socket.real == self.home.socket()
    }
}
