//! The daemon's start: loads what is stored, looks at what exists, and lets the core reconcile the two.

use super::{Closing, Engine};
use crate::crash;
use crate::define::config::{Config, LoadError};
use crate::engine::input::LoopInput;
use crate::engine::session::Tracked;
use crate::ports::journal::Remembered;
use crate::ports::shims::observe::{LookSubject, SessionLook, SessionSeen};
use pinfold_core::event::{Machine, Shim, ShimSeen};
use pinfold_core::exit::{Ended, Exit, Recognised};
use pinfold_core::{Event, EventKind, RunEvent, RunNumber, World};
use pinfold_store::{DamagedSession, Facts, Loaded, ReadError, Reader, RunId, SessionId, StoredSession};
use std::sync::Arc;
use std::time::Duration;
use tracing::{error, warn};

/// A shim that does not answer is asked again after this: a stopped process does not announce that it
/// continues.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// A run that was unlocked ended before its session had this many more events.
const RECENT: u32 = 50;

impl Engine {
    /// Loads every session. One bad record leaves out one session, with an error in the log.
    pub(crate) fn load(&mut self, reader: &Reader) -> Result<(), ReadError> {
        self.load_accounts(reader)?;
        for loaded in reader.sessions()? {
            match Remembered::read(loaded, reader)? {
                Remembered { loaded: Loaded::Whole(stored), run } => self.enter(*stored, run),
                Remembered { loaded: Loaded::Damaged(damaged), .. } => self.leave_alone(damaged),
            }
        }
        self.find_parents();
        Ok(())
    }

    /// Fills in parent ids: older records have only the parent's name.
    fn find_parents(&mut self) {
        let named: Vec<(SessionId, String)> = self
            .sessions
            .values()
            .filter(|tracked| tracked.definition.parent_id.is_none())
            .filter_map(|tracked| Some((tracked.id, tracked.definition.parent.clone()?)))
            .collect();
        for (id, parent) in named {
            let found = self.find(&parent).ok().filter(|parent| *parent != id);
            if let Some(tracked) = self.sessions.get_mut(&id) {
                tracked.amend(|definition| definition.parent_id = found);
            }
        }
    }

    /// Sets a damaged session aside, with an error in the log; a client that names it is told.
    pub(super) fn leave_alone(&mut self, damaged: DamagedSession) {
        let DamagedSession { id, name, problem } = &damaged;
        error!(session = name, %id, "it is damaged: {problem}");
        self.damaged.insert(id.clone(), damaged);
    }

    /// Takes a stored session and its latest run into memory.
    pub(super) fn enter(&mut self, stored: StoredSession, run: Option<(RunNumber, RunId)>) {
        let (definition, next) = match self.read_definitions(&stored) {
            Ok(read) => read,
            Err(problem) => {
                let id = stored.id.to_string();
                return self.leave_alone(DamagedSession { id, name: stored.name, problem });
            }
        };
        let id = stored.id;
        let mut tracked =
            Tracked::new(id, stored.name.clone(), definition, stored.session, stored.created_at);
        tracked.next = next.map(Arc::new);
        tracked.damaged = stored.damaged;
        tracked.latest = run;
        tracked.follow_run();
        self.early.insert(id, Vec::new());
        if stored.archived_at.is_none() {
            self.names.insert(stored.name, id);
        }
        let has_tape = tracked.definition.has_tape();
        self.sessions.insert(id, Box::new(tracked));
        self.know_account_first(id);
        if has_tape {
            self.resume_fold(id);
        }
    }

    /// Looks at every session, a few at a time; each is decided as soon as it has been seen.
    pub(crate) fn look_around(&mut self, machine: Machine) {
        self.accounts_recovered(machine);
        let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in ids {
            self.look_at(id, machine, Duration::ZERO);
        }
    }

    pub(super) fn look_at(&self, id: SessionId, machine: Machine, after: Duration) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let may_live = tracked.session.live_run().is_some() || tracked.session.shim() == Shim::Standing;
        let subject = LookSubject { id, lost: self.lost(tracked), may_live };
        let (home, generation) = (self.home.clone(), self.generation);
        let look = SessionLook { home, generation, machine, subject, after };
        let handle = self.handle.clone();
        let told = move |seen| handle.tell(LoopInput::Observed { id, seen: Box::new(seen) });
        self.ports.shims.observe(look, Box::new(told));
    }

    /// Asks a shim again that held the lock and did not answer.
    pub(super) fn look_again(&mut self, id: SessionId) {
        self.look_at(id, Machine::Same, ASK_AGAIN);
    }

    /// A session was looked at; its tape is read to the end before anything is decided from that.
    pub(super) fn observed(&mut self, id: SessionId, seen: SessionSeen) {
        if let Some(seen) = self.seen_later(id, Box::new(seen)) {
            self.observed_now(id, *seen);
        }
    }

    pub(super) fn observed_now(&mut self, id: SessionId, mut seen: SessionSeen) {
        crash::point("observed.before");
        self.recognise_lost(id, &mut seen.world);
        if let Some(up) = seen.shim {
            let unsettled: Vec<_> = up.welcome.exits.iter().map(|exited| exited.run).collect();
            if let Err(problem) = self.attach(id, up) {
                warn!(%id, "its shim could not be taken over: {problem}");
            }
            self.acknowledge_settled(id, &unsettled);
        }
        self.settle_turn(id);
        let run = self.sessions.get(&id).and_then(|tracked| tracked.session.live_run());
        let output = run.map(|run| self.last_lines(id, run)).unwrap_or_default();
        let failures = seen.failures.into_iter().map(|(run, why)| (run, self.cannot_start(id, why)));
        let (failures, last_line) = (failures.collect(), crate::output::last_line::of(&output));
        let ended = |run: &RunNumber| seen.world.exits.iter().any(|(ended, _)| ended == run);
        if let Some(run) = run.filter(|run| seen.world.shim == ShimSeen::Nobody || ended(run)) {
            self.note_left(id, run, &output);
        }
        if let Some((run, ended)) = seen.world.exits.iter_mut().find(|(ended, _)| Some(*ended) == run)
            && ended.recognised.is_none()
        {
            ended.recognised = self.recognised_exit(id, *run, ended, &output);
        }
        let world = World { failures, last_line, dialog: self.unseen_dialog(id), ..seen.world };
        let facts = Facts { output: output.clone(), ..Facts::default() };
        self.happened(id, &Event::DaemonStarted(world), &facts, None);
        if let Some(run) = run {
            self.seek_holder(id, run, &output);
        }
        if let (Some(run), Some(by)) = (run, seen.silent) {
            self.of_run(id, run, RunEvent::Unended(by));
        }
        self.keep_found(id);
        self.follow_config(id);
        self.archive_orphan(id);
        crash::point("observed.after");
        // The observation counts as a daemon's start; a daemon that is going down asks again.
        if let Closing::Waiting(_) = self.closing {
            self.ask_down(id);
        }
        let early = self.early.remove(&id);
        early.into_iter().flatten().for_each(|input| self.take(input));
        self.take_waiting();
    }

    /// Takes the inputs that waited until every session was looked at.
    pub(super) fn take_waiting(&mut self) {
        if !self.unseen() {
            std::mem::take(&mut self.waiting).into_iter().for_each(|input| self.take(input));
        }
    }

    /// A run that `unlock` ended while no daemon ran was ended by a person.
    fn recognise_lost(&mut self, id: SessionId, world: &mut World) {
        let Some(run) = self.sessions.get(&id).and_then(|tracked| tracked.session.live_run()) else { return };
        let (ShimSeen::Nobody | ShimSeen::Standing, Machine::Same) = (world.shim, world.machine) else {
            return;
        };
        if !self.was_unlocked(id, run) {
            return;
        }
        let unlocked = Some(Recognised::Unlocked);
        match world.exits.iter_mut().find(|(ended, _)| *ended == run) {
            Some((_, ended)) if ended.exit == Exit::Signal(super::reports::SIGKILL) => {
                ended.recognised = unlocked;
            }
            Some(_) => {}
            None if world.shim == ShimSeen::Nobody => {
                let lost = Ended::new(Exit::ShimLost, self.lived(id));
                world.exits.push((run, Ended { recognised: unlocked, ..lost }));
            }
            None => {}
        }
    }

    /// Whether this daemon has heard that `unlock` ends this run: `unlock` writes that down before it acts.
    pub(super) fn is_unlocked(&mut self, id: SessionId, run: pinfold_core::RunNumber) -> bool {
        self.take_audit();
        self.sessions.get_mut(&id).and_then(|tracked| tracked.live(run)).is_some_and(|run| run.unlocked)
    }

    /// As `is_unlocked`, but also true if an earlier daemon heard it.
    pub(super) fn was_unlocked(&mut self, id: SessionId, run: pinfold_core::RunNumber) -> bool {
        if self.is_unlocked(id, run) {
            return true;
        }
        let name = self.sessions.get(&id).and_then(|tracked| tracked.run_id(run)).map(|run| run.to_string());
        let Some(name) = name else { return false };
        let events = self.ports.journal.recent_events(id, RECENT);
        events.iter().any(|event| event.kind == EventKind::Unlocked && event.run.as_ref() == Some(&name))
    }

    /// Reads the configuration again.
    pub(super) fn reload(&self) {
        let handle = self.handle.clone();
        let told = move |read| handle.tell(LoopInput::ConfigRead(Box::new(read)));
        self.ports.files.read_config(self.home.config.clone(), Box::new(told));
    }

    /// Applies a new configuration; a bad one leaves the old one in force and says so.
    pub(super) fn config_read(&mut self, read: Result<Config, LoadError>) {
        match read {
            Ok(config) => {
                crate::log::set_level(config.log_level());
                (self.config, self.config_refused) = (config, None);
            }
            Err(error) => {
                let problem = crate::error_chain::chain(&error);
                let why = format!("the configuration stays as it was: {problem}");
                warn!("{why}");
                self.config_refused = Some(problem);
                return self.tell_of_config(EventKind::ConfigRefused, &why);
            }
        }
        self.tell_of_config(EventKind::ConfigReloaded, "the configuration was read again");
        let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        ids.into_iter().for_each(|id| self.follow_config(id));
        self.follow_accounts();
    }

    fn tell_of_config(&self, kind: EventKind, why: &str) {
        let mut batch = pinfold_store::Batch::new();
        batch.event(self.daemon_event(kind, why));
        self.commit(None, batch);
    }

    /// Tells a session about changed settings; they count from its next run on.
    fn follow_config(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let definition = tracked.latest_definition();
        let spec = definition.spec(&self.config.settings(&definition.agent, &tracked.name));
        if *tracked.session.next_spec().unwrap_or(tracked.session.spec()) != spec {
            self.happened(id, &Event::SpecChanged(Box::new(spec)), &Facts::default(), None);
        }
    }

    /// Acknowledges exits that an earlier daemon stored but did not live to acknowledge.
    fn acknowledge_settled(&self, id: SessionId, unsettled: &[pinfold_core::RunNumber]) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let settled = tracked.session.runs().settled;
        let last = unsettled.iter().copied().filter(|run| *run <= settled).max();
        if let (Some(run), Some(shim)) = (last, &tracked.shim) {
            shim.send(&pinfold_shim::Command::Ack { run });
        }
    }
}
