//! Lists of any length as one JSON array, written while they are read: a list of a gigabyte takes as much
//! memory as one of a hundred kilobytes.

use super::HttpContext;
use super::api_error::ApiError;
use super::streaming;
use crate::engine::EngineCommand;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use pinfold_api::ErrorBody;
use pinfold_store::{ListPage, ReadError, Reader, RowCount};
use serde::Serialize;
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc;
use tracing::warn;

/// How much is read at once.
pub(crate) const PART: usize = 64 << 10;

/// What the headers say about a list.
#[derive(Debug, Default)]
pub(crate) struct ListHeaders {
    /// How many rows there are in all, if only some were asked for.
    pub(crate) total: Option<RowCount>,
    /// The value of `after` for the following rows; `None` if there are none.
    pub(crate) next: Option<String>,
    /// The event since which none was pruned, and its time.
    pub(crate) complete: Option<(u64, String)>,
    /// The revision of the feed that it is as of.
    pub(crate) revision: Option<String>,
}

impl ListHeaders {
    pub(crate) fn fields(&self) -> HeaderMap {
        let (total, more_than) = match self.total {
            Some(RowCount::Exactly(count)) => (Some(HeaderValue::from(count)), None),
            Some(RowCount::MoreThan(count)) => (None, Some(HeaderValue::from(count))),
            None => (None, None),
        };
        let next = self.next.as_deref().and_then(|next| next.parse().ok());
        let (from, since) = match &self.complete {
            Some((seq, at)) => (Some(HeaderValue::from(*seq)), at.parse().ok()),
            None => (None, None),
        };
        let fields = [
            ("total", total),
            ("more-than", more_than),
            ("next", next),
            ("complete-from", from),
            ("complete-since", since),
            ("revision", self.revision.as_deref().and_then(|revision| revision.parse().ok())),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.parse().ok()?, value?)));
        fields.collect()
    }
}

/// Answers with an array of at most `most` rows, from a place on. If the beginning cannot be read, the
/// request is refused with the reason; if reading fails later, the answer breaks off.
pub(crate) async fn array<T, P, R>(
    context: HttpContext,
    head: ListHeaders,
    (from, most): (P, u64),
    read: R,
) -> Result<Response, ApiError>
where
    T: Serialize,
    P: Copy + Send + 'static,
    R: Fn(&Reader, P, u64) -> Result<ListPage<T, P>, ReadError> + Send + Sync + 'static,
{
    let mut rows =
        Rows { context, read: Arc::new(read), at: Some(from), left: most, written: Written::Nothing };
    let first = rows.part().await?;
    let kind = [("content-type", "application/json")];
    if rows.at.is_none() {
        return Ok((head.fields(), kind, first).into_response());
    }
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        if sender.send(Ok(first)).await.is_ok() {
            rows.send(&sender).await;
        }
        // The memory that such a list leaves in the allocator goes back to the kernel.
        rows.context.handle.command(EngineCommand::RestSoon);
    });
    Ok((head.fields(), kind, streaming::body(receiver)).into_response())
}

/// The rows of a list that is being sent.
struct Rows<P, R> {
    context: HttpContext,
    read: Arc<R>,
    /// Where it continues.
    at: Option<P>,
    left: u64,
    written: Written,
}

/// How much of an array is written. A part may have no rows: perhaps the caller may see none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// Nothing yet.
    Nothing,
    /// Its opening bracket.
    Bracket,
    /// Its opening bracket, and rows.
    Rows,
}

impl<T, P, R> Rows<P, R>
where
    T: Serialize,
    P: Copy + Send + 'static,
    R: Fn(&Reader, P, u64) -> Result<ListPage<T, P>, ReadError> + Send + Sync + 'static,
{
    /// The next part as text; the last one ends the array.
    async fn part(&mut self) -> Result<Bytes, ErrorBody> {
        let Some(at) = self.at else { return Ok(Bytes::new()) };
        let (read, left, written) = (Arc::clone(&self.read), self.left, self.written);
        let done = self.context.read(move |reader| {
            let ListPage { rows, next } = read(reader, at, left)?;
            let left = left.saturating_sub(rows.len() as u64);
            let next = next.filter(|_| left > 0);
            let (text, written) = text(&rows, written, next.is_none());
            Ok((text, next, left, written))
        });
        let (text, next, left, written) = done.await?;
        (self.at, self.left, self.written) = (next, left, written);
        Ok(text)
    }

    async fn send(&mut self, sender: &mpsc::Sender<io::Result<Bytes>>) {
        let handle = self.context.handle.clone();
        while self.at.is_some() {
            let part = tokio::select! {
                part = self.part() => part,
                () = handle.ended() => Err(handle.going_down().into()),
            };
            let part = part.map_err(|error| {
                warn!("a list breaks off: {}", error.message);
                io::Error::other(error.message)
            });
            let broken = part.is_err();
            if sender.send(part).await.is_err() || broken {
                return;
            }
        }
    }
}

/// Rows as a piece of an array, and how much of it is written with them.
fn text<T: Serialize>(rows: &[T], written: Written, last: bool) -> (Bytes, Written) {
    let mut text = Vec::with_capacity(PART);
    let mut between = written == Written::Rows;
    if written == Written::Nothing {
        text.push(b'[');
    }
    for row in rows {
        let before = text.len();
        if between {
            text.push(b',');
        }
        match serde_json::to_writer(&mut text, row) {
            Ok(()) => between = true,
            // Plain data with text keys can always be written.
            Err(_) => text.truncate(before),
        }
    }
    if last {
        text.push(b']');
    }
    (Bytes::from(text), if between { Written::Rows } else { Written::Bracket })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_in_parts_is_one_array_also_where_parts_are_without_rows() {
        let all: [&[&[u32]]; 5] =
            [&[&[]], &[&[], &[]], &[&[], &[1, 2]], &[&[1], &[], &[2]], &[&[], &[], &[1, 2], &[]]];
        for parts in all {
            let (mut whole, mut written) = (Vec::new(), Written::Nothing);
            for (at, rows) in parts.iter().enumerate() {
                let (piece, so_far) = text(rows, written, at + 1 == parts.len());
                whole.extend_from_slice(&piece);
                written = so_far;
            }
            let read: Vec<u32> = serde_json::from_slice(&whole).unwrap();
            assert_eq!(read, parts.concat(), "{parts:?}");
        }
    }
}
