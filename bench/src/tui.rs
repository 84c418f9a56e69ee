//! The terminal UI among a thousand sessions of which fifty change each second: what it and the daemon cost,
//! how often it paints, how long a key takes to a frame; and how often it wakes when nothing happens.

use crate::messages::Home;
use crate::table::{Table, median, part};
use crate::terminals::Tty;
use serde_json::{Value, json};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SESSIONS: usize = 1000;
const CHANGES_A_SECOND: u32 = 50;
/// The pause between keys; people do not type faster for long.
const PAUSE: Duration = Duration::from_millis(60);
const KEYS: usize = 300;
/// How long wake-ups are counted while nothing runs, and while something does.
const STILL: Duration = Duration::from_secs(30);
const RUNNING: Duration = Duration::from_secs(60);
/// The beginning of a frame.
const FRAME: &[u8] = b"\x1b[?2026h";

pub(crate) fn run() {
    let home = Home::new();
    for number in 0..SESSIONS {
        let body = json!({ "name": format!("session-{number:04}"), "mode": "on-demand", "command": ["/bin/cat"], "dir": "/", "dir_lock": false });
        _ = home.client.post::<Value>("/v1/sessions", &body).unwrap();
        // A stopped session queues a message as one durable change, and starts nothing.
        _ = home.client.post::<Value>(&format!("/v1/sessions/session-{number:04}/stop"), &json!({})).unwrap();
    }
    let daemon = home.client.get::<Value>("/v1/status").unwrap()["pid"].as_u64().unwrap();
    let mut table = Table::new(["terminal UI, 200x60", "value", "must be"]);
    let tty = open(&home);
    let pid = u64::from(tty.pid());
    let over = AtomicBool::new(false);
    let (keys, frames, took, cpu) = std::thread::scope(|scope| {
        scope.spawn(|| change(&home, &over));
        let measured = typed(&tty, [pid, daemon]);
        over.store(true, Ordering::Relaxed);
        measured
    });
    let seconds = took.as_secs_f64();
    table.row(["key to frame, p50".into(), format!("{:.2} ms", median(keys.clone())), String::new()]);
    table.row(["key to frame, p99".into(), format!("{:.2} ms", part(keys, 0.99)), "< 20 ms".into()]);
    table.row([
        "frames a second, keys included".into(),
        format!("{:.1}", frames as f64 / seconds),
        String::new(),
    ]);
    table.row(["CPU of the UI".into(), format!("{:.1} ms/s", cpu[0] / seconds), String::new()]);
    table.row(["CPU of the daemon".into(), format!("{:.1} ms/s", cpu[1] / seconds), String::new()]);
    table.row(["memory of the UI, private".into(), memory(pid), String::new()]);
    table.row(["wake-ups in 30 s, nothing runs".into(), still(&tty, pid, STILL).to_string(), "0".into()]);
    home.say(&["start", "session-0000"]);
    tty.quiet();
    table.row([
        "wake-ups in 60 s, one runs".into(),
        still(&tty, pid, RUNNING).to_string(),
        "<= 1 frame a minute".into(),
    ]);
    table.print();
}

fn open(home: &Home) -> Tty {
    let mut command: Command = home.command(&["tui"]);
    command.env("TERM", "xterm-256color");
    let tty = Tty::start_at(command, 60, 200);
    tty.until(b"1000 sessions");
    tty.quiet();
    tty
}

/// Changes one session after the other.
fn change(home: &Home, over: &AtomicBool) {
    let begun = Instant::now();
    for number in 1_u32.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let path = format!("/v1/sessions/session-{:04}/messages", number as usize * 37 % SESSIONS);
        _ = home.client.post::<Value>(&path, &json!({ "text": "a change" })).unwrap();
        let due = Duration::from_secs(1) * number / CHANGES_A_SECOND;
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
    }
}

/// Types up and down; returns how long each key took to a frame, how many frames came, and what that cost in
/// milliseconds.
fn typed(tty: &Tty, pids: [u64; 2]) -> (Vec<f64>, usize, Duration, [f64; 2]) {
    let (begun, before) = (Instant::now(), pids.map(cpu));
    let (mut times, mut frames) = (Vec::new(), 0);
    for number in 0..KEYS {
        let until = Instant::now() + PAUSE;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            frames += count(&tty.read(left).unwrap_or_default());
        }
        let pressed = Instant::now();
        tty.write(if number % 20 < 10 { b"j" } else { b"k" });
        // The selection moves, so the frame after the key paints it, whatever else it paints.
        let mut painted = 0;
        while painted == 0 {
            painted = count(&tty.read(Duration::from_secs(5)).expect("a frame"));
        }
        times.push(pressed.elapsed().as_secs_f64() * 1e3);
        frames += painted;
    }
    let spent = [0, 1].map(|at| cpu(pids[at]) - before[at]);
    (times, frames, begun.elapsed(), spent)
}

fn count(bytes: &[u8]) -> usize {
    bytes.windows(FRAME.len()).filter(|part| *part == FRAME).count()
}

/// Returns the processor time of a process, in milliseconds.
fn cpu(pid: u64) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = [11, 12].iter().map(|at| fields[*at].parse::<f64>().unwrap()).sum();
    // A tick is a hundredth of a second, on every Linux.
    ticks * 10.0
}

fn memory(pid: u64) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("RssAnon:")).unwrap_or_default();
    line.split_ascii_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

/// Returns how often the threads of a process went to sleep while nothing was typed; each is a wake-up.
fn still(tty: &Tty, pid: u64, time: Duration) -> u64 {
    tty.quiet();
    let before = switches(pid);
    let until = Instant::now() + time;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        _ = tty.read(left);
    }
    switches(pid) - before
}

fn switches(pid: u64) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of = |text: String| -> u64 {
        let line = text.lines().find(|line| line.starts_with("voluntary_ctxt_switches:")).unwrap_or_default();
        line.split_ascii_whitespace().nth(1).and_then(|count| count.parse().ok()).unwrap_or(0)
    };
    tasks.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok()).map(of).sum()
}
