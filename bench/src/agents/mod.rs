//! Real Claude Codes: what pinfold adds to a turn, and what a crowd of them costs its daemon. `claude` is
//! taken from the PATH; the model is on the loopback, so no account is needed.

mod bare;
mod crowd;
mod model;

use crate::messages::{Home, millis};
use crate::table::{Table, median, part};
use bare::Bare;
use model::Model;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Enough for a steady median: a turn of Claude Code takes some tens of milliseconds, and varies by as much.
const TURNS: usize = 120;
/// The first turns are slower, with and without pinfold.
const WARM: usize = 6;
/// Every order of the three ways.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
/// Most that pinfold may add to a turn, in milliseconds.
const MUST_MS: f64 = 5.0;

pub(crate) fn run(seconds: u64, most: usize) {
    overhead();
    crowd::run(Duration::from_secs(seconds), most);
}

/// A user's home in which Claude Code finds everything as after its first start, and the model.
struct Person {
    folder: tempfile::TempDir,
    model: Model,
}

impl Person {
    fn new() -> Person {
        let person = Person { folder: tempfile::tempdir().unwrap(), model: Model::start() };
        let settings = json!({ "hasCompletedOnboarding": true, "autoUpdates": false });
        std::fs::write(person.path().join(".claude.json"), settings.to_string()).unwrap();
        person
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn dir(&self, name: &str) -> PathBuf {
        let dir = self.path().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn variables(&self) -> Vec<(String, String)> {
        let all = [
            ("HOME", self.path().display().to_string()),
            ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", self.model.port)),
            ("ANTHROPIC_API_KEY", "sk-not-a-key".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("NO_PROXY", "127.0.0.1".to_owned()),
        ];
        all.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }
}

/// Makes a session of Claude Code that is not parked during the measurement.
fn new_session(home: &Home, name: &str, dir: &Path) {
    home.say(&["new", name, "--agent", "claude", "--idle", "1h", "--dir", &dir.display().to_string()]);
}

/// Sends one message with the command line, and waits for its answer.
fn by_command(home: &Home, name: &str, text: &str) -> f64 {
    let begun = Instant::now();
    let output = home.command(&["send", name, text, "--wait"]).output().unwrap();
    let took = begun.elapsed();
    let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(answer, format!("reply to {text}"), "{output:?}");
    millis(took)
}

/// The same by HTTP.
fn by_http(home: &Home, name: &str, text: &str) -> f64 {
    let begun = Instant::now();
    let path = format!("/v1/sessions/{name}/messages?wait=120s");
    let sent: Value = home.client.post(&path, &json!({ "text": text })).unwrap();
    let took = begun.elapsed();
    assert_eq!(
        (&sent["state"], &sent["answer"]),
        (&"done".into(), &format!("reply to {text}").into()),
        "{sent}"
    );
    millis(took)
}

/// Measures the same kind of process, driven directly and by pinfold, alternately.
fn overhead() {
    let person = Person::new();
    let home = Home::with(person.variables());
    // One process for each way, so that each has had as many turns and has been idle for as long.
    new_session(&home, "command", &person.dir("command"));
    new_session(&home, "http", &person.dir("http"));
    let mut bare = Bare::start(&person.variables(), &person.dir("without"));
    let mut times: [Vec<f64>; 3] = Default::default();
    for turn in 0..WARM + TURNS {
        // Every order equally often, because the work that a turn leaves behind falls on the next one.
        for way in ORDERS[turn % ORDERS.len()] {
            let text = |how: &str| format!("TURN-{how}{turn}");
            let took = match way {
                0 => bare.turn(&text("bare")),
                1 => by_command(&home, "command", &text("command")),
                _ => by_http(&home, "http", &text("http")),
            };
            if turn >= WARM {
                times[way].push(took);
            }
        }
    }
    println!("one turn of Claude Code against a model that answers at once, {TURNS} each, in turns");
    let [bare, command, http] = times;
    let mut table = Table::new(["turn", "median", "90 %", "more than bare", "must"]);
    let mut row = |what: &str, times: &[f64], must: &str| {
        let value = |value: f64| format!("{value:.1} ms");
        let more: Vec<f64> = times.iter().zip(&bare).map(|(ours, bare)| ours - bare).collect();
        table.row([
            what.to_owned(),
            value(median(times.to_vec())),
            value(part(times.to_vec(), 0.9)),
            value(median(more)),
            must.to_owned(),
        ]);
    };
    row("stream-json by hand", &bare, "");
    row("`send --wait`", &command, &format!("< {MUST_MS} ms"));
    row("over HTTP", &http, "");
    table.print();
    person.model.saw_each_once();
}
