//! `apply`: makes sessions match a file. The whole request is checked before anything is changed, and all of it
//! becomes durable in one transaction.

use super::HttpContext;
use super::api_error::{Answered, ApiError};
use super::archive::reason;
use super::declared::{differences, keeps_agent};
use super::extract::JsonBody;
use super::reach::{in_the_way, reach};
use super::sessions::{Creatable, bad_value, changed, creatable, find, object_of, watcher, with_given_kept};
use crate::engine::input::VariablesChange;
use crate::engine::{
    CallerSocket, Declaration, DeclaredChange, DeclaredNew, EngineCommand, EngineView, NotDeclared, Outline,
    PurgeModes, SessionSnapshot, WhyNot,
};
use axum::Json;
use pinfold_api::object::{Applied, ChangedSession, Left, Skipped};
use pinfold_api::request::{Apply, Caller, NewSession, Purge};
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::State;
use pinfold_core::quoted::quoted;
use pinfold_store::SessionId;
use std::collections::BTreeSet;
use tokio::sync::oneshot;

/// A file of 8 MiB, with the caller's variables for each new session.
pub(crate) const LARGEST_BODY: usize = 32 << 20;

/// What is to be done, checked as far as each session goes by itself.
#[derive(Default)]
struct Plan {
    creates: Vec<DeclaredNew>,
    changes: Vec<DeclaredChange>,
    archives: Vec<(SessionId, String)>,
    told: Applied,
}

pub(crate) async fn apply(context: HttpContext, JsonBody(request): JsonBody<Apply>) -> Answered<Applied> {
    let Apply { create, change, prune, dry_run, caller } = request;
    let declared = names(&create, &change)?;
    let mut plan = Plan::default();
    for request in create {
        let name = request.name.clone();
        plan.create(&context, request, &declared).await.map_err(|error| of_session(&name, error))?;
    }
    for request in change {
        let name = request.name.clone();
        plan.change(&context, request, &declared).await.map_err(|error| of_session(&name, error))?;
    }
    if prune {
        plan.prune(&context, caller, declared).await?;
    }
    has_room(&context, plan.creates.len()).await?;
    let outline = plan.outline();
    let allowed = context.handle.view(move |view| view.allows(&outline)).await?;
    allowed.map_err(not_declared)?;
    if dry_run {
        return Ok(Json(plan.told));
    }
    carry_out(&context, plan).await.map(Json)
}

/// The names that the request declares, each once.
fn names(create: &[NewSession], change: &[NewSession]) -> Result<BTreeSet<String>, ApiError> {
    let mut names = BTreeSet::new();
    for request in create.iter().chain(change) {
        if !names.insert(request.name.clone()) {
            return Err(bad_value(format!("session `{}` is declared twice", quoted(&request.name))));
        }
    }
    Ok(names)
}

/// An error about one session of the request, with its name.
fn of_session(name: &str, error: ApiError) -> ApiError {
    let ApiError { mut body, status } = error;
    if !body.message.contains(&format!("session `{name}`")) {
        body.message = format!("session `{name}`: {}", body.message);
    }
    ApiError::with_status(body, status)
}

fn not_declared(no: NotDeclared) -> ApiError {
    let error = ApiError::conflict(no.why);
    match no.name {
        Some(name) => of_session(&name, error),
        None => error,
    }
}

impl Plan {
    async fn create(
        &mut self,
        context: &HttpContext,
        mut request: NewSession,
        declared: &BTreeSet<String>,
    ) -> Result<(), ApiError> {
        // A run names itself as the parent, if any; a person can name a session of the same request.
        let parent = request.parent.take_if(|_| context.pass.own().is_none());
        let Creatable { name, definition, broken } = creatable(context, &request).await?;
        let parent = real_name(context, parent, declared).await?;
        self.told.created.push(name.as_str().to_owned());
        self.creates.push(DeclaredNew { name, definition, broken, parent });
        Ok(())
    }

    async fn change(
        &mut self,
        context: &HttpContext,
        mut request: NewSession,
        declared: &BTreeSet<String>,
    ) -> Result<(), ApiError> {
        let name = request.name.clone();
        let id = find(context, name.clone()).await?;
        if context.handle.session(id, |known| known.name().to_owned()).await? != name {
            return Err(WhyNot::Unknown { wanted: name }.into());
        }
        if !context.pass.touches(id) {
            return Err(refused("a run changes its own session and its children").into());
        }
        keeps_agent(context, id, &request).await?;
        let parent = request.parent.take_if(|_| context.pass.own().is_none());
        let (before, mut after) = changed(context, id, &request).await?;
        let parent = real_name(context, parent, declared).await?;
        let parent = parent.filter(|parent| before.parent.as_ref() != Some(parent));
        after.parent = parent.clone().or(after.parent);
        let differences = differences(&before, &after);
        if differences.is_empty() {
            self.told.unchanged.push(name);
            return Ok(());
        }
        self.told.changed.push(ChangedSession { name: name.clone(), differences });
        let given = match after.env.unkept() {
            Some(_) => VariablesChange::Changed,
            None => VariablesChange::AsBefore,
        };
        self.changes.push(DeclaredChange { id, name, definition: after, given, parent });
        Ok(())
    }

    /// Archives everything else that the caller may touch. Its own session stays: its run would end with it.
    async fn prune(
        &mut self,
        context: &HttpContext,
        caller: Caller,
        declared: BTreeSet<String>,
    ) -> Result<(), ApiError> {
        let socket = caller.socket.clone();
        let read = tokio::task::spawn_blocking(move || socket.map(|socket| CallerSocket::read(&socket)));
        let socket = read.await.map_err(|error| ErrorBody::new(ErrorKind::Failed, error.to_string()))?;
        let purge = Purge { include_active: true, caller, ..Purge::default() };
        let look = move |view: EngineView<'_>| view.to_purge(PurgeModes::All, &purge, socket.as_ref());
        for candidate in context.handle.view(look).await? {
            if declared.contains(&candidate.name) || !context.pass.touches(candidate.id) {
                continue;
            }
            let own = candidate.own || context.pass.own() == Some(candidate.id);
            match candidate.spared.filter(|_| !own) {
                _ if own => self.skip(candidate.name, "it is the session that asks"),
                Some(why) => self.skip(candidate.name, reason(why)),
                None => {
                    self.told.archived.push(candidate.name.clone());
                    self.archives.push((candidate.id, candidate.name));
                }
            }
        }
        Ok(())
    }

    fn skip(&mut self, name: String, why: &str) {
        self.told.skipped.push(Skipped { name, why: why.to_owned() });
    }

    fn outline(&self) -> Outline {
        let creates = self.creates.iter().map(|new| (new.name.as_str().to_owned(), new.parent.clone()));
        let changes = self.changes.iter();
        let changes = changes.map(|change| (change.id, change.name.clone(), change.parent.clone()));
        let archives = self.archives.iter().map(|(id, _)| *id);
        Outline { creates: creates.collect(), changes: changes.collect(), archives: archives.collect() }
    }
}

/// The name of a parent that was given by its name or the beginning of its id.
async fn real_name(
    context: &HttpContext,
    parent: Option<String>,
    declared: &BTreeSet<String>,
) -> Result<Option<String>, ApiError> {
    let Some(parent) = parent else { return Ok(None) };
    if declared.contains(&parent) {
        return Ok(Some(parent));
    }
    let find = move |view: EngineView<'_>| view.find_parent(&parent, None);
    let (_, name) = context.handle.view(find).await??;
    Ok(Some(name))
}

/// Carries out a plan, and returns when each session has come as far as `new`, `set` and `archive` wait for.
async fn carry_out(context: &HttpContext, plan: Plan) -> Result<Applied, ApiError> {
    let Plan { mut creates, mut changes, archives, mut told } = plan;
    for new in &mut creates {
        new.definition = with_given_kept(context, new.definition.clone()).await?;
    }
    for change in &mut changes {
        change.definition = with_given_kept(context, change.definition.clone()).await?;
    }
    let ids: Vec<SessionId> = changes.iter().map(|change| change.id).collect();
    let (reply, receiver) = oneshot::channel();
    let declaration = Declaration {
        creates,
        changes,
        archives: archives.iter().map(|(id, _)| *id).collect(),
        by: context.handle.by(),
        reply,
        folders: Vec::new(),
        not_made: None,
    };
    context.handle.command(EngineCommand::Declare(Box::new(declaration)));
    let created = context.handle.answer(receiver).await?.map_err(not_declared)?;
    for id in created {
        let mut seen = watcher(context, id).await?;
        _ = seen.wait_for(|seen| seen.state != State::Starting).await;
        told.sessions.push(object_of(context, id).await?);
    }
    for id in ids {
        told.sessions.push(object_of(context, id).await?);
    }
    wait_for_archives(context, archives, &mut told).await?;
    Ok(told)
}

/// All runs end at the same time.
async fn wait_for_archives(
    context: &HttpContext,
    archives: Vec<(SessionId, String)>,
    told: &mut Applied,
) -> Result<(), ApiError> {
    let archived = |seen: &SessionSnapshot| seen.state == State::Archived;
    for (id, _) in archives {
        let mut seen = watcher(context, id).await?;
        if reach(context, id, &mut seen, "archived", archived).await.is_err()
            && let Some((name, by)) = in_the_way(context, id).await?
        {
            told.archived.retain(|archived| *archived != name);
            told.left.push(Left { session: name, why: by.to_string(), pids: by.pids() });
        }
    }
    Ok(())
}

/// Whether a run may have so many more children.
async fn has_room(context: &HttpContext, new: usize) -> Result<(), ApiError> {
    let Some(own) = context.pass.own() else { return Ok(()) };
    let read = move |view: EngineView<'_>| {
        let known = view.session(own)?;
        let (most, _) = view.child_limits(&known.definition().agent, known.name());
        let children = view.children(own).filter(|child| child.state() != State::Archived).count();
        (children + new > most as usize).then_some(most)
    };
    match context.handle.view(read).await? {
        None => Ok(()),
        Some(most) => {
            let body =
                refused(&format!("a run has {most} children at most, and the file has {new} new ones"));
            Err(body.hint("`child_limit` under [policy] in config.toml is the limit").into())
        }
    }
}

fn refused(message: &str) -> ErrorBody {
    ErrorBody::new(ErrorKind::NotPermitted, message)
}
