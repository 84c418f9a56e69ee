//! The commands a daemon may send.

use super::input::AgentInput;
use super::run::Run;
use super::shim::{Phase, Shim, pty_of};
use super::start;
use crate::protocol::command::Command;
use crate::protocol::report::{InputRefused, Report};
use pinfold_core::ids::{MessageId, RunNumber};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// The locks are kept across a gap between runs for at most this long.
const GAP: Duration = Duration::from_secs(2);

impl Shim {
    pub(super) fn command(&mut self, command: Command) {
        match command {
            // Sent already, or by a client that breaks the protocol.
            Command::Keep(_) | Command::Hello { .. } => {}
            Command::Go => self.go(),
            Command::Start(start) => self.start(&start),
            Command::Stop { run, grace } => self.stop(run, grace),
            Command::Interrupt { run } => self.with_run(run, |run| run.signal(Signal::INT)),
            Command::Input { run, message, attempt, bytes, says_done } => {
                if says_done && let Phase::Running(run) = &mut self.phase {
                    run.turns.expect(message, attempt);
                }
                if let Some(pty) = pty_of(&mut self.phase) {
                    pty.bell.typed(Instant::now());
                }
                self.deliver(run, message, attempt, bytes);
            }
            Command::CloseInput { run } => {
                if self.is_present(run) {
                    self.with_input(AgentInput::close);
                    self.with_words(|taping| taping.words.close());
                }
            }
            // If this fails, the next daemon finds nothing listening.
            Command::Listen => _ = self.links.listen(&self.keep),
            Command::Release => self.release(),
            Command::Ack { run } => {
                self.records.acknowledge(run);
                self.unstored = self.unstored.filter(|_| self.records.is_unsynced());
            }
            Command::Follow { on } => {
                if let Some(daemon) = &mut self.links.daemon {
                    daemon.follow(on);
                }
            }
            Command::Say(say) if self.is_present(say.run) => self.say(*say),
            Command::Say(say) => self.tell_of(say.run),
            Command::Heard { to, .. } => self.heard(to),
            Command::Hold { run, locks } => self.hold(run, &locks),
            Command::Guest(guest) => self.start_guest(*guest),
            Command::GuestStop { run, guest, grace } => self.stop_guest(run, guest, grace),
        }
    }

    fn go(&mut self) {
        if matches!(self.phase, Phase::Waiting) {
            self.stand();
        }
    }

    pub(super) fn stand(&mut self) {
        self.phase = Phase::Standing { until: Instant::now() + GAP };
    }

    pub(super) fn is_present(&self, number: RunNumber) -> bool {
        matches!(&self.phase, Phase::Running(run) if run.number == number)
    }

    fn with_run(&mut self, number: RunNumber, what: impl FnOnce(&mut Run)) {
        match &mut self.phase {
            Phase::Running(run) if run.number == number => what(run),
            Phase::Running(_) | Phase::Waiting | Phase::Standing { .. } | Phase::Gone => self.tell_of(number),
        }
    }

    /// Reports what is known of a run that is not alive.
    pub(super) fn tell_of(&mut self, number: RunNumber) {
        let answer = match self.records.of(number) {
            Ok(Some(exited)) => start::told(exited),
            Ok(None) | Err(_) => Report::NoSuchRun { run: number },
        };
        self.links.report(&answer);
    }

    pub(super) fn with_input(&mut self, what: impl FnOnce(&mut AgentInput) -> Vec<Report>) {
        // Output before a message is taken does not belong to its turn, even if it was not read yet.
        self.catch_up();
        let Phase::Running(run) = &mut self.phase else { return };
        for report in what(&mut run.input) {
            let Report::InputTaken { run: number, message, attempt, .. } = report else {
                self.links.report(&report);
                continue;
            };
            run.turns.taken(number, message, attempt, self.log.end());
            let from = run.turns.begin_of(number, message, attempt);
            self.links.report(&Report::InputTaken { run: number, message, attempt, from });
            // A daemon that delivers again has not heard of the end.
            if let Some(ended) = run.turns.ended(number, message, attempt) {
                self.links.report(&ended);
            }
        }
    }

    fn deliver(&mut self, run: RunNumber, message: MessageId, attempt: u32, bytes: Vec<u8>) {
        if self.is_present(run) {
            self.with_input(|input| input.deliver(message, attempt, bytes));
        } else {
            let why = InputRefused::Closed;
            self.links.report(&Report::InputRefused { run, message, attempt, why });
        }
    }

    fn stop(&mut self, run: RunNumber, grace: Duration) {
        let now = Instant::now();
        self.with_run(run, |run| run.stop(grace, now));
    }

    fn release(&mut self) {
        if let Phase::Standing { .. } | Phase::Waiting = self.phase {
            self.leave();
        }
    }
}
