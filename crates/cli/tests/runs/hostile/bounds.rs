//! Long histories, and agents that leave the groups they were put into: nothing grows with the past, and
//! nothing escapes by moving.

use crate::eater;
use crate::rights::needs;
use crate::world::{Ends, World, number};
use pinfold_core::event::MessageEvent;
use pinfold_core::{Event, EventKind, MessageId, Now, Session, Wall};
use pinfold_store::{AuditEvent, Batch, Decided, Facts, Loaded, Lookup, SessionId, Store, Ulid};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const MIB: u64 = 1 << 20;
/// The most memory the daemon may ever use, whatever happened before.
const MOST: u64 = 64 * MIB;
/// How many rows are committed together.
const AT_ONCE: u64 = 100;

/// A history: how many messages and events, and how long each is.
#[derive(Clone, Copy)]
struct Past {
    messages: (u64, usize),
    events: (u64, usize),
}

const LONG: Past = Past { messages: (1_000, 16 << 10), events: (1_000, 16 << 10) };
/// A gigabyte in the file, but not so much that the oldest of it is pruned.
const VERY_LONG: Past = Past { messages: (7_600, 64 << 10), events: (29_000, 16 << 10) };

/// A home with a past, whose daemon is down.
fn world_with(past: Past) -> World {
    let world = World::new();
    world.ok(&["new", "chat", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["stop", "chat"]);
    world.ok(&["down"]);
    let store = Store::open(&world.home.join("pinfold.db"), &pinfold_store::StoreOptions::default()).unwrap();
    let Lookup::One(Loaded::Whole(stored)) = store.reader().unwrap().find("chat").unwrap() else {
        panic!("no session `chat`")
    };
    let (id, mut session) = (stored.id, stored.session);
    let text = "x".repeat(past.messages.1);
    in_batches(&store, past.messages.0, |batch, n| send(batch, id, &mut session, n, &text));
    let word = Value::from("y".repeat(past.events.1));
    in_batches(&store, past.events.0, |batch, n| batch.event(event(id, n, &word)));
    world
}

fn in_batches(store: &Store, count: u64, mut add: impl FnMut(&mut Batch, u64)) {
    for first in (0..count).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let mut batch = Batch::new();
        (first..count.min(first + AT_ONCE)).for_each(|n| add(&mut batch, n));
        store.commit(batch).wait().unwrap();
    }
}

fn send(batch: &mut Batch, id: SessionId, session: &mut Session, n: u64, text: &str) {
    let message = MessageId::from(Ulid::new(1_700_000_000_000 + n, u128::from(n)));
    let now = Now { wall: wall(), ..Now::default() };
    let sent = Event::Message(MessageEvent::Sent { message, key: None, known: None });
    let decision = session.handle(&sent, now);
    let facts = Facts { texts: [(message, text.to_owned())].into(), ..Facts::default() };
    batch.decided(Decided { id, session, decision: &decision, at: now.wall }, &facts);
}

/// The current time: nothing written now is old enough to be pruned.
fn wall() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Wall(since.as_millis().try_into().unwrap())
}

fn event(id: SessionId, n: u64, word: &Value) -> AuditEvent {
    AuditEvent {
        at: wall(),
        session: Some(id),
        run: None,
        kind: EventKind::HealthWarn,
        why: format!("number {n}"),
        data: Map::from_iter([("word".to_owned(), word.clone())]),
    }
}

/// A value from a process's status file, in bytes.
fn figure(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Reads the inbox three times and the events three times, all at once and to the end; the output is left in files.
fn read_six_times(world: &World) {
    let readers: Vec<_> = (0..6)
        .map(|n| {
            let words: &[&str] =
                if n % 2 == 0 { &["--json", "inbox", "chat"] } else { &["--json", "events"] };
            let file = std::fs::File::create(world.path(&format!("read-{n}"))).unwrap();
            world.command(words).stdout(file).stderr(Stdio::inherit()).spawn().unwrap()
        })
        .collect();
    for mut reader in readers {
        assert!(reader.ended().success());
    }
}

fn array(file: &Path) -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

fn assert_bounded(world: &World, past: Past, resting: u64) {
    world.ok(&["up"]);
    let daemon = number(&world.json(&["status"])["pid"]);
    let up = figure(daemon, "VmHWM");
    assert!(up < MOST, "`up` took {} MiB", up / MIB);
    read_six_times(world);
    let peak = figure(daemon, "VmHWM");
    assert!(peak < MOST, "six readers took {} MiB", peak / MIB);
    let until = Instant::now() + crate::processes::PATIENCE;
    while figure(daemon, "RssAnon") > resting {
        let left = figure(daemon, "RssAnon") / MIB;
        assert!(Instant::now() < until, "{left} MiB are still there");
        std::thread::sleep(Duration::from_millis(50));
    }
    println!(
        "up {} MiB, peak {} MiB, rests at {} MiB",
        up / MIB,
        peak / MIB,
        figure(daemon, "RssAnon") / MIB
    );
    let messages = array(&world.path("read-0"));
    assert_eq!(messages.len() as u64, past.messages.0);
    assert!(messages.iter().all(|message| message["text"].as_str().unwrap().len() == past.messages.1));
    let bytes = |n: u8| std::fs::metadata(world.path(&format!("read-{n}"))).unwrap().len();
    assert_eq!((bytes(2), bytes(4)), (bytes(0), bytes(0)), "all readers get all of it");
    let events = array(&world.path("read-1"));
    assert!(events.iter().enumerate().all(|(index, event)| event["seq"] == index as u64 + 1));
    assert!(events.len() as u64 > past.messages.0 + past.events.0);
}

#[test]
fn a_long_history_does_not_have_to_fit_into_memory() {
    assert_bounded(&world_with(LONG), LONG, 24 * MIB);
}

#[test]
#[ignore = "makes a history of a gigabyte: `cargo nextest run --run-ignored only a_gigabyte`"]
fn a_gigabyte_of_history_does_not_have_to_fit_into_memory() {
    assert_bounded(&world_with(VERY_LONG), VERY_LONG, 24 * MIB);
}

/// Whether a run with a limit gets a group here that counts its memory; that is the one to leave.
fn counts_memory(world: &World) -> bool {
    world.json(&["status"])["capabilities"]["memory_cgroup"]["available"] == true
}

/// The files through which a process moves itself out of its groups, into the test's own.
fn ways_out() -> String {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let memory = own.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| path));
    let second = own.lines().find_map(|line| line.strip_prefix("0::"));
    let memory =
        memory.zip(mount("cgroup", "memory")).map(|(path, mount)| format!("{mount}{path}/cgroup.procs"));
    let second =
        second.zip(mount("cgroup2", "rw")).map(|(path, mount)| format!("{mount}{path}/cgroup.procs"));
    [memory, second].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[test]
fn an_agent_that_leaves_its_group_is_drained_all_the_same() {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), "[policy]\nmemory_sample = \"100ms\"\n").unwrap();
    let leave = "until test -e $ROOT/leave; do sleep 0.01; done; for f in $WAYS; do echo $$ >$f; done; cat /proc/self/cgroup >$ROOT/groups; exec \"$@\"";
    let (role, ways) = (eater::role("anonymous 200"), format!("WAYS={}", ways_out()));
    let options = ["new", "mover", "--env", "ROOT", "--env", &role, "--env", &ways, "--memory", "100M"];
    let words = eater::words();
    let command: Vec<&str> =
        ["--", "sh", "-c", leave, "sh"].into_iter().chain(words.iter().map(String::as_str)).collect();
    world.json(&[&options[..], &command].concat());
    let watching = world.watch();
    world.until("its first reading", || world.show("mover")["memory_bytes"].as_u64());
    std::fs::write(world.path("leave"), "").unwrap();
    let drained = watching.event("a drain", |event| event["kind"] == "drained");
    assert!(drained["bytes"].as_u64().unwrap() >= 100 * MIB, "{drained}");
    let groups = std::fs::read_to_string(world.path("groups")).unwrap();
    assert!(!counts_memory(&world) || !groups.contains("pinfold-"), "it was to leave: {groups}");
}

/// The control group of a session's agent, if it is that of a run.
fn group_of(pid: u32) -> Option<PathBuf> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let inside = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own = inside.split('/').position(|part| part.starts_with("pinfold-"))?;
    let inside: PathBuf = inside.split('/').take(own + 1).collect();
    Some(Path::new(&mount("cgroup2", "rw")?).join(inside))
}

/// Where control groups of this kind are mounted.
fn mount(kind: &str, option: &str) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let words = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let right = |words: &Vec<&str>| words[2] == kind && words[3].split(',').any(|word| word == option);
    words.into_iter().find(right).map(|words| words[1].to_owned())
}

/// Makes groups in its own group and moves into the innermost, as container engines do; then lives until it
/// is told to die.
const NESTS: &str = "own=$MOUNT$(sed -n 's/^0:://p' /proc/self/cgroup); \
     case $own in */pinfold-*) mkdir -p $own/a/b $own/c && echo $$ >$own/a/b/cgroup.procs;; esac; \
     echo nested; until test -e $ROOT/die-$PINFOLD_FENCE; do sleep 0.02; done";

#[test]
fn groups_that_an_agent_makes_in_its_own_cost_no_later_run_its_group_and_never_stay() {
    needs!(Groups);
    for limit in [&[][..], &["--memory", "1G"]] {
        let world = World::new();
        world.ok(&["up"]);
        if world.json(&["status"])["capabilities"]["cgroup"]["available"] != true {
            println!("no control groups here, so none to nest");
            return;
        }
        let place = format!("MOUNT={}", mount("cgroup2", "rw").unwrap());
        let options = [&["--mode", "always", "--env", &place], limit].concat();
        world.guarded("nester", &options, NESTS);
        let mut groups = Vec::new();
        for run in 1..=3_u32 {
            let watching = world.follow(&["logs", "nester", "-f", "-n", "1000"]);
            let said = std::cell::Cell::new(0);
            watching.until("a run that has nested", |line| {
                said.set(said.get() + u32::from(line == "nested"));
                said.get() == run
            });
            let session = world.show("nester");
            let group = group_of(number(&session["pid"]));
            groups.push(group.unwrap_or_else(|| panic!("run {run} has no group: {session}")));
            // First its successor under the same shim, then one under another.
            if run == 1 {
                std::fs::write(world.path(&format!("die-{}", session["fence"])), "").unwrap();
            } else {
                world.ok(&["stop", "nester"]);
                world.ok(&["start", "nester"]);
            }
        }
        world.ok(&["stop", "nester"]);
        world.ok(&["archive", "nester"]);
        world.ok(&["rm", "nester", "--yes"]);
        let left: Vec<_> = groups.iter().filter(|group| group.exists()).collect();
        assert!(left.is_empty(), "{left:?} are still there");
    }
}

#[test]
fn a_run_outside_of_a_group_that_it_could_have_is_said() {
    let world = World::new();
    let ways = format!("WAYS={}", ways_out());
    world.guarded("kept", &[], "echo up; exec sleep 100000");
    world.guarded(
        "mover",
        &["--env", &ways],
        "for f in $WAYS; do echo $$ >$f; done; echo up; exec sleep 100000",
    );
    for session in ["kept", "mover"] {
        world.printed(session, "up");
    }
    let can = world.json(&["status"])["capabilities"]["cgroup"]["available"] == true;
    let why = |name| world.ok(&["why", name]).stdout;
    assert_eq!(world.show("kept")["contained"], can);
    assert_eq!(world.show("mover")["contained"], false);
    assert!(!why("kept").contains("control group"), "{}", why("kept"));
    assert_eq!(why("mover").contains("it is not in a control group of its own"), can, "{}", why("mover"));
}
