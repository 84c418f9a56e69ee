//! Many readers of the feed: how long `ls` takes meanwhile, and whether each reader was told everything.

use crate::messages::{Home, millis};
use crate::table::{Table, median, part};
use pinfold_api::client::Client;
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const READERS: usize = 200;
const CHANGES_A_SECOND: u32 = 50;
/// Ten seconds: some hundreds of `ls`, so that the 99th percentile is not a single value.
const CHANGES: u32 = 500;
/// Most that `ls` may take, in milliseconds.
const MUST: f64 = 20.0;
/// Readers that have not been told everything by then have fallen behind.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run() {
    let home = Home::new();
    home.chat("inbox", "line", "1h", "exec cat >/dev/null");
    home.say(&["stop", "inbox"]);
    println!("{READERS} readers of what happens, {CHANGES_A_SECOND} changes a second");
    let mut table = Table::new(["while", "median", "99 %", "must be"]);
    row(&mut table, "`ls`, nothing happens", beside(&home, || std::thread::sleep(Duration::from_secs(5))));
    row(&mut table, "`ls`, changes, no reader", beside(&home, || change(&home)));
    let readers = Readers::begin(&home.client, &address(&home.client));
    row(&mut table, "`ls`, changes and readers", beside(&home, || change(&home)));
    let late = readers.until_all_know();
    table.row(["the last reader knows".to_owned(), format!("{:.0} ms later", millis(late))]);
    table.print();
}

/// Returns the address of the feed if this daemon has one, else of the events from now on.
fn address(client: &Client) -> String {
    let document: Value = client.get("/v1/openapi.json").unwrap();
    if document["paths"]["/v1/feed"].is_object() {
        return "/v1/feed".to_owned();
    }
    let last: Vec<Value> = client.get("/v1/events?follow=false&last=1").unwrap();
    format!("/v1/events?follow=true&since={}", last[0]["seq"])
}

/// Queues a message at each tick: one durable change.
fn change(home: &Home) {
    let begun = Instant::now();
    for number in 1..=CHANGES {
        let path = "/v1/sessions/inbox/messages";
        _ = home.client.post::<Value>(path, &json!({ "text": "a change" })).unwrap();
        let due = Duration::from_secs(1) * number / CHANGES_A_SECOND;
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
    }
}

/// Returns how long each `ls` takes, as a process, while `work` goes on.
fn beside(home: &Home, work: impl FnOnce() + Send) -> Vec<f64> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            work();
            over.store(true, Ordering::Relaxed);
        });
        let mut times = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let mut ls = home.command(&["ls"]);
            let begun = Instant::now();
            assert!(ls.stdout(Stdio::null()).status().unwrap().success());
            times.push(millis(begun.elapsed()));
        }
        times
    })
}

fn row(table: &mut Table, what: &str, times: Vec<f64>) {
    let value = |value: f64| format!("{value:.2} ms");
    let (middle, tail) = (value(median(times.clone())), value(part(times, 0.99)));
    table.row([what.to_owned(), middle, tail, format!("below {MUST:.0} ms")]);
}

/// Readers, and how much each was told. They end with the daemon.
struct Readers {
    told: Arc<[AtomicUsize]>,
}

impl Readers {
    /// Begins to read; returns when all of them are connected.
    fn begin(client: &Client, address: &str) -> Readers {
        let told: Arc<[AtomicUsize]> = (0..READERS).map(|_| AtomicUsize::new(0)).collect();
        let connected = Arc::new(Barrier::new(READERS + 1));
        for reader in 0..READERS {
            let (told, connected) = (told.clone(), connected.clone());
            let (client, address) = (client.clone(), address.to_owned());
            std::thread::spawn(move || {
                let lines = client.follow(&address).unwrap();
                connected.wait();
                let events = lines.map_while(Result::ok).filter(|line| line.starts_with("data:"));
                events.for_each(|_| _ = told[reader].fetch_add(1, Ordering::Relaxed));
            });
        }
        connected.wait();
        Readers { told }
    }

    /// Waits until every reader has been told of every change; returns how long that took.
    fn until_all_know(&self) -> Duration {
        let begun = Instant::now();
        let behind =
            || self.told.iter().filter(|told| told.load(Ordering::Relaxed) < CHANGES as usize).count();
        while behind() > 0 {
            assert!(begun.elapsed() < PATIENCE, "{} readers have not been told of every change", behind());
            std::thread::sleep(Duration::from_millis(1));
        }
        begun.elapsed()
    }
}
