//! A session as somebody has it open: its state, its messages and its output, as they come. A consumer.

use super::Context;
use super::answer::{Asked, Failure, Named};
use super::following::Following;
use super::logs::{Source, pass_on};
use super::streaming;
use crate::http::consumer::Consumer;
use crate::output::printed::Sequences;
use axum::body::Bytes;
use axum::response::Response;
use axum::response::sse::Event as Sse;
use pinfold_api::query::Stream as Which;
use pinfold_core::MessageId;
use pinfold_core::event::ConsumerKind;
use pinfold_store::{EventQuery, SessionId, Ulid};
use serde::Serialize;
use std::convert::Infallible;
use tokio::sync::mpsc;

/// A client that lags behind so far makes the stream wait for it.
const WAITING: usize = 64;

/// Server-sent events `state` (the session), `message` (a message that took a step) and `output` (a line).
pub(crate) async fn stream(
    context: Context,
    Named(session): Named,
    Asked(which): Asked<Which>,
) -> Result<Response, Failure> {
    let id = super::sessions::find(&context, session).await?;
    let source = Source::of(&context, id, None, Sequences::Obeyed).await?;
    let consumer = Consumer::join(&context.handle, id, ConsumerKind::Watch).await?;
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(feed(context, id, source, which.n.unwrap_or(0), consumer, sender));
    Ok(streaming::events(receiver))
}

async fn feed(
    context: Context,
    id: SessionId,
    source: Source,
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

/// Shows the session and, whenever something happens to it, what is different.
async fn show_events(context: &Context, id: SessionId, sender: &mpsc::Sender<Sse>) -> Option<Infallible> {
    let after = *context.last_event.borrow();
    let query = EventQuery { after, session: Some(id), ..EventQuery::default() };
    let mut following = Following::begin(context, query);
    show_state(context, id, sender).await?;
    loop {
        for event in following.next().await? {
            let message =
                event.data.get("message").and_then(|message| message.as_str()?.parse::<Ulid>().ok());
            if let Some(message) = message {
                show_message(context, id, message.into(), sender).await?;
            }
        }
        show_state(context, id, sender).await?;
    }
}

async fn show_message(
    context: &Context,
    id: SessionId,
    message: MessageId,
    sender: &mpsc::Sender<Sse>,
) -> Option<()> {
    match super::messages::row(context, id, message).await {
        Ok(message) => sender.send(event("message", &message)?).await.ok(),
        // Removed meanwhile.
        Err(_) => Some(()),
    }
}

async fn show_state(context: &Context, id: SessionId, sender: &mpsc::Sender<Sse>) -> Option<()> {
    let session = super::sessions::object_of(context, id).await.ok()?;
    sender.send(event("state", &session)?).await.ok()
}

fn event(kind: &str, object: &impl Serialize) -> Option<Sse> {
    Some(Sse::default().event(kind).data(serde_json::to_string(object).ok()?))
}
