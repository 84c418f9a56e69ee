//! New sessions and changed ones.

use super::Engine;
use crate::crash;
use crate::define::preset::Preset;
use crate::engine::input::{Create, Define, Given, Reply};
use crate::engine::session::{Pending, Snapshot, Tracked};
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::event::{Ask, StartFailure};
use pinfold_core::life::CannotStart;
use pinfold_core::quoted::quoted;
use pinfold_core::{Change, Event, RunEvent, Session};
use pinfold_store::{Batch, DamagedSession, Decided, Facts, NewSession, SessionId};
use tokio::sync::oneshot;

impl Engine {
    pub(super) fn create(&mut self, create: Create) {
        let name = create.name.as_str().to_owned();
        let free = self.is_free(&name).and_then(|()| self.has_place());
        if let Err(error) = free.and_then(|()| self.make_folder_of_next()) {
            self.forget_given(&create.definition);
            _ = create.reply.send(Err(error));
            return;
        }
        let id = SessionId(self.new_id());
        if let Err(error) = make_private(&self.home.session(id)) {
            self.forget_given(&create.definition);
            _ = create.reply.send(Err(no_folder("the folder of the session could not be made", &error)));
            return;
        }
        crash::point("create.folder");
        self.store_new(id, name, create);
    }

    /// Whether a new session may have this name.
    pub(crate) fn is_free(&self, name: &str) -> Result<(), ErrorBody> {
        self.whole(name)?;
        if !self.names.contains_key(name) {
            return Ok(());
        }
        let exists = ErrorBody::new(ErrorKind::Exists, format!("session `{name}` exists already"));
        Err(exists.hint(format!(
            "`pinfold show {0}` tells about it; `pinfold archive {0}` frees the name",
            quoted(name)
        )))
    }

    /// Whether there may be one more session.
    fn has_place(&self) -> Result<(), ErrorBody> {
        let most = self.config.settings("", "").session_limit as usize;
        let there = self.sessions.len();
        if most == 0 || there < most {
            return Ok(());
        }
        let message =
            format!("there are {there} sessions already, archived ones included, and may be no more");
        let hint =
            "`pinfold rm` removes archived ones; `session_limit` in config.toml is how many there may be";
        Err(ErrorBody::new(ErrorKind::Busy, message).hint(hint))
    }

    fn make_folder_of_next(&self) -> Result<(), ErrorBody> {
        make_private(&self.home.state.join("sessions"))
            .map_err(|error| no_folder("the home cannot be written", &error))
    }

    fn store_new(&mut self, id: SessionId, name: String, create: Create) {
        let now = self.clock.now();
        let definition = create.definition;
        let settings = self.config.settings(&definition.agent, &name);
        let mut session = Session::new(definition.spec(&settings));
        // A forced session that cannot run is not tried: it waits for a person.
        let broken = create.broken;
        let decision = session.handle(&Event::Created, now);
        let mut batch = Batch::new();
        let stored = serde_json::to_value(&definition).unwrap_or_default();
        // Its parent may have been removed since it was looked for.
        let parent = definition.parent_id.filter(|parent| self.sessions.contains_key(parent));
        let new = NewSession { id, name: name.clone(), definition: stored, parent, created_at: now.wall };
        batch.create(new, &session);
        let mut tracked = Tracked::new(id, name.clone(), definition, session, now.wall);
        self.timer.set(id, tracked.session.next_deadline().map(|deadline| deadline.at));
        if tracked.session.runs().last.0 > 0 {
            tracked.run = Some((tracked.session.runs().last, pinfold_store::RunId(self.new_id())));
        }
        let by = create.by.as_ref().map(|by| by.words());
        let mut facts = Facts { run: tracked.session.live_run(), by, ..Facts::default() };
        facts.run_ids.extend(tracked.run);
        batch.decided(Decided { id, session: &tracked.session, decision: &decision, at: now.wall }, &facts);
        let (sender, receiver) = Reply::new();
        let actions = if broken.is_some() { Vec::new() } else { decision.actions };
        let pending = Pending {
            durable: false,
            actions,
            answer: None,
            reply: Some(sender),
            settles: None,
            snapshot: Snapshot::of(&tracked.session),
            settled: Vec::new(),
        };
        tracked.pending.push_back(pending);
        if broken.is_none() {
            // Nothing but this batch knows of it: what cannot be recorded is refused, and not there.
            tracked.unborn = true;
            batch.fail_if_held_up();
        }
        self.sessions.insert(id, Box::new(tracked));
        self.names.insert(name, id);
        self.commit(Some(id), batch);
        let handle = self.handle.clone();
        tokio::spawn(async move {
            let done = handle.answer(receiver).await.and_then(|done| done).map(|_| id);
            _ = create.reply.send(done);
        });
        if let Some(cause) = broken {
            self.fail_at_once(id, cause);
        }
    }

    /// A session that was forced although it cannot run: one attempt that came to nothing.
    fn fail_at_once(&mut self, id: SessionId, cause: CannotStart) {
        let live = self.sessions.get(&id).and_then(|tracked| tracked.session.live_run());
        if live.is_none() {
            self.happened(id, &Event::Asked(Ask::Start), &Facts::default(), None);
            if let Some(tracked) = self.sessions.get_mut(&id)
                && let Some(last) = tracked.pending.back_mut()
            {
                last.actions.clear();
            }
        }
        let Some(run) = self.sessions.get(&id).and_then(|tracked| tracked.session.live_run()) else { return };
        self.of_run(id, run, RunEvent::StartFailed(StartFailure::Hopeless(cause)));
    }

    pub(super) fn define(&mut self, id: SessionId, define: Define, reply: oneshot::Sender<()>) {
        let now = self.clock.now();
        let Define { mut definition, given, by } = define;
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let before = tracked.definition.env.file();
        if given == Given::AsBefore {
            definition.env.clone_from(&tracked.definition.env);
        }
        let outdated = before.filter(|file| definition.env.file() != Some(*file));
        let settings = self.config.settings(&definition.agent, &tracked.name);
        let event = Event::SpecChanged(Box::new(definition.spec(&settings)));
        tracked.definition = definition;
        let decision = tracked.session.handle(&event, now);
        let mut batch = Batch::new();
        if std::mem::take(&mut tracked.reloaded) {
            batch.reloaded(id);
        }
        batch.define(id, &serde_json::to_value(&tracked.definition).unwrap_or_default());
        let durable = decision.changes.iter().any(Change::is_durable);
        if durable {
            batch.decided(
                Decided { id, session: &tracked.session, decision: &decision, at: now.wall },
                &Facts { by: by.map(|by| by.words()), ..Facts::default() },
            );
        }
        let (sender, receiver) = Reply::new();
        let pending = Pending {
            durable: false,
            actions: decision.actions,
            answer: None,
            reply: Some(sender),
            settles: None,
            snapshot: Snapshot::of(&tracked.session),
            settled: Vec::new(),
        };
        tracked.pending.push_back(pending);
        self.timer.set(id, tracked.session.next_deadline().map(|deadline| deadline.at));
        self.commit(Some(id), batch);
        let values = self.values.clone();
        tokio::spawn(async move {
            if !matches!(receiver.await, Ok(Ok(_))) {
                return;
            }
            if let Some(file) = outdated {
                crash::point("given.outdated");
                _ = tokio::task::spawn_blocking(move || values.remove(file)).await;
            }
            _ = reply.send(());
        });
    }

    /// What an agent's name stands for.
    pub(crate) fn preset(&self, agent: &str) -> Option<Preset> {
        self.config.preset(agent)
    }

    /// Whether no damaged session has this name.
    fn whole(&self, name: &str) -> Result<(), ErrorBody> {
        let is_meant = |damaged: &&DamagedSession| damaged.name == name || damaged.id == name;
        let Some(damaged) = self.damaged.values().find(is_meant) else { return Ok(()) };
        let DamagedSession { id, problem, .. } = damaged;
        let message = format!("the record of session `{name}` ({id}) is damaged: {problem}");
        Err(ErrorBody::new(ErrorKind::Damaged, message).hint(self.damage_hint()))
    }

    fn damage_hint(&self) -> String {
        format!(
            "nothing was changed; `pinfold restore-backup FILE` puts a backup back; its files are in {}",
            self.home.state.display()
        )
    }

    /// Nobody of this name; where records are damaged it may be one of them: their names are no more certain.
    fn nobody(&self, wanted: &str) -> ErrorBody {
        if self.damaged.is_empty() {
            return ErrorBody::new(ErrorKind::NotFound, format!("there is no session `{wanted}`"))
                .hint("`pinfold ls --all` lists them");
        }
        let ids: Vec<&str> = self.damaged.keys().map(String::as_str).collect();
        let message = format!("no session `{wanted}` can be read, and damaged are: {}", ids.join(", "));
        ErrorBody::new(ErrorKind::Damaged, message).hint(self.damage_hint())
    }

    /// Finds the parent of a session, which must not be below it.
    pub(crate) fn find_parent(
        &self,
        wanted: &str,
        own: Option<SessionId>,
    ) -> Result<(SessionId, String), ErrorBody> {
        let parent = self.find(wanted).map_err(|error| ErrorBody {
            message: format!("its parent was not found: {}", error.message),
            ..error
        })?;
        let above = |id: &SessionId| self.sessions.get(id).and_then(|tracked| tracked.definition.parent_id);
        // No chain is longer than there are sessions, whatever an old record says.
        let mut line = std::iter::successors(Some(parent), above).take(self.sessions.len());
        if line.any(|id| Some(id) == own) {
            let text = format!("`{wanted}` is the session itself, or below it");
            return Err(ErrorBody::new(ErrorKind::BadConfig, text));
        }
        let name = self.sessions.get(&parent).map(|tracked| tracked.name.clone()).unwrap_or_default();
        Ok((parent, name))
    }

    /// Finds a session by its name or a unique prefix of its id; names of archived ones count last.
    pub(crate) fn find(&self, wanted: &str) -> Result<SessionId, ErrorBody> {
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
            [..] => {
                Err(ErrorBody::new(ErrorKind::Usage, format!("`{wanted}` is the beginning of several ids"))
                    .hint("`pinfold ls --all` lists them"))
            }
        }
    }
}

pub(crate) fn gone() -> ErrorBody {
    ErrorBody::new(ErrorKind::NotFound, "the session has been removed")
}

fn no_folder(what: &str, error: &std::io::Error) -> ErrorBody {
    let full = error.kind() == std::io::ErrorKind::StorageFull;
    match full {
        true => ErrorBody::new(ErrorKind::Failed, format!("the disk is full: {what}: {error}"))
            .hint("make room (`df`), or remove files where it has no inode left (`df -i`)"),
        false => ErrorBody::new(ErrorKind::Failed, format!("{what}: {error}")),
    }
}

fn make_private(folder: &std::path::Path) -> std::io::Result<()> {
    use pinfold_lock::private::{self, Wider};
    Ok(private::make_private(folder, Wider::Tighten)?)
}
