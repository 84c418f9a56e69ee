//! Where the terminal of a session can be watched: for clients that show many sessions and are consumers of
//! none.
//!
//! The screen itself is the shim's, which paints its mirror for every client that joins to watch.

use super::HttpContext;
use super::api_error::{Answered, ApiError};
use super::attach::not_attached;
use super::consumer::Consumer;
use super::extract::SessionInPath;
use crate::engine::{AttachStanding, AttachedTo, EngineCommand, Standings, WhyNot};
use axum::Json;
use pinfold_api::object::Terminal;
use pinfold_api::{ErrorBody, ErrorKind};
use std::time::Duration;
use tokio::time::timeout;

/// A live shim has its socket within this time, or makes it.
const FOUND_WITHIN: Duration = Duration::from_secs(5);

pub(crate) async fn screen(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
) -> Answered<Terminal> {
    let id = super::sessions::find(&context, session).await?;
    let name = context.handle.session(id, |known| known.name().to_owned()).await?;
    let order = |reply| EngineCommand::Look { id, consumer: Consumer::next(), reply };
    let attached =
        context.handle.order(order).await?.map_err(|why| ApiError::conflict(not_attached(&why)))?;
    let AttachedTo::Terminal(standings) = attached else {
        let body = ErrorBody::new(ErrorKind::Failed, format!("`{name}` has no terminal now"));
        return Err(ApiError::conflict(body.hint("sessions made with `--pty` have one while they run")));
    };
    let late = || ErrorBody::new(ErrorKind::Busy, format!("the terminal of `{name}` is not found yet"));
    let found = timeout(FOUND_WITHIN, ready(standings)).await;
    found.map_err(|_| ApiError::conflict(late()))?.map(Json)
}

/// Waits until its socket is known.
async fn ready(mut standings: Standings) -> Result<Terminal, ApiError> {
    loop {
        match standings.borrow_and_update().clone() {
            Some(AttachStanding::Ready { socket, run, .. }) => {
                return Ok(Terminal { socket: socket.display().to_string(), run: run.0 });
            }
            Some(AttachStanding::Over(why)) => return Err(ApiError::conflict(not_attached(&why))),
            Some(AttachStanding::Waits(_) | AttachStanding::NoSocket(_)) | None => {}
        }
        standings.changed().await.map_err(|_| WhyNot::Gone)?;
    }
}
