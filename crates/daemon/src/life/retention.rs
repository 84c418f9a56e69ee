//! Forgets what is older than `[retention]` allows, or more: when the daemon starts, once an hour, and sooner where much
//! has happened, a little at a time, beside everything else. What went is an event, once a day. Lock files of keys that nobody
//! uses go with it.
//!
//! It decides nothing about sessions: archived ones and messages that wait or have failed are never touched.

mod answers;

use crate::clock;
use crate::define::config::Retention;
use crate::engine::Command;
use crate::http::Context;
use pinfold_api::ErrorBody;
use pinfold_core::{EventKind, Wall};
use pinfold_shim::tape::Position;
use pinfold_store::{AuditEvent, Batch, Committed, Limits, Sweep, Tally, Untold};
use serde_json::{Map, Value};
use std::time::{Duration, Instant, SystemTime};
use tracing::{info, warn};

/// Between two sweeps: things are too old after days, and nothing else makes them so.
const EVERY: Duration = Duration::from_secs(60 * 60);
/// After so many events the database may be too large before the hour is over,
const MANY: u64 = 5_000;
/// which is looked at this often while there are any. To be told of each event would cost each of them.
const LOOK: Duration = Duration::from_secs(2);
/// What was forgotten is told once in so many milliseconds: a day.
const TOLD_EVERY: i64 = 24 * 60 * 60 * 1000;
/// A key that was not used for so long is likely to be one of many that are used once.
const UNUSED: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// So many lock files are removed in one look, each within microseconds.
const MOST_SWEPT: usize = 1000;

/// Forgets for as long as the daemon lives.
pub(crate) async fn keep(context: Context) {
    loop {
        let begun = Instant::now();
        forget_rows(&context).await;
        if let Err(error) = sweep_output(&context).await {
            warn!("what agents printed long ago was not forgotten: {}", error.message);
        }
        if let Err(error) = sweep_answers(&context).await {
            warn!("answers that no message has were not removed: {}", error.message);
        }
        sweep_locks(&context).await;
        tokio::select! {
            () = tokio::time::sleep(EVERY.saturating_sub(begun.elapsed())) => {}
            () = keep_small(&context) => return,
            () = context.handle.ended() => return,
        }
    }
}

/// Forgets whenever much has happened, without an end but the daemon's. While nothing happens it is not woken.
async fn keep_small(context: &Context) {
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

async fn forget_rows(context: &Context) {
    if let Err(error) = pass(context).await {
        warn!("what is old was not forgotten: {}", error.message);
    }
}

/// Removes files with what agents printed, of sessions that have no run, when nobody wrote to them for as long as runs are
/// kept. The newest of each session stays: it says where the next one goes on.
async fn sweep_output(context: &Context) -> Result<(), ErrorBody> {
    let (retention, sessions) = context.handle.view(|view| (view.retention(), view.resting_output())).await?;
    let Some(before) = limits(retention, clock::wall()).runs else { return Ok(()) };
    let gone = context.read(move |reader| {
        let mut gone = 0;
        for (id, log, tape) in sessions {
            // One that cannot be looked at is looked at again in an hour.
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

/// Removes files of long answers that no message has.
async fn sweep_answers(context: &Context) -> Result<(), ErrorBody> {
    let sessions = context.handle.view(|view| view.sessions_folder()).await?;
    let gone = context.read(move |reader| answers::sweep(&sessions, &**reader, SystemTime::now())).await?;
    if gone > 0 {
        info!("{gone} files of answers were removed that no message has");
    }
    Ok(())
}

/// Removes lock files of keys that nobody uses any more.
async fn sweep_locks(context: &Context) {
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

async fn pass(context: &Context) -> Result<(), ErrorBody> {
    let retention = context.handle.view(|view| view.retention()).await?;
    let swept = sweep(context, limits(retention, clock::wall())).await;
    tell(context, retention, clock::wall()).await.and(swept)
}

/// What may go now.
fn limits(retention: Retention, now: Wall) -> Limits {
    let before = |age: Duration| {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Wall(now.0.saturating_sub(age))
    };
    Limits {
        events: retention.events.map(before),
        runs: retention.runs.map(before),
        messages: retention.messages.map(before),
        size: retention.size,
    }
}

async fn sweep(context: &Context, limits: Limits) -> Result<(), ErrorBody> {
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
        // One that failed is tried again in an hour, and is no reason for the daemon to end.
        let Some(committed) = commit(context, batch).await? else { return Ok(()) };
        context.metrics.pruned(&committed, begun.elapsed());
        sweep.done(&committed);
        tokio::time::sleep(sweep.rest(begun.elapsed())).await;
    }
}

async fn commit(context: &Context, batch: Batch) -> Result<Option<Committed>, ErrorBody> {
    let outcome = context.handle.order(|done| Command::Prune { batch, done }).await?;
    let told = outcome.inspect_err(|error| warn!("what is old could not be forgotten: {error}"));
    Ok(told.ok())
}

/// Says what went, once a day. The count is in the database: what a daemon did not come to tell, the next one does.
async fn tell(context: &Context, retention: Retention, now: Wall) -> Result<(), ErrorBody> {
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

/// A clock that was set back does not make the next time a year away.
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
