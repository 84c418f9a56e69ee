//! Audit records: as an array, or as server-sent events that can be resumed by their number.

use super::HttpContext;
use super::api_error::ApiError;
use super::extract::UrlQuery;
use super::following::Following;
use super::paging::{self, ListHeaders, PART};
use super::streaming;
use crate::caller::Pass;
use crate::clock::time;
use crate::show;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event as Sse;
use pinfold_api::object::Event;
use pinfold_api::query::Events as Which;
use pinfold_core::Wall;
use pinfold_store::{EventQuery, ListPage, ReadError, Reader, Take};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::mpsc;

pub(crate) async fn events(
    context: HttpContext,
    headers: HeaderMap,
    UrlQuery(which): UrlQuery<Which>,
) -> Result<Response, ApiError> {
    // A client that lost its connection resumes where it was.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let after = which.since.max(which.after).max(last.unwrap_or(0));
    let session = match which.session.clone() {
        Some(session) => Some(super::sessions::find(&context, session).await?),
        None => None,
    };
    let take = which.last.map_or(Take::All, Take::Last);
    let since = which.since_ms.map(Wall);
    let query = EventQuery { after, until: None, since, session, take };
    if which.follow == Some(false) || which.limit.is_some() {
        return whole(context, query, which.limit).await;
    }
    let (sender, receiver) = mpsc::channel(64);
    tokio::spawn(feed(context, query, sender));
    Ok(streaming::events(receiver))
}

/// The stored events, as an array.
async fn whole(context: HttpContext, query: EventQuery, limit: Option<u64>) -> Result<Response, ApiError> {
    let (asked, kept) = (query.clone(), context.pass.is_kept());
    let begin = context.read(move |reader| {
        let from = reader.event_place(&asked)?;
        let next = match limit {
            Some(limit) => reader.event_behind_which_more_come(&asked, from, limit)?,
            None => None,
        };
        let some = !kept && (limit.is_some() || asked.take != Take::All);
        let total = if some { Some(reader.count_events(&asked, asked.after)?) } else { None };
        let complete = reader.complete_from()?.filter(|_| !kept).map(|first| (first.seq, time(first.at)));
        Ok((
            from,
            ListHeaders {
                total,
                next: next.map(|next| next.to_string()),
                complete,
                ..ListHeaders::default()
            },
        ))
    });
    let (from, head) = begin.await?;
    let pass = context.pass.clone();
    let read = move |reader: &Reader, after, most| part(reader, &query, &pass, after, most);
    paging::array(context, head, (from, limit.unwrap_or(u64::MAX)), read).await
}

fn part(
    reader: &Reader,
    query: &EventQuery,
    pass: &Pass,
    after: u64,
    most: u64,
) -> Result<ListPage<Event, u64>, ReadError> {
    let ListPage { rows, next } = reader.event_part(query, after, most, PART)?;
    Ok(ListPage {
        rows: rows.into_iter().filter(|row| shows(pass, row)).map(show::event::event).collect(),
        next,
    })
}

/// Events that belong to no session are for people.
fn shows(pass: &Pass, row: &pinfold_store::StoredEvent) -> bool {
    !pass.is_kept() || row.session.is_some_and(|id| pass.shows(id))
}

/// Sends stored events, then new ones, until the client has gone.
async fn feed(context: HttpContext, query: EventQuery, sender: mpsc::Sender<Sse>) {
    tokio::select! {
        _ = send(&context, query, &sender) => {}
        () = sender.closed() => {}
        () = context.handle.ended() => {}
    }
}

async fn send(context: &HttpContext, query: EventQuery, sender: &mpsc::Sender<Sse>) -> Option<Infallible> {
    let begin = query.clone();
    let after = context.read(move |reader| reader.event_place(&begin)).await.ok()?;
    let mut following = Following::begin(context, EventQuery { after, ..query });
    loop {
        for row in following.next().await? {
            if !shows(&context.pass, &row) {
                continue;
            }
            let event = show::event::event(Arc::unwrap_or_clone(row));
            let text = serde_json::to_string(&event).ok()?;
            let sse = Sse::default().id(event.seq.to_string()).event(event.kind.word()).data(text);
            sender.send(sse).await.ok()?;
        }
    }
}
