//! Many agents that talk at once, each with a tape: what daemon and shims cost, how far the daemon lags, and
//! how long other clients wait.

use crate::messages::{Home, millis};
use crate::table::{Table, median, part};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Lines per second of each agent.
const RATE: u64 = 20;
/// All turns begin and end within this time, plus their own length.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often `ls` is called.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn run(sessions: usize, seconds: u64) {
    println!("{sessions} agents, {RATE} lines a second each, for {seconds} s");
    let home = Home::new();
    let mark = home.state().display().to_string();
    configure(&home, &mark, seconds);
    let begun = Instant::now();
    create(&home, sessions);
    settle(&home, "delivered", sessions, PATIENCE);
    println!("all of them talk after {:.1} s", begun.elapsed().as_secs_f64());
    let daemon = home.client.get::<Value>("/v1/status").unwrap()["pid"].as_u64().unwrap() as u32;
    let shims = shims(&mark);
    let (first, listed) = (Taken::now(&home, daemon, &shims), Instant::now());
    let length = Duration::from_secs(seconds).saturating_sub(begun.elapsed());
    let mut lists = Vec::new();
    while listed.elapsed() < length {
        lists.push(ls(&home));
        std::thread::sleep(LOOK);
    }
    let last = Taken::now(&home, daemon, &shims);
    print(&first, &last, listed.elapsed(), lists);
    settle(&home, "done", sessions, PATIENCE);
}

fn configure(home: &Home, mark: &str, seconds: u64) {
    home.say(&["down"]);
    let talker = std::env::current_exe().unwrap().with_file_name("pinfold-bench-talker");
    let command = json!([talker, seconds.to_string(), RATE.to_string(), mark]);
    let config =
        format!("[agents.talker]\ncommand = {command}\nprotocol = \"scripted\"\nsession = \"none\"\n");
    std::fs::write(home.state().join("config.toml"), config).unwrap();
    home.say(&["up"]);
}

fn create(home: &Home, sessions: usize) {
    let each = |number: usize| {
        let (name, dir) = (format!("agent-{number}"), home.state().join(format!("dir-{number}")));
        std::fs::create_dir(&dir).unwrap();
        let new = json!({ "name": name, "agent": "talker", "dir": dir });
        _ = home.client.post::<Value>("/v1/sessions", &new).unwrap();
        let path = format!("/v1/sessions/{name}/messages");
        _ = home.client.post::<Value>(&path, &json!({ "text": "talk" })).unwrap();
    };
    std::thread::scope(|scope| {
        for part in 0..8 {
            let each = &each;
            scope.spawn(move || (part..sessions).step_by(8).for_each(each));
        }
    });
}

/// Waits until this many messages are in a state.
fn settle(home: &Home, state: &str, count: usize, limit: Duration) {
    let begun = Instant::now();
    while gauge(home, "pinfold_messages", &[("state", state)]) < count as f64 {
        assert!(begun.elapsed() < limit, "not all messages are {state}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn samples(home: &Home, name: &str) -> Vec<Value> {
    let all: Vec<Value> = home.client.get("/v1/metrics").unwrap();
    let metric = all.into_iter().find(|metric| name.starts_with(metric["name"].as_str().unwrap()));
    metric.unwrap()["samples"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|sample| sample["name"] == name)
        .cloned()
        .collect()
}

fn gauge(home: &Home, name: &str, labels: &[(&str, &str)]) -> f64 {
    let fits = |sample: &Value| labels.iter().all(|(label, value)| sample["labels"][*label] == *value);
    samples(home, name)
        .iter()
        .filter(|sample| fits(sample))
        .map(|sample| sample["value"].as_f64().unwrap())
        .sum()
}

/// The counters at one moment.
struct Taken {
    commits: f64,
    /// Upper bounds of the daemon's lag, each with how often it was at most that so far.
    lags: Vec<(String, f64)>,
    daemon: Process,
    shims: Process,
    /// Milliseconds the daemon's loop was ready to run and had no processor.
    queued: f64,
    /// Milliseconds all processors together had nothing to do.
    idle: f64,
}

/// Processor time in milliseconds, memory in bytes.
#[derive(Default)]
struct Process {
    time: f64,
    memory: u64,
}

impl Taken {
    fn now(home: &Home, daemon: u32, shims: &[u32]) -> Taken {
        let lags = samples(home, "pinfold_fold_seconds_bucket");
        let bound = |sample: &Value| sample["labels"]["le"].as_str().unwrap().to_owned();
        Taken {
            commits: gauge(home, "pinfold_commit_seconds_count", &[]),
            lags: lags.iter().map(|sample| (bound(sample), sample["value"].as_f64().unwrap())).collect(),
            daemon: Process::of(&[daemon]),
            shims: Process::of(shims),
            queued: schedule(&Path::new("/proc").join(format!("{daemon}/task/{daemon}")), 1)
                .unwrap_or_default(),
            idle: idle(),
        }
    }

    /// Returns the bound that this share of all lags since another moment does not exceed.
    fn lag_since(&self, first: &Taken, share: f64) -> String {
        let counts = self.lags.iter().zip(&first.lags).map(|((bound, now), (_, then))| (bound, now - then));
        let counts: Vec<_> = counts.collect();
        let all = counts.last().map_or(0.0, |(_, count)| *count);
        let found = counts.iter().find(|(_, count)| *count >= all * share);
        found.map_or_else(String::new, |(bound, _)| format!("at most {bound} s"))
    }
}

impl Process {
    fn of(pids: &[u32]) -> Process {
        pids.iter().fold(Process::default(), |sum, pid| Process {
            time: sum.time + time_of(*pid),
            memory: sum.memory + memory_of(*pid),
        })
    }
}

fn time_of(pid: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    tasks.filter_map(|task| schedule(&task.ok()?.path(), 0)).sum()
}

/// One figure of a thread's `schedstat`, in milliseconds: the first is how long it ran, the second how long it waited for a
/// processor.
fn schedule(task: &Path, figure: usize) -> Option<f64> {
    let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
    Some(text.split(' ').nth(figure)?.parse::<f64>().ok()? / 1e6)
}

/// Linux counts it in hundredths of a second.
fn idle() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let figures = text.lines().next().unwrap().split_whitespace().skip(4).take(2);
    figures.map(|figure| figure.parse::<f64>().unwrap()).sum::<f64>() * 10.0
}

/// Returns a process's private memory; the program's pages are shared by all.
pub(crate) fn memory_of(pid: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let own = rollup.lines().filter(|line| line.starts_with("Private_"));
    own.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum::<u64>() << 10
}

/// Returns the shims of the agents that were started with this word.
fn shims(mark: &str) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_ours = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        words.contains("pinfold-bench-talker") && words.contains(mark)
    };
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    pids.filter(is_ours).filter_map(parent).collect()
}

fn ls(home: &Home) -> f64 {
    let begun = Instant::now();
    assert!(home.command(&["ls"]).stdout(Stdio::null()).status().unwrap().success());
    millis(begun.elapsed())
}

fn print(first: &Taken, last: &Taken, took: Duration, lists: Vec<f64>) {
    let mut table = Table::new(["what", "figure"]);
    let mut row = |what: &str, figure: String| table.row([what.to_owned(), figure]);
    let cores = |first: &Process, last: &Process| (last.time - first.time) / millis(took);
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    row("measured for", format!("{:.1} s", took.as_secs_f64()));
    row("commits a second", format!("{:.1}", (last.commits - first.commits) / took.as_secs_f64()));
    row("cores of the daemon", format!("{:.2}", cores(&first.daemon, &last.daemon)));
    row("cores of all shims", format!("{:.2}", cores(&first.shims, &last.shims)));
    row("cores with nothing to do", format!("{:.2}", (last.idle - first.idle) / millis(took)));
    row(
        "the loop waits for a processor",
        format!("{:.2} of the time", (last.queued - first.queued) / millis(took)),
    );
    row("behind, median", last.lag_since(first, 0.5));
    row("behind, 99 %", last.lag_since(first, 0.99));
    row("`ls`, median", format!("{:.1} ms", median(lists.clone())));
    row("`ls`, 99 %", format!("{:.1} ms", part(lists, 0.99)));
    row(
        "memory of the daemon, first and last",
        format!("{}, {}", mib(first.daemon.memory), mib(last.daemon.memory)),
    );
    row(
        "memory of all shims, first and last",
        format!("{}, {}", mib(first.shims.memory), mib(last.shims.memory)),
    );
    table.print();
}
