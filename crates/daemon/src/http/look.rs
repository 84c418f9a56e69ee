//! A person looks at what a session did; a process of a run does not count as one.

use super::HttpContext;
use super::api_error::Answered;
use super::extract::SessionInPath;
use super::sessions::{find, object};
use crate::caller::Pass;
use crate::engine::input::LoopInput;
use pinfold_api::object::Session;
use pinfold_core::Event;
use pinfold_core::event::ConsumerKind;
use pinfold_store::{Facts, SessionId};

pub(crate) async fn look(context: HttpContext, SessionInPath(session): SessionInPath) -> Answered<Session> {
    let id = find(&context, session).await?;
    if is_person(&context.pass) {
        context.handle.ask(id, Event::Looked, Facts::default()).await?;
    }
    object(&context, id).await
}

/// Notes that the caller was given an answer of this session; the caller does not wait until that is stored.
pub(super) fn took_answer(context: &HttpContext, id: SessionId) {
    if is_person(&context.pass) {
        let (event, facts) = (Box::new(Event::Looked), Box::default());
        context.handle.tell(LoopInput::Happened { id, event, facts, reply: None });
    }
}

/// What a caller is that watches a session.
pub(super) fn watcher(pass: &Pass) -> ConsumerKind {
    if is_person(pass) { ConsumerKind::Watch } else { ConsumerKind::Overhear }
}

/// Whether the caller is not inside a run.
fn is_person(pass: &Pass) -> bool {
    pass.by.as_ref().is_none_or(|by| by.shim().is_none())
}
