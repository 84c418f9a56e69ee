//! Waits until a state is reached or something is in the way: no verb waits for a shim that does not run.

use super::HttpContext;
use super::api_error::ApiError;
use crate::engine::{EngineView, SessionSnapshot};
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::quoted::quoted;
use pinfold_core::unended::Unended;
use pinfold_store::SessionId;
use std::time::Duration;
use tokio::sync::watch;

/// How long something that was already in the way gets: it may have gone a moment ago. A shim that was
/// suspended when its daemon came is found running again within this time.
const MOMENT: Duration = Duration::from_secs(2);

/// The session prevents it; the daemon did not fail.
const CONFLICT: u16 = 409;

/// Waits a moment for a condition.
pub(crate) async fn a_moment(
    seen: &mut watch::Receiver<SessionSnapshot>,
    so: impl Fn(&SessionSnapshot) -> bool,
) {
    _ = tokio::time::timeout(MOMENT, seen.wait_for(|seen| so(seen))).await;
}

/// Returns when the condition holds. `done` names it for the error.
pub(crate) async fn reach(
    context: &HttpContext,
    id: SessionId,
    seen: &mut watch::Receiver<SessionSnapshot>,
    done: &str,
    reached: impl Fn(&SessionSnapshot) -> bool,
) -> Result<(), ApiError> {
    if seen.borrow().unended {
        a_moment(seen, &reached).await;
    }
    while let Ok(now) = seen.wait_for(|seen| reached(seen) || seen.unended).await.map(|now| *now) {
        if reached(&now) {
            return Ok(());
        }
        if let Some((name, by)) = in_the_way(context, id).await? {
            return Err(not_done(&name, done, &by));
        }
    }
    // It has been removed: the next look at it says so.
    Ok(())
}

/// What is in the way of the end of a session's run.
pub(crate) async fn in_the_way(
    context: &HttpContext,
    id: SessionId,
) -> Result<Option<(String, Unended)>, ApiError> {
    let read = move |view: EngineView<'_>| {
        let known = view.session(id)?;
        Some((known.name().to_owned(), known.core().unended()?.clone()))
    };
    Ok(context.handle.view(read).await?)
}

/// The error: what was not done, what is in the way, and what helps.
pub(crate) fn not_done(name: &str, done: &str, by: &Unended) -> ApiError {
    let body = ErrorBody::new(ErrorKind::Failed, format!("session `{name}` was not {done}: {by}"))
        .hint(by.advice(&format!("pinfold unlock {} --kill", quoted(&format!("session:{name}")))));
    ApiError::with_status(body, CONFLICT)
}
