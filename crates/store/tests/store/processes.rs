//! Other processes: readers while the writer writes, and writers that are killed.

use crate::driven::Driven;
use crate::home::{Home, audit, note};
use crate::reexec;
use pinfold_core::MessageId;
use pinfold_store::{Batch, CommitError, EventQuery, Reader, Store, StoreOptions, StoredEvent, Take};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How many batches the writer that is killed has under way at any time.
const ON_THE_WAY: u64 = 8;
const ROUNDS: u64 = 6;

/// Creates a message, its session and three events; either all of them are stored or none.
fn part_batch(driven: &mut Driven, number: u64) -> Batch {
    let mut batch = driven.send(MessageId(u128::from(number)), Some(&format!("key {number}")));
    for part in ["a", "b"] {
        batch.event(audit("part", 1, &[("number", number.into()), ("part", part.into())]));
    }
    batch
}

/// Commits forever, and reports on stdout what is durable.
fn write_until_killed(path: &Path) {
    let store = Store::open(path, &StoreOptions::default()).unwrap();
    let reader = store.reader().unwrap();
    let found = reader.sessions().unwrap().len() as u64;
    let first = found * 1_000_000;
    let (mut driven, create) = Driven::on_demand(found + 1, &format!("round {found}"));
    store.commit(create).wait().unwrap();
    let (told, tell) = channel();
    for number in first.. {
        let told = told.clone();
        store.commit_then(part_batch(&mut driven, number), move |outcome| {
            let seqs = outcome.unwrap().seqs;
            // One write: a torn line would not prove anything.
            let line = format!("durable {number} {} {}\n", seqs.start, seqs.end);
            std::io::stdout().write_all(line.as_bytes()).unwrap();
            told.send(()).unwrap();
        });
        if number >= first + ON_THE_WAY {
            tell.recv().unwrap();
        }
    }
}

fn reported(line: &str) -> Option<[u64; 3]> {
    let words: Vec<u64> =
        line.strip_prefix("durable ")?.split(' ').map(|word| word.parse().unwrap()).collect();
    words.try_into().ok()
}

/// Starts the writer, kills it in the middle of its work, and returns what it had reported as durable.
fn kill_a_writer(home: &Home, after: usize) -> Vec<[u64; 3]> {
    let test = "processes::kill_9_loses_nothing_that_was_reported_durable";
    let mut command = reexec::again(&[], test, home.path().to_str().unwrap());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut durable: Vec<[u64; 3]> = lines.by_ref().filter_map(|line| reported(&line)).take(after).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    durable.extend(lines.filter_map(|line| reported(&line)));
    assert!(durable.len() >= after, "the writer ended by itself");
    durable
}

fn assert_all_there(reader: &Reader, durable: &[[u64; 3]]) -> u64 {
    let events = reader.events(&EventQuery::default()).unwrap();
    for (event, seq) in events.iter().zip(1..) {
        assert_eq!(event.seq, seq, "the numbers have no gaps");
    }
    let number = |event: &StoredEvent| event.data.get("number").and_then(Value::as_u64);
    for [batch, start, end] in durable {
        let own = &events[usize::try_from(start - 1).unwrap()..usize::try_from(end - 1).unwrap()];
        assert!(own.iter().any(|event| number(event) == Some(*batch)), "batch {batch} was reported durable");
    }
    let whole_batches = assert_no_half_batch(reader, &events);
    assert!(whole_batches >= durable.len() as u64);
    whole_batches
}

fn assert_no_half_batch(reader: &Reader, events: &[StoredEvent]) -> u64 {
    let count = |kind: &str| events.iter().filter(|event| event.kind.word() == kind).count() as u64;
    assert_eq!(count("part"), 2 * count("message_queued"), "no half batch");
    let mut messages = 0;
    for loaded in reader.sessions().unwrap() {
        let stored = crate::home::whole(loaded);
        let rows = reader.messages(stored.id, None, Take::All).unwrap().len();
        assert_eq!(rows, stored.session.inbox().queued(), "the session knows its messages");
        messages += rows as u64;
    }
    assert_eq!(messages, count("message_queued"));
    messages
}

#[test]
fn kill_9_loses_nothing_that_was_reported_durable() {
    if let Some(path) = reexec::role() {
        return write_until_killed(Path::new(&path));
    }
    let home = Home::new();
    let mut durable = Vec::new();
    for round in 0..ROUNDS {
        durable.extend(kill_a_writer(&home, usize::try_from(3 + 40 * round).unwrap()));
        let store = home.open();
        assert!(!store.opened().created);
        assert_all_there(&store.reader().unwrap(), &durable);
        // Odd rounds leave the log of the killed writer to the next one.
        if round % 2 == 0 {
            drop(store);
        } else {
            std::mem::forget(store);
        }
    }
}

/// Reads until told to stop: what it sees is always complete, and grows.
fn read_until_told(path: &Path) {
    let reader = Reader::open(path).unwrap();
    let (mut last, mut looks) = (0, 0);
    loop {
        let events = reader.events(&EventQuery::default()).unwrap();
        assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq));
        assert_eq!(
            events.iter().filter(|event| event.kind.word() == "part").count() % 2,
            0,
            "no half batch is seen"
        );
        assert!(events.len() >= last, "nothing durable goes away");
        if events.len() > last {
            (last, looks) = (events.len(), looks + 1);
            println!("\nlook {looks}");
        }
        if events.iter().any(|event| event.kind.word() == "stop") {
            return;
        }
    }
}

#[test]
fn another_process_reads_while_the_writer_writes() {
    if let Some(path) = reexec::role() {
        return read_until_told(Path::new(&path));
    }
    let home = Home::new();
    let store = home.open();
    let (mut driven, create) = Driven::on_demand(1, "api");
    store.commit(create).wait().unwrap();
    let test = "processes::another_process_reads_while_the_writer_writes";
    let mut command = reexec::again(&[], test, home.path().to_str().unwrap());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    // After each batch the reader is known to see it, so it reads between the writes and during them.
    for number in 0..50 {
        store.commit(part_batch(&mut driven, 2 * number)).wait().unwrap();
        store.commit(part_batch(&mut driven, 2 * number + 1)).wait().unwrap();
        assert!(lines.any(|line| line.starts_with("look ")), "the reader has ended");
    }
    let mut stop = note(0);
    stop.event(audit("stop", 1, &[]));
    store.commit(stop).wait().unwrap();
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_writer_that_another_one_keeps_waiting_says_so_and_goes_on_later() {
    let home = Home::new();
    let options = StoreOptions { busy_timeout: Duration::from_millis(1), ..StoreOptions::default() };
    let store = Store::open(&home.path(), &options).unwrap();
    let other = home.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let busy = store.commit(note(1)).wait().unwrap_err();
    assert!(matches!(*busy, CommitError::Busy { .. }), "{busy:?}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(store.commit(note(2)).wait().unwrap().seqs, 1..2);
}
