//! Streaming answers: what is sent into a channel goes out as it comes, as long as the client is there.

use axum::body::{Body, Bytes};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// One object per line.
pub(crate) fn lines(receiver: mpsc::Receiver<Bytes>) -> Response {
    ([("content-type", "application/x-ndjson")], Body::from_stream(Channel(receiver))).into_response()
}

/// A body in parts. An error among them breaks it off, so that it cannot pass for complete.
pub(crate) fn body(receiver: mpsc::Receiver<io::Result<Bytes>>) -> Body {
    Body::from_stream(Parts(receiver))
}

/// Server-sent events.
pub(crate) fn events(receiver: mpsc::Receiver<Event>) -> Response {
    Sse::new(Channel(receiver)).keep_alive(KeepAlive::default()).into_response()
}

/// Server-sent events without keep-alives: readers are not woken when nothing happens. On a unix socket the
/// kernel tells when either side has gone.
pub(crate) fn still_events(receiver: mpsc::Receiver<Event>) -> Response {
    Sse::new(Channel(receiver)).into_response()
}

/// A channel as a stream.
struct Channel<T>(mpsc::Receiver<T>);

impl<T> futures_core::Stream for Channel<T> {
    type Item = Result<T, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|item| item.map(Ok))
    }
}

/// A channel as a stream that may break off.
struct Parts(mpsc::Receiver<io::Result<Bytes>>);

impl futures_core::Stream for Parts {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}
