//! The list of sessions, read in parts.

use super::HttpContext;
use super::api_error::ApiError;
use super::extract::UrlQuery;
use super::feed::revision;
use super::paging::ListHeaders;
use super::sessions::{bad_value, known_states};
use crate::caller::Pass;
use crate::clock::NowSource;
use crate::engine::{EngineView, SessionView, WhyNot};
use crate::show::list::{self, ListPart, ListShape, Writing};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use pinfold_api::query::Sessions as Filter;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::Now;
use pinfold_store::{RowCount, SessionId};
use std::sync::Arc;

/// This few sessions are serialized before a thread would have started.
const AT_ONCE: usize = 16;

pub(crate) async fn list(
    context: HttpContext,
    UrlQuery(filter): UrlQuery<Filter>,
) -> Result<Response, ApiError> {
    let shape = if filter.brief { ListShape::Brief } else { ListShape::Whole };
    listed(&context, filter, Listing::Sessions(shape)).await
}

/// The rows of a table.
pub(crate) async fn table(
    context: HttpContext,
    UrlQuery(filter): UrlQuery<Filter>,
) -> Result<Response, ApiError> {
    listed(&context, filter, Listing::Rows).await
}

/// The items of a list.
#[derive(Debug, Clone, Copy)]
enum Listing {
    Sessions(ListShape),
    Rows,
}

/// What is wanted of a part of a list.
struct Wanted {
    filter: Arc<Filter>,
    pass: Pass,
    after: Option<SessionId>,
    most: usize,
}

/// Reads the list in parts, so that the loop is never busy with all of it.
async fn listed(context: &HttpContext, filter: Filter, listing: Listing) -> Result<Response, ApiError> {
    known(&filter)?;
    let mut after = filter.after.as_ref().and_then(|after| after.parse::<SessionId>().ok());
    let (mut left, now) = (filter.limit.unwrap_or(usize::MAX), NowSource::new().now());
    let mut writing = match listing {
        Listing::Sessions(_) => Writing::of_sessions(),
        Listing::Rows => Writing::of_rows(),
    };
    let (filter, mut as_of) = (Arc::new(filter), None);
    let (total, more, as_of) = loop {
        let (filter, pass) = (Arc::clone(&filter), context.pass.clone());
        let wanted = Wanted { filter, pass, after, most: left };
        let part;
        (writing, part) = match listing {
            Listing::Sessions(shape) => sessions_after(context, wanted, writing, (shape, now)).await?,
            Listing::Rows => rows_after(context, wanted, writing, now).await?,
        };
        after = part.sessions.last().copied().or(after);
        left -= part.sessions.len();
        // What changes while later parts are read has a later one.
        let (generation, number) = *as_of.get_or_insert(part.revision);
        writing.add_odd_ones(part.odd_ones);
        if !part.more || left == 0 {
            break (part.total, part.more, revision(generation, number));
        }
    };
    let next = after.filter(|_| more && filter.limit != Some(0)).map(|last| last.to_string());
    let head =
        ListHeaders { total: total.map(RowCount::Exactly), next, revision: Some(as_of), complete: None };
    let kind = [(CONTENT_TYPE, "application/json")];
    Ok((head.fields(), kind, writing.finish()).into_response())
}

/// Lets the loop copy some sessions, and serializes them.
async fn sessions_after(
    context: &HttpContext,
    wanted: Wanted,
    writing: Writing,
    (shape, now): (ListShape, Now),
) -> Result<(Writing, ListPart<SessionId>), ApiError> {
    let Wanted { filter, pass, after, most } = wanted;
    let most = most.min(list::PART);
    let copy = move |view: EngineView<'_>| list::part(view, (&filter, &pass), after, most);
    let ListPart { sessions, more, total, odd_ones, revision } = context.handle.view(copy).await?;
    let ids = sessions.iter().map(|session| session.id).collect();
    let writing = written(writing, sessions, shape, now).await?;
    Ok((writing, ListPart { sessions: ids, more, total, odd_ones, revision }))
}

/// Lets the loop serialize some rows.
async fn rows_after(
    context: &HttpContext,
    wanted: Wanted,
    mut writing: Writing,
    now: Now,
) -> Result<(Writing, ListPart<SessionId>), WhyNot> {
    let Wanted { filter, pass, after, most } = wanted;
    let write = move |view: EngineView<'_>| {
        let part = writing.add_rows(view, (&filter, &pass), (after, most), now);
        (writing, part)
    };
    context.handle.view(write).await
}

/// Serializes some sessions; many of them on a thread of the pool.
async fn written(
    mut writing: Writing,
    sessions: Vec<SessionView>,
    shape: ListShape,
    now: Now,
) -> Result<Writing, ErrorBody> {
    if sessions.len() <= AT_ONCE {
        writing.add(&sessions, shape, now);
        return Ok(writing);
    }
    let done = tokio::task::spawn_blocking(move || {
        writing.add(&sessions, shape, now);
        writing
    });
    done.await.map_err(|error| ErrorBody::new(ErrorKind::Failed, error.to_string()))
}

/// Refuses a filter that no session could ever pass.
fn known(filter: &Filter) -> Result<(), ApiError> {
    known_states(filter.state.iter().flat_map(|states| states.split(',')))?;
    let wrong = filter.after.as_ref().filter(|after| after.parse::<SessionId>().is_err());
    wrong.map_or(Ok(()), |wrong| Err(bad_value(format!("`{wrong}` is not the id of a session"))))
}
