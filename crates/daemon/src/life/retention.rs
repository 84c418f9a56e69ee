//! Forgets what is older than `[retention]` allows, or more: when the daemon starts and once an hour, a little at a time,
//! beside everything else. What went is an event. Lock files of keys that nobody uses go with it.
//!
//! It decides nothing about sessions: archived ones and messages that wait or have failed are never touched.

use crate::clock;
use crate::define::config::Retention;
use crate::engine::Command;
use crate::http::Context;
use pinfold_api::ErrorBody;
use pinfold_core::{EventKind, Wall};
use pinfold_store::{AuditEvent, Batch, Committed, Prune, ReadError, Reader, SessionId};
use serde_json::{Map, Value};
use std::num::NonZeroU64;
use std::time::Duration;
use tracing::{info, warn};

/// Between two looks: things are too old after days, and nothing else makes them so.
const EVERY: Duration = Duration::from_secs(60 * 60);
/// Between two batches: one takes milliseconds, and whoever else wants to write comes in between.
const PAUSE: Duration = Duration::from_millis(50);
/// A key that was not used for so long is likely to be one of many that are used once.
const UNUSED: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// So many lock files are removed in one look, each within microseconds.
const MOST_SWEPT: usize = 1000;
/// So many of the newest events are kept, however large they are.
const NEWEST: NonZeroU64 = NonZeroU64::new(1000).expect("more than none");

/// What was forgotten.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Forgotten {
    events: u64,
    runs: u64,
    messages: u64,
    /// Some of it was not too old, but too much.
    by_size: bool,
}

/// Forgets for as long as the daemon lives.
pub(crate) async fn keep(context: Context) {
    loop {
        if let Err(error) = pass(&context).await {
            warn!("what is old was not forgotten: {}", error.message);
        }
        sweep_locks(&context).await;
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = context.handle.ended() => return,
        }
    }
}

/// Removes lock files of keys that nobody uses any more.
async fn sweep_locks(context: &Context) {
    let folders = context.folders.clone();
    let swept = tokio::task::spawn_blocking(move || folders.sweep(UNUSED, MOST_SWEPT)).await;
    match swept {
        Ok(Ok(0)) | Err(_) => {}
        Ok(Ok(count)) => {
            info!("{count} lock files of keys were removed that nobody used for a week");
        }
        Ok(Err(errno)) => warn!("lock files that nobody uses were not removed: {errno}"),
    }
}

async fn pass(context: &Context) -> Result<(), ErrorBody> {
    let retention = context.handle.view(|view| view.retention()).await?;
    let mut forgotten = Forgotten::default();
    let done = forget(context, retention, &mut forgotten).await;
    if forgotten.events + forgotten.runs + forgotten.messages > 0 {
        let why = forgotten.why(retention);
        warn!("{why}");
        let (kind, data) = (EventKind::Pruned, forgotten.data());
        _ = context.handle.note(AuditEvent { at: clock::wall(), session: None, run: None, kind, why, data });
    }
    done
}

impl Forgotten {
    fn why(self, retention: Retention) -> String {
        let Forgotten { events, runs, messages, by_size } = self;
        let what = format!("{events} events, {runs} runs and {messages} messages were forgotten");
        match retention.size.filter(|_| by_size) {
            Some(size) => format!("{what}: the database was larger than {} MiB ([retention])", size >> 20),
            None => format!("{what}: they were older than [retention] allows"),
        }
    }

    fn data(self) -> Map<String, Value> {
        let Forgotten { events, runs, messages, by_size } = self;
        let reason = if by_size { "size" } else { "age" };
        let fields = [
            ("events", Value::from(events)),
            ("runs", runs.into()),
            ("messages", messages.into()),
            ("reason", reason.into()),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

async fn forget(context: &Context, retention: Retention, forgotten: &mut Forgotten) -> Result<(), ErrorBody> {
    let before = |age: Duration| {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Wall(clock::wall().0.saturating_sub(age))
    };
    if let Some(age) = retention.events {
        forgotten.events += events(context, before(age)).await?;
    }
    if let Some(age) = retention.runs {
        forgotten.runs +=
            rows(context, before(age), |reader, at| reader.with_old_runs(at), Batch::prune_runs).await?;
    }
    if let Some(age) = retention.messages {
        let of = rows(context, before(age), |reader, at| reader.with_old_messages(at), Batch::prune_messages);
        forgotten.messages += of.await?;
    }
    match retention.size {
        Some(size) => shrink(context, size, forgotten).await,
        None => Ok(()),
    }
}

/// The oldest events and runs together, until what is left is small enough.
async fn shrink(context: &Context, size: u64, forgotten: &mut Forgotten) -> Result<(), ErrorBody> {
    while context.read(|reader| reader.bytes_used()).await? > size {
        let oldest = Prune { before: Wall(i64::MAX), keep: NEWEST };
        let gone = prune(context, |batch| batch.prune(oldest)).await?;
        forgotten.events += gone;
        // Runs go with the events that told of them.
        let oldest = context.read(|reader| reader.oldest_event()).await?.unwrap_or(Wall(i64::MAX));
        let oldest = if gone == 0 { Wall(i64::MAX) } else { oldest };
        let runs = rows(context, oldest, |reader, at| reader.with_old_runs(at), Batch::prune_runs).await?;
        forgotten.runs += runs;
        forgotten.by_size |= gone + runs > 0;
        if gone + runs == 0 {
            return Ok(());
        }
    }
    Ok(())
}

async fn events(context: &Context, limit: Wall) -> Result<u64, ErrorBody> {
    // Nearly always there is nothing to write.
    if context.read(|reader| reader.oldest_event()).await?.is_none_or(|oldest| oldest >= limit) {
        return Ok(0);
    }
    let mut all = 0;
    loop {
        let gone =
            prune(context, |batch| batch.prune(Prune { before: limit, keep: NonZeroU64::MIN })).await?;
        if gone == 0 {
            return Ok(all);
        }
        all += gone;
    }
}

/// Rows of sessions, one session after the other.
async fn rows(
    context: &Context,
    limit: Wall,
    find: fn(&Reader, Wall) -> Result<Vec<SessionId>, ReadError>,
    add: fn(&mut Batch, SessionId, Wall),
) -> Result<u64, ErrorBody> {
    let mut all = 0;
    for session in context.read(move |reader| find(reader, limit)).await? {
        loop {
            let gone = prune(context, |batch| add(batch, session, limit)).await?;
            if gone == 0 {
                break;
            }
            all += gone;
        }
    }
    Ok(all)
}

/// One batch; how much it forgot.
async fn prune(context: &Context, add: impl FnOnce(&mut Batch)) -> Result<u64, ErrorBody> {
    let mut batch = Batch::new();
    add(&mut batch);
    let outcome = context.handle.order(|done| Command::Prune { batch, done }).await?;
    let gone = outcome.map(|committed| committed.pruned).unwrap_or_else(|error| {
        // One that failed is tried again in an hour, and is no reason for the daemon to end.
        warn!("what is old could not be forgotten: {error}");
        Committed::default().pruned
    });
    tokio::time::sleep(if gone == 0 { Duration::ZERO } else { PAUSE }).await;
    Ok(gone)
}

#[cfg(test)]
mod tests;
