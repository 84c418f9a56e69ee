//! Renames a session.

use super::Context;
use super::answer::{Answered, Failure, Named, Said};
use super::sessions::{bad_value, find, object};
use crate::engine::{Command, Reply};
use pinfold_api::Name;
use pinfold_api::object::Session;
use pinfold_api::request::Rename;

pub(crate) async fn rename(
    context: Context,
    Named(session): Named,
    Said(rename): Said<Rename>,
) -> Answered<Session> {
    let name: Name =
        rename.name.parse().map_err(|error: pinfold_api::NotAName| bad_value(error.to_string()))?;
    let id = find(&context, session).await?;
    let (reply, receiver) = Reply::new();
    let (name, by) = (name.as_str().to_owned(), context.handle.by());
    context.handle.command(Command::Rename { id, name, by, reply });
    context.handle.answer(receiver).await?.map_err(Failure::conflict)?;
    object(&context, id).await
}
