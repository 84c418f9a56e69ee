//! Deletes what is older than `[retention]` allows, or exceeds its size: when the daemon starts, once an
//! hour, and sooner after much activity, a little at a time, beside everything else. An event reports it once
//! a day. Lock files of unused keys are removed too.
//!
//! It decides nothing about sessions: archived ones and messages that are queued or have failed are never
//! touched.

mod answers;

use crate::clock;
use crate::define::config::Retention;
use crate::define::kept;
use crate::engine::EngineCommand;
use crate::http::HttpContext;
use pinfold_api::ErrorBody;
use pinfold_core::{EventKind, Wall};
use pinfold_shim::tape::Position;
use pinfold_store::{AuditEvent, Batch, Committed, Sweep, SweepLimits, Tally, Untold};
use serde_json::{Map, Value};
use std::time::{Duration, Instant, SystemTime};
use tracing::{info, warn};

/// The interval between two sweeps: records expire after days, by time alone.
const EVERY: Duration = Duration::from_secs(60 * 60);
/// After this many events the database may be too large before the hour is over,
const MANY: u64 = 5_000;
/// which is checked this often while there are any. Being told of each event would slow each of them.
const LOOK: Duration = Duration::from_secs(2);
/// How often pruning is reported, in milliseconds: once a day.
const TOLD_EVERY: i64 = 24 * 60 * 60 * 1000;
/// A key unused for this long is probably one of many that are used once.
const UNUSED: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How many lock files are removed in one sweep, each within microseconds.
const MOST_SWEPT: usize = 1000;

/// Prunes as long as the daemon lives.
pub(crate) async fn keep(context: HttpContext) {
    loop {
        let begun = Instant::now();
        forget_rows(&context).await;
        if let Err(error) = sweep_output(&context).await {
            warn!("what agents printed long ago was not forgotten: {}", error.message);
        }
        if let Err(error) = sweep_answers(&context).await {
            warn!("answers that no message has were not removed: {}", error.message);
        }
        if let Err(error) = sweep_copies(&context).await {
            warn!("old copies of transcripts were not removed: {}", error.message);
        }
        sweep_locks(&context).await;
        tokio::select! {
            () = tokio::time::sleep(EVERY.saturating_sub(begun.elapsed())) => {}
            () = keep_small(&context) => return,
            () = context.handle.ended() => return,
        }
    }
}

/// Prunes whenever much has happened, until the daemon ends. While nothing happens it is not woken.
async fn keep_small(context: &HttpContext) {
    let mut newest = context.last_event.clone();
    let mut forgotten = *newest.borrow_and_update();
    while newest.changed().await.is_ok() {
        tokio::time::sleep(LOOK).await;
        let events = *newest.borrow_and_update();
        if events >= forgotten + MANY {
            forgotten = events;
            forget_rows(context).await;
        }
    }
}

async fn forget_rows(context: &HttpContext) {
    if let Err(error) = pass(context).await {
        warn!("what is old was not forgotten: {}", error.message);
    }
}

/// Removes output files of sessions without a run that were not written to for as long as runs are kept. The
/// newest of each session stays: it shows where the next one continues.
async fn sweep_output(context: &HttpContext) -> Result<(), ErrorBody> {
    let (retention, sessions) = context.handle.view(|view| (view.retention(), view.resting_output())).await?;
    let Some(before) = limits(retention, clock::wall()).runs else { return Ok(()) };
    let gone = context.read(move |reader| {
        let mut gone = 0;
        for (id, log, tape) in sessions {
            // A file that cannot be read is tried again in an hour.
            gone += pinfold_shim::log::forget(&log, before).unwrap_or(0);
            let heard = Position(reader.cursor(id)?.map_or(0, |cursor| cursor.position));
            gone += pinfold_shim::tape::forget(&tape, heard, before).unwrap_or(0);
        }
        Ok(gone)
    });
    let gone = gone.await?;
    if gone > 0 {
        info!("{gone} files with what agents printed were removed: they were older than [retention] allows");
    }
    Ok(())
}

/// Removes the copies of transcripts to which nothing was added for as long as done messages are kept.
async fn sweep_copies(context: &HttpContext) -> Result<(), ErrorBody> {
    let (retention, copies) = context.handle.view(|view| (view.retention(), view.resting_copies())).await?;
    let Some(before) = limits(retention, clock::wall()).messages else { return Ok(()) };
    let forget = move |_: &pinfold_store::Reader| {
        Ok(copies.into_iter().filter(|folder| kept::forget(folder, before)).count())
    };
    let gone = context.read(forget).await?;
    if gone > 0 {
        info!("{gone} copies of transcripts were removed: they were older than [retention] allows");
    }
    Ok(())
}

/// Removes files of long answers that belong to no message.
async fn sweep_answers(context: &HttpContext) -> Result<(), ErrorBody> {
    let sessions = context.handle.view(|view| view.sessions_folder()).await?;
    let gone = context.read(move |reader| answers::sweep(&sessions, &**reader, SystemTime::now())).await?;
    if gone > 0 {
        info!("{gone} files of answers were removed that no message has");
    }
    Ok(())
}

/// Removes lock files of keys that are no longer used.
async fn sweep_locks(context: &HttpContext) {
    let folders = context.folders.clone();
    let swept = tokio::task::spawn_blocking(move || folders.sweep(UNUSED, MOST_SWEPT)).await;
    match swept {
        Ok(Ok(0)) | Err(_) => {}
        Ok(Ok(count)) => {
            info!("{count} lock files of keys, unused for a week, were removed");
        }
        Ok(Err(errno)) => warn!("unused lock files were not removed: {errno}"),
    }
}

async fn pass(context: &HttpContext) -> Result<(), ErrorBody> {
    let retention = context.handle.view(|view| view.retention()).await?;
    let swept = sweep(context, limits(retention, clock::wall())).await;
    tell(context, retention, clock::wall()).await.and(swept)
}

/// What may be deleted now.
fn limits(retention: Retention, now: Wall) -> SweepLimits {
    let before = |age: Duration| {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Wall(now.0.saturating_sub(age))
    };
    SweepLimits {
        events: retention.events.map(before),
        runs: retention.runs.map(before),
        messages: retention.messages.map(before),
        size: retention.size,
    }
}

async fn sweep(context: &HttpContext, limits: SweepLimits) -> Result<(), ErrorBody> {
    let mut sweep = Sweep::new(limits);
    loop {
        let plan = move |reader: &pinfold_store::Reader| {
            let due = sweep.next(&**reader)?;
            Ok((sweep, due))
        };
        let (planned, due) = context.read(plan).await?;
        let Some(batch) = due else { return Ok(()) };
        sweep = planned;
        let begun = Instant::now();
        // A failed batch is tried again in an hour, and is not a reason for the daemon to end.
        let Some(committed) = commit(context, batch).await? else { return Ok(()) };
        context.metrics.pruned(&committed, begun.elapsed());
        sweep.done(&committed);
        tokio::time::sleep(sweep.rest(begun.elapsed())).await;
    }
}

async fn commit(context: &HttpContext, batch: Batch) -> Result<Option<Committed>, ErrorBody> {
    let outcome = context.handle.order(|done| EngineCommand::Prune { batch, done }).await?;
    let told = outcome.inspect_err(|error| warn!("what is old could not be forgotten: {error}"));
    Ok(told.ok())
}

/// Reports what was deleted, once a day. The count is in the database: what one daemon did not report, the
/// next one does.
async fn tell(context: &HttpContext, retention: Retention, now: Wall) -> Result<(), ErrorBody> {
    let untold = context.read(|reader| reader.untold()).await?;
    if !is_due(untold, now) {
        return Ok(());
    }
    let why = why(untold.tally, retention);
    warn!("{why}");
    let (kind, data) = (EventKind::Pruned, data(untold.tally));
    let mut batch = Batch::new();
    batch.event(AuditEvent { at: now, session: None, run: None, kind, why, data });
    batch.told(now, untold.tally);
    commit(context, batch).await.map(drop)
}

/// A clock that was set back must not put off the next report for a year.
fn is_due(untold: Untold, now: Wall) -> bool {
    let since = untold.told_at.map_or(TOLD_EVERY, |at| now.0.abs_diff(at.0).cast_signed());
    untold.tally.rows() > 0 && since >= TOLD_EVERY
}

fn why(tally: Tally, retention: Retention) -> String {
    let Tally { events, runs, messages, by_size } = tally;
    let what = format!("{events} events, {runs} runs and {messages} messages were forgotten");
    match retention.size.filter(|_| by_size) {
        Some(size) => format!("{what}: the database was larger than {} MiB ([retention])", size >> 20),
        None => format!("{what}: they were older than [retention] allows"),
    }
}

fn data(tally: Tally) -> Map<String, Value> {
    let Tally { events, runs, messages, by_size } = tally;
    let reason = if by_size { "size" } else { "age" };
    let fields = [
        ("events", Value::from(events)),
        ("runs", runs.into()),
        ("messages", messages.into()),
        ("reason", reason.into()),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests;
