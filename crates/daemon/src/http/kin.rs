//! What a run may do to sessions: create children of its own, in its own directory, with its own environment
//! and within its own limits, and change them and itself.

mod allowed;

use super::HttpContext;
use super::api_error::ApiError;
use crate::define::definition::{Definition, check_environment, names_checked};
use crate::engine::{EngineView, SessionRef, WhyNot};
use allowed::Whose;
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
            let message = format!("a session that a run makes is its child, and not one of `{other}`");
            return Err(refused(message).hint(allowed::way_out("new", &parent.definition().agent)));
        }
        has_room(view, parent)?;
        Ok((parent.name().to_owned(), Arc::clone(parent.latest_definition())))
    };
    let (name, parent) = context.handle.view(read).await??;
    (definition.parent, definition.parent_id) = (Some(name), Some(own));
    definition.env = parent.env.for_another();
    let given = names_checked(request.env.clone().unwrap_or_default()).map_err(ErrorBody::from)?;
    definition.env.give(given);
    check_environment(&definition.env).map_err(ErrorBody::from)?;
    definition.umask = parent.umask;
    inherit_limits(&mut definition, request, &parent);
    allowed::within("new", &definition, None, &parent)?;
    Ok(definition)
}

/// Gives a child the limits of its parent that the request does not name.
fn inherit_limits(child: &mut Definition, request: &NewSession, parent: &Definition) {
    if request.budget.is_none() {
        child.budget = parent.budget;
    }
    if request.turn_time.is_none() {
        child.turn_time = parent.turn_time;
    }
    if request.memory.is_none() {
        child.memory = parent.memory;
    }
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

/// Whether a run may change the options that a request names, in its own session or in a child.
pub(super) async fn may_set(
    context: &HttpContext,
    own: SessionId,
    changed: SessionId,
    request: &NewSession,
) -> Result<(), ApiError> {
    let agent = context.handle.session(own, |own| own.definition().agent.clone()).await?;
    let whose = if own == changed { Whose::Own } else { Whose::Child };
    Ok(allowed::may_set(&agent, whose, request)?)
}

/// Whether a run stays within its limits with this change of its own session or of a child.
pub(super) async fn is_within(
    context: &HttpContext,
    own: SessionId,
    changed: SessionId,
    (before, after): (&Definition, &Definition),
) -> Result<(), ApiError> {
    let parent = context.handle.session(own, |own| Arc::clone(own.latest_definition())).await?;
    if own == changed {
        return Ok(allowed::is_lower(&parent.agent, after, before)?);
    }
    Ok(allowed::within("set", after, Some(before), &parent)?)
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
