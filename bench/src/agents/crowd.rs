//! As many Claude Codes as fit, with messages flowing: the daemon's memory stays flat, and no turn is lost.

use super::{Person, by_http, new_session};
use crate::messages::Home;
use crate::table::{Table, median, part};
use crate::tape::memory_of;
use serde_json::Value;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Private memory that all of them may use together.
const ROOM: u64 = 12 << 30;
/// Fewer are not a crowd.
const FEWEST: usize = 10;
/// How many are started at once.
const STARTERS: usize = 2;
/// How much the daemon's memory may grow between the first turn of all and the last; freed memory is not
/// returned at once.
const GROWTH: u64 = 8 << 20;

pub(crate) fn run(length: Duration, most: usize) {
    let person = Person::new();
    let home = Home::with(person.variables());
    let one = start(&home, &person, 0);
    let count = usize::try_from(ROOM / one).unwrap().clamp(FEWEST, most.max(FEWEST));
    println!("{count} Claude Codes ({} of its own each)", mib(one));
    let begun = Instant::now();
    let next = Mutex::new(1..count);
    std::thread::scope(|scope| {
        for _ in 0..STARTERS {
            scope.spawn(|| {
                loop {
                    let Some(number) = next.lock().unwrap().next() else { return };
                    start(&home, &person, number);
                }
            });
        }
    });
    println!("all of them are ready after {:.1} s", begun.elapsed().as_secs_f64());
    let daemon = number(&home.client.get("/v1/status").unwrap(), "pid");
    let (first, begun) = (memory_of(daemon), Instant::now());
    let times = flow(&home, count, length);
    let (last, took) = (memory_of(daemon), begun.elapsed());
    let turns = person.model.saw_each_once();
    assert_eq!(turns, times.len() + count, "a turn was lost");
    let mut table = Table::new(["what", "figure"]);
    let mut row = |what: &str, figure: String| table.row([what.to_owned(), figure]);
    row("messages flowed for", format!("{:.1} s", took.as_secs_f64()));
    row(
        "turns, each seen once by the model",
        format!("{}, {:.1}/s", times.len(), times.len() as f64 / took.as_secs_f64()),
    );
    row("a turn, median", format!("{:.0} ms", median(times.clone())));
    row("a turn, 99 %", format!("{:.0} ms", part(times, 0.99)));
    row("memory of the daemon, first and last", format!("{}, {}", mib(first), mib(last)));
    table.print();
    assert!(last < first + GROWTH, "the daemon's memory grew");
}

/// Starts a session with its first turn; returns the memory of its agent.
fn start(home: &Home, person: &Person, number: usize) -> u64 {
    let name = name(number);
    new_session(home, &name, &person.dir(&name));
    by_http(home, &name, &format!("TURN-first{number}"));
    let session: Value = home.client.get(&format!("/v1/sessions/{name}")).unwrap();
    memory_of(self::number(&session, "pid"))
}

fn name(number: usize) -> String {
    format!("agent-{number}")
}

/// Sends each session one message after the other; returns how long each took, in milliseconds.
fn flow(home: &Home, count: usize, length: Duration) -> Vec<f64> {
    let until = Instant::now() + length;
    std::thread::scope(|scope| {
        let talk = |agent: usize| {
            let mut times = Vec::new();
            while Instant::now() < until {
                times.push(by_http(home, &name(agent), &format!("TURN-a{agent}m{}", times.len())));
            }
            times
        };
        let talks: Vec<_> = (0..count).map(|agent| scope.spawn(move || talk(agent))).collect();
        talks.into_iter().flat_map(|talk| talk.join().unwrap()).collect()
    })
}

fn number(value: &Value, key: &str) -> u32 {
    value[key].as_u64().and_then(|number| number.try_into().ok()).unwrap()
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
