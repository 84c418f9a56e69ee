//! Guests: the vendor's own terminal program beside a run, with the same arguments, variables and directory
//! as if it had taken the run's place.

use super::Engine;
use crate::engine::session::Tracked;
use pinfold_core::event::{GuestEvent, StartFailure};
use pinfold_core::guest::GuestStage;
use pinfold_core::life::{HandBack, Purpose};
use pinfold_core::{Exit, RunEvent, RunNumber};
use pinfold_shim::{Command, GuestReport, GuestStart, Rights, Start};
use pinfold_store::SessionId;
use tracing::warn;

/// A guest gets no watchdog: it is not monitored.
const WATCHDOG: &[u8] = b"WATCHDOG_USEC=";

impl Engine {
    pub(super) fn start_guest(&mut self, id: SessionId, run: RunNumber, guest: u64) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let asked = tracked
            .session
            .guest_here()
            .is_some_and(|here| (here.run, here.number, here.stage) == (run, guest, GuestStage::Asked));
        if !asked {
            return;
        }
        if tracked.shim.as_ref().is_some_and(|shim| !shim.can.guest) {
            return self.no_guest(id, run, guest, "its shim is of an older version");
        }
        let start = self.start_of(id, run, Purpose::Interactive(HandBack::ByNeed), None);
        match start.filter(|start| !start.arguments.is_empty()) {
            Some(start) => {
                crate::crash::point("guest.before");
                self.tell_shim(id, &Command::Guest(Box::new(beside(guest, *start))));
                crate::crash::point("guest.sent");
            }
            None => self.no_guest(id, run, guest, "its conversation is not known yet"),
        }
    }

    fn no_guest(&mut self, id: SessionId, run: RunNumber, guest: u64, why: &str) {
        let event = GuestEvent::Ended { exit: Exit::NeverStarted, text: Some(why.to_owned()) };
        self.of_run(id, run, RunEvent::Guest { guest, event });
    }

    /// Handles a shim's report about a guest. When the guest ends, the clients on its terminal are no longer
    /// attached.
    pub(in crate::engine) fn guest_said(&mut self, id: SessionId, report: GuestReport) {
        let (run, guest, event) = match report {
            GuestReport::Started { run, guest, pid } => (run, guest, GuestEvent::Started { pid }),
            GuestReport::Ended { run, guest, exit, why } => {
                let text = why.and_then(|why| self.sessions.get(&id).map(|of| self.no_program(of, why)));
                if let Some(text) = &text {
                    warn!(%id, run = run.0, "its terminal program cannot be started: {text}");
                }
                (run, guest, GuestEvent::Ended { exit, text })
            }
        };
        let here = self.sessions.get(&id).and_then(|tracked| tracked.session.guest_here());
        let is_here = here.is_some_and(|here| (here.run, here.number) == (run, guest));
        if is_here && matches!(event, GuestEvent::Ended { .. }) {
            self.let_viewers_go(id);
        }
        self.of_run(id, run, RunEvent::Guest { guest, event });
    }

    /// Why a terminal program could not be started, as text.
    fn no_program(&self, tracked: &Tracked, why: pinfold_shim::StartFailure) -> String {
        match self.why_not_started(tracked, &self.as_known(tracked).interactive, why) {
            StartFailure::Hopeless(cause) => cause.to_string(),
            StartFailure::Refused(refused) => refused.text,
            StartFailure::ShimGone => "its shim has gone".into(),
        }
    }
}

/// Turns the start of a takeover into that of a guest.
fn beside(number: u64, start: Start) -> GuestStart {
    let Start { run, run_id, arguments, mut environment, directory, socket, joins, .. } = start;
    environment.retain(|entry| !entry.as_encoded_bytes().starts_with(WATCHDOG));
    GuestStart {
        run,
        number,
        arguments,
        environment,
        directory,
        terminal: start.terminal.unwrap_or_default(),
        joins,
        run_id,
        socket,
        rights: Rights { open_files: start.open_files, core: start.core, umask: start.umask },
    }
}
