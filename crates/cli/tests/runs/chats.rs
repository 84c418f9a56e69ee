//! Chats on demand: a run needs a reason, a consumer is an open connection, and purge keeps everything.

use crate::inbox::PARROT;
use crate::lines::Lines;
use crate::processes::{self, Held, PATIENCE};
use crate::world::{Ends, World, number};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How long the test watches that nothing happens.
const WATCHED: Duration = Duration::from_secs(30);
/// What "at once" means on a busy machine: far less than any timer of the session.
const AT_ONCE: Duration = Duration::from_secs(5);

impl World {
    /// How many runs were ever started.
    fn starts(&self) -> usize {
        self.events().iter().filter(|event| event["kind"] == "run_started").count()
    }

    fn idle_chat(&self, name: &str, options: &[&str]) {
        let all = [&["--mode", "on-demand", "--turns", "done"], options].concat();
        self.guarded(name, &all, PARROT);
    }
}

/// Checks again and again for a while that no process of a run exists.
fn watch_for_members(world: &World) {
    let until = Instant::now() + WATCHED;
    while Instant::now() < until {
        let members = world.members();
        assert!(members.is_empty(), "{members:?} were started without need");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn purged_chats_stay_away_over_a_kill_of_the_daemon_and_keep_everything() {
    let world = World::new();
    world.idle_chat("one", &["--idle", "1h"]);
    world.idle_chat("two", &["--idle", "1h", "--parent", "one"]);
    world.idle_chat("three", &["--idle", "1h", "--parent", "two", "--vendor-session", "v-3"]);
    // Nothing has needed this one, and nothing will.
    let other = World::new();
    other.idle_chat("unneeded", &["--idle", "1h"]);
    for name in ["one", "two", "three"] {
        world.ok(&["send", name, "remember me", "--wait", "240s"]);
    }
    let ids: Vec<Value> = world.sessions().values().map(|session| session["id"].clone()).collect();
    let purged = world.json(&["purge"]);
    assert_eq!(purged, json!({ "archived": ["one", "two", "three"], "skipped": [] }));
    world.assert_no_members();
    world.kill_daemon();
    world.ok(&["up"]);
    let starts = world.starts();
    watch_for_members(&world);
    other.assert_no_members();
    assert_eq!(other.show("unneeded")["state"], "idle");
    assert_eq!((world.starts(), starts), (3, 3), "a restart resurrects nobody");

    let sessions = world.sessions();
    assert_eq!(sessions.values().map(|session| session["id"].clone()).collect::<Vec<_>>(), ids);
    assert!(sessions.values().all(|session| session["state"] == "archived"), "{sessions:?}");
    let parents = ["one", "two", "three"].map(|name| sessions[name]["parent"].clone());
    assert_eq!(parents, [Value::Null, json!("one"), json!("two")]);
    assert_eq!(sessions["three"]["vendor_session"], "v-3");
    for name in ["one", "two", "three"] {
        assert_eq!(world.inbox(name)[0]["answer"], "remember me");
        assert!(world.ok(&["logs", name]).stdout.contains("PINFOLD_DONE remember me"));
    }
    assert_eq!(world.json(&["ls"]), json!([]));
    let tree = world.json(&["tree", "--all"]);
    assert_eq!(tree[0]["children"][0]["children"][0]["session"]["name"], "three", "{tree}");
    let again = world.ok(&["purge"]);
    assert!(again.stderr.contains("nothing to do"), "{again:?}");
    assert_eq!(world.json(&["purge"]), json!({ "archived": [], "skipped": [] }));

    for _ in 0..3 {
        world.ok(&["down"]);
        world.ok(&["up"]);
    }
    assert_eq!(world.starts(), 3);
    // Restoring, starting and sending all bring a session back.
    world.ok(&["restore", "two"]);
    assert_eq!(world.show("two")["state"], "idle", "restored is parked");
    assert_eq!(world.ok(&["send", "two", "back", "--wait", "240s"]).stdout, "back\n");
    assert_eq!(world.json(&["restore", "--all"]).as_array().unwrap().len(), 2);
    assert!(world.sessions().values().all(|session| session["archived_at"].is_null()));
    world.check_history();
}

#[test]
fn purge_leaves_those_alone_that_somebody_uses() {
    let world = World::new();
    world.idle_chat("free", &[]);
    world.idle_chat("watched", &[]);
    world.idle_chat("queued", &[]);
    world.new_chat("busy", &[], "while IFS= read -r line; do sleep 1000; done");
    world.guarded("steady", &[], "exec sleep 100000");
    world.ok(&["stop", "queued"]);
    world.ok(&["send", "queued", "x"]);
    let id = world.ok(&["send", "busy", "x"]).stdout;
    world.message("busy", id.trim(), "delivered");
    let watcher = world.follow(&["logs", "watched", "-f"]);
    world.until("somebody watches", || (world.show("watched")["consumers"] == 1).then_some(()));
    let wanted = json!({ "archived": ["free"], "skipped": [
        { "name": "watched", "why": "a client is connected" },
        { "name": "queued", "why": "a message is queued" },
        { "name": "busy", "why": "a turn is under way" },
    ] });
    assert_eq!(world.json(&["purge", "--dry-run"]), wanted);
    assert_eq!(world.show("free")["state"], "idle", "a dry run changes nothing");
    assert_eq!(world.json(&["purge"]), wanted);
    assert_eq!(world.show("steady")["state"], "running", "only on-demand ones are taken");
    let all = world.json(&["purge", "--include-active", "--mode", "all"]);
    assert_eq!(all["archived"], json!(["watched", "queued", "busy", "steady"]));
    drop(watcher);
    world.assert_no_members();
    assert_eq!(world.inbox("queued")[0]["state"], "queued", "the inbox is kept");
    assert_eq!(world.run(&["purge", "--mode", "sometimes"]).code, 2);
}

#[test]
fn purge_from_inside_a_session_does_not_archive_that_session() {
    let world = World::new();
    let pinfold = world.binary.display().to_string();
    let script = format!(
        "while IFS= read -r how; do case $how in \
           plain) {pinfold} purge;; \
           bare) (setsid env -i {pinfold} --home \"$HOME_OF_TEST\" purge); sleep 0.1;; \
         esac >>\"$ROOT/said\" 2>&1; echo PINFOLD_DONE; done"
    );
    let home = format!("HOME_OF_TEST={}", world.home.display());
    let options = ["--env", &home];
    world.new_chat("own", &options, &script);
    // A run may act on its own children; it may not archive anything else.
    world.idle_chat("stranger", &[]);
    for how in ["plain", "bare"] {
        world.idle_chat("other", &["--parent", "own"]);
        world.ok(&["send", "own", how, "--wait", "240s"]);
        let said = world.journal("said").join("\n");
        assert!(said.contains("own is left alone"), "{how}: {said}");
        assert_eq!(world.show("other")["state"], "archived", "{how}: {said}");
        assert_eq!(world.show("own")["state"], "running", "{how}: {said}");
        assert_eq!(world.show("stranger")["state"], "idle", "{how}: {said}");
    }
    // From outside, the variable is enough; nothing else would spare an idle session.
    world.idle_chat("named", &[]);
    let mut purge = world.command(&["--json", "purge", "--dry-run"]);
    let answer = crate::world::finish(purge.env("PINFOLD_SESSION", "named")).json();
    let skipped = answer["skipped"].as_array().unwrap();
    assert!(skipped.contains(&json!({ "name": "named", "why": "it is the session that asks" })), "{answer}");
}

#[test]
fn names_may_be_given_again_and_ids_tell_them_apart() {
    let world = World::new();
    world.idle_chat("chat", &[]);
    let first = world.show("chat")["id"].clone();
    world.ok(&["send", "chat", "old", "--wait", "240s"]);
    world.ok(&["archive", "chat", "chat"]);
    world.idle_chat("chat", &[]);
    let second = world.show("chat")["id"].clone();
    assert_ne!(first, second);
    assert!(world.inbox("chat").is_empty(), "a new session shows no old history");
    let taken = world.run(&["--json", "restore", "chat"]);
    assert_eq!((taken.code, &taken.error()["kind"]), (73, &json!("exists")), "{taken:?}");
    assert_eq!(world.run(&["restore", first.as_str().unwrap()]).code, 73);
    world.ok(&["start", "chat"]);
    let live = world.run(&["rm", second.as_str().unwrap(), "--yes"]);
    assert_eq!(live.code, 1, "{live:?}");
    assert_eq!(world.run(&["rm", first.as_str().unwrap()]).code, 2, "without --yes");
    let folder = world.home.join("sessions").join(first.as_str().unwrap());
    assert!(folder.exists());
    let removed = world.json(&["rm", first.as_str().unwrap(), "--yes"]);
    assert_eq!((&removed[0]["messages"], &removed[0]["runs"]), (&json!(1), &json!(1)), "{removed}");
    assert!(!folder.exists());
    assert_eq!(world.run(&["show", first.as_str().unwrap()]).code, 1);
    world.ok(&["down"]);
    assert_eq!(world.json(&["ls", "--all"]).as_array().unwrap().len(), 1);
    world.check_history();
}

#[test]
fn a_session_whose_directory_or_program_is_gone_fails_once() {
    let world = World::new();
    let dir = world.path("work");
    std::fs::create_dir(&dir).unwrap();
    let program = world.path("agent.sh");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 100000\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let (dir_text, program_text) = (dir.display().to_string(), program.display().to_string());
    let (sleep, within) = (["--", "sleep", "100000"], ["--dir", &dir_text]);
    let made = |name: &str, words: &[&[&str]]| {
        let words = words.concat();
        world.ok(&[&["new", name, "--mode", "on-demand"][..], &words].concat());
    };
    made("dirless", &[&within, &sleep]);
    made("unlocked", &[&within, &["--no-dir-lock"], &sleep]);
    made("programless", &[&["--", &program_text]]);
    std::fs::remove_dir(&dir).unwrap();
    std::fs::remove_file(&program).unwrap();
    for name in ["dirless", "unlocked", "programless"] {
        world.ok(&["send", name, "x"]);
        world.wait(name, "failed");
        let why = world.show(name)["why"].as_str().unwrap().to_owned();
        assert!(why.contains("not exist") || why.contains("not found"), "{name}: {why}");
    }
    world.ok(&["down"]);
    world.ok(&["up"]);
    let failed = world.events().iter().filter(|event| event["kind"] == "failed").count();
    assert_eq!(failed, 3, "each failed once, and a restart tries none of them again");
    world.assert_no_members();
}

#[test]
fn a_session_whose_parent_is_removed_is_archived() {
    let world = World::new();
    world.idle_chat("root", &[]);
    world.new_chat("orphan", &["--parent", "root"], PARROT);
    world.ok(&["send", "orphan", "x", "--wait"]);
    world.ok(&["archive", "root"]);
    let refused = world.run(&["rm", "root", "--yes"]);
    assert!(refused.code == 1 && refused.stderr.contains("orphan"), "{refused:?}");
    world.ok(&["stop", "orphan"]);
    world.ok(&["rm", "root", "--yes"]);
    world.wait("orphan", "archived");
    assert_eq!(world.events_of("orphan", "archived")[0]["why"], "its parent `root` is gone");
    assert_eq!(world.run(&["new", "x", "--parent", "nobody", "--", "true"]).code, 1);
}

#[test]
fn a_session_whose_parent_somebody_else_removed_is_archived_once() {
    let world = World::new();
    world.idle_chat("root", &[]);
    world.idle_chat("orphan", &["--parent", "root"]);
    world.ok(&["archive", "root"]);
    world.ok(&["down"]);
    let database = rusqlite::Connection::open(world.home.join("pinfold.db")).unwrap();
    database.pragma_update(None, "foreign_keys", true).unwrap();
    assert_eq!(database.execute("DELETE FROM sessions WHERE name = 'root'", []).unwrap(), 1);
    drop(database);
    world.ok(&["up"]);
    assert_eq!(world.show("orphan")["state"], "archived");
    let archived = world.events_of("orphan", "archived");
    assert_eq!((archived.len(), &archived[0]["why"]), (1, &json!("its parent `root` is gone")));
    world.assert_no_members();
    world.ok(&["restore", "orphan"]);
    assert_eq!(world.show("orphan")["parent"], Value::Null);
    world.ok(&["down"]);
    world.ok(&["up"]);
    assert_eq!(world.show("orphan")["state"], "idle", "who brought it back meant it");
    assert_eq!(world.run(&["set", "orphan", "--parent", "orphan"]).code, 78);
}

#[test]
fn a_chat_parks_when_nobody_needs_it_and_wakes_at_once() {
    let world = World::new();
    world.idle_chat("a", &["--idle", "50ms"]);
    let mut fastest = Duration::MAX;
    for round in 1..=5_u64 {
        let id = world.ok(&["send", "a", "x"]).stdout.trim().to_owned();
        world.message("a", &id, "done");
        world.wait("a", "idle");
        let at = |kind: &str| moment(world.events_of("a", kind).last().unwrap());
        fastest = fastest.min(Duration::from_millis(at("message_delivered") - at("message_queued")));
        let session = world.show("a");
        assert_eq!((&session["crashes"], session["inbox"]["done"].as_u64()), (&json!(0), Some(round)));
    }
    assert!(fastest < AT_ONCE, "{fastest:?}");
    assert_eq!((world.events_of("a", "parked").len(), world.events_of("a", "woken").len()), (5, 4));
    let verdicts = world.events_of("a", "run_exited");
    assert!(verdicts.iter().all(|event| event["verdict"] == "clean"), "{verdicts:?}");
    world.assert_no_members();
    world.check_history();
}

/// When an event happened, in milliseconds of its day.
pub(crate) fn moment(event: &Value) -> u64 {
    let at = event["at"].as_str().unwrap();
    let part = |range: std::ops::Range<usize>| at[range].parse::<u64>().unwrap();
    ((part(11..13) * 60 + part(14..16)) * 60 + part(17..19)) * 1000 + part(20..23)
}

#[test]
fn a_run_without_need_is_not_started_again_whatever_it_ends_with() {
    for code in [0, 1, 75, 9] {
        let world = World::new();
        let script = format!("IFS= read -r line; echo PINFOLD_DONE; sleep 0.05; exit {code}");
        world.new_chat("a", &[], &script);
        let watcher = world.follow(&["logs", "a", "-f"]);
        world.ok(&["send", "a", "x", "--wait", "240s"]);
        world.until("it has ended", || (world.events_of("a", "run_exited").len() == 1).then_some(()));
        world.wait("a", "idle");
        assert_eq!(world.starts(), 1, "a watcher is no reason to start");
        assert!(world.show("a")["next"].is_null());
        drop(watcher);
    }
}

#[test]
fn a_consumer_is_an_open_connection_and_its_end_is_the_kernels_word() {
    let world = World::new();
    world.idle_chat("a", &["--idle", "50ms"]);
    world.ok(&["send", "a", "x", "--wait", "240s"]);
    world.wait("a", "idle");
    let consumers =
        |count: u64| world.until("consumers", || (world.show("a")["consumers"] == count).then_some(()));
    let mut follower = world.command(&["logs", "a", "-f"]).stdout(Stdio::null()).spawn().unwrap();
    consumers(1);
    let mut stream = open_stream(&world, "a");
    consumers(2);
    let mut listing = world.command(&["events", "-f"]).stdout(Stdio::null()).spawn().unwrap();
    world.ok(&["ls"]);
    world.ok(&["send", "a", "y", "--wait", "240s"]);
    let seen = std::iter::from_fn(|| stream.line("event: ")).take(200);
    let kinds: std::collections::BTreeSet<String> = seen.take_while(|kind| kind != "stop").collect_until(3);
    assert!(["message", "output", "state"].iter().all(|kind| kinds.contains(*kind)), "{kinds:?}");
    assert_eq!(world.show("a")["consumers"], 2, "a listing or the event stream is no consumer");
    assert_eq!(world.show("a")["state"], "running", "consumers delay parking");
    let before = world.show("a")["last_consumer_at"].clone();
    follower.kill().unwrap();
    follower.ended();
    consumers(1);
    drop(stream);
    consumers(0);
    world.wait("a", "idle");
    assert_ne!(world.show("a")["last_consumer_at"], before);
    listing.kill().unwrap();
    listing.ended();
    assert_eq!(world.events_of("a", "consumer_left").len(), 2);
}

/// Takes items until this many different ones were seen.
trait CollectUntil: Iterator<Item = String> + Sized {
    fn collect_until(self, different: usize) -> std::collections::BTreeSet<String> {
        let mut seen = std::collections::BTreeSet::new();
        for item in self {
            seen.insert(item);
            if seen.len() == different {
                break;
            }
        }
        seen
    }
}

impl<I: Iterator<Item = String>> CollectUntil for I {}

/// An open stream of a session.
struct Open(BufReader<UnixStream>);

fn open_stream(world: &World, name: &str) -> Open {
    let mut socket = UnixStream::connect(world.home.join("pinfold.sock")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(socket, "GET /v1/sessions/{name}/stream HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    Open(BufReader::new(socket))
}

impl Open {
    /// The rest of the next line that begins like this.
    fn line(&mut self, beginning: &str) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(rest) = line.strip_prefix(beginning) {
                return Some(rest.trim().to_owned());
            }
        }
    }
}

#[test]
fn a_chat_whose_lock_is_held_outside_waits_for_it_and_wakes_when_the_holder_is_killed() {
    let world = World::new();
    world.idle_chat("a", &["--idle", "50ms"]);
    let mut fastest = Duration::MAX;
    for round in 1..=5 {
        world
            .until("its lock is free", || (world.ok(&["--json", "locks"]).json() == json!([])).then_some(()));
        let mut holder =
            world.command(&["lock", "session:a", "--", "sh", "-c", "echo held; exec sleep 100000"]);
        let mut holder = holder.stdout(Stdio::piped()).spawn().unwrap();
        Lines::of(holder.stdout.take().unwrap()).next("the holder");
        let id = world.ok(&["send", "a", "x"]).stdout.trim().to_owned();
        world.wait("a", "blocked");
        let blocked = world.show("a");
        assert_eq!(blocked["holder"]["pid"].as_u64().map(|pid| pid > 0), Some(true), "{blocked}");
        assert!(blocked["why"].as_str().unwrap().contains("blocked"), "{blocked}");
        assert!(!world.members().contains_key("a"), "nothing is started");
        let sleeper = processes::children(holder.id()).first().copied();
        let held = Held::open(sleeper.unwrap_or(holder.id())).unwrap();
        let killed = Instant::now();
        held.kill();
        world.message("a", &id, "done");
        fastest = fastest.min(killed.elapsed());
        _ = holder.wait();
        assert_eq!(number(&world.show("a")["crashes"]), 0);
        world.wait("a", "idle");
        assert_eq!(world.events_of("a", "lock_busy").len(), round);
    }
    // The measurement includes the asking process: the fastest of several shows what the daemon takes.
    assert!(fastest < AT_ONCE, "{fastest:?}");
    world.check_history();
}
