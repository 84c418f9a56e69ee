//! Agents that run once for each message: a run that has ended was for its message, whether or not there was
//! time to report that.

use super::Engine;
use pinfold_agents::{Delivery, Protocol};
use pinfold_core::exit::Exit;
use pinfold_core::life::{Life, Process, StartStage};
use pinfold_core::{RunEvent, RunNumber};
use pinfold_shim::Command;
use pinfold_store::SessionId;
use std::time::Duration;

/// The kernel allows 128 KiB in one argument; the text around the message needs some of it.
const LONGEST_ARGUMENT: usize = 120 << 10;

impl Engine {
    /// Records the turn of the message that a run was for before the run's end is handled: an agent may
    /// finish before this daemon, or the next one, has heard that it runs.
    pub(super) fn was_for_message(&mut self, id: SessionId, run: RunNumber, exit: Exit) {
        let Some(definition) = self.sessions.get(&id).map(|tracked| &tracked.definition) else { return };
        if definition.protocol != Protocol::Exec || !had_message(exit, definition.is_told_by_argument()) {
            return;
        }
        self.was_started(id, run);
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let by_argument = tracked.definition.is_told_by_argument();
        let Some(turn) = tracked.session.inbox().in_flight() else { return };
        let Some(taping) = tracked.live(run).and_then(|run| run.taping.as_deref_mut()) else { return };
        if !by_argument || taping.fold.prompted() == Some(turn.message) {
            taping.fold.was_for(Delivery { message: turn.message, delivery: turn.delivery });
        }
    }

    /// Whether a text can be a message of this session: one passed as an argument is subject to the kernel's
    /// limits.
    pub(super) fn can_be_told(&self, id: SessionId, text: &str) -> bool {
        let by_argument =
            self.sessions.get(&id).is_some_and(|tracked| tracked.definition.is_told_by_argument());
        !by_argument || (text.len() <= LONGEST_ARGUMENT && !text.contains('\0'))
    }

    /// The message of a run could not be delivered: a run for that message alone has nothing to do.
    pub(super) fn end_if_for_message(&self, id: SessionId, run: RunNumber) {
        if self.sessions.get(&id).is_some_and(|tracked| tracked.session.spec().run_per_message) {
            self.tell_shim(id, &Command::Stop { run, grace: Duration::ZERO });
        }
    }

    /// A daemon that died right after the start did not store that the run began; the exit record shows it.
    fn was_started(&mut self, id: SessionId, run: RunNumber) {
        let life = self.sessions.get(&id).map(|tracked| tracked.session.life());
        let Some(&Life::Starting { run: starting, stage: StartStage::Spawning, .. }) = life else { return };
        if starting != run {
            return;
        }
        if let Some(exited) = self.record_of(id, run) {
            let process = Process { pid: exited.pid, fence: exited.fence };
            self.of_run(id, run, RunEvent::Started(process));
        }
    }
}

/// Whether an agent that ended this way may have had its message. One that reads it from standard input and
/// exits without reading needed none; one that was lost may not have received it.
fn had_message(exit: Exit, by_argument: bool) -> bool {
    match exit {
        Exit::Code(_) | Exit::Signal(_) => true,
        Exit::ShimLost | Exit::MachineLost | Exit::AfterBackup => by_argument,
        Exit::NeverStarted => false,
    }
}
