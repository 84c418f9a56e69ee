//! Definitions of sessions for `export` and `apply`: in the fields of a request, and what a change would
//! alter.

use super::HttpContext;
use super::api_error::{Answered, ApiError};
use super::extract::{JsonBody, SessionInPath};
use super::sessions::{changed, find};
use crate::define::definition::{COMMAND, Definition, StoredSpan};
use crate::define::preset::{INPUTS, TURNS};
use crate::engine::SessionRef;
use crate::show;
use axum::Json;
use pinfold_api::object::{Declared, Difference};
use pinfold_api::request::NewSession;
use pinfold_api::{ErrorBody, ErrorKind, units};
use pinfold_store::SessionId;
use std::sync::Arc;

pub(crate) async fn definition(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
) -> Answered<Declared> {
    let id = find(&context, session).await?;
    let read = |known: SessionRef<'_>| (known.name().to_owned(), Arc::clone(known.latest_definition()));
    let (name, definition) = context.handle.session(id, read).await?;
    Ok(Json(declared(name, &definition)))
}

pub(crate) async fn differs(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
    JsonBody(request): JsonBody<NewSession>,
) -> Answered<Vec<Difference>> {
    let id = find(&context, session).await?;
    keeps_agent(&context, id, &request).await?;
    let (before, after) = changed(&context, id, &request).await?;
    Ok(Json(differences(&before, &after)))
}

/// A file does not change the agent of a session.
pub(super) async fn keeps_agent(
    context: &HttpContext,
    id: SessionId,
    request: &NewSession,
) -> Result<(), ApiError> {
    let Some(agent) = &request.agent else { return Ok(()) };
    let read = |known: SessionRef<'_>| (known.name().to_owned(), known.latest_definition().agent.clone());
    let (name, own) = context.handle.session(id, read).await?;
    if own == *agent {
        return Ok(());
    }
    let message = format!("session `{name}` is of agent `{own}`: it cannot become one of agent `{agent}`");
    let body = ErrorBody::new(ErrorKind::BadConfig, message);
    Err(ApiError::from(body.hint("archive it first, or give the new one another name")))
}

fn declared(name: String, definition: &Definition) -> Declared {
    let own = definition.agent == COMMAND;
    let span = |span: Option<StoredSpan>| span.map(|span| units::duration_text(span.0));
    Declared {
        name,
        agent: definition.agent.clone(),
        vendor_session: definition.vendor_session.clone(),
        dir: definition.dir.display().to_string(),
        mode: show::word::mode(definition.mode),
        memory: definition.memory.map(units::size_text),
        idle: span(definition.idle),
        stop_grace: span(definition.stop_grace),
        budget: definition.budget.map(|budget| units::money_text(budget.0)),
        turn_time: span(definition.turn_time),
        pty: definition.pty,
        input: word(&INPUTS, &definition.input),
        turns: word(&TURNS, &definition.turns),
        contended_if: definition.contended_if.clone(),
        parent: definition.parent.clone(),
        tags: definition.tags.clone(),
        env: definition.env.given().keys().cloned().collect(),
        dir_lock: definition.dir_lock,
        command: if own { definition.command.clone() } else { Vec::new() },
        worktree: definition.worktree.as_deref().cloned(),
    }
}

fn word<T: PartialEq>(words: &[(&'static str, T)], of: &T) -> String {
    words.iter().find(|(_, known)| known == of).map_or_else(String::new, |(word, _)| (*word).to_owned())
}

/// The differences field by field, named as in a request. Of variables only the names are shown, and that a
/// value differs.
pub(super) fn differences(before: &Definition, after: &Definition) -> Vec<Difference> {
    let [old, new] = [before, after].map(|definition| fields(&declared(String::new(), definition)));
    let mut all: Vec<Difference> = old
        .into_iter()
        .zip(new)
        .filter(|((_, from), (_, to))| from != to)
        .map(|((field, from), (_, to))| Difference { field: field.to_owned(), from, to })
        .collect();
    for (name, value) in after.env.given() {
        let from = before.env.given().get(name);
        if from != Some(value) {
            let from = from.map(|_| "a value".to_owned());
            let to = Some(if from.is_some() { "another value" } else { "a value" }.to_owned());
            all.push(Difference { field: format!("env.{name}"), from, to });
        }
    }
    all
}

fn fields(declared: &Declared) -> [(&'static str, Option<String>); 16] {
    let flag = |flag: bool| Some(flag.to_string());
    let list = |list: &[String]| (!list.is_empty()).then(|| format!("{list:?}"));
    [
        ("vendor_session", declared.vendor_session.clone()),
        ("dir", Some(declared.dir.clone())),
        ("mode", Some(declared.mode.word().to_owned())),
        ("memory", declared.memory.clone()),
        ("idle", declared.idle.clone()),
        ("stop_grace", declared.stop_grace.clone()),
        ("budget", declared.budget.clone()),
        ("turn_time", declared.turn_time.clone()),
        ("pty", flag(declared.pty)),
        ("input", Some(declared.input.clone())),
        ("turns", Some(declared.turns.clone())),
        ("contended_if", declared.contended_if.clone()),
        ("parent", declared.parent.clone()),
        ("tags", list(&declared.tags)),
        ("dir_lock", flag(declared.dir_lock)),
        ("command", list(&declared.command)),
    ]
}
