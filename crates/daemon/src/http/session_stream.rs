//! A session that a client has open: its state, its messages and its output, as they come. The client is a
//! consumer.

use super::HttpContext;
use super::api_error::ApiError;
use super::extract::{SessionInPath, UrlQuery};
use super::following::Following;
use super::logs::{OutputSource, pass_on};
use super::look;
use super::streaming;
use super::together::Together;
use crate::http::consumer::Consumer;
use crate::output::printed::Sequences;
use axum::body::Bytes;
use axum::response::Response;
use axum::response::sse::Event as Sse;
use pinfold_api::query::Stream as Which;
use pinfold_core::MessageId;
use pinfold_store::{EventQuery, SessionId, Ulid};
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A client this many events behind makes the stream wait for it.
const WAITING: usize = 64;

/// Server-sent events `state` (the session), `message` (a message that changed) and `output` (a line).
pub(crate) async fn stream(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
    UrlQuery(which): UrlQuery<Which>,
) -> Result<Response, ApiError> {
    let id = super::sessions::find(&context, session).await?;
    let source = OutputSource::of(&context, id, None, Sequences::Obeyed).await?;
    let consumer = Consumer::join(&context.handle, id, look::watcher(&context.pass)).await?;
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(feed(context, id, source, which.n.unwrap_or(0), consumer, sender));
    Ok(streaming::events(receiver))
}

async fn feed(
    context: HttpContext,
    id: SessionId,
    source: OutputSource,
    lines: usize,
    _consumer: Consumer,
    sender: mpsc::Sender<Sse>,
) {
    let (output, printed) = mpsc::channel(4);
    tokio::select! {
        _ = pass_on(&context, id, source, lines, &output) => {}
        _ = show_output(printed, &sender) => {}
        _ = show_events(&context, id, &sender) => {}
        () = sender.closed() => {}
        () = context.handle.ended() => {}
    }
}

/// Passes printed lines on, until that is impossible.
async fn show_output(mut printed: mpsc::Receiver<Bytes>, sender: &mpsc::Sender<Sse>) -> Option<Infallible> {
    loop {
        let text = printed.recv().await?;
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let data = String::from_utf8_lossy(line).into_owned();
            sender.send(Sse::default().event("output").data(data)).await.ok()?;
        }
    }
}

/// What is shown of a session, at the moment of an audit record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownMoment {
    State(SessionId, u64),
    Message(MessageId, u64),
}

/// Shared by the clients that have one session open: each object is read and serialized once, however many
/// they are.
pub(crate) type Shown = Together<ShownMoment, Arc<str>>;

/// Sends the session and, whenever something happens to it, what has changed.
async fn show_events(context: &HttpContext, id: SessionId, sender: &mpsc::Sender<Sse>) -> Option<Infallible> {
    let after = *context.last_event.borrow();
    let query = EventQuery { after, session: Some(id), ..EventQuery::default() };
    let mut following = Following::begin(context, query);
    sender.send(event("state", &state(context, id).await?)).await.ok()?;
    loop {
        let mut last = after;
        for event in following.next().await? {
            last = event.seq;
            let message =
                event.data.get("message").and_then(|message| message.as_str()?.parse::<Ulid>().ok());
            if let Some(message) = message {
                show_message(context, id, (message.into(), last), sender).await?;
            }
        }
        let now = async { state(context, id).await.ok_or(()) };
        let now = context.shown.get(ShownMoment::State(id, last), now).await.ok()?;
        sender.send(event("state", &now)).await.ok()?;
    }
}

async fn show_message(
    context: &HttpContext,
    id: SessionId,
    (message, seq): (MessageId, u64),
    sender: &mpsc::Sender<Sse>,
) -> Option<()> {
    let read = async {
        let row = super::messages::row(context, id, message).await.ok();
        row.and_then(|row| text(&row)).ok_or(())
    };
    match context.shown.get(ShownMoment::Message(message, seq), read).await {
        Ok(row) => sender.send(event("message", &row)).await.ok(),
        // It was removed meanwhile.
        Err(()) => Some(()),
    }
}

async fn state(context: &HttpContext, id: SessionId) -> Option<Arc<str>> {
    text(&super::sessions::object_of(context, id).await.ok()?)
}

fn text(object: &impl Serialize) -> Option<Arc<str>> {
    Some(serde_json::to_string(object).ok()?.into())
}

fn event(kind: &str, data: &str) -> Sse {
    Sse::default().event(kind).data(data)
}
