//! A home with something of everything and with known contents.

use super::files::{Kind, files};
use super::is_of_store;
use crate::world::World;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// No verb takes longer, whatever happened to the home.
pub(super) const DEADLINE: Duration = crate::processes::PATIENCE;

pub(super) struct Inhabited {
    pub(super) world: World,
    counted: AtomicUsize,
    /// Every file as it once was, to restore for the next case what this one has lost.
    spare: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
}

/// What was acknowledged: sessions by name, messages and events by their ids.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub(super) sessions: BTreeMap<String, Value>,
    pub(super) messages: BTreeMap<String, Value>,
    pub(super) events: BTreeMap<String, Value>,
}

const CHAT: &str = "while read -r line; do echo \"PINFOLD_DONE answer to $line\"; done";

impl Inhabited {
    /// One session that always runs, one with a terminal, one stopped chat with a queued message, and locks.
    pub(super) fn new() -> Inhabited {
        let world = World::new();
        world.ok(&["up"]);
        world.ok(&["down"]);
        std::fs::write(world.home.join("config.toml"), "[policy]\nstop_grace = \"5s\"\n").unwrap();
        std::fs::create_dir(world.path("project")).unwrap();
        world.guarded("runs", &["--mode", "always", "--dir", "project"], "echo here; exec sleep 100000");
        world.ok(&["new", "screen", "--pty", "--", "sh", "-c", "echo here; exec cat"]);
        let chat = ["new", "chat", "--mode", "on-demand", "--turns", "done", "--env", "KEPT=value"];
        world.ok(&[&chat[..], &["--", "sh", "-c", CHAT]].concat());
        assert_eq!(world.ok(&["send", "chat", "question", "--wait"]).stdout.trim(), "answer to question");
        world.ok(&["stop", "chat"]);
        world.ok(&["send", "chat", "queued"]);
        world.ok(&["lock", "key:kept", "--", "true"]);
        // A process that waits at a directory in use leaves a gate.
        assert_eq!(world.run(&["lock", ".", "--", "true"]).code, 75);
        Inhabited { world, counted: AtomicUsize::new(0), spare: Mutex::default() }
    }

    /// An unused name.
    pub(super) fn fresh(&self, what: &str) -> String {
        format!("{what}-{}", self.counted.fetch_add(1, Ordering::Relaxed))
    }

    /// Restores a file that the last case has lost, or saves a copy of it. SQLite's files are left to SQLite.
    pub(super) fn complete(&self, kind: Kind) {
        let mut spare = self.spare.lock().unwrap();
        if is_of_store(kind) {
            return;
        }
        if kind == Kind::Audit {
            return self.unlock();
        }
        match self.file(kind) {
            Some(file) => {
                // A socket has no contents to save.
                let bytes = std::fs::read(&file).ok();
                bytes.map(|bytes| spare.entry(file).or_insert(bytes));
            }
            None => spare.iter().for_each(|(file, bytes)| std::fs::write(file, bytes).unwrap()),
        }
    }

    /// Waits for the reserve, which the daemon makes when it has time.
    pub(super) fn reserved(&self) {
        let until = std::time::Instant::now() + DEADLINE;
        while self.file(Kind::Reserve).is_none() {
            assert!(std::time::Instant::now() < until, "no room is kept");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Makes the search index complete, as it is after a search.
    pub(super) fn searched(&self) {
        self.world.ok(&["search", "question"]);
    }

    /// Ends the holder of a lock, which is recorded for the daemon.
    fn unlock(&self) {
        let key = format!("key:{}", self.fresh("held"));
        let holding = self.world.follow(&["lock", &key, "--", "sh", "-c", "echo held; exec sleep 1000"]);
        holding.until("the lock", |line| line == "held");
        self.world.ok(&["unlock", &key, "--kill"]);
    }

    /// The file of this kind to harm: of several sessions, that of the one with most to lose.
    pub(super) fn file(&self, kind: Kind) -> Option<PathBuf> {
        let id = if [Kind::Output, Kind::Exits].contains(&kind) {
            self.id("runs")
        } else if kind == Kind::ShimSocket {
            self.id("screen")
        } else {
            String::new()
        };
        let mut found = files(&self.world).into_iter().filter(|(found, _)| *found == kind);
        found.find(|(_, path)| path.to_str().unwrap().contains(&id)).map(|(_, path)| path)
    }

    /// The id of a session, known without a daemon.
    fn id(&self, name: &str) -> String {
        std::fs::read_to_string(self.world.path(&format!("id-{name}"))).unwrap()
    }

    /// Reads everything through the verbs, while all is well.
    pub(super) fn read(&self) -> Known {
        let mut known = Known::default();
        let sessions: Vec<Value> = self.list(&["ls", "--all"]).iter().map(settled).collect();
        for session in &sessions {
            let (name, id) = (session["name"].as_str().unwrap(), session["id"].as_str().unwrap());
            std::fs::write(self.world.path(&format!("id-{name}")), id).unwrap();
        }
        known.sessions = by(&sessions, "name");
        known.messages = by(&self.list(&["inbox", "chat"]), "id");
        known.events = by(&self.list(&["events"]), "seq");
        known
    }

    /// Whether it has all its sessions.
    pub(super) fn is_whole(&self) -> bool {
        let names: Vec<Value> = self.list(&["ls"]).iter().map(|session| session["name"].clone()).collect();
        names == ["runs", "screen", "chat"]
    }

    pub(super) fn is_up(&self) -> bool {
        self.world.run(&["status"]).code == 0
    }

    fn list(&self, words: &[&str]) -> Vec<Value> {
        self.world.json(words).as_array().unwrap().clone()
    }
}

pub(super) fn by(rows: &[Value], field: &str) -> BTreeMap<String, Value> {
    rows.iter().map(|row| (row[field].to_string(), row.clone())).collect()
}

/// The acknowledged part of a session, without what changes by itself.
pub(super) fn settled(session: &Value) -> Value {
    let fields = ["id", "name", "agent", "dir", "mode", "command", "tags", "created_at"];
    fields.iter().map(|field| ((*field).to_owned(), session[field].clone())).collect()
}

/// The same file of another home, if that has one.
pub(super) fn anothers(kind: Kind) -> Option<PathBuf> {
    static OTHER: OnceLock<Inhabited> = OnceLock::new();
    let other = OTHER.get_or_init(|| {
        let other = Inhabited::new();
        other.world.ok(&["send", "chat", "of another home"]);
        other.searched();
        other.read();
        other
    });
    other.file(kind)
}
