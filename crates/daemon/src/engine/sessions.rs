//! New sessions and changed ones.

use super::{Engine, WhyNot};
use crate::crash;
use crate::engine::input::{Create, Define, DefineOutcome, LoopInput, VariablesChange};
use crate::engine::reply::ReplyHandle;
use crate::engine::session::{Pending, Tracked};
use crate::ports::files::NotMade;
use pinfold_core::event::{Ask, StartFailure};
use pinfold_core::life::CannotStart;
use pinfold_core::{Change, Event, RunEvent, Session};
use pinfold_store::{Batch, DamagedSession, Decided, Facts, NewSession, SessionId};
use std::sync::Arc;
use tokio::sync::oneshot;

impl Engine {
    pub(super) fn create(&mut self, create: Create) {
        let name = create.name.as_str().to_owned();
        if let Err(why) = self.is_free(&name).and_then(|()| self.has_place_for(1)) {
            return self.not_created(create, why);
        }
        let id = SessionId(self.new_id());
        let (handle, create) = (self.handle.clone(), Box::new(create));
        let told = move |made| handle.tell(LoopInput::FolderMade { id, create, made });
        self.ports.files.make_session(self.home.session(id), Box::new(told));
    }

    /// The folder of a new session exists; another client may have taken its name meanwhile.
    pub(super) fn folder_made(&mut self, id: SessionId, create: Create, made: Result<(), NotMade>) {
        if let Err(error) = made {
            return self.not_created(create, no_folder(&error));
        }
        crash::point("create.folder");
        let name = create.name.as_str().to_owned();
        match self.is_free(&name).and_then(|()| self.has_place_for(1)) {
            Ok(()) => self.store_new(id, name, create),
            Err(why) => {
                self.ports.files.remove_empty(self.home.session(id));
                self.not_created(create, why);
            }
        }
    }

    fn not_created(&self, create: Create, why: WhyNot) {
        self.forget_given(&create.definition);
        _ = create.reply.send(Err(why));
    }

    /// Whether a new session may have this name.
    pub(super) fn is_free(&self, name: &str) -> Result<(), WhyNot> {
        self.whole(name)?;
        if !self.names.contains_key(name) {
            return Ok(());
        }
        Err(WhyNot::Exists { name: name.to_owned() })
    }

    /// Whether there may be so many more sessions.
    pub(super) fn has_place_for(&self, new: usize) -> Result<(), WhyNot> {
        let most = self.config.settings("", "").session_limit as usize;
        let there = self.sessions.len();
        if most == 0 || there + new <= most {
            return Ok(());
        }
        Err(WhyNot::TooMany { there })
    }

    pub(super) fn store_new(&mut self, id: SessionId, name: String, create: Create) {
        let now = self.ports.clock.now();
        let definition = create.definition;
        let settings = self.config.settings(&definition.agent, &name);
        let mut session = Session::new(definition.spec(&settings));
        // A session created by force that cannot run is not tried: it waits for a person.
        let broken = create.broken;
        let decision = session.handle(&Event::Created, now);
        let mut batch = Batch::new();
        let stored = serde_json::to_value(&definition).unwrap_or_default();
        // Its parent may have been removed since it was looked up.
        let parent = definition.parent_id.filter(|parent| self.sessions.contains_key(parent));
        let new = NewSession { id, name: name.clone(), definition: stored, parent, created_at: now.wall };
        batch.create(new, &session);
        let mut tracked = Tracked::new(id, name.clone(), definition, session, now.wall);
        self.wake_at(id, tracked.session.next_deadline().map(|deadline| deadline.at));
        if tracked.session.runs().last.0 > 0 {
            tracked.latest = Some((tracked.session.runs().last, pinfold_store::RunId(self.new_id())));
        }
        tracked.follow_run();
        let by = create.by.as_ref().map(|by| by.words());
        let mut facts = Facts { run: tracked.session.live_run(), by, ..Facts::default() };
        facts.run_ids.extend(tracked.latest);
        batch.decided(Decided { id, session: &tracked.session, decision: &decision, at: now.wall }, &facts);
        let reply = create.reply;
        let created = ReplyHandle::then(move |done| _ = reply.send(done.map(|_| id)));
        let actions = if broken.is_some() { Vec::new() } else { decision.actions };
        tracked.pending.push_back(Pending::recorded(tracked.snapshot(), actions, created));
        if broken.is_none() {
            // Only this batch knows of it: if it cannot be recorded, it is refused and does not exist.
            tracked.unborn = true;
            batch.fail_if_held_up();
        }
        let run = tracked.session.runs().last;
        self.sessions.insert(id, Box::new(tracked));
        self.know_account_first(id);
        self.begin_fold(id, run);
        let noted = self.note_cursor(id, &mut batch);
        if let Some(first) = self.sessions.get_mut(&id).and_then(|tracked| tracked.pending.back_mut()) {
            first.noted = noted;
        }
        self.names.insert(name, id);
        self.commit(Some(id), batch);
        if let Some(cause) = broken {
            self.fail_at_once(id, cause);
        }
    }

    /// Fails a session that was created by force although it cannot run: as after one attempt that failed.
    fn fail_at_once(&mut self, id: SessionId, cause: CannotStart) {
        let live = self.sessions.get(&id).and_then(|tracked| tracked.session.live_run());
        if live.is_none() {
            self.happened(id, &Event::Asked(Ask::Start), &Facts::default(), None);
            if let Some(tracked) = self.sessions.get_mut(&id)
                && let Some(last) = tracked.pending.back_mut()
            {
                last.deeds.actions.clear();
            }
        }
        let Some(run) = self.sessions.get(&id).and_then(|tracked| tracked.session.live_run()) else { return };
        self.of_run(id, run, RunEvent::StartFailed(StartFailure::Hopeless(cause)));
    }

    pub(super) fn define(&mut self, id: SessionId, define: Define, reply: oneshot::Sender<DefineOutcome>) {
        let now = self.ports.clock.now();
        if self.is_overtaken(id, &define) {
            _ = reply.send(DefineOutcome::Overtaken);
            return;
        }
        let Define { base: _, mut definition, given, by } = define;
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        if given == VariablesChange::AsBefore {
            definition.env.clone_from(&tracked.latest_definition().env);
        }
        let settings = self.config.settings(&definition.agent, &tracked.name);
        let event = Event::SpecChanged(Box::new(definition.spec(&settings)));
        let outdated = tracked.redefine(definition);
        self.know_account_first(id);
        let Some(decision) = self.decide(id, &event, now) else { return };
        // A session that is to run from now on starts here.
        self.follow_run(id);
        self.note_new_run(id, &decision);
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let mut batch = Batch::new();
        if std::mem::take(&mut tracked.reloaded) {
            batch.reloaded(id);
        }
        batch.define(id, &tracked.stored_definition());
        let durable = decision.changes.iter().any(Change::is_durable);
        if durable {
            batch.decided(
                Decided { id, session: &tracked.session, decision: &decision, at: now.wall },
                &Facts {
                    by: by.map(|by| by.words()),
                    run_ids: tracked.latest.into_iter().collect(),
                    ..Facts::default()
                },
            );
        }
        let (values, files) = (self.values.clone(), Arc::clone(&self.ports.files));
        let defined = ReplyHandle::then(move |done| match (done, outdated) {
            (Ok(_), Some(file)) => {
                // No record names it any more.
                crash::point("given.outdated");
                files.remove_values(values, file, Box::new(move |()| _ = reply.send(DefineOutcome::Done)));
            }
            (Ok(_), None) => _ = reply.send(DefineOutcome::Done),
            (Err(_), _) => {}
        });
        tracked.pending.push_back(Pending::recorded(tracked.snapshot(), decision.actions, defined));
        let due = tracked.session.next_deadline().map(|deadline| deadline.at);
        self.wake_at(id, due);
        self.commit(Some(id), batch);
    }

    /// Whether another change came first; the values of variables that were written for this one are deleted.
    fn is_overtaken(&self, id: SessionId, define: &Define) -> bool {
        let latest = self.sessions.get(&id).map(|tracked| tracked.latest_definition());
        let (Some(base), Some(latest)) = (&define.base, latest) else { return false };
        let overtaken = !Arc::ptr_eq(base, latest);
        if overtaken && define.given == VariablesChange::Changed {
            self.forget_given(&define.definition);
        }
        overtaken
    }

    /// Whether no damaged session has this name.
    fn whole(&self, name: &str) -> Result<(), WhyNot> {
        let is_meant = |damaged: &&DamagedSession| damaged.name == name || damaged.id == name;
        let Some(damaged) = self.damaged.values().find(is_meant) else { return Ok(()) };
        Err(WhyNot::Damaged {
            name: name.to_owned(),
            id: damaged.id.clone(),
            problem: damaged.problem.clone(),
            state: self.home.state.clone(),
        })
    }

    /// The error for an unknown name; if records are damaged it may be one of those, since their names are
    /// uncertain.
    fn nobody(&self, wanted: &str) -> WhyNot {
        let wanted = wanted.to_owned();
        if self.damaged.is_empty() {
            return WhyNot::Unknown { wanted };
        }
        let damaged = self.damaged.keys().cloned().collect();
        WhyNot::PerhapsDamaged { wanted, damaged, state: self.home.state.clone() }
    }

    /// Finds the parent of a session, which must not be one of its descendants.
    pub(super) fn find_parent(
        &self,
        wanted: &str,
        own: Option<SessionId>,
    ) -> Result<(SessionId, String), WhyNot> {
        let parent = self.find(wanted).map_err(|why| WhyNot::NoParent(Box::new(why)))?;
        if self.line_of(parent).any(|id| Some(id) == own) {
            return Err(WhyNot::ParentBelow { wanted: wanted.to_owned() });
        }
        let name = self.sessions.get(&parent).map(|tracked| tracked.name.clone()).unwrap_or_default();
        Ok((parent, name))
    }

    /// The session and its ancestors. Bounded by the number of sessions, whatever an old record says.
    pub(super) fn line_of(&self, id: SessionId) -> impl Iterator<Item = SessionId> {
        let above = |id: &SessionId| self.sessions.get(id).and_then(|tracked| tracked.definition.parent_id);
        std::iter::successors(Some(id), above).take(self.sessions.len())
    }

    /// Finds a session by its name or a unique prefix of its id; names of archived ones count last.
    pub(super) fn find(&self, wanted: &str) -> Result<SessionId, WhyNot> {
        if let Some(id) = self.names.get(wanted) {
            return Ok(*id);
        }
        self.whole(wanted)?;
        let by_prefix = |id: &&SessionId| id.to_string().starts_with(&wanted.to_ascii_uppercase());
        let mut found: Vec<SessionId> = Vec::new();
        if !wanted.is_empty() {
            found.extend(self.sessions.keys().filter(by_prefix));
        }
        if found.is_empty() {
            found.extend(
                self.sessions
                    .values()
                    .filter(|tracked| tracked.name == wanted)
                    .map(|tracked| tracked.id)
                    .next_back(),
            );
        }
        match found[..] {
            [id] => Ok(id),
            [] => Err(self.nobody(wanted)),
            [..] => Err(WhyNot::Ambiguous { wanted: wanted.to_owned() }),
        }
    }
}

pub(super) fn no_folder(NotMade { what, error }: &NotMade) -> WhyNot {
    let full = error.kind() == std::io::ErrorKind::StorageFull;
    WhyNot::NoFolder { what, full, problem: error.to_string() }
}
