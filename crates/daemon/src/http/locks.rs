//! Every lock that is held now, as `pinfold locks` shows it.

use super::Context;
use super::answer::{Answered, Failure};
use crate::objects;
use axum::Json;
use axum::extract::State;
use pinfold_api::object::Lock;
use pinfold_api::{ErrorBody, ErrorKind};

pub(crate) async fn list(State(context): State<Context>) -> Answered<Vec<Lock>> {
    let failed = |message: String| Failure::from(ErrorBody::new(ErrorKind::Failed, message));
    // Looks through /proc, which takes milliseconds: the loop does not wait for it.
    let seen = tokio::task::spawn_blocking(move || context.folders.held());
    let seen = seen.await.map_err(|error| failed(error.to_string()))?;
    let seen = seen.map_err(|errno| failed(format!("the locks cannot be looked at: {errno}")))?;
    Ok(Json(seen.iter().map(objects::lock).collect()))
}
