//! The output of a session's agents: what exists, or as it comes, one object per line.

use super::HttpContext;
use super::api_error::ApiError;
use super::extract::{SessionInPath, UrlQuery};
use super::look;
use super::paging::ListHeaders;
use super::streaming;
use crate::engine::SessionRef;
use crate::http::consumer::Consumer;
use crate::output::lines::OutputLines;
use crate::output::printed::{PrintedOutput, Sequences};
use crate::output::written::Written;
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use pinfold_api::object::{LogLine, Turn};
use pinfold_api::query::Logs as Which;
use pinfold_api::{ErrorBody, ErrorKind, time};
use pinfold_core::RunNumber;
use pinfold_shim::log::Position;
use pinfold_store::{ReadError, RowCount, SessionId, Take};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How many lines a person gets who names no number.
const LINES: usize = 200;

/// How many earlier lines a client sees when it attaches.
pub(crate) const SHOWN: usize = 20;

/// How much is read at once: a flood need not fit into memory.
const PART: usize = 256 << 10;

/// A line on a screen that has not changed for this long is sent to followers. Time counts only while
/// something moves on the screen; the kernel says when the file grows.
const SETTLES: Duration = Duration::from_millis(250);

pub(crate) async fn logs(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
    UrlQuery(which): UrlQuery<Which>,
) -> Result<Response, ApiError> {
    let id = super::sessions::find(&context, session).await?;
    let sequences = if which.raw { Sequences::Kept } else { Sequences::Obeyed };
    let mut source = OutputSource::of(&context, id, which.run.as_deref(), sequences).await?;
    let (sender, receiver) = mpsc::channel(4);
    if let Some(message) = &which.message {
        let text = of_turn(&context, id, source, message).await?;
        tokio::spawn(async move { sender.send(text).await });
        return Ok(streaming::lines(receiver));
    }
    // A client that says since when wants everything since then.
    let wanted = which.n.unwrap_or(if which.since_ms.is_some() { usize::MAX } else { LINES });
    source.since = which.since_ms.map(|ms| time::rfc3339(u64::try_from(ms).unwrap_or(0)));
    if which.follow {
        tokio::spawn(follow(context, id, source, wanted, sender));
    } else {
        let lines = blocking(move || {
            // A count needs every line; otherwise only the last ones are read.
            let (mut lines, _) = source.last(if which.count { usize::MAX } else { wanted });
            lines.extend(source.printed.finish());
            source.drop_older(&mut lines);
            let total = lines.len();
            (lines.split_off(total.saturating_sub(wanted)), total)
        });
        let (lines, total) = lines.await?;
        let text = json_lines(&lines);
        tokio::spawn(async move { sender.send(text).await });
        if which.count {
            let head = ListHeaders { total: Some(RowCount::Exactly(total as u64)), ..ListHeaders::default() };
            return Ok((head.fields(), streaming::lines(receiver)).into_response());
        }
    }
    Ok(streaming::lines(receiver))
}

/// What was printed in the last turn of a message.
async fn of_turn(
    context: &HttpContext,
    id: SessionId,
    mut source: OutputSource,
    message: &str,
) -> Result<Bytes, ApiError> {
    let message = super::messages::row(context, id, super::messages::parse(message)?).await?;
    let Some(turn) = message.turn else { return Ok(Bytes::new()) };
    let lines = blocking(move || source.turn(turn));
    Ok(json_lines(&lines.await?))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ErrorBody> {
    let failed = |error: tokio::task::JoinError| ErrorBody::new(ErrorKind::Failed, error.to_string());
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

/// Where output is read, and the state that assembles its lines.
pub(crate) struct OutputSource {
    written: Written,
    printed: PrintedOutput,
    only: Option<RunNumber>,
    /// Lines printed before this moment are left out.
    since: Option<String>,
}

impl OutputSource {
    pub(crate) async fn of(
        context: &HttpContext,
        id: SessionId,
        wanted: Option<&str>,
        sequences: Sequences,
    ) -> Result<OutputSource, ApiError> {
        let place = context.handle.view(move |view| {
            (view.written_of(id), view.session(id).is_some_and(|known| known.definition().pty))
        });
        let (written, pty) = place.await?;
        let there = written.clone();
        let mut runs = context.read(move |reader| names(reader, id, in_log(reader, id, &there)?)).await?;
        let mut only = wanted.and_then(|wanted| find_run(&runs, wanted));
        if let (Some(wanted), None) = (wanted, only) {
            // A run whose output is gone is still a run.
            runs = context.read(move |reader| names(reader, id, Take::All)).await?;
            let missing = || ErrorBody::new(ErrorKind::NotFound, format!("there is no run `{wanted}`"));
            only = Some(find_run(&runs, wanted).ok_or_else(missing)?);
        }
        Ok(OutputSource {
            written,
            printed: PrintedOutput::new(OutputLines::new(runs, only), sequences, pty),
            only,
            since: None,
        })
    }

    /// Drops lines that were printed too early. All times have the same format, so their texts sort by time.
    fn drop_older(&self, lines: &mut Vec<LogLine>) {
        if let Some(since) = &self.since {
            lines.retain(|line| line.at >= *since);
        }
    }

    /// The last lines, and where the log continues after them. An unfinished line is kept back.
    fn last(&mut self, wanted: usize) -> (Vec<LogLine>, Position) {
        let entries = self.written.tail(wanted, self.only).unwrap_or_default();
        if entries.iter().any(|entry| self.printed.is_screen(entry)) {
            return self.last_of_screen(wanted);
        }
        let end = entries.last().map_or(Position(0), |entry| {
            let mut reader = self.written.from(entry.position);
            _ = reader.entry();
            reader.position()
        });
        let mut all: Vec<LogLine> = entries.iter().flat_map(|entry| self.printed.push(entry)).collect();
        (all.split_off(all.len().saturating_sub(wanted)), end)
    }

    /// As `last`, for a screen: its content depends on everything that was ever printed on it.
    fn last_of_screen(&mut self, wanted: usize) -> (Vec<LogLine>, Position) {
        let mut reader = self.written.from(Position(0));
        let mut last = VecDeque::new();
        while let Ok(Some(entry)) = reader.entry() {
            last.extend(self.printed.push(&entry));
            last.drain(..last.len().saturating_sub(wanted));
        }
        (last.into(), reader.position())
    }

    /// The last lines for a follower: they include what is on the screen, which is not sent again.
    fn begin(&mut self, wanted: usize) -> (Vec<LogLine>, Position) {
        let (mut lines, end) = self.last(wanted);
        // A line that did not change between two looks has settled.
        for _ in 0..2 {
            lines.extend(self.printed.settle().0);
        }
        self.drop_older(&mut lines);
        (lines.split_off(lines.len().saturating_sub(wanted)), end)
    }

    /// What one turn printed: up to its end, or to the end of its run.
    fn turn(&mut self, turn: Turn) -> Vec<LogLine> {
        let mut reader = self.written.from(Position(turn.from));
        let mut lines = Vec::new();
        while turn.to.is_none_or(|to| reader.position().0 < to)
            && let Ok(Some(entry)) = reader.entry()
            && entry.run.0 == turn.run
        {
            lines.extend(self.printed.push(&entry));
        }
        lines.extend(self.printed.finish());
        lines
    }

    /// What was written since a position, or the first part of it.
    fn since(&mut self, position: Position) -> (Vec<LogLine>, Position) {
        let mut reader = self.written.from(position);
        let mut new = Vec::new();
        let mut bytes = 0;
        while bytes < PART
            && let Ok(Some(entry)) = reader.entry()
        {
            bytes += entry.bytes.len();
            new.extend(self.printed.push(&entry));
        }
        (new, reader.position())
    }
}

/// One object per line; all of them are sent together.
fn json_lines(lines: &[LogLine]) -> Bytes {
    let mut text = Vec::new();
    for line in lines {
        if serde_json::to_writer(&mut text, line).is_ok() {
            text.push(b'\n');
        }
    }
    Bytes::from(text)
}

/// The ids of some runs.
fn names(
    reader: &pinfold_store::Reader,
    id: SessionId,
    take: Take,
) -> Result<BTreeMap<RunNumber, String>, ReadError> {
    let rows = reader.runs(id, take)?;
    Ok(rows.into_iter().filter_map(|run| Some((run.number, run.id?.to_string()))).collect())
}

/// The runs in a log: there may be a million before them.
fn in_log(reader: &pinfold_store::Reader, id: SessionId, written: &Written) -> Result<Take, ReadError> {
    let first = written.from(Position(0)).entry().ok().flatten().map(|entry| entry.run.0);
    let latest = reader.runs(id, Take::Last(1))?.pop().map(|run| run.number.0);
    let count = latest.zip(first).map_or(1, |(latest, first)| latest.saturating_sub(first) + 1);
    Ok(Take::Last(u32::try_from(count).unwrap_or(u32::MAX)))
}

/// A run by its number, its id or a prefix of it.
fn find_run(runs: &BTreeMap<RunNumber, String>, wanted: &str) -> Option<RunNumber> {
    let by_number = wanted.parse().ok().map(RunNumber).filter(|run| runs.contains_key(run));
    let mut by_id = runs.iter().filter(|(_, id)| id.starts_with(&wanted.to_ascii_uppercase()));
    by_number.or_else(|| by_id.next().map(|(run, _)| *run).filter(|_| by_id.next().is_none()))
}

/// Sends output as it comes, as long as the client is there; it counts as a consumer meanwhile.
async fn follow(
    context: HttpContext,
    id: SessionId,
    source: OutputSource,
    wanted: usize,
    sender: mpsc::Sender<Bytes>,
) {
    let Ok(_consumer) = Consumer::join(&context.handle, id, look::watcher(&context.pass)).await else {
        return;
    };
    tokio::select! {
        _ = pass_on(&context, id, source, wanted, &sender) => {}
        () = sender.closed() => {}
        () = context.handle.ended() => {}
    }
}

/// Sends the last lines and then whatever is written, until that is impossible.
pub(crate) async fn pass_on(
    context: &HttpContext,
    id: SessionId,
    mut source: OutputSource,
    wanted: usize,
    sender: &mpsc::Sender<Bytes>,
) -> Option<Infallible> {
    // Watched before it is read: what is written in between wakes us.
    let mut grown = crate::ports::file_watch::watch(&source.written.watched());
    let mut looking = Looking { last: Instant::now() };
    let mut position = None;
    loop {
        let read = blocking(move || {
            let (lines, position) = match position {
                None => source.begin(wanted),
                Some(position) => source.since(position),
            };
            (source, json_lines(&lines), position)
        });
        let (back, text, reached) = read.await.ok()?;
        source = back;
        if !text.is_empty() {
            sender.send(text).await.ok()?;
        }
        if position == Some(reached) {
            looking.until_grown(&mut source.printed, &mut grown, sender).await?;
            let latest = context.handle.view(move |view| view.session(id).and_then(SessionRef::run));
            if let Some((run, name)) = latest.await.ok()? {
                source.printed.lines.name(run, name.to_string());
            }
        }
        position = Some(reached);
    }
}

/// Looks at a screen from time to time, as long as something moves on it.
struct Looking {
    last: Instant,
}

impl Looking {
    /// Waits for more output, and meanwhile sends what has settled on the screen.
    async fn until_grown(
        &mut self,
        printed: &mut PrintedOutput,
        grown: &mut mpsc::Receiver<()>,
        sender: &mpsc::Sender<Bytes>,
    ) -> Option<()> {
        loop {
            let wait = SETTLES.saturating_sub(self.last.elapsed());
            if let Ok(more) = tokio::time::timeout(wait, grown.recv()).await {
                return more;
            }
            let (lines, calm) = printed.settle();
            self.last = Instant::now();
            if !lines.is_empty() {
                sender.send(json_lines(&lines)).await.ok()?;
            }
            if calm {
                return grown.recv().await;
            }
        }
    }
}
