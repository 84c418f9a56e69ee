//! Audit records: as an array, or as server-sent events that can be resumed by their number.

use super::Context;
use super::answer::{Asked, Failure};
use super::outgoing;
use crate::view;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::Event as Sse;
use axum::response::{IntoResponse, Response};
use pinfold_core::Wall;
use pinfold_store::{EventQuery, SessionId, Take};
use serde::Deserialize;
use tokio::sync::mpsc;

/// So many are read at once: a long history does not have to fit into memory.
const PAGE: u32 = 1000;

/// Which events.
#[derive(Debug, Default, Clone, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(rename = "EventsAsked")]
pub(crate) struct Which {
    /// After this number.
    since: u64,
    /// After this moment (milliseconds since 1970).
    since_ms: Option<i64>,
    session: Option<String>,
    /// Only the last so many.
    last: Option<u32>,
    /// `false`: what there is, as an array.
    follow: Option<bool>,
}

pub(crate) async fn events(
    State(context): State<Context>,
    headers: HeaderMap,
    Asked(mut which): Asked<Which>,
) -> Result<Response, Failure> {
    // Whoever lost the connection goes on where it was.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    which.since = which.since.max(last.unwrap_or(0));
    let session = match which.session.clone() {
        Some(session) => Some(super::sessions::find(&context, session).await?),
        None => None,
    };
    if which.follow == Some(false) {
        let take = which.last.map_or(Take::All, Take::Last);
        return Ok(Json(read(&context, query(&which, session, which.since, take)).await?).into_response());
    }
    let (sender, receiver) = mpsc::channel(64);
    tokio::spawn(feed(context, which, session, sender));
    Ok(outgoing::events(receiver))
}

fn query(which: &Which, session: Option<SessionId>, after: u64, take: Take) -> EventQuery {
    EventQuery { after, until: None, since: which.since_ms.map(Wall), session, take }
}

async fn read(context: &Context, query: EventQuery) -> Result<Vec<pinfold_api::object::Event>, Failure> {
    let rows = context.read(move |reader| reader.events(&query)).await?;
    Ok(rows.into_iter().map(view::event).collect())
}

/// Sends what there is, then what comes, until the client has gone.
async fn feed(context: Context, which: Which, session: Option<SessionId>, sender: mpsc::Sender<Sse>) {
    let mut last_event = context.last_event.clone();
    let mut after = which.since;
    loop {
        last_event.borrow_and_update();
        let Ok(page) = read(&context, query(&which, session, after, Take::First(PAGE))).await else { return };
        let full = page.len() == PAGE as usize;
        for event in page {
            after = event.seq;
            let Ok(text) = serde_json::to_string(&event) else { return };
            let sse = Sse::default().id(event.seq.to_string()).event(&event.kind).data(text);
            if sender.send(sse).await.is_err() {
                return;
            }
        }
        let gone = tokio::select! {
            _ = std::future::ready(()), if full => false,
            changed = last_event.changed() => changed.is_err(),
            () = sender.closed() => true,
        };
        if gone {
            return;
        }
    }
}
