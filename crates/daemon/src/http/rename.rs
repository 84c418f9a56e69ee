//! Renames a session.

use super::HttpContext;
use super::api_error::{Answered, ApiError};
use super::extract::{JsonBody, SessionInPath};
use super::sessions::{bad_value, find, object};
use crate::engine::{EngineCommand, ReplyHandle};
use pinfold_api::Name;
use pinfold_api::object::Session;
use pinfold_api::request::Rename;

pub(crate) async fn rename(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
    JsonBody(rename): JsonBody<Rename>,
) -> Answered<Session> {
    let name: Name =
        rename.name.parse().map_err(|error: pinfold_api::NotAName| bad_value(error.to_string()))?;
    let id = find(&context, session).await?;
    let (reply, receiver) = ReplyHandle::new();
    let (name, by) = (name.as_str().to_owned(), context.handle.by());
    context.handle.command(EngineCommand::Rename { id, name, by, reply });
    context.handle.answer(receiver).await?.map_err(ApiError::conflict)?;
    object(&context, id).await
}
