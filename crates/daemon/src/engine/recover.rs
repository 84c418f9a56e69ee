//! The daemon's start: loads what is stored, looks at what is there, and lets the core bring both together.

use super::{Closing, Engine};
use crate::crash;
use crate::define::definition::Definition;
use crate::engine::input::Input;
use crate::engine::session::Tracked;
use crate::log::log;
use crate::ports::observe::{Seen, Subject, observe};
use pinfold_core::event::{Machine, Shim, ShimSeen};
use pinfold_core::exit::{Ended, Exit, Recognised};
use pinfold_core::rules::verdict::Asked;
use pinfold_core::{Event, LastExit, RunEvent, Session, Verdict, World};
use pinfold_store::{
    DamagedSession, EventQuery, Facts, Loaded, ReadError, Reader, Run, SessionId, StoredSession, Take,
};
use std::sync::Arc;
use std::time::Duration;

/// A shim that does not answer is asked again after this; its lock is waited for as well.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// The last run that ended is among so many runs, and its end among so many events, or is not looked for.
const RECALLED: u32 = 64;

/// The loop waits for the disk no longer than this: then something holds it up.
const STORED: Duration = Duration::from_secs(2);

/// A run that was unlocked has ended before its session had so many more events.
const RECENT: u32 = 50;

impl Engine {
    /// Loads every session. One bad record leaves one session out, loudly.
    pub(crate) fn load(&mut self, reader: &Reader) -> Result<(), ReadError> {
        for loaded in reader.sessions()? {
            match loaded {
                Loaded::Whole(stored) => self.enter(*stored, reader)?,
                Loaded::Damaged(damaged) => self.leave_alone(damaged),
            }
        }
        self.find_parents();
        Ok(())
    }

    /// Records from before ids were noted have their parent's name only.
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
                tracked.definition.parent_id = found;
            }
        }
    }

    /// One bad record parks one session, loudly: whoever names it hears of it.
    pub(super) fn leave_alone(&mut self, damaged: DamagedSession) {
        let DamagedSession { id, name, problem } = &damaged;
        log(format_args!("session `{name}` ({id}) is damaged: {problem}"));
        self.damaged.insert(id.clone(), damaged);
    }

    pub(super) fn enter(&mut self, stored: StoredSession, reader: &Reader) -> Result<(), ReadError> {
        let read = serde_json::from_value(stored.definition.clone());
        let read = read.map_err(|error| format!("its definition cannot be read: {error}"));
        let definition: Definition = match read.and_then(|mut read| self.read_given(&mut read).map(|()| read))
        {
            Ok(definition) => definition,
            Err(problem) => {
                self.leave_alone(DamagedSession { id: stored.id.to_string(), name: stored.name, problem });
                return Ok(());
            }
        };
        let id = stored.id;
        let mut session = stored.session;
        recall_last_exit(id, &mut session, reader)?;
        let mut tracked = Tracked::new(id, stored.name.clone(), definition, session, stored.created_at);
        tracked.archived_at = stored.archived_at;
        tracked.damaged = stored.damaged;
        tracked.early = Some(Vec::new());
        let latest = reader.runs(id, Take::Last(1))?.pop();
        tracked.run = latest.and_then(|run| Some((run.number, run.id?)));
        if stored.archived_at.is_none() {
            self.names.insert(stored.name, id);
        }
        self.sessions.insert(id, Box::new(tracked));
        Ok(())
    }

    /// Looks at every session, a few at a time; each is decided as soon as it was seen.
    pub(crate) fn look_around(&mut self, machine: Machine) {
        let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in ids {
            self.look_at(id, machine, Duration::ZERO);
        }
    }

    pub(super) fn look_at(&self, id: SessionId, machine: Machine, after: Duration) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let may_live = tracked.session.live_run().is_some() || tracked.session.shim() == Shim::Standing;
        let subject = Subject { id, lost: self.lost(tracked), may_live };
        let (home, folders, generation) = (self.home.clone(), self.folders.clone(), self.generation);
        let (handle, starts) = (self.handle.clone(), Arc::clone(&self.starts));
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let _permit = starts.acquire_owned().await;
            let look = move || observe(&home, &folders, generation, machine, &subject);
            // A look that came to nothing says nothing about what is there.
            let seen = tokio::task::spawn_blocking(look).await.unwrap_or_else(|_| Seen::nothing(machine));
            handle.tell(Input::Observed { id, seen: Box::new(seen) });
        });
    }

    /// A shim that held the lock and did not answer is asked again.
    pub(super) fn look_again(&mut self, id: SessionId) {
        self.look_at(id, Machine::Same, ASK_AGAIN);
    }

    pub(super) fn observed(&mut self, id: SessionId, mut seen: Seen) {
        crash::point("observed.before");
        self.recognise_lost(id, &mut seen.world);
        if let Some(up) = seen.shim {
            let unsettled: Vec<_> = up.welcome.exits.iter().map(|exited| exited.run).collect();
            if let Err(problem) = self.attach(id, up) {
                log(format_args!("the shim of session {id} could not be taken over: {problem}"));
            }
            self.acknowledge_settled(id, &unsettled);
        }
        self.settle_turn(id);
        let run = self.sessions.get(&id).and_then(|tracked| tracked.session.live_run());
        let output = run.map(|run| self.last_lines(id, run)).unwrap_or_default();
        let failures = seen.failures.into_iter().map(|(run, why)| (run, self.cannot_start(id, why)));
        let (failures, last_line) = (failures.collect(), crate::output::last_line::of(&output));
        let world = World { failures, last_line, ..seen.world };
        let facts = Facts { output, ..Facts::default() };
        self.happened(id, &Event::DaemonStarted(world), &facts, None);
        if let (Some(run), Some(by)) = (run, seen.silent) {
            self.of_run(id, run, RunEvent::Unended(by));
        }
        self.follow_config(id);
        self.archive_orphan(id);
        crash::point("observed.after");
        // What was found counts as a daemon's start; a daemon that is going down goes on doing so.
        if let Closing::Waiting(_) = self.closing {
            self.ask_down(id);
        }
        let early = self.sessions.get_mut(&id).and_then(|tracked| tracked.early.take());
        early.into_iter().flatten().for_each(|input| self.take(input));
        if !self.unseen() {
            std::mem::take(&mut self.lookers).into_iter().for_each(|look| look(self));
        }
    }

    /// A run that ended while no daemon looked, by `unlock`, was ended by a person.
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

    /// Takes in what verbs wrote down while no daemon was there.
    pub(crate) fn take_audit(&mut self) {
        let left = match crate::offline_audit::read(&self.home.audit()) {
            Ok(None) => return,
            Ok(Some(left)) => left,
            Err(errno) => return log(format_args!("the audit of verbs cannot be read: {errno}")),
        };
        let mut batch = pinfold_store::Batch::new();
        for told in &left.events {
            let session = self.session_of(told);
            let unlocked = told.event.run.filter(|_| told.event.kind == "unlocked");
            if let (Some(run), Some(tracked)) = (unlocked, session.and_then(|id| self.sessions.get_mut(&id)))
            {
                tracked.unlocked = Some(run);
            }
            batch.event(pinfold_store::AuditEvent { session, ..told.event.clone() });
        }
        // What cannot be recorded now stays where it is, and is taken when it can be.
        if self.store.trouble().holds_up() {
            return;
        }
        batch.fail_if_held_up();
        match self.store.commit(batch).wait_for(STORED) {
            Some(Ok(committed)) => {
                _ = self.last_event.send_replace(committed.seqs.end.saturating_sub(1));
            }
            Some(Err(error)) => return log(format_args!("the audit of verbs was not stored: {error}")),
            None => return log(format_args!("the audit of verbs was not stored in time")),
        }
        if let Err(errno) = left.settle() {
            log(format_args!("the audit of verbs will be told twice: {errno}"));
        }
    }

    /// Whose record it is: a run says it for certain, a name only if no other home has a session of that name.
    fn session_of(&self, told: &crate::offline_audit::Told) -> Option<SessionId> {
        let Some(run) = told.event.run else {
            return told.session.as_ref().and_then(|name| self.names.get(name)).copied();
        };
        let live = self.sessions.values().find(|tracked| tracked.run.is_some_and(|(_, id)| id == run));
        let stored = || self.reader.as_ref()?.run(run).ok().flatten().map(|run| run.session);
        live.map(|tracked| tracked.id).or_else(stored)
    }

    /// Whether this daemon has heard that `unlock` ends this run: what it is about to end it writes down first.
    pub(super) fn is_unlocked(&mut self, id: SessionId, run: pinfold_core::RunNumber) -> bool {
        self.take_audit();
        let tracked = self.sessions.get(&id);
        tracked.is_some_and(|tracked| tracked.unlocked.is_some() && tracked.unlocked == tracked.run_id(run))
    }

    /// The same, also if an earlier daemon has heard it.
    pub(super) fn was_unlocked(&mut self, id: SessionId, run: pinfold_core::RunNumber) -> bool {
        if self.is_unlocked(id, run) {
            return true;
        }
        let name = self.sessions.get(&id).and_then(|tracked| tracked.run_id(run)).map(|run| run.to_string());
        let (Some(name), Some(reader)) = (name, &self.reader) else { return false };
        let query = pinfold_store::EventQuery {
            session: Some(id),
            take: Take::Last(RECENT),
            ..pinfold_store::EventQuery::default()
        };
        let events = reader.events(&query).unwrap_or_default();
        events.iter().any(|event| event.kind == "unlocked" && event.run.as_ref() == Some(&name))
    }

    /// Reads the configuration again; a bad one leaves the old one in force and says so.
    pub(super) fn reload(&mut self) {
        match crate::define::config::load(&self.home.config) {
            Ok(config) => (self.config, self.config_refused) = (config, None),
            Err(error) => {
                let problem = crate::ports::locks::chain(&error);
                let why = format!("the configuration stays as it was: {problem}");
                log(format_args!("{why}"));
                self.config_refused = Some(problem);
                return self.tell_of_config("config_refused", &why);
            }
        }
        self.tell_of_config("config_reloaded", "the configuration was read again");
        let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        ids.into_iter().for_each(|id| self.follow_config(id));
    }

    fn tell_of_config(&self, kind: &str, why: &str) {
        let mut batch = pinfold_store::Batch::new();
        batch.event(self.daemon_event(kind, why));
        self.commit(None, batch);
    }

    /// Tells a session of numbers that are others now; they count from its next run on.
    fn follow_config(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let settings = self.config.settings(&tracked.definition.agent, &tracked.name);
        let spec = tracked.definition.spec(&settings);
        if *tracked.session.next_spec().unwrap_or(tracked.session.spec()) != spec {
            self.happened(id, &Event::SpecChanged(Box::new(spec)), &Facts::default(), None);
        }
    }

    /// Exits that an earlier daemon stored and did not live to acknowledge.
    fn acknowledge_settled(&self, id: SessionId, unsettled: &[pinfold_core::RunNumber]) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let settled = tracked.session.runs().settled;
        let last = unsettled.iter().copied().filter(|run| *run <= settled).max();
        if let (Some(run), Some(shim)) = (last, &tracked.shim) {
            shim.send(&pinfold_shim::Command::Ack { run });
        }
    }
}

/// A session of a version that did not keep its last exit has it in its runs and events.
fn recall_last_exit(id: SessionId, session: &mut Session, reader: &Reader) -> Result<(), ReadError> {
    if session.last_exit().is_some() || session.runs().settled.0 == 0 {
        return Ok(());
    }
    let ended = |run: &Run| run.verdict.is_some() && (run.started_at.is_some() || run.code.is_some());
    let Some(run) = reader.runs(id, Take::Last(RECALLED))?.into_iter().rev().find(ended) else {
        return Ok(());
    };
    let events = reader.events(&EventQuery {
        session: Some(id),
        take: Take::Last(RECALLED),
        ..EventQuery::default()
    })?;
    let name = run.id.map(|id| id.to_string());
    let told = events.iter().rfind(|event| event.kind == "run_exited" && event.run == name);
    if let Some(exit) = last_exit(&run, told) {
        session.recall(exit);
    }
    Ok(())
}

fn last_exit(run: &Run, told: Option<&pinfold_store::Event>) -> Option<LastExit> {
    let said = |field: &str| told.and_then(|event| event.data.get(field));
    let exit = match (run.code, run.signal, said("end").and_then(|end| end.as_str())) {
        (Some(code), _, _) => Exit::Code(code),
        (None, Some(signal), _) => Exit::Signal(signal),
        (None, None, Some("machine_lost")) => Exit::MachineLost,
        (None, None, _) => Exit::ShimLost,
    };
    let verdict = serde_json::from_value(run.verdict.as_deref()?.into()).ok()?;
    let output = said("output").and_then(|lines| serde_json::from_value::<Vec<String>>(lines.clone()).ok());
    Some(LastExit {
        exit,
        verdict,
        // What it was asked is not on record: only a clean end that is not 0 gives it away.
        asked: if verdict == Verdict::Clean && exit != Exit::Code(0) { Asked::ToEnd } else { Asked::Nothing },
        at: run.ended_at?,
        lived: Duration::from_millis(run.lived_ms.unwrap_or(0)),
        last_line: crate::output::last_line::of(&output.unwrap_or_default()),
    })
}
