//! Whoever attaches: what that means for a session, and how far it has come. The words for it are elsewhere.

use super::Engine;
use super::session::Tracked;
use super::session_view::SessionView;
use pinfold_core::life::{Life, Purpose};
use pinfold_core::{ConsumerId, Mode, RunNumber};
use pinfold_shim::Size;
use pinfold_store::SessionId;
use std::path::PathBuf;

/// What attaching to a session means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Its runs have a terminal.
    Terminal,
    /// The vendor's own program takes the place of the headless run.
    Takeover,
    /// Its output is followed.
    Follow,
}

/// How far an attach has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There is a terminal.
    Ready { socket: PathBuf, run: RunNumber },
    /// There is a terminal, and the way to it was removed; its shim was told to make another.
    NoSocket,
    /// Something has to happen first.
    Waiting,
    /// The session does not go on by itself.
    CannotBe,
    /// No takeover is under way.
    NoTakeover,
}

impl Engine {
    /// Notes the size that a terminal shall have, and says what attaching means; nothing where the session is gone.
    pub(super) fn prepare_attach(
        &mut self,
        id: SessionId,
        size: Option<Size>,
        shows_only: bool,
    ) -> Option<Way> {
        let tracked = self.sessions.get_mut(&id)?;
        tracked.terminal = size.unwrap_or(tracked.terminal);
        Some(way(tracked, shows_only))
    }

    pub(super) fn forget_takeover_end(&mut self, id: SessionId) {
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.takeover_end = None;
        }
    }

    /// Says how far an attach has come, with what can be said about it; nothing where the session is gone.
    pub(super) fn standing(
        &mut self,
        id: SessionId,
        way: Way,
        consumer: ConsumerId,
    ) -> Option<(Standing, SessionView)> {
        let standing = self.stands(id, way)?;
        if let Standing::Ready { .. } = standing {
            self.keeps_viewing(id, consumer);
        }
        Some((standing, self.sessions.get(&id)?.view()))
    }

    pub(super) fn keeps_viewing(&mut self, id: SessionId, consumer: ConsumerId) {
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.viewers.push(consumer);
        }
    }

    fn stands(&self, id: SessionId, way: Way) -> Option<Standing> {
        let tracked = self.sessions.get(&id)?;
        if let (Some(run), Some(shim)) = (terminal_run(tracked.session.life(), way), &tracked.shim) {
            return Some(match shim.socket(&self.home, id) {
                Some(socket) => Standing::Ready { socket, run },
                None => Standing::NoSocket,
            });
        }
        Some(stands_without(tracked, way))
    }
}

fn way(tracked: &Tracked, shows_only: bool) -> Way {
    let spec = tracked.session.spec();
    let held = matches!(tracked.session.life(), Life::Held { .. });
    let takes_over = spec.interactive && spec.mode != Mode::Once && !shows_only;
    if tracked.definition.pty {
        Way::Terminal
    } else if held || takes_over {
        Way::Takeover
    } else {
        Way::Follow
    }
}

/// The run whose terminal is the one to attach to.
fn terminal_run(life: &Life, way: Way) -> Option<RunNumber> {
    match (life, way) {
        (Life::Running { run, .. }, Way::Terminal) | (Life::Held { run, .. }, _) => Some(*run),
        _ => None,
    }
}

fn stands_without(tracked: &Tracked, way: Way) -> Standing {
    let life = tracked.session.life();
    if matches!(life, Life::Stopped | Life::Failed { .. } | Life::Archived { .. } | Life::Blocked { .. }) {
        return Standing::CannotBe;
    }
    // A run that is ended for something else hands over to nobody; whoever waits sees where it goes.
    let moving = matches!(life, Life::Starting { .. } | Life::Stopping { .. });
    if way == Way::Takeover && !moving && !taking_over(tracked) {
        return Standing::NoTakeover;
    }
    Standing::Waiting
}

fn taking_over(tracked: &Tracked) -> bool {
    let own = |purpose: &Purpose| matches!(purpose, Purpose::Interactive(_));
    let under_way = match tracked.session.life() {
        Life::Starting { purpose, .. } | Life::Stopping { purpose, .. } => own(purpose),
        Life::Idle { .. }
        | Life::Running { .. }
        | Life::Held { .. }
        | Life::Backoff { .. }
        | Life::Blocked { .. }
        | Life::Stopped
        | Life::Failed { .. }
        | Life::Archived { .. } => false,
    };
    under_way || tracked.session.takeover().is_some()
}
