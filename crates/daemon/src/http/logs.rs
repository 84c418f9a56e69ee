//! The output of a session's agents: what there is, or as it comes, one object a line.

use super::Context;
use super::answer::Failure;
use crate::fleet::Fleet;
use crate::lines::Lines;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use pinfold_api::object::LogLine;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::event::ConsumerKind;
use pinfold_core::{ConsumerId, Event, RunNumber};
use pinfold_shim::log::{Position, Reader, tail};
use pinfold_store::{Facts, SessionId};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// A person who asks for no number sees this many lines.
const LINES: usize = 200;

/// Which output.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(crate) struct Which {
    n: Option<usize>,
    run: Option<String>,
    follow: bool,
}

pub(crate) async fn logs(
    State(context): State<Context>,
    Path(session): Path<String>,
    Query(which): Query<Which>,
) -> Result<Response, Failure> {
    let id = super::sessions::find(&context, session.clone()).await?;
    let source = Source::of(&context, id, which.run.as_deref()).await?;
    let (sender, receiver) = mpsc::channel(64);
    let (first, position) = source.last_lines(which.n.unwrap_or(LINES)).await?;
    if which.follow {
        tokio::spawn(follow(context, id, source, first, position, sender));
    } else {
        tokio::spawn(async move {
            for line in first {
                _ = sender.send(line).await;
            }
        });
    }
    let body = Body::from_stream(Stream(receiver));
    Ok(([("content-type", "application/x-ndjson")], body).into_response())
}

/// Where output is read, and how its runs are called.
#[derive(Clone)]
struct Source {
    log: PathBuf,
    runs: BTreeMap<RunNumber, String>,
    only: Option<RunNumber>,
}

impl Source {
    async fn of(context: &Context, id: SessionId, wanted: Option<&str>) -> Result<Source, Failure> {
        let log = context.handle.look(move |fleet: &mut Fleet| fleet.home.log(id)).await?;
        let database = context.database.clone();
        let rows = tokio::task::spawn_blocking(move || {
            let reader = database.lock().map_err(|_| "the reader is broken".to_owned())?;
            reader.runs(id, pinfold_store::Take::All).map_err(|error| error.to_string())
        });
        let failed = |message: String| Failure(ErrorBody::new(ErrorKind::Failed, message));
        let rows = rows.await.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
        let runs: BTreeMap<RunNumber, String> =
            rows.into_iter().filter_map(|run| Some((run.number, run.id?.to_string()))).collect();
        let only = match wanted {
            None => None,
            Some(wanted) => Some(find_run(&runs, wanted).ok_or_else(|| {
                Failure(ErrorBody::new(ErrorKind::NotFound, format!("there is no run `{wanted}`")))
            })?),
        };
        Ok(Source { log, runs, only })
    }

    /// The last lines, and where the log goes on behind them.
    async fn last_lines(&self, wanted: usize) -> Result<(Vec<Bytes>, Position), Failure> {
        let source = self.clone();
        let read = tokio::task::spawn_blocking(move || source.read_last(wanted));
        read.await.map_err(|error| Failure(ErrorBody::new(ErrorKind::Failed, error.to_string())))
    }

    fn read_last(&self, wanted: usize) -> (Vec<Bytes>, Position) {
        let entries = tail(&self.log, wanted, self.only).unwrap_or_default();
        // Whatever is written from here on comes by following, starting behind the last piece.
        let end = entries.last().map_or(Position(0), |entry| {
            let mut reader = Reader::from(&self.log, entry.position);
            _ = reader.entry();
            reader.position()
        });
        let mut lines = self.lines();
        let mut all: Vec<LogLine> = entries.iter().flat_map(|entry| lines.push(entry)).collect();
        all.extend(lines.finish());
        let from = all.len().saturating_sub(wanted);
        (all[from..].iter().filter_map(json_line).collect(), end)
    }

    fn lines(&self) -> Lines {
        Lines::new(self.runs.clone(), self.only)
    }

    /// What was written since a position.
    fn since(&self, position: Position, lines: &mut Lines) -> (Vec<Bytes>, Position) {
        let mut reader = Reader::from(&self.log, position);
        let mut new = Vec::new();
        while let Ok(Some(entry)) = reader.entry() {
            new.extend(lines.push(&entry).iter().filter_map(json_line));
        }
        (new, reader.position())
    }
}

fn json_line(line: &LogLine) -> Option<Bytes> {
    let mut text = serde_json::to_string(line).ok()?;
    text.push('\n');
    Some(Bytes::from(text))
}

/// A run by its number, its id or a prefix of it.
fn find_run(runs: &BTreeMap<RunNumber, String>, wanted: &str) -> Option<RunNumber> {
    let by_number = wanted.parse().ok().map(RunNumber).filter(|run| runs.contains_key(run));
    let mut by_id = runs.iter().filter(|(_, id)| id.starts_with(&wanted.to_ascii_uppercase()));
    by_number.or_else(|| by_id.next().map(|(run, _)| *run).filter(|_| by_id.next().is_none()))
}

/// Sends what comes, for as long as the client is there; it counts as a consumer meanwhile.
async fn follow(
    context: Context,
    id: SessionId,
    source: Source,
    first: Vec<Bytes>,
    mut position: Position,
    sender: mpsc::Sender<Bytes>,
) {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let consumer = ConsumerId(NEXT.fetch_add(1, Ordering::Relaxed));
    let joined = Event::ConsumerJoined { consumer, kind: ConsumerKind::Watch };
    _ = context.handle.ask(id, joined, Facts::default()).await;
    let mut grown = crate::follow::watch(&source.log);
    let mut assembled = source.lines();
    let mut lines = first;
    loop {
        for line in lines {
            if sender.send(line).await.is_err() {
                break;
            }
        }
        tokio::select! {
            _ = grown.recv() => {}
            () = sender.closed() => break,
        }
        (lines, position) = source.since(position, &mut assembled);
    }
    _ = context.handle.ask(id, Event::ConsumerLeft { consumer }, Facts::default()).await;
}

/// A channel as a stream.
struct Stream(mpsc::Receiver<Bytes>);

impl futures_core::Stream for Stream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|line| line.map(Ok))
    }
}
