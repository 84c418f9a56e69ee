//! The feed: a snapshot of all sessions, then every change, as server-sent events. Its readers are not
//! consumers.
//!
//! One task reads and serializes each change once, however many clients read; each client takes it from a
//! ring. A client that begins, or has fallen behind, asks the loop itself.

use super::HttpContext;
use super::api_error::ApiError;
use super::extract::UrlQuery;
use super::ring::{Fetched, RowRing};
use super::streaming;
use crate::caller::Pass;
use crate::clock::NowSource;
use crate::engine::{FeedChange, SessionChange};
use crate::show::{self, list};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event as Sse;
use pinfold_api::feed::{self as object, Live, Snapshot};
use pinfold_api::query::{self, Feed as Which};
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_store::SessionId;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// The shortest interval between reads of live changes, which happen only when there is something new.
const LIVE: Duration = Duration::from_millis(250);
/// How many changes are read at once.
const PART: usize = 64;
/// A client this many events behind makes only its own reader wait.
const WAITING: usize = 64;

/// The feed, serialized once for all readers.
pub(crate) type Written = RowRing<FeedRow>;

/// One serialized event.
pub(crate) struct FeedRow {
    session: SessionId,
    /// The number of the change; live changes have none.
    number: Option<u64>,
    kind: &'static str,
    data: String,
}

pub(crate) async fn feed(
    context: HttpContext,
    headers: HeaderMap,
    UrlQuery(which): UrlQuery<Which>,
) -> Result<Response, ApiError> {
    // A client that lost its connection resumes where it was.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let since = last.or(which.since).map(|text| parse(&text)).transpose()?;
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        tokio::select! {
            _ = Reading::begin(&context, &sender, since) => {}
            () = sender.closed() => {}
            () = context.handle.ended() => {}
        }
    });
    Ok(streaming::still_events(receiver))
}

fn parse(text: &str) -> Result<(u64, u64), ApiError> {
    let parts = text
        .split_once('.')
        .and_then(|(generation, number)| Some((generation.parse().ok()?, number.parse().ok()?)));
    parts.ok_or_else(|| {
        let text = format!("`{text}` is not a revision");
        ApiError::bad_value(
            ErrorBody::new(ErrorKind::Usage, text).hint("GENERATION.NUMBER, as the feed says it"),
        )
    })
}

/// One reading client.
struct Reading<'a> {
    context: &'a HttpContext,
    sender: &'a mpsc::Sender<Sse>,
    pass: Pass,
    generation: u64,
    /// The number of the last change it was sent.
    at: u64,
    /// Its place in the ring.
    place: u64,
}

impl<'a> Reading<'a> {
    /// Sends the present state, then changes; returns when that is impossible.
    async fn begin(
        context: &'a HttpContext,
        sender: &'a mpsc::Sender<Sse>,
        since: Option<(u64, u64)>,
    ) -> Option<()> {
        let mut news = join(context);
        let (generation, latest) = context.handle.view(|view| view.revision()).await.ok()?;
        let pass = context.pass.clone();
        let mut reading = Reading { context, sender, pass, generation, at: latest, place: *news.borrow() };
        match since.filter(|(of, number)| *of == generation && *number <= latest) {
            Some((_, number)) => {
                reading.at = number;
                reading.catch_up().await?;
            }
            None => reading.snapshot().await?,
        }
        loop {
            news.borrow_and_update();
            reading.go_on().await?;
            news.changed().await.ok()?;
        }
    }

    /// Sends what is new: from the ring, or from the loop if the ring does not have it.
    async fn go_on(&mut self) -> Option<()> {
        let ring = Arc::clone(&self.context.feed);
        let Some(rows) = ring.after(self.place) else {
            self.place = ring.latest();
            return self.catch_up().await;
        };
        for (place, row) in rows {
            self.place = place;
            self.send(&row).await?;
        }
        Some(())
    }

    /// Reads every change since the last one sent; sends a snapshot if they are no longer known.
    async fn catch_up(&mut self) -> Option<()> {
        loop {
            let at = self.at;
            let Some(changes) =
                self.context.handle.view(move |view| view.changes_after(at, PART)).await.ok()?
            else {
                self.at = self.context.handle.view(|view| view.revision()).await.ok()?.1;
                return self.snapshot().await;
            };
            let last = changes.len() < PART;
            for change in &changes {
                let row = written(self.generation, change)?;
                self.send(&row).await?;
            }
            if last {
                return Some(());
            }
        }
    }

    /// Sends all sessions in parts, as of the number read before; what changes meanwhile is sent again.
    async fn snapshot(&mut self) -> Option<()> {
        let revision = revision(self.generation, self.at);
        let filter = Arc::new(query::Sessions { all: true, ..query::Sessions::default() });
        let mut after = None;
        loop {
            let (filter, pass) = (Arc::clone(&filter), self.pass.clone());
            let part = self.context.handle.view(move |view| list::part(view, (&filter, &pass), after, PART));
            let part = part.await.ok()?;
            after = part.sessions.last().map(|last| last.id).or(after);
            let now = NowSource::new().now();
            let sessions = part.sessions.iter().map(|view| show::session::brief(view, now)).collect();
            let snapshot = Snapshot { revision: revision.clone(), sessions, more: part.more };
            let sse = Sse::default().event("snapshot").data(serde_json::to_string(&snapshot).ok()?);
            // A client can resume only after a complete snapshot.
            let sse = if part.more { sse } else { sse.id(&revision) };
            self.sender.send(sse).await.ok()?;
            if !part.more {
                return Some(());
            }
        }
    }

    async fn send(&mut self, row: &FeedRow) -> Option<()> {
        if row.number.is_some_and(|number| number <= self.at) {
            return Some(());
        }
        self.at = row.number.unwrap_or(self.at);
        if !self.pass.shows(row.session) {
            return Some(());
        }
        let sse = Sse::default().event(row.kind).data(&row.data);
        let sse = match row.number {
            Some(number) => sse.id(revision(self.generation, number)),
            None => sse,
        };
        self.sender.send(sse).await.ok()
    }
}

/// The word for a revision.
pub(super) fn revision(generation: u64, number: u64) -> String {
    format!("{generation}.{number}")
}

/// Joins as a reader; the first one starts the task.
fn join(context: &HttpContext) -> watch::Receiver<u64> {
    let (news, fetched) = context.feed.join();
    if fetched == Fetched::NotYet {
        tokio::spawn(fetch(context.clone()));
    }
    news
}

/// Reads changes and puts them into the ring, until no client reads or the daemon ends.
async fn fetch(context: HttpContext) -> Option<()> {
    let look = |view: crate::engine::EngineView<'_>| (view.watch_feed(), view.revision());
    let ((mut changes, mut live), (generation, mut at)) = context.handle.view(look).await.ok()?;
    let (mut live_at, mut live_due) = (*live.borrow_and_update(), Instant::now());
    let ring = Arc::clone(&context.feed);
    // Clients that joined earlier ask the loop for what they may have missed.
    let mut place = ring.latest() + 1;
    ring.begin(place);
    loop {
        tokio::select! {
            changed = changes.changed() => {
                changed.ok()?;
                let read = context.handle.view(move |view| view.changes_after(at, PART)).await.ok()?;
                let Some(read) = read else {
                    // No longer known: the loop tells each reader so.
                    (at, place) = (*changes.borrow_and_update(), place + 1);
                    ring.begin(place);
                    continue;
                };
                if read.len() == PART {
                    changes.mark_changed();
                }
                at = put(&ring, &mut place, &read, |change| written(generation, change)).unwrap_or(at);
            }
            () = more_is_live(&mut live, live_due) => {
                live_due = Instant::now() + LIVE;
                live.borrow_and_update();
                let read = context.handle.view(move |view| view.live_after(live_at, usize::MAX)).await.ok()?;
                live_at = put(&ring, &mut place, &read, written_live).unwrap_or(live_at);
            }
            () = ring.unread() => if ring.end_if_unread() {
                return Some(());
            },
        }
    }
}

/// Returns when a live change is to be read.
async fn more_is_live(live: &mut watch::Receiver<u64>, due: Instant) {
    if live.changed().await.is_err() {
        return std::future::pending().await;
    }
    // It stays marked as new until it is read: something else may happen first.
    live.mark_changed();
    sleep_until(due).await;
}

/// Puts changes into the ring; returns the number of the last one.
fn put(
    ring: &Written,
    place: &mut u64,
    changes: &[SessionChange],
    write: impl Fn(&SessionChange) -> Option<FeedRow>,
) -> Option<u64> {
    for row in changes.iter().filter_map(write) {
        *place += 1;
        ring.push(*place, row);
    }
    changes.last().map(|last| last.number)
}

fn written(generation: u64, change: &SessionChange) -> Option<FeedRow> {
    let revision = revision(generation, change.number);
    let (kind, data) = match &change.what {
        FeedChange::Session(view) => {
            let session = show::session::brief(view, NowSource::new().now());
            ("session", text(&object::Changed { revision, session })?)
        }
        FeedChange::Removed(name) => {
            let (id, name) = (change.id.to_string(), name.clone());
            ("removed", text(&object::Gone { revision, id, name })?)
        }
    };
    Some(FeedRow { session: change.id, number: Some(change.number), kind, data })
}

fn written_live(change: &SessionChange) -> Option<FeedRow> {
    let FeedChange::Session(view) = &change.what else { return None };
    let session = show::session::brief(view, NowSource::new().now());
    let live = Live {
        id: session.id,
        name: session.name,
        activity: session.activity,
        activity_from: session.activity_from,
        activity_since: session.activity_since,
        waits_for: session.waits_for,
        ready: session.ready,
        status: session.status,
        memory_bytes: session.memory_bytes,
        swap_bytes: session.swap_bytes,
    };
    Some(FeedRow { session: change.id, number: None, kind: "live", data: text(&live)? })
}

fn text(object: &impl Serialize) -> Option<String> {
    serde_json::to_string(object).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_store::Ulid;
    use serde_json::{Value, json};

    #[test]
    fn a_revision_is_two_numbers() {
        assert_eq!(parse("7.42").ok(), Some((7, 42)));
        for wrong in ["", "7", "7.", ".42", "7.x", "7.42.1", "-7.42"] {
            let body = parse(wrong).map_err(ApiError::into_body).unwrap_err();
            assert_eq!(body.message, format!("`{wrong}` is not a revision"));
        }
    }

    #[test]
    fn a_removed_session_is_named_and_is_nothing_live() {
        let id = SessionId(Ulid::new(0, 1));
        let change = SessionChange { number: 42, id, what: FeedChange::Removed("a".into()) };
        let row = written(7, &change).unwrap();
        assert_eq!((row.kind, row.number), ("removed", Some(42)));
        let data: Value = serde_json::from_str(&row.data).unwrap();
        assert_eq!(data, json!({ "revision": "7.42", "id": id.to_string(), "name": "a" }));
        assert!(written_live(&change).is_none());
    }

    #[test]
    fn every_row_has_a_place_and_the_last_number_is_said() {
        let ring = Written::default();
        ring.begin(5);
        let gone = |number| SessionChange {
            number,
            id: SessionId(Ulid::new(0, u128::from(number))),
            what: FeedChange::Removed("a".into()),
        };
        let mut place = 5;
        assert_eq!(put(&ring, &mut place, &[gone(3), gone(9)], |change| written(1, change)), Some(9));
        assert_eq!(put(&ring, &mut place, &[], |change| written(1, change)), None);
        let rows: Vec<_> = ring.after(5).unwrap().into_iter().map(|(at, row)| (at, row.number)).collect();
        assert_eq!(rows, [(6, Some(3)), (7, Some(9))]);
    }
}
