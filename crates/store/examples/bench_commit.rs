//! How long a durable commit takes here, alone and in groups, and how long a large store takes to open.
//!
//! ```text
//! cargo run --release -p pinfold-store --example bench_commit -- FOLDER
//! ```

use pinfold_core::{Event, Mode, Now, Session, Spec, Wall};
use pinfold_store::{
    AuditEvent, Batch, Decided, Facts, NewSession, Reader, SessionId, Store, StoreOptions, Ulid,
};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

const ALONE: usize = 5_000;
const GROUPS: usize = 1_000;
const GROUP: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: bench_commit FOLDER")?;
    let path = Path::new(&folder).join(format!("bench-{}.db", std::process::id()));
    let store = Store::open(&path, &StoreOptions::default())?;
    let mut session = Session::new(Spec::new(Mode::OnDemand));
    let id = SessionId(Ulid::new(1, 1));
    store.commit(created(id, &mut session)).wait()?;

    alone("one event of 200 bytes, alone", &store, || event(100))?;
    alone("a decision (session and event), alone", &store, || decision(id, &session))?;
    in_groups("events of 200 bytes, 64 batches at a time", &store, || event(100))?;
    in_groups("decisions, 64 batches at a time", &store, || decision(id, &session))?;
    one_batch("events of 200 bytes, 64 in one batch", &store)?;

    let events = store.reader()?.max_seq()?;
    drop(store);
    let begun = Instant::now();
    let store = Store::open(&path, &StoreOptions::default())?;
    let bytes = Reader::open(&path)?.disk_used();
    println!("open with check, {events} events, {} MiB: {:.1?}", bytes >> 20, begun.elapsed());
    drop(store);
    std::fs::remove_file(&path)?;
    Ok(())
}

fn created(id: SessionId, session: &mut Session) -> Batch {
    let (name, definition) = ("bench".to_owned(), serde_json::json!({}));
    let mut batch = Batch::new();
    batch.create(NewSession { id, name, definition, parent: None, created_at: Wall(0) }, session);
    let decision = session.handle(&Event::Created, Now::default());
    batch.decided(Decided { id, session, decision: &decision, at: Wall(0) }, &Facts::default());
    batch
}

fn event(bytes: usize) -> Batch {
    let mut batch = Batch::new();
    batch.event(audit(bytes));
    batch
}

fn audit(bytes: usize) -> AuditEvent {
    let (kind, why) = ("note".into(), "x".repeat(bytes));
    let data = [("text".to_owned(), "y".repeat(bytes).into())].into_iter().collect();
    AuditEvent { at: Wall(1), session: None, run: None, kind, why, data }
}

/// Returns what most decisions store: the whole session and an event.
fn decision(id: SessionId, session: &Session) -> Batch {
    let mut batch = event(100);
    batch.session(id, session);
    batch
}

fn alone(what: &str, store: &Store, make: impl Fn() -> Batch) -> Result<(), Box<dyn Error>> {
    let mut times: Vec<Duration> = Vec::with_capacity(ALONE);
    for _ in 0..ALONE {
        let batch = make();
        let begun = Instant::now();
        store.commit(batch).wait()?;
        times.push(begun.elapsed());
    }
    times.sort();
    let at = |part: usize| times[(ALONE - 1) * part / 100];
    println!("{what}: p50 {:.0?}, p99 {:.0?}, max {:.1?}", at(50), at(99), at(100));
    Ok(())
}

fn in_groups(what: &str, store: &Store, make: impl Fn() -> Batch) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    for _ in 0..GROUPS {
        let tickets: Vec<_> = (0..GROUP).map(|_| store.commit(make())).collect();
        for ticket in tickets {
            ticket.wait()?;
        }
    }
    rate(what, begun);
    Ok(())
}

fn one_batch(what: &str, store: &Store) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    for _ in 0..GROUPS {
        let mut batch = Batch::new();
        (0..GROUP).for_each(|_| batch.event(audit(100)));
        store.commit(batch).wait()?;
    }
    rate(what, begun);
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a rate is shown in thousands")]
fn rate(what: &str, begun: Instant) {
    let per_second = (GROUPS * GROUP) as f64 / begun.elapsed().as_secs_f64();
    println!("{what}: {:.0} k/s", per_second / 1000.0);
}
