//! Full-text search over a hundred thousand messages: how long a search takes, and each step of the index.
//! Processor time is shown too, because other work on the machine changes it less.

use crate::messages::millis;
use crate::table::part;
use pinfold_core::inbox::MessageChange;
use pinfold_core::{EventKind, MessageId, Mode, Session, Spec, Wall};
use pinfold_store::search::{Follower, Index, NamedSession, SearchQuery, SearchWords, Stepped, search};
use pinfold_store::{AuditEvent, Batch, NewSession, SessionId, Step, Store, StoreOptions, Ulid};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value};
use std::path::Path;
use std::time::{Duration, Instant};

const MESSAGES: u64 = 100_000;
const SESSIONS: u64 = 50;
/// Messages in one batch.
const IN_BATCH: u64 = 500;
/// Words in one message.
const WORDS: u64 = 40;
/// How often each search is made.
const SEARCHES: usize = 50;

pub(crate) fn run() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("pinfold.db"), &StoreOptions::default()).unwrap();
    let names = fill(&store);
    let reader = store.reader().unwrap();
    let path = folder.path().join("search.db");
    let (begun, mut steps, mut busy) = (Instant::now(), Vec::new(), Vec::new());
    let mut follower = Follower::open(&path, &*reader).unwrap();
    loop {
        let (step, processor) = (Instant::now(), processor());
        let stepped = follower.step(&*reader).unwrap();
        steps.push(millis(step.elapsed()));
        busy.push(millis(self::processor() - processor));
        if stepped == Stepped::UpToDate {
            break;
        }
    }
    let took = begun.elapsed();
    println!("{MESSAGES} messages of {WORDS} words in {SESSIONS} sessions");
    println!(
        "the index: {:.1} s without its rests, {} steps of {}; of the processor {}",
        took.as_secs_f64(),
        steps.len(),
        spread(&steps),
        spread(&busy)
    );
    let bytes = std::fs::metadata(&path).unwrap().len();
    println!("its file: {:.1} MiB", bytes as f64 / f64::from(1 << 20));
    seek(&store, &path, &names);
}

/// Makes each kind of search, often enough for a steady result.
fn seek(store: &Store, path: &Path, names: &[NamedSession]) {
    let one = Some([names[7].id].into());
    let rows = [
        ("a word of one message", "needle77777", None),
        ("a word of a thousand", "word17", None),
        ("a word of all", "common", None),
        ("two words of all", "common also", None),
        ("the beginning of every word", "w", None),
        ("the beginning of many words", "word1", None),
        ("that and a word of one message", "w needle77777", None),
        ("a word of all, in one session", "common", one.clone()),
        ("the beginning of every word, in one session", "w", one),
        ("nothing", "nowhere", None),
    ];
    for (what, text, within) in rows {
        let wanted = SearchQuery { words: SearchWords::new(text), within, limit: 20 };
        let times: Vec<(f64, f64)> = (0..SEARCHES)
            .map(|_| {
                let (begun, processor) = (Instant::now(), processor());
                let index = Index::open(path).unwrap();
                let found = search(&*store.reader().unwrap(), Some(&index), names, &wanted).unwrap();
                assert_eq!(found.indexed.done, found.indexed.total);
                assert_eq!(found.hits.is_empty(), what == "nothing", "{what}");
                (millis(begun.elapsed()), millis(self::processor() - processor))
            })
            .collect();
        let (times, busy): (Vec<f64>, Vec<f64>) = times.into_iter().unzip();
        println!("{what}: {}; of the processor {}", spread(&times), spread(&busy));
    }
}

/// Returns the processor time of this thread.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

fn spread(times: &[f64]) -> String {
    let [middle, tail, longest] = [0.5, 0.99, 1.0].map(|share| part(times.to_vec(), share));
    format!("{middle:.2} / {tail:.2} / {longest:.2} ms")
}

fn id(number: u64) -> SessionId {
    SessionId(Ulid::new(1_700_000_000_000, u128::from(number)))
}

fn fill(store: &Store) -> Vec<NamedSession> {
    let core = Session::new(Spec::new(Mode::OnDemand));
    let mut batch = Batch::new();
    let names: Vec<NamedSession> = (0..SESSIONS)
        .map(|number| NamedSession { id: id(number), name: format!("session-{number}"), created_at: Wall(1) })
        .collect();
    for NamedSession { id, name, created_at } in names.clone() {
        let definition = Value::Object(Map::new());
        batch.create(NewSession { id, name, definition, parent: None, created_at }, &core);
    }
    store.commit(batch).wait().unwrap();
    for from in (0..MESSAGES).step_by(IN_BATCH as usize) {
        let mut batch = Batch::new();
        (from..from + IN_BATCH).for_each(|number| say(&mut batch, number));
        store.commit(batch).wait().unwrap();
    }
    names
}

/// Words that differ between messages, but not between runs.
fn say(batch: &mut Batch, number: u64) {
    let mut seed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut text = format!("common also needle{number}");
    for _ in 0..WORDS - 3 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!(" word{}", (seed >> 33) % 4000));
    }
    let (session, at, message) =
        (id(number % SESSIONS), Wall(number.cast_signed()), MessageId(u128::from(number + 1)));
    let change = MessageChange::Queued { message, key: None };
    batch.steps.push(Step::Message {
        session,
        at,
        change,
        words: Some(text),
        told: Default::default(),
        from: None,
        place: None,
    });
    let mut data = Map::new();
    data.insert("message".to_owned(), Value::from(Ulid::from(message).to_string()));
    let (kind, why) = (EventKind::MessageQueued, "a message is queued".to_owned());
    batch.event(AuditEvent { at, session: Some(session), run: None, kind, why, data });
}
