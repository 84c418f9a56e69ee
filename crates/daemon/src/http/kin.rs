//! What a run may make of sessions: children of its own, in its own directory, with its own environment.

use super::Context;
use super::answer::Failure;
use crate::define::definition::{Definition, check_environment, names_checked};
use crate::engine::Engine;
use crate::engine::session::Tracked;
use pinfold_api::request::NewSession;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::State;
use pinfold_store::SessionId;
use std::path::PathBuf;

/// Makes a new session the child of the run's that asks for it.
pub(super) async fn as_child(
    context: &Context,
    own: SessionId,
    request: &NewSession,
    mut definition: Definition,
) -> Result<Definition, Failure> {
    let wanted = definition.parent.take();
    let look = move |engine: &mut Engine| {
        let tracked = engine.sessions.get(&own).ok_or_else(super::sessions::gone)?;
        if let Some(other) = wanted.filter(|wanted| engine.find(wanted).ok() != Some(own)) {
            return Err(refused(format!(
                "a session that a run makes is its child, and not one of `{other}`"
            )));
        }
        has_room(engine, tracked)?;
        Ok((tracked.name.clone(), tracked.definition.clone()))
    };
    let (name, parent) = context.handle.look(look).await??;
    (definition.parent, definition.parent_id) = (Some(name), Some(own));
    definition.env = parent.env.for_another();
    definition.env.give(names_checked(request.env.clone().unwrap_or_default())?);
    check_environment(&definition.env)?;
    definition.umask = parent.umask;
    Ok(definition)
}

fn has_room(engine: &Engine, parent: &Tracked) -> Result<(), ErrorBody> {
    let (most, deepest) = engine.child_limits(&parent.definition.agent, &parent.name);
    let children =
        engine.children(parent.id).filter(|child| child.session.state() != State::Archived).count();
    if children >= most as usize {
        return Err(refused(format!(
            "session `{}` has {children} children, and no more are made by it",
            parent.name
        ))
        .hint("archive those that are done; `child_limit` under [policy] in config.toml is the limit"));
    }
    let above = |id: &SessionId| engine.sessions.get(id).and_then(|tracked| tracked.definition.parent_id);
    let depth = std::iter::successors(Some(parent.id), above).take(engine.sessions.len()).count();
    if depth > deepest as usize {
        return Err(refused(format!(
            "session `{}` is {} generations down, and makes no more",
            parent.name,
            depth - 1
        ))
        .hint("`child_depth` under [policy] in config.toml is the limit"));
    }
    Ok(())
}

/// Whether a run may change this of its own session or of a child.
pub(super) fn may_set(own: SessionId, changed: SessionId, request: &NewSession) -> Result<(), ErrorBody> {
    let never = [
        ("command", request.command.is_some() && own == changed),
        ("env", request.env.is_some() && own == changed),
        ("agent", request.agent.is_some() && own == changed),
        ("parent", request.parent.is_some()),
    ];
    match never.into_iter().find(|(_, set)| *set) {
        Some((field, _)) => Err(refused(format!("a run may not set `{field}` here")).hint("a person may")),
        None => Ok(()),
    }
}

/// Whether the directory of a session is one that a run may give it: its own, or one inside.
pub(super) async fn is_inside(
    context: &Context,
    own: SessionId,
    definition: &Definition,
) -> Result<(), Failure> {
    let look =
        move |engine: &mut Engine| engine.sessions.get(&own).map(|tracked| tracked.definition.dir.clone());
    let allowed: PathBuf = context.handle.look(look).await?.ok_or_else(super::sessions::gone)?;
    if definition.dir.starts_with(&allowed) {
        return Ok(());
    }
    let (dir, allowed) = (definition.dir.display(), allowed.display());
    let body = refused(format!("a run works in its own directory, and {dir} is not inside {allowed}"));
    Err(body.hint("`--dir` names one inside of it; a person may name any").into())
}

fn refused(message: String) -> ErrorBody {
    ErrorBody::new(ErrorKind::NotPermitted, message)
}
