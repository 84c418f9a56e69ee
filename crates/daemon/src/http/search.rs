//! Full-text search: the store searches, and here it is decided which results the caller may see.

use super::HttpContext;
use super::api_error::ApiError;
use super::extract::UrlQuery;
use crate::caller::Pass;
use crate::clock::time;
use crate::engine::EngineView;
use axum::Json;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use pinfold_api::object::Hit;
use pinfold_api::query::Search;
use pinfold_api::word::TextKind as Word;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_store::search::{
    self, Index, IndexError, Indexed, NamedSession, SearchQuery, SearchResult, SearchWords, TextKind,
};
use pinfold_store::{ReadError, Reader, SessionId, Store};
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

/// The default number of results: enough for a person.
const USUAL: usize = 20;
/// The limit: more than this is not a search.
const MOST: usize = 1000;
/// Recent text is found too, unless there is much to index first.
const CATCH_UP: Duration = Duration::from_millis(200);

pub(crate) async fn search(
    context: HttpContext,
    UrlQuery(asked): UrlQuery<Search>,
) -> Result<Response, ApiError> {
    let limit = asked.limit.unwrap_or(USUAL);
    if asked.text.trim().is_empty() || limit == 0 || limit > MOST {
        let message = format!("`text` must have a word in it, and `limit` is from 1 to {MOST}");
        return Err(ApiError::bad_value(ErrorBody::new(ErrorKind::Usage, message)));
    }
    let one = match asked.session {
        Some(session) => Some(super::sessions::find(&context, session).await?),
        None => None,
    };
    let pass = context.pass.clone();
    let (store, names) = context.handle.view(move |view| (view.readable(), names(view, &pass, one))).await?;
    // What belongs to no session is for callers that may see everything.
    let within =
        (context.pass.is_kept() || one.is_some()).then(|| names.iter().map(|named| named.id).collect());
    let wanted = SearchQuery { words: SearchWords::new(&asked.text), within, limit };
    let seek = move || found(&context, store, &names, &wanted).map(|found| (found, names));
    let found = tokio::task::spawn_blocking(seek).await;
    let found = found.map_err(|error| ErrorBody::new(ErrorKind::Failed, error.to_string()))?;
    let (SearchResult { hits, indexed, .. }, names) = found.map_err(|error| super::unread(&error))?;
    let names: BTreeMap<SessionId, String> = names.into_iter().map(|named| (named.id, named.name)).collect();
    let hits: Vec<Hit> = hits.into_iter().map(|hit| object(hit, &names)).collect();
    Ok((head(indexed), Json(hits)).into_response())
}

/// Searches the index, or everything if there is none. It has a reader of its own: others do not wait.
fn found(
    context: &HttpContext,
    store: Option<Store>,
    names: &[NamedSession],
    wanted: &SearchQuery,
) -> Result<SearchResult, ReadError> {
    context.indexing.catch_up(CATCH_UP);
    let index = Index::open(&context.indexing.path);
    let damaged = matches!(index, Err(IndexError::Unusable(_)));
    let index = index.ok();
    let seek = |reader: &Reader| search::search(&**reader, index.as_ref(), names, wanted);
    let found = match store.and_then(|store| store.reader().ok()) {
        Some(reader) => seek(&reader),
        None => seek(&context.database.lock().unwrap_or_else(PoisonError::into_inner)),
    };
    if damaged || found.as_ref().is_ok_and(|found| found.damaged) {
        context.indexing.distrust();
    }
    found
}

fn names(view: EngineView<'_>, pass: &Pass, one: Option<SessionId>) -> Vec<NamedSession> {
    view.sessions()
        .filter(|known| pass.shows(known.id()) && one.is_none_or(|one| one == known.id()))
        .map(|known| NamedSession {
            id: known.id(),
            name: known.name().to_owned(),
            created_at: known.created_at(),
        })
        .collect()
}

fn object(hit: search::Hit, names: &BTreeMap<SessionId, String>) -> Hit {
    let kind = match hit.kind {
        TextKind::Name => Word::Name,
        TextKind::Message => Word::Message,
        TextKind::Answer => Word::Answer,
        TextKind::Why => Word::Why,
    };
    let session = hit.session.and_then(|id| names.get(&id).cloned());
    Hit { session, kind, id: hit.id, at: time(hit.at), excerpt: hit.excerpt }
}

fn head(indexed: Indexed) -> HeaderMap {
    let fields = [("indexed", indexed.done), ("total", indexed.total)];
    fields
        .into_iter()
        .filter_map(|(name, count)| Some((name.parse().ok()?, HeaderValue::from(count))))
        .collect()
}
