//! What a run may do to sessions: create children of its own, in its own directory, with its own environment.

use super::HttpContext;
use super::api_error::ApiError;
use crate::define::definition::{Definition, check_environment, names_checked};
use crate::engine::{EngineView, SessionRef, WhyNot};
use pinfold_api::request::NewSession;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::State;
use pinfold_store::SessionId;
use std::sync::Arc;

/// Makes a new session the child of the session whose run asks for it.
pub(super) async fn as_child(
    context: &HttpContext,
    own: SessionId,
    request: &NewSession,
    mut definition: Definition,
) -> Result<Definition, ApiError> {
    let wanted = definition.parent.take();
    let read = move |view: EngineView<'_>| {
        let parent = view.session(own).ok_or(WhyNot::Gone)?;
        if let Some(other) = wanted.filter(|wanted| view.find(wanted).ok() != Some(own)) {
            return Err(refused(format!(
                "a session that a run makes is its child, and not one of `{other}`"
            )));
        }
        has_room(view, parent)?;
        Ok((parent.name().to_owned(), Arc::clone(parent.definition())))
    };
    let (name, parent) = context.handle.view(read).await??;
    (definition.parent, definition.parent_id) = (Some(name), Some(own));
    definition.env = parent.env.for_another();
    let given = names_checked(request.env.clone().unwrap_or_default()).map_err(ErrorBody::from)?;
    definition.env.give(given);
    check_environment(&definition.env).map_err(ErrorBody::from)?;
    definition.umask = parent.umask;
    Ok(definition)
}

fn has_room(view: EngineView<'_>, parent: SessionRef<'_>) -> Result<(), ErrorBody> {
    let name = parent.name();
    let (most, deepest) = view.child_limits(&parent.definition().agent, name);
    let children = view.children(parent.id()).filter(|child| child.state() != State::Archived).count();
    if children >= most as usize {
        return Err(refused(format!("session `{name}` has {children} children, and no more are made by it"))
            .hint("archive those that are done; `child_limit` under [policy] in config.toml is the limit"));
    }
    let depth = view.line_of(parent.id()).count();
    if depth > deepest as usize {
        return Err(refused(format!(
            "session `{name}` is {} generations down, and makes no more",
            depth - 1
        ))
        .hint("`child_depth` under [policy] in config.toml is the limit"));
    }
    Ok(())
}

/// Whether a run may change these fields of its own session or of a child.
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

/// Whether a run may give a session this directory: its own, or one inside it.
pub(super) async fn is_inside(
    context: &HttpContext,
    own: SessionId,
    definition: &Definition,
) -> Result<(), ApiError> {
    let allowed = context.handle.session(own, |own| own.definition().dir.clone()).await?;
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

#[cfg(test)]
mod tests;
