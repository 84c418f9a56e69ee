//! Every lock that is held now, as `pinfold locks` shows it.

use super::Context;
use super::answer::{Answered, Failure};
use crate::caller::Pass;
use crate::fleet::Fleet;
use crate::objects;
use axum::Json;
use pinfold_api::object::Lock;
use pinfold_api::{ErrorBody, ErrorKind};
use std::collections::BTreeSet;

pub(crate) async fn list(context: Context) -> Answered<Vec<Lock>> {
    let failed = |message: String| Failure::from(ErrorBody::new(ErrorKind::Failed, message));
    // Looks through /proc, which takes milliseconds: the loop does not wait for it.
    let folders = context.folders.clone();
    let seen = tokio::task::spawn_blocking(move || folders.held());
    let seen = seen.await.map_err(|error| failed(error.to_string()))?;
    let seen = seen.map_err(|errno| failed(format!("the locks cannot be looked at: {errno}")))?;
    let pass = context.pass;
    let mut all: Vec<Lock> = seen.iter().map(objects::lock).collect();
    if pass.is_kept() {
        let names = context.handle.look(move |fleet| names(fleet, &pass)).await?;
        all.retain(|lock| match &lock.session {
            Some(session) => names.contains(session),
            None => lock.kind == "key",
        });
    }
    Ok(Json(all))
}

/// The sessions whose locks are shown.
fn names(fleet: &Fleet, pass: &Pass) -> BTreeSet<String> {
    fleet.entries.values().filter(|entry| pass.shows(entry.id)).map(|entry| entry.name.clone()).collect()
}
