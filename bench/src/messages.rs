//! Messages through the real daemon: until durable, until the agent took them, until the answer is stored.

use crate::table::{Table, median, part};
use pinfold_api::client::Client;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SENDERS: usize = 64;
/// Enough for a steady tail.
const MESSAGES: usize = 2000;
const QUEUED: usize = 10_000;
const WAKES: usize = 100;

/// Reads a line and answers at once.
const ECHO: &str = "while IFS= read -r line; do echo \"PINFOLD_DONE $line\"; done";
/// Reads and prints nothing.
const READER: &str = "exec cat >/dev/null";

/// A home with a daemon, which is stopped with it.
pub(crate) struct Home {
    folder: tempfile::TempDir,
    pub(crate) client: Client,
    /// Variables for every command, besides the usual ones.
    variables: Vec<(String, String)>,
}

impl Home {
    pub(crate) fn new() -> Home {
        Home::with(Vec::new())
    }

    pub(crate) fn with(variables: Vec<(String, String)>) -> Home {
        let folder = tempfile::tempdir().unwrap();
        let client = Client::new(folder.path().join("home/pinfold.sock"));
        let home = Home { folder, client, variables };
        home.say(&["up"]);
        home
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the folder in which the daemon keeps everything.
    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("home")
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let program = std::env::current_exe().unwrap().with_file_name("pinfold");
        assert!(program.exists(), "{} is missing: cargo build --release", program.display());
        let mut command = Command::new(program);
        command.args(words).envs(self.variables.iter().cloned());
        command.env("PINFOLD_HOME", self.path().join("home"));
        command.env("PINFOLD_LOCKS", self.path().join("locks"));
        command
    }

    pub(crate) fn say(&self, words: &[&str]) {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "pinfold {words:?}: {output:?}");
    }

    pub(crate) fn chat(&self, name: &str, turns: &str, idle: &str, script: &str) {
        let chat = ["new", name, "--mode", "on-demand", "--turns", turns, "--idle", idle, "--"];
        self.say(&[&chat[..], &["sh", "-c", script]].concat());
    }

    /// Sends one message; returns how long it took, in milliseconds, until it was durable or, with a wait,
    /// settled.
    fn send(&self, name: &str, wait: &str) -> f64 {
        let begun = Instant::now();
        let path = format!("/v1/sessions/{name}/messages{wait}");
        let sent: Value = self.client.post(&path, &json!({ "text": "how are you?" })).unwrap();
        let took = begun.elapsed();
        assert!(wait.is_empty() || sent["state"] == "done", "{sent}");
        millis(took)
    }

    /// Sends this many messages from this many senders, each with its own session if there are several.
    fn sends(
        &self,
        senders: usize,
        name: impl Fn(usize) -> String + Sync,
        wait: &str,
    ) -> (Vec<f64>, Duration) {
        let begun = Instant::now();
        let all = std::thread::scope(|scope| {
            let send = |sender| {
                let name = name(sender);
                scope.spawn(move || {
                    (0..MESSAGES / senders).map(|_| self.send(&name, wait)).collect::<Vec<_>>()
                })
            };
            let threads: Vec<_> = (0..senders).map(send).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        (all, begun.elapsed())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.say(&["down"]);
    }
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn row(table: &mut Table, what: &str, (times, took): (Vec<f64>, Duration)) {
    let rate = times.len() as f64 / took.as_secs_f64();
    let value = |value: f64| format!("{value:.2} ms");
    let (middle, tail) = (value(median(times.clone())), value(part(times, 0.99)));
    table.row([what.to_owned(), middle, tail, format!("{rate:.0}/s")]);
}

pub(crate) fn run() {
    println!("messages over HTTP, each on a connection of its own; {MESSAGES} for each row");
    let home = Home::new();
    let mut table = Table::new(["send until", "median", "99 %", "rate"]);
    for sender in 0..SENDERS {
        home.chat(&format!("echo-{sender}"), "done", "1h", ECHO);
        home.chat(&format!("reader-{sender}"), "line", "1h", READER);
        home.chat(&format!("stopped-{sender}"), "line", "1h", READER);
        home.say(&["stop", &format!("stopped-{sender}")]);
        home.send(&format!("echo-{sender}"), "?wait=60s");
        home.send(&format!("reader-{sender}"), "?wait=60s");
    }
    for (what, kind, wait) in
        [("durable", "stopped", ""), ("delivered", "reader", "?wait=60s"), ("done", "echo", "?wait=60s")]
    {
        for senders in [1, SENDERS] {
            let times = home.sends(senders, |sender| format!("{kind}-{sender}"), wait);
            row(&mut table, &format!("{what}, {senders} senders"), times);
        }
    }
    wake(&home, &mut table);
    many(&home, &mut table);
    table.print();
}

/// From parked to delivered: locks, shim, agent and all.
fn wake(home: &Home, table: &mut Table) {
    home.chat("sleeper", "line", "0s", READER);
    let begun = Instant::now();
    let wake = |_| {
        let took = home.send("sleeper", "?wait=60s");
        home.client.get::<Value>("/v1/sessions/sleeper/wait?for=idle&timeout=60s").unwrap();
        took
    };
    let times: Vec<f64> = (0..WAKES).map(wake).collect();
    row(table, "delivered, from parked", (times, begun.elapsed()));
}

/// A full inbox: filling it, starting a daemon with it, working it off.
fn many(home: &Home, table: &mut Table) {
    home.chat("full", "done", "1h", ECHO);
    home.say(&["stop", "full"]);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let share = QUEUED / SENDERS + usize::from(sender < QUEUED % SENDERS);
            scope.spawn(move || (0..share).for_each(|_| _ = home.send("full", "")));
        }
    });
    let mut line = |what: &str, took: Duration, rate: bool| {
        let rate = if rate { format!("{:.0}/s", QUEUED as f64 / took.as_secs_f64()) } else { String::new() };
        table.row([what.to_owned(), format!("{:.0} ms", millis(took)), String::new(), rate]);
    };
    line("10,000 queued, 64 senders", begun.elapsed(), true);
    home.say(&["down"]);
    let begun = Instant::now();
    home.say(&["up"]);
    line("`up` with 10,000 queued", begun.elapsed(), false);
    let begun = Instant::now();
    home.say(&["start", "full"]);
    loop {
        let session: Value = home.client.get("/v1/sessions/full").unwrap();
        if session["inbox"]["done"] == QUEUED {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    line("10,000 done, one agent", begun.elapsed(), true);
}
