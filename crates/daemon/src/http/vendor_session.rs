//! Whether a vendor session that a request names is free.

use super::HttpContext;
use super::api_error::ApiError;
use crate::define::definition::Definition;
use crate::define::others::Others;
use crate::engine::{EngineView, WhyNot};
use crate::ports::locks::Folders;
use crate::show::session::holder_value;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::life::HolderSeen;
use pinfold_core::quoted::quoted;
use pinfold_lock::{Request, Resource};
use std::time::{Duration, Instant};

/// A shim releases the locks of a run that is over within this time, even on a busy machine.
const RELEASES: Duration = Duration::from_secs(5);

/// Refuses a vendor session that another process has; nothing is created for it.
pub(super) async fn is_free(context: &HttpContext, definition: &Definition) -> Result<(), ApiError> {
    let Some(resource) = definition.vendor_lock() else { return Ok(()) };
    let (folders, wanted) = (context.folders.clone(), resource.clone());
    let mut holder = blocking(move || folders.holder_of(&wanted)).await;
    if let Some(name) = holder.as_ref().and_then(|holder| holder.session.clone())
        && run_is_over(context, name).await?
    {
        let (folders, wanted) = (context.folders.clone(), resource.clone());
        holder = blocking(move || await_release(&folders, &wanted)).await;
    }
    if holder.is_none() {
        holder = outsider(context, definition, &resource).await?;
    }
    holder.map_or(Ok(()), |holder| Err(held(definition, &holder)))
}

async fn blocking(look: impl FnOnce() -> Option<HolderSeen> + Send + 'static) -> Option<HolderSeen> {
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

/// Whether this daemon has a session of that name, and none of its runs is live: its shim is leaving.
async fn run_is_over(context: &HttpContext, name: String) -> Result<bool, WhyNot> {
    let over = move |view: EngineView<'_>| {
        let known = view.find(&name).ok().and_then(|id| view.session(id));
        known.is_some_and(|known| known.core().live_run().is_none())
    };
    context.handle.view(over).await
}

/// Waits until a lock is free; returns its holder if that takes too long. Blocks.
fn await_release(folders: &Folders, resource: &Resource) -> Option<HolderSeen> {
    let request = Request { reason: Some("looking whether it is free".to_owned()), ..Request::default() };
    match folders.of(resource).acquire_until(resource, &request, Instant::now() + RELEASES) {
        Ok(_) => None,
        Err(_) => folders.holder_of(resource),
    }
}

/// A program outside of pinfold that has the vendor session.
async fn outsider(
    context: &HttpContext,
    definition: &Definition,
    resource: &Resource,
) -> Result<Option<HolderSeen>, WhyNot> {
    let agent = definition.agent.clone();
    let preset = context.handle.view(move |view| view.preset(&agent)).await?;
    let Some(others) = preset.and_then(|preset| Others::of(definition, &preset)) else { return Ok(None) };
    let resource = resource.to_string();
    Ok(blocking(move || others.look().ok().flatten().map(|found| found.seen(resource))).await)
}

fn held(definition: &Definition, holder: &HolderSeen) -> ApiError {
    let who = holder.pid.map_or_else(|| "another process".to_owned(), |pid| format!("pid {pid}"));
    let of = match (&holder.session, &holder.command) {
        (Some(name), _) => format!(" of session `{name}`"),
        (None, Some(command)) => format!(" ({command})"),
        (None, None) => String::new(),
    };
    let id = definition.vendor_session.as_deref().unwrap_or_default();
    let body = ErrorBody::new(ErrorKind::Busy, format!("vendor session `{id}` is held by {who}{of}"));
    let mut body = match &holder.session {
        Some(name) => body.hint(format!("`pinfold attach {}` joins it", quoted(name))),
        None => body.hint("end that program first: two of them lose turns of the conversation"),
    };
    body.holder = Some(holder_value(holder));
    body.into()
}
