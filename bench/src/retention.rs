//! Retention: how large a file grows that is written to without end, how long its steps take, and what verbs
//! cost with few events and with many.

use crate::messages::{Home, millis};
use crate::table::{Table, median, part};
use pinfold_core::{EventKind, Mode, Session, Spec, Wall};
use pinfold_store::{
    AuditEvent, Batch, NewSession, Reader, SessionId, Store, StoreOptions, Sweep, SweepLimits, Ticket, Ulid,
};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const EVENTS: u64 = 10_000_000;
/// The database's size limit, so that most of what is written has to be removed again.
const SIZE: u64 = 64 << 20;
const SESSIONS: u64 = 20;
/// Events in one batch, and batches in flight at once.
const IN_BATCH: u64 = 100;
const UNDER_WAY: usize = 8;
/// Like the daemon.
const SWEPT_AFTER: u64 = 5_000;
/// How often each verb is called.
const CALLS: usize = 30;
const STARTS: usize = 7;
/// Enough steps for a steady tail.
const ALONE: usize = 500;
/// Time limit for those steps, in case the disk is slow.
const LONGEST: Duration = Duration::from_secs(30);
/// A file of a version before files could shrink; its content does not matter.
const OLD: &[u8] = include_bytes!("../../crates/store/tests/fixtures/v5.db");

pub(crate) fn run(events: Option<u64>) {
    grow(events.unwrap_or(EVENTS));
    shrinkable();
}

fn session(number: u64) -> SessionId {
    SessionId(Ulid::new(1_700_000_000_000, u128::from(number)))
}

fn now() -> Wall {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Wall(i64::try_from(since.as_millis()).unwrap())
}

/// Makes events such as a crash loop leaves.
fn batch(count: u64, of: impl Fn(u64) -> Option<SessionId>) -> Batch {
    let mut batch = Batch::new();
    for number in 0..count {
        let lines = Value::from(vec!["a line that the agent printed before it ended"; 2]);
        let data = [("code", Value::from(1)), ("uptime_ms", Value::from(number)), ("output", lines)];
        let data: Map<String, Value> =
            data.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let (kind, why) =
            (EventKind::RunExited, "it exited with 1 (crash); the next run starts at once".into());
        batch.event(AuditEvent { at: now(), session: of(number), run: None, kind, why, data });
    }
    batch
}

fn create(store: &Store) {
    let core = Session::new(Spec::new(Mode::OnDemand));
    let mut batch = Batch::new();
    for number in 0..SESSIONS {
        let (id, definition) = (session(number), Value::Object(Map::new()));
        let name = format!("session-{number}");
        batch.create(NewSession { id, name, definition, parent: None, created_at: now() }, &core);
    }
    store.commit(batch).wait().unwrap();
}

/// Does one sweep, as the daemon does; returns how long each step took.
fn sweep(store: &Store, reader: &Reader, mut between: impl FnMut()) -> Vec<f64> {
    let limits = SweepLimits { size: Some(SIZE), ..SweepLimits::default() };
    let (mut sweep, mut took) = (Sweep::new(limits), Vec::new());
    while let Some(batch) = sweep.next(&**reader).unwrap() {
        let begun = Instant::now();
        sweep.done(&store.commit(batch).wait().unwrap());
        took.push(millis(begun.elapsed()));
        between();
        std::thread::sleep(sweep.rest(begun.elapsed()));
    }
    took
}

/// Returns how long the machine takes for the smallest commit.
fn one_event(store: &Store) -> f64 {
    let begun = Instant::now();
    store.commit(batch(1, |_| Some(session(0)))).wait().unwrap();
    millis(begun.elapsed())
}

/// Formats the median, the 99th percentile and the longest.
fn spread(times: &[f64]) -> String {
    let [middle, tail, longest] = [0.5, 0.99, 1.0].map(|share| part(times.to_vec(), share));
    format!("{middle:.2} / {tail:.2} / {longest:.2} ms")
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn grow(events: u64) {
    println!("{events} events in a loop, with `size = \"64M\"`");
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("pinfold.db"), &StoreOptions::default()).unwrap();
    create(&store);
    let (begun, over) = (Instant::now(), AtomicBool::new(false));
    let (largest, commits, beside) = std::thread::scope(|scope| {
        let sweeper = scope.spawn(|| sweep_beside(&store, &over));
        let (largest, commits) = write(&store, events);
        over.store(true, Ordering::Release);
        (largest, commits, sweeper.join().unwrap())
    });
    let took = begun.elapsed();
    let reader = store.reader().unwrap();
    let mut alone = sweep(&store, &reader, || ());
    let mut table = Table::new(["what", "figure"]);
    let mut row = |what: &str, figure: String| table.row([what.to_owned(), figure]);
    row("written", format!("{:.0} events/s", events as f64 / took.as_secs_f64()));
    row("largest size of all files", mib(largest));
    row("size of all files at the end", mib(reader.disk_used()));
    row("used in it", mib(reader.bytes_used().unwrap()));
    let left = reader.complete_from().unwrap().unwrap();
    row("complete from event", left.seq.to_string());
    row("commits of 100 events beside it: median / 99 % / longest", spread(&commits));
    row("steps beside the writer, with their wait", spread(&beside));
    // With no other writer: the cost of a step itself, beside that of the smallest commit.
    let before: Vec<f64> = (0..ALONE).map(|_| one_event(&store)).collect();
    let (mut between, begun) = (Vec::new(), Instant::now());
    alone.clear();
    while alone.len() < ALONE && begun.elapsed() < LONGEST {
        write(&store, 10_000.min(events));
        alone.extend(sweep(&store, &reader, || between.push(one_event(&store))));
    }
    row("one event, nothing else happens", spread(&before));
    row(&format!("{} steps, nobody else writes", alone.len()), spread(&alone));
    row("one event behind each of these", spread(&between));
    table.print();
}

/// What it costs that a file can shrink: commits into a new one, and into one of an earlier version, in
/// memory and on disk.
fn shrinkable() {
    println!(
        "\ncommits a second into a file that can shrink, and into one of an earlier version that cannot"
    );
    let mut table = Table::new(["where", "events in a commit", "can shrink", "cannot"]);
    for (place, folder, rounds) in
        [("memory", Path::new("/dev/shm"), 3000), ("disk", &std::env::temp_dir(), 300)]
    {
        for events in [1, 100] {
            let rate = |old: bool| {
                let folder = tempfile::tempdir_in(folder).unwrap();
                let path = folder.path().join("pinfold.db");
                if old {
                    std::fs::write(&path, OLD).unwrap();
                }
                let store = Store::open(&path, &StoreOptions::default()).unwrap();
                let begun = Instant::now();
                for _ in 0..rounds {
                    store.commit(batch(events, |_| None)).wait().unwrap();
                }
                format!("{:.0}/s", f64::from(rounds) / begun.elapsed().as_secs_f64())
            };
            table.row([place.to_owned(), events.to_string(), rate(false), rate(true)]);
        }
    }
    table.print();
}

/// Writes events; returns the largest size that was seen, and how long each batch took.
fn write(store: &Store, events: u64) -> (u64, Vec<f64>) {
    let reader = store.reader().unwrap();
    let (mut largest, mut under_way, mut took) = (0, VecDeque::<(Instant, Ticket)>::new(), Vec::new());
    let mut settle = |(begun, ticket): (Instant, Ticket)| {
        ticket.wait().unwrap();
        took.push(millis(begun.elapsed()));
    };
    for number in 0..events / IN_BATCH {
        let ticket = store.commit(batch(IN_BATCH, |event| Some(session((number + event) % SESSIONS))));
        under_way.push_back((Instant::now(), ticket));
        if under_way.len() >= UNDER_WAY {
            under_way.pop_front().into_iter().for_each(&mut settle);
        }
        if number % 100 == 0 {
            largest = largest.max(reader.disk_used());
        }
    }
    under_way.into_iter().for_each(&mut settle);
    (largest.max(reader.disk_used()), took)
}

fn sweep_beside(store: &Store, over: &AtomicBool) -> Vec<f64> {
    let (reader, mut took, mut swept) = (store.reader().unwrap(), Vec::new(), 0);
    while !over.load(Ordering::Acquire) {
        let seq = store.position().seq;
        if seq >= swept + SWEPT_AFTER {
            swept = seq;
            took.extend(sweep(store, &reader, || ()));
        }
        // The writer does not say when it is done.
        std::thread::sleep(Duration::from_millis(5));
    }
    took
}

/// Fills the database of a home whose daemon is down.
fn fill(home: &Path, events: u64, all_of: SessionId) {
    let store = Store::open(&home.join("pinfold.db"), &StoreOptions::default()).unwrap();
    let reader = store.reader().unwrap();
    while reader.max_seq().unwrap() < events {
        let many = (events - reader.max_seq().unwrap()).min(10_000);
        store.commit(batch(many, |_| Some(all_of))).wait().unwrap();
    }
}

pub(crate) fn verbs() {
    println!("\nverbs by the number of events: {CALLS} calls of each, median and 99 %; `up` {STARTS} times");
    let heads = ["events", "file", "up", "ls", "events -n 50", "events --session -n 50", "send"];
    let mut table = Table::new(heads);
    for events in [1_000, 1_000_000] {
        let home = Home::new();
        home.chat("chat", "line", "1h", "exec cat >/dev/null");
        home.say(&["stop", "chat"]);
        std::fs::write(home.state().join("config.toml"), "[retention]\nevents = \"off\"\nsize = \"off\"\n")
            .unwrap();
        let chat: Value = home.client.get("/v1/sessions/chat").unwrap();
        home.say(&["down"]);
        fill(&home.state(), events, chat["id"].as_str().unwrap().parse().unwrap());
        let bytes = std::fs::metadata(home.state().join("pinfold.db")).unwrap().len();
        let timed = |words: &[&str]| {
            let begun = Instant::now();
            home.say(words);
            millis(begun.elapsed())
        };
        let starts = (0..STARTS).map(|_| {
            let took = timed(&["up"]);
            home.say(&["down"]);
            took
        });
        let up = format!("{:.1} ms", median(starts.collect()));
        home.say(&["up"]);
        let cell = |words: &[&str]| {
            let times: Vec<f64> = (0..CALLS).map(|_| timed(words)).collect();
            format!("{:.1} / {:.1} ms", median(times.clone()), part(times, 0.99))
        };
        let verbs = [
            &["ls"][..],
            &["events", "-n", "50"],
            &["events", "--session", "chat", "-n", "50"],
            &["send", "chat", "how are you?"],
        ];
        let verbs = verbs.map(cell);
        table.row([events.to_string(), mib(bytes), up].into_iter().chain(verbs));
    }
    table.print();
}
