//! Every lock that is held now, as `pinfold locks` shows it.

use super::HttpContext;
use super::api_error::ApiError;
use super::extract::UrlQuery;
use super::paging::ListHeaders;
use crate::caller::Pass;
use crate::engine::EngineView;
use crate::objects;
use axum::Json;
use axum::response::{IntoResponse, Response};
use pinfold_api::object::Lock;
use pinfold_api::query::Locks as Which;
use pinfold_api::word::LockKind;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_store::RowCount;
use std::collections::BTreeSet;

pub(crate) async fn list(
    context: HttpContext,
    UrlQuery(which): UrlQuery<Which>,
) -> Result<Response, ApiError> {
    let failed = |message: String| ApiError::from(ErrorBody::new(ErrorKind::Failed, message));
    // Searches /proc, which takes milliseconds: the loop does not wait for it.
    let folders = context.folders.clone();
    let seen = tokio::task::spawn_blocking(move || folders.held());
    let seen = seen.await.map_err(|error| failed(error.to_string()))?;
    let seen = seen.map_err(|errno| failed(format!("the locks cannot be looked at: {errno}")))?;
    let pass = context.pass;
    let mut all: Vec<Lock> = seen.iter().map(objects::lock).collect();
    if pass.is_kept() {
        let names = context.handle.view(move |view| names(view, &pass)).await?;
        all.retain(|lock| match &lock.session {
            Some(session) => names.contains(session),
            None => lock.kind == LockKind::Key,
        });
    }
    let (head, page) = page(&which, all);
    Ok((head.fields(), Json(page)).into_response())
}

/// The sessions whose locks are shown.
fn names(view: EngineView<'_>, pass: &Pass) -> BTreeSet<String> {
    view.sessions().filter(|known| pass.shows(known.id())).map(|known| known.name().to_owned()).collect()
}

fn page(which: &Which, mut all: Vec<Lock>) -> (ListHeaders, Vec<Lock>) {
    if which.limit.is_none() && which.after.is_none() {
        return (ListHeaders::default(), all);
    }
    all.sort_by(|one, other| one.resource.cmp(&other.resource));
    let total = Some(RowCount::Exactly(all.len() as u64));
    all.retain(|lock| which.after.as_ref().is_none_or(|after| lock.resource > *after));
    let limit = which.limit.unwrap_or(all.len()).max(1);
    // A resource with several holders is not split between pages.
    let last = all.get(limit - 1).map(|lock| lock.resource.clone());
    let rest = last.as_ref().and_then(|last| all.iter().position(|lock| lock.resource > *last));
    all.truncate(rest.unwrap_or(all.len()));
    let next = last.filter(|_| rest.is_some()).map(|last| encoded(&last));
    (ListHeaders { total, next, ..ListHeaders::default() }, all)
}

/// A resource, encoded for an address.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(resource: &str) -> Lock {
        serde_json::from_value(serde_json::json!({
            "resource": resource, "kind": "key", "fence": 1, "since": null, "reason": null, "session": null,
            "run": null, "others": [], "removed": false,
            "holder": { "host": "h", "command": "c", "verdict": "alive" },
        }))
        .unwrap()
    }

    #[test]
    fn pages_are_in_order_and_a_resource_is_whole() {
        let all = || ["key:c", "/a", "/a", "key:b d"].map(lock).to_vec();
        let page = |limit, after: Option<&str>| {
            let which = Which { limit: Some(limit), after: after.map(str::to_owned) };
            let (head, page) = super::page(&which, all());
            (page.into_iter().map(|lock| lock.resource).collect::<Vec<_>>(), head.next)
        };
        assert_eq!(page(1, None), (vec!["/a".into(), "/a".into()], Some("/a".into())));
        assert_eq!(page(1, Some("/a")), (vec!["key:b d".into()], Some("key:b%20d".into())));
        assert_eq!(page(5, Some("key:b d")), (vec!["key:c".into()], None));
    }
}
