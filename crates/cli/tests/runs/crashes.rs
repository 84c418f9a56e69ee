//! The daemon or a shim aborts at every step in turn; `up` follows, and the promises hold.

mod declare;
mod tape;

use crate::processes;
use crate::world::{World, finish};
use std::time::{Duration, Instant};

/// Ends immediately the first time, so that a second run is started under the same shim; has a child that
/// left its session.
const ENDS_ONCE: &str = "setsid sleep 100000 & \
     if mkdir \"$ROOT/ended-$PINFOLD_SESSION\" 2>/dev/null; then exit 0; fi; exec sleep 100000";

/// A home whose daemon is its own shim: the small shim may have been built without crash points.
fn world() -> World {
    let mut world = World::new();
    let binary = world.path("pinfold");
    crate::program::link(&world.binary, &binary);
    world.binary = binary;
    world
}

/// Starts a daemon that aborts, or whose shims abort, at a point.
fn up(world: &World, point: &str) {
    let mut command = world.command(&["up"]);
    finish(command.env(pinfold_daemon::crash::VARIABLE, point));
}

/// Repeats a verb until it succeeds: the daemon may be killed once while it works, and another one then does it.
fn insist(world: &World, words: &[&str]) {
    let mut answer = world.run(words);
    if answer.code == 69 {
        answer = world.run(words);
    }
    let made_before = answer.code == 73 && words[0] == "new";
    assert!(answer.code == 0 || made_before, "{words:?}: {answer:?}\n{}", world.daemon_log());
}

fn new(world: &World, name: &str) {
    let script = format!("{}{ENDS_ONCE}", crate::world::GUARD);
    insist(world, &["new", name, "--env", "ROOT", "--stop-grace", "1s", "--", "sh", "-c", &script]);
}

fn settle(world: &World) {
    world.ok(&["up"]);
    world.wait("a", "running,stopped");
    world.ok(&["start", "a"]);
    world.wait("a", "running");
    world.check_history();
    world.ok(&["down"]);
    world.assert_no_members();
    world.ok(&["--json", "events"]);
    world.ok(&["down"]);
    world.assert_no_members();
}

/// Takes a session through every step of its life with a daemon that aborts at one; returns whether it did.
fn crash_daemon_at(point: &str) -> bool {
    let world = world();
    up(&world, point);
    new(&world, "a");
    insist(&world, &["wait", "a", "--for", "running", "--timeout", "240s"]);
    insist(&world, &["restart", "a"]);
    insist(&world, &["stop", "a"]);
    insist(&world, &["start", "a"]);
    world.run(&["down", "--keep"]);
    // Another daemon finds what the first one left, and goes down in order.
    up(&world, point);
    insist(&world, &["ls"]);
    world.run(&["down"]);
    let aborted = world.daemon_log().contains(&format!("aborts at {point}"));
    settle(&world);
    aborted
}

/// Points that only sessions with values of variables reach; all other points are reached by every session.
const OF_VALUES: [&str; 3] = ["given.kept", "given.outdated", "given.removed"];

#[test]
fn the_promises_hold_wherever_the_daemon_dies() {
    let mut crashes = 0;
    for point in pinfold_daemon::crash::POINTS {
        let mut time = 1;
        while crash_daemon_at(&format!("{point}#{time}")) && time < 60 {
            crashes += 1;
            time += 1;
        }
        println!("{point}: {} times", time - 1);
        assert!(time > 1 || OF_VALUES.contains(point), "{point} is not passed any more");
    }
    println!(
        "{} crash points of the daemon, {crashes} crashes, 0 violations",
        pinfold_daemon::crash::POINTS.len()
    );
}

/// Gives a session values, changes and removes them, with a daemon that aborts at a point; returns whether it did.
fn crash_among_values_at(point: &str) -> bool {
    let world = world();
    up(&world, point);
    let script = "echo \"<$TOK>\" >>\"$ROOT/told\"; exec sleep 100000";
    let root = format!("ROOT={}", world.root.display());
    insist(&world, &["new", "a", "--env", &root, "--env", "TOK=first", "--", "sh", "-c", script]);
    insist(&world, &["new", "b", "--env", &root, "--env", "TOK=first", "--", "sh", "-c", script]);
    insist(&world, &["set", "a", "--env", "TOK=second"]);
    insist(&world, &["restart", "a"]);
    world.run(&["archive", "b"]);
    world.run(&["rm", "b", "--yes"]);
    let aborted = world.daemon_log().contains(&format!("aborts at {point}"));
    world.run(&["down"]);
    world.ok(&["up"]);
    world.wait("a", "running");
    let told = std::fs::read_to_string(world.path("told")).unwrap();
    assert!(told.lines().all(|line| line == "<first>" || line == "<second>"), "{point}: {told}");
    assert!(told.ends_with("<second>\n"), "{point}: what was acknowledged counts: {told}");
    let with_values =
        world.sessions().values().filter(|session| session["env"].to_string().contains("TOK")).count();
    let files = std::fs::read_dir(world.home.join("env-values")).unwrap().count();
    assert_eq!(files, with_values, "{point}: a file for each session, and no other");
    world.ok(&["down"]);
    aborted
}

#[test]
fn values_are_neither_lost_nor_left_behind_wherever_the_daemon_dies() {
    let mut crashes = 0;
    for point in OF_VALUES.iter().chain(&["commit.before", "commit.after"]) {
        let reached = (1..=4).filter(|time| crash_among_values_at(&format!("{point}#{time}"))).count();
        assert!(reached > 0, "{point} is not passed any more");
        crashes += reached;
    }
    println!("{crashes} crashes among values, 0 violations");
    assert!(crashes >= 11, "only {crashes}: a point is passed less often");
}

#[test]
fn a_turn_that_ended_is_not_done_again_when_its_shim_dies_before_it_tells() {
    let world = world();
    up(&world, "turn.stored");
    let script =
        "while IFS= read -r line; do echo \"$line\" >>\"$ROOT/given\"; echo \"PINFOLD_DONE $line\"; done";
    world.new_chat("chat", &[], script);
    let answer = world.ok(&["send", "chat", "hello", "--wait", "240s"]);
    assert_eq!(answer.stdout, "hello\n");
    wait_for_abort(&world, "turn.stored");
    // Anything delivered again has been delivered by now: this message comes after it. Its shim dies as well.
    world.ok(&["send", "chat", "again", "--wait", "240s"]);
    assert_eq!(world.journal("given"), ["hello", "again"]);
    let rows = world.inbox("chat");
    let of = |row: &serde_json::Value| (row["state"].clone(), row["tries"].clone(), row["answer"].clone());
    let done = |answer: &str| ("done".into(), 1.into(), answer.into());
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), [done("hello"), done("again")]);
    assert_eq!(world.events_of("chat", "message_done").len(), 2);
}

/// Waits for the daemon's event: it records that it lost a shim, or never heard of it, a moment after all
/// others know.
fn wait_for_abort(world: &World, point: &str) {
    let until = Instant::now() + processes::PATIENCE;
    let lost =
        |log: &str| log.contains("is gone without a word") || log.contains("left before it said welcome");
    while !lost(&world.daemon_log()) {
        assert!(Instant::now() < until, "no shim aborted at {point}:\n{}", world.daemon_log());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_promises_hold_wherever_a_shim_dies() {
    for point in pinfold_shim::crash::POINTS {
        let world = world();
        up(&world, point);
        new(&world, "a");
        world.run(&["stop", "a"]);
        wait_for_abort(&world, point);
        processes::kill(world.daemon_pid());
        settle(&world);
    }
    println!("{} crash points of the shim, 0 violations", pinfold_shim::crash::POINTS.len());
}

/// Steps the wall clock that the daemon sees, never the machine's.
fn step(world: &World, hours: i64) {
    std::fs::write(world.path("step.new"), (hours * 3_600_000).to_string()).unwrap();
    std::fs::rename(world.path("step.new"), world.path("step")).unwrap();
}

#[test]
fn a_stepped_clock_changes_no_wait_and_no_verdict() {
    let world = World::new();
    let mut up = world.command(&["up"]);
    assert_eq!(finish(up.env("PINFOLD_CLOCK_STEP", world.path("step"))).code, 0);
    world.guarded("stays", &[], "exec sleep 100000");
    world.guarded("crashes", &[], "exit 1");
    let watch = world.watch();
    for (n, hours) in [(1, 1), (2, -2), (3, 1)] {
        let of = |kind: &str| {
            let kind = kind.to_owned();
            move |event: &serde_json::Value| event["session"] == "crashes" && event["kind"] == kind.as_str()
        };
        let exit = watch.event("an exit", of("run_exited"));
        assert_eq!((&exit["crashes"], &exit["verdict"]), (&n.into(), &"crash".into()));
        assert!(exit["uptime_ms"].as_u64().is_some_and(|ms| ms < 60_000), "{exit}");
        let wait = watch.event("a wait", of("backoff"));
        let begun = Instant::now();
        step(&world, hours);
        watch.event("the next start", of("run_started"));
        let waited = begun.elapsed();
        assert!(
            waited < Duration::from_millis(wait["ms"].as_u64().unwrap()) + processes::PATIENCE,
            "{wait} took {waited:?}"
        );
    }
    assert_eq!(world.show("stays")["state"], "running");
    assert_eq!(world.events_of("stays", "run_started").len(), 1);
    world.check_history();
}
