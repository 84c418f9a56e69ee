//! Reports of shims, passed to the core.

use super::Engine;
use crate::crash;
use crate::engine::feed::FeedNews;
use crate::engine::input::LoopInput;
use crate::engine::session::{Reservation, Tracked};
use crate::output::last_line;
use crate::output::lines::OutputLines;
use crate::ports::locks::Lost;
use crate::ports::shims::{LinkNumber, ShimLink, ShimUp};
use pinfold_api::object::LogLine;
use pinfold_core::event::{Machine, Shim, ShimSeen, StartFailure};
use pinfold_core::exit::{Ended, Exit, Recognised};
use pinfold_core::inbox::Read;
use pinfold_core::life::StartRefused;
use pinfold_core::{Event, RunEvent, RunNumber, State, World};
use pinfold_shim::{Exited, Notice, Report};
use pinfold_store::{Facts, SessionId};
use tracing::{trace, warn};

/// How many of the last lines are kept in the record of an exit.
const LAST_LINES: usize = 20;
pub(super) const SIGKILL: i32 = 9;

impl Engine {
    pub(super) fn shim_up(
        &mut self,
        id: SessionId,
        run: RunNumber,
        result: Result<Box<ShimUp>, StartRefused>,
    ) {
        match result {
            Ok(up) => {
                if let Err(problem) = self.attach(id, *up) {
                    // The shim goes on without us: a look shows what it does.
                    warn!(%id, "its shim was lost sight of: {problem}");
                    self.look_again(id);
                }
            }
            Err(refused) => {
                warn!(%id, run = run.0, "it cannot be started: {}", refused.text);
                self.of_run(id, run, RunEvent::StartFailed(StartFailure::Refused(refused)));
            }
        }
    }

    pub(super) fn attach(&mut self, id: SessionId, up: ShimUp) -> Result<(), String> {
        self.links += 1;
        self.rest_soon();
        let (number, handle) = (LinkNumber(self.links), self.handle.clone());
        let hear = move |report| handle.tell(LoopInput::Shim { id, link: number, report });
        let (link, reaper) = ShimLink::attach(up, number, hear).map_err(|error| error.to_string())?;
        if let (Some(alone), Some(reaper)) = (&self.alone, reaper) {
            _ = alone.reapers.send(reaper);
        }
        if let Some(tracked) = self.sessions.get_mut(&id) {
            // A stop that came while the shim was being started reached no shim: send it again.
            if let pinfold_core::Life::Stopping { run, .. } = tracked.session.life() {
                let asked = tracked.run.as_ref().and_then(|run| run.stop);
                let grace = asked.unwrap_or(tracked.session.spec().policy.stop_grace);
                link.send(&pinfold_shim::Command::Stop { run: *run, grace });
            }
            tracked.shim = Some(link);
            crash::point("shim.attached");
        }
        self.tell_heard(id);
        Ok(())
    }

    pub(super) fn shim_said(&mut self, id: SessionId, link: LinkNumber, report: Option<Report>) {
        let current = self.sessions.get(&id).and_then(|tracked| tracked.shim.as_ref());
        if current.is_none_or(|shim| shim.number != link) {
            return;
        }
        match report {
            None => self.shim_lost(id),
            Some(report) => {
                trace!(%id, report = report.word(), "its shim reports");
                crash::point("report.before");
                self.shim_speaks(id);
                self.take_report(id, report);
                crash::point("report.after");
            }
        }
    }

    fn take_report(&mut self, id: SessionId, report: Report) {
        match report {
            Report::Started { run, process, .. } => {
                self.of_run(id, run, RunEvent::Started(process));
                self.fold_started(id, run);
            }
            Report::StartFailed { run, why } => {
                let failure = self.cannot_start(id, why);
                self.of_run(id, run, RunEvent::StartFailed(failure));
            }
            Report::Exited(exited) => self.exited(id, &exited, Shim::Standing),
            Report::NoSuchRun { run } if Engine::is_sign_of_life(run) => self.shim_lives(id),
            Report::NoSuchRun { run } => self.exited_unknown(id, run),
            Report::Notify { run, notice } => self.notified(id, run, notice),
            Report::Leaving => self.shim_left(id),
            Report::Refused { .. } => self.shim_lost(id),
            Report::Survivors { run, left } => self.survivors(id, run, left),
            Report::InputTaken { run, message, attempt, from } => {
                self.input_taken(id, run, message, attempt, from);
            }
            Report::TurnDone(turn) => self.turn_done(id, &turn),
            Report::StrayDone { run, named } => self.stray_done(id, run, named),
            Report::InputRefused { run, why, .. } => self.input_refused(id, run, why),
            Report::Welcome(_) | Report::Output(_) | Report::LogGrown { .. } | Report::CannotKeep { .. } => {}
            Report::Rang { run, ring } => self.rang(id, run, ring),
            Report::Tape(report) => self.taped(id, report),
            Report::Held { run, resources } => self.held(id, run, &resources),
            Report::Guest(report) => self.guest_said(id, report),
        }
    }

    /// A run ended: its record is already on disk, and its last lines are in the log. The rest of its tape is
    /// read first.
    pub(super) fn exited(&mut self, id: SessionId, exited: &Exited, shim: Shim) {
        if !self.exited_later(id, exited, shim) {
            self.ended(id, exited, shim, exited.ended.read);
        }
    }

    /// As `exited`, once everything it printed was read; `read` says whether it may have read the message of
    /// its turn.
    pub(super) fn ended(&mut self, id: SessionId, exited: &Exited, shim: Shim, read: Read) {
        let run = exited.run;
        self.let_viewers_go(id);
        self.let_handed_go(id);
        self.settle_turn(id);
        if let Some(failure) = exited.failure {
            let failure = self.cannot_start(id, failure);
            return self.of_run(id, run, RunEvent::StartFailed(failure));
        }
        // A run that printed nothing has no last lines.
        let before = self.sessions.get_mut(&id).and_then(|tracked| tracked.logged.replace(exited.log));
        let silent = before == Some(exited.log) && exited.tape.is_none();
        let output = if silent { Vec::new() } else { self.last_lines(id, run) };
        let last_line = last_line::of(&output);
        self.note_left(id, run, &output);
        self.keep_rest(id, run);
        let ended = Ended { at: Some(exited.at), last_line, read, ..exited.ended.clone() };
        let ended = self.recognise(id, run, ended, &output);
        let parked = self.sessions.get_mut(&id).map(|tracked| std::mem::take(&mut tracked.beside));
        let facts = Facts { output: output.clone(), parked: parked.unwrap_or_default(), ..Facts::default() };
        let holder = self.sessions.get_mut(&id).and_then(|tracked| tracked.yields_to.take());
        let event = RunEvent::Exited { ended, shim, holder };
        self.happened(id, &Event::Run { run, event }, &facts, None);
        self.seek_holder(id, run, &output);
    }

    /// Clients on the terminal of a run that ended are not a reason for another run: their attach is over.
    pub(super) fn let_viewers_go(&mut self, id: SessionId) {
        let run = self.sessions.get_mut(&id).and_then(|tracked| tracked.run.as_mut());
        for consumer in run.map(|run| std::mem::take(&mut run.viewers)).unwrap_or_default() {
            self.happened(id, &Event::ConsumerLeft { consumer }, &Facts::default(), None);
        }
    }

    pub(super) fn last_lines(&self, id: SessionId, run: RunNumber) -> Vec<String> {
        let live = self.sessions.get(&id).and_then(|tracked| tracked.run.as_ref());
        if let Some(taping) = live.and_then(|live| live.taping.as_ref()) {
            return taping.last_lines(LAST_LINES);
        }
        let entries = self.ports.shims.tail(&self.home, id, run, LAST_LINES);
        let mut lines = OutputLines::default();
        let mut all: Vec<LogLine> = entries.iter().flat_map(|entry| lines.push(entry)).collect();
        all.extend(lines.finish());
        let last = all.split_off(all.len().saturating_sub(LAST_LINES));
        last.into_iter().map(|line| line.text).collect()
    }

    /// The shim gave the locks back and left in order: nothing of its runs is alive.
    fn shim_left(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        tracked.shim = None;
        let recorded = |run| self.record_of(id, run).is_some();
        match self.sessions.get(&id).map(|tracked| (tracked.session.live_run(), tracked.session.state())) {
            // A start that reached it too late was not tried.
            Some((Some(run), State::Starting)) if !recorded(run) => {
                self.of_run(id, run, RunEvent::StartFailed(StartFailure::ShimGone));
            }
            Some((Some(run), _)) => self.exited_unknown(id, run),
            Some((None, _)) | None => self.happened(id, &Event::ShimLeft, &Facts::default(), None),
        }
    }

    /// The shim died. What is left of its run is ended before the end is reported.
    fn shim_lost(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let shim = tracked.shim.take();
        warn!(
            session = tracked.name,
            shim = shim.map_or(0, |shim| shim.pid),
            "its shim is gone without a word"
        );
        let behind = matches!(tracked.reservation, Reservation::Behind);
        let Some(run) = tracked.session.live_run() else {
            return self.happened(id, &Event::ShimLeft, &Facts::default(), None);
        };
        // The shim was told to leave and this run waited for that, so the shim had nothing of this run.
        if behind {
            return self.of_run(id, run, RunEvent::StartFailed(StartFailure::ShimGone));
        }
        let Some(lost) = self.sessions.get(&id).map(|tracked| self.lost(tracked)) else { return };
        let handle = self.handle.clone();
        let told = move |proved| handle.tell(LoopInput::ShimGone { id, run, proved });
        self.ports.locks.prove_absent(lost, Box::new(told));
    }

    /// What is needed to prove that nothing of a session's last run is alive.
    pub(super) fn lost(&self, tracked: &Tracked) -> Lost {
        let run = tracked.session.live_run().and_then(|run| tracked.run_id(run)).map(|run| run.to_string());
        Lost { name: tracked.name.clone(), run, listen: self.home.shim_socket(tracked.id) }
    }

    pub(super) fn shim_gone(&mut self, id: SessionId, run: RunNumber, proved: bool) {
        // What hid from its run is not part of the proof.
        self.ports.shims.end_orphans();
        let looked_at = self.sessions.get(&id).is_none_or(|tracked| tracked.shim.is_some());
        match proved {
            _ if looked_at => {}
            true => self.exited_unknown(id, run),
            // Something of the run is alive and cannot be ended, or another holder has the lock: nothing is
            // decided.
            false => {
                let world = World::new(Machine::Same, ShimSeen::Mute, Vec::new());
                self.happened(id, &Event::DaemonStarted(world), &Facts::default(), None);
            }
        }
    }

    pub(super) fn record_of(&self, id: SessionId, run: RunNumber) -> Option<Exited> {
        self.ports.shims.records(&self.home, id).into_iter().rev().find(|exited| exited.run == run)
    }

    /// The exit record decides; without one, the shim was lost.
    fn exited_unknown(&mut self, id: SessionId, run: RunNumber) {
        if let Some(exited) = self.record_of(id, run) {
            return self.exited(id, &exited, Shim::Absent);
        }
        if !self.lost_later(id, run) {
            self.lost_without_record(id, run, Read::default());
        }
    }

    /// The shim of a run was lost; `read` says whether the agent may have read the message of its turn.
    pub(super) fn lost_without_record(&mut self, id: SessionId, run: RunNumber, read: Read) {
        self.let_viewers_go(id);
        self.let_handed_go(id);
        self.settle_turn(id);
        let output = self.last_lines(id, run);
        let last_line = last_line::of(&output);
        self.note_left(id, run, &output);
        self.keep_rest(id, run);
        let ended = Ended { last_line, read, ..Ended::new(Exit::ShimLost, self.lived(id)) };
        let ended = self.recognise(id, run, ended, &output);
        let facts = Facts { output, ..Facts::default() };
        let event = RunEvent::Exited { ended, shim: Shim::Absent, holder: None };
        self.happened(id, &Event::Run { run, event }, &facts, None);
    }

    /// How long the live run of a session has lived.
    pub(super) fn lived(&self, id: SessionId) -> std::time::Duration {
        match self.sessions.get(&id).map(|tracked| tracked.session.life()) {
            Some(pinfold_core::Life::Running { since, .. }) => self.ports.clock.boot().since(since.boot),
            _ => std::time::Duration::ZERO,
        }
    }

    /// Adds what the exit itself does not show: an end that `unlock` announced was a person's wish, and the
    /// tape or the last lines may tell why the agent left.
    pub(super) fn recognise(
        &mut self,
        id: SessionId,
        run: RunNumber,
        ended: Ended,
        output: &[String],
    ) -> Ended {
        let unlocked = match ended.exit {
            // A killed agent is restarted at once: what is in memory has to suffice.
            Exit::Signal(SIGKILL) => self.is_unlocked(id, run),
            Exit::ShimLost => self.was_unlocked(id, run),
            Exit::Signal(_) | Exit::Code(_) | Exit::MachineLost | Exit::AfterBackup | Exit::NeverStarted => {
                false
            }
        };
        let recognised = if unlocked { Some(Recognised::Unlocked) } else { self.gave_up(id, run) };
        let recognised = recognised.or(ended.recognised);
        let recognised = recognised.or_else(|| self.recognised_exit(id, run, &ended, output));
        Ended { recognised, ..ended }
    }

    fn notified(&mut self, id: SessionId, run: RunNumber, notice: Notice) {
        let Some(live) = self.sessions.get_mut(&id).and_then(|tracked| tracked.live(run)) else { return };
        match notice {
            Notice::Ready => {
                live.ready = true;
                self.feed.note(id, FeedNews::Live);
            }
            Notice::Status(status) => {
                live.status = Some(status);
                self.feed.note(id, FeedNews::Live);
            }
            Notice::Watchdog => self.of_run(id, run, RunEvent::SignOfLife),
            // The exit record has what the agent said about its exit.
            Notice::Stopping | Notice::Exit(_) => {}
        }
    }
}
