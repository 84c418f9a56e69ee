//! Exits one after the other: verdicts, waits and ends, as users see them.

use crate::processes::{self, variable};
use crate::world::{World, held, number};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Checks a wait, which jitter shortens by up to a tenth.
#[track_caller]
fn waits(event: &Value, ms: u64, reason: &str) {
    let waited = event["ms"].as_u64().unwrap();
    assert!(waited <= ms && waited >= ms - ms / 10, "{event}");
    assert_eq!(event["reason"], reason, "{event}");
}

fn nth(world: &World, name: &str, kind: &str, n: usize) -> Value {
    let watch = world.watch();
    let of = |event: &Value| event["kind"] == kind && event["session"] == name;
    (0..n).fold(Value::Null, |_, _| watch.event(kind, of))
}

#[test]
fn a_crash_waits_longer_each_time() {
    let world = World::new();
    world.guarded("a", &[], "exit 3");
    for (n, ms) in [(1, 1000), (2, 1000), (3, 2000)] {
        let exit = nth(&world, "a", "run_exited", n);
        assert_eq!((&exit["code"], &exit["signal"]), (&json!(3), &Value::Null));
        assert_eq!(
            (&exit["verdict"], &exit["crashes"], &exit["forced"]),
            (&json!("crash"), &json!(n), &json!(false))
        );
        waits(&nth(&world, "a", "backoff", n), ms, "crash");
    }
    let next = &world.show("a")["next"];
    assert_eq!(next["what"], "restart");
    world.check_history();
}

#[test]
fn the_streak_of_crashes_outlives_the_daemon() {
    let world = World::new();
    world.guarded("a", &[], "exit 1");
    nth(&world, "a", "backoff", 2);
    world.kill_daemon();
    world.ok(&["up"]);
    assert_eq!(nth(&world, "a", "run_exited", 3)["crashes"], 3);
    world.ok(&["stop", "a"]);
    world.run(&["start", "a"]);
    assert_eq!(nth(&world, "a", "run_exited", 4)["crashes"], 1, "a person begins a new streak");
    world.check_history();
}

#[test]
fn clean_ends_are_followed_at_once_until_there_are_too_many() {
    let world = World::new();
    world.guarded("a", &[], "exit 0");
    let first = nth(&world, "a", "backoff", 1);
    waits(&first, 1000, "clean_restart_budget_exceeded");
    let before: Vec<Value> = world
        .events_of("a", "run_exited")
        .into_iter()
        .filter(|event| event["seq"].as_u64() < first["seq"].as_u64())
        .collect();
    assert_eq!(before.len(), 11);
    assert!(before.iter().all(|exit| exit["verdict"] == "clean" && exit["crashes"] == 0));
    let warnings = world.events_of("a", "health_warn");
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0]["reason"], "clean_restart_budget_exceeded");
    world.check_history();
}

#[test]
fn a_contended_end_waits_ten_seconds_and_is_no_crash() {
    let world = World::new();
    world.guarded("a", &[], "exit 75");
    waits(&nth(&world, "a", "backoff", 1), 10_000, "contended");
    let exit = &world.events_of("a", "run_exited")[0];
    assert_eq!((&exit["verdict"], &exit["crashes"]), (&json!("contended"), &json!(0)));
    world.ok(&["stop", "a"]);
    world.check_history();
}

#[test]
fn a_hopeless_end_is_never_tried_again() {
    for (code, word) in [(78, "hopeless"), (127, "hopeless"), (126, "hopeless")] {
        let world = World::new();
        world.guarded("a", &[], &format!("exit {code}"));
        world.wait("a", "failed");
        let exits = world.events_of("a", "run_exited");
        assert_eq!((exits.len(), &exits[0]["verdict"], &exits[0]["code"]), (1, &json!(word), &json!(code)));
        assert!(world.events_of("a", "backoff").is_empty());
        assert_eq!(world.show("a")["restarts"], 0);
        world.check_history();
    }
}

#[test]
fn a_program_that_is_missing_fails_once_and_is_named() {
    let world = World::new();
    let refused = world.run(&["new", "a", "--", "no-such-program"]);
    assert_eq!(refused.code, 78);
    assert!(refused.stderr.contains("no-such-program") && refused.stderr.contains("--force"), "{refused:?}");
    assert!(world.sessions().is_empty());
    let forced = world.json(&["new", "a", "--force", "--", "no-such-program"]);
    assert_eq!((&forced["state"], &forced["pid"]), (&json!("failed"), &Value::Null));
    let again = world.run(&["start", "a"]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("no-such-program"), "{again:?}");
    assert!(world.events_of("a", "run_started").is_empty());
    assert_eq!(world.events_of("a", "failed").len(), 2);
    world.check_history();
}

#[test]
fn a_program_or_a_directory_that_vanishes_between_two_runs_fails_and_is_named() {
    let world = World::new();
    std::fs::create_dir(world.path("work")).unwrap();
    std::fs::create_dir(world.path("locked")).unwrap();
    let (work, locked) = (world.path("work"), world.path("locked"));
    let script = world.path("script");
    std::fs::write(&script, "#!/bin/sh\nrm \"$0\"; exit 1\n").unwrap();
    std::os::unix::fs::chown(&script, None, None).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let gone = "rmdir \"$PWD\"; exit 1";
    world.guarded("used", &["--dir", work.to_str().unwrap(), "--no-dir-lock"], gone);
    world.guarded("locked", &["--dir", locked.to_str().unwrap()], gone);
    world.json(&["new", "program", "--", script.to_str().unwrap()]);
    for (name, lost) in [("used", &work), ("locked", &locked), ("program", &script)] {
        world.wait(name, "failed");
        let why = world.ok(&["why", name]).stdout;
        assert!(why.contains(lost.to_str().unwrap()), "{why}");
        let exits = world.events_of(name, "run_exited");
        assert_eq!((exits.len(), &exits[0]["code"]), (1, &1.into()), "{exits:?}");
        let refused = world.events_of(name, "start_failed");
        assert_eq!((refused.len(), &refused[0]["errno"]), (1, &2.into()), "{refused:?}");
    }
    world.check_history();
}

#[test]
fn what_runs_once_is_stopped_when_it_ends_well_and_failed_otherwise() {
    let world = World::new();
    world.guarded("well", &["--mode", "once"], "exit 0");
    world.guarded("badly", &["--mode", "once"], "exit 1");
    world.guarded("cut", &["--mode", "once"], "exec sleep 100000");
    world.wait("well", "stopped");
    world.wait("badly", "failed");
    world.ok(&["down"]);
    world.ok(&["up"]);
    world.wait("cut", "failed");
    for (name, runs) in [("well", 1), ("badly", 1), ("cut", 1)] {
        assert_eq!(world.events_of(name, "run_started").len(), runs, "{name}");
    }
    assert_eq!(world.show("well")["state"], "stopped");
    world.ok(&["start", "well"]);
    nth(&world, "well", "run_exited", 2);
    world.check_history();
}

#[test]
fn a_signal_from_outside_is_a_crash_and_one_of_ours_is_not() {
    let world = World::new();
    world.guarded("a", &[], "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done");
    world.printed("a", "ready");
    held(world.pid("a")).signal(Signal::TERM);
    let exit = nth(&world, "a", "run_exited", 1);
    assert_eq!((&exit["verdict"], &exit["code"]), (&json!("crash"), &json!(9)));
    world.wait("a", "running");
    nth(&world, "a", "run_started", 2);
    world.ok(&["stop", "a"]);
    let exit = nth(&world, "a", "run_exited", 2);
    assert_eq!((&exit["verdict"], &exit["forced"]), (&json!("clean"), &json!(false)));
    world.check_history();
}

#[test]
fn after_down_everything_is_as_its_mode_says() {
    let world = World::new();
    for (name, mode) in
        [("always", "always"), ("demand", "on-demand"), ("stopped", "always"), ("failed", "always")]
    {
        let script = if name == "failed" { "exit 78" } else { "exec sleep 100000" };
        world.guarded(name, &["--mode", mode], script);
    }
    world.ok(&["start", "demand"]);
    world.ok(&["stop", "stopped"]);
    world.wait("failed", "failed");
    world.ok(&["down"]);
    world.assert_no_members();
    world.ok(&["up"]);
    world.wait("always", "running");
    for (name, state) in [("demand", "idle"), ("stopped", "stopped"), ("failed", "failed")] {
        world.wait(name, state);
    }
    assert_eq!(world.members().len(), 1);
    world.check_history();
}

#[test]
fn a_session_that_nobody_needs_is_parked_and_one_with_a_consumer_is_not() {
    let world = World::new();
    world.guarded("a", &["--mode", "on-demand", "--idle", "300ms"], "echo up; exec sleep 100000");
    world.ok(&["start", "a"]);
    let following = world.follow(&["logs", "a", "-f"]);
    following.until("output", |line| line == "up");
    let watch = world.watch();
    watch.event("the consumer", |event| event["kind"] == "consumer_joined");
    drop(following);
    let left = watch.event("its end", |event| event["kind"] == "consumer_left");
    let parked = watch.event("the park", |event| event["kind"] == "parked");
    assert!(left["seq"].as_u64() < parked["seq"].as_u64());
    world.wait("a", "idle");
    world.assert_no_members();
    assert_eq!(world.events_of("a", "run_exited")[0]["verdict"], "clean");
    world.check_history();
}

#[test]
fn a_run_is_given_the_same_at_its_first_start_and_at_every_later_one() {
    let world = World::new();
    let script = "env | grep -v '^PINFOLD_RUN=\\|^PINFOLD_FENCE=' | sort; pwd; umask; ulimit -n; echo end; exec sleep 100000";
    let mut command =
        world.command(&["--json", "new", "a", "--env", "TAKEN", "--env", "SET=1", "--", "sh", "-c", script]);
    command
        .env("TAKEN", "yes")
        .env("ANTHROPIC_API_KEY", "secret")
        .env("GIT_DIR", "/elsewhere")
        .env("LC_ALL", "C");
    assert_eq!(crate::world::finish(&mut command).code, 0);
    world.printed("a", "end");
    world.ok(&["restart", "a"]);
    nth(&world, "a", "run_started", 2);
    world.kill_daemon();
    let mut up = world.command(&["up"]);
    up.env("LC_ALL", "tr_TR").env("TAKEN", "no").env("PATH", "/usr/bin:/bin").current_dir("/");
    assert_eq!(crate::world::finish(&mut up).code, 0);
    world.ok(&["restart", "a"]);
    world
        .follow(&["logs", "-f", "a", "--run", "3"])
        .until("the third run's last line", |line| line.contains("end"));
    world.ok(&["stop", "a"]);
    let said = |run: &str| {
        world
            .json(&["logs", "a", "--run", run])
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let first = said("1");
    assert!(first.contains(&"TAKEN=yes".to_owned()) && first.contains(&"SET=1".to_owned()), "{first:?}");
    assert!(first.iter().all(|line| !line.contains("secret") && !line.contains("elsewhere")), "{first:?}");
    assert!(first.contains(&"PINFOLD_SESSION=a".to_owned()), "{first:?}");
    for name in ["PINFOLD_SOCKET=", "NOTIFY_SOCKET="] {
        assert!(first.iter().any(|line| line.starts_with(name)), "{name}");
    }
    let third = said("3");
    // Each shim has its own notify address.
    let steady = |lines: &[String]| {
        lines.iter().filter(|line| !line.starts_with("NOTIFY_SOCKET=")).cloned().collect::<Vec<_>>()
    };
    assert_eq!(steady(&first), steady(&said("2")));
    assert_eq!(steady(&first), steady(&third));
    assert!(
        !std::fs::read(world.home.join("pinfold.db")).unwrap().windows(6).any(|bytes| bytes == b"secret")
    );
}

#[test]
fn each_run_has_a_higher_fence_and_its_own_name() {
    let world = World::new();
    world.guarded("a", &[], "exec sleep 100000");
    let mut last = 0;
    for _ in 0..3 {
        let session = world.show("a");
        let (pid, fence) = (number(&session["pid"]), number(&session["fence"]));
        assert!(fence > last, "{fence} after {last}");
        assert_eq!(variable(pid, "PINFOLD_FENCE"), Some(fence.to_string()));
        assert_eq!(variable(pid, "PINFOLD_RUN").as_deref(), session["run"].as_str());
        last = fence;
        world.ok(&["restart", "a"]);
        assert!(!processes::lives(pid));
    }
    world.check_history();
}
