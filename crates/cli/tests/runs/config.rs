//! The numbers of `config.toml`, and the sequences of the core with real processes.

use crate::processes::Held;
use crate::teller;
use crate::world::World;
use rustix::process::Signal;
use serde_json::Value;

/// A home with this configuration; delays are short, so that a test sees many of them.
fn configured(text: &str) -> World {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), text).unwrap();
    world
}

const QUICK: &str = "[policy]\nbackoff_initial = \"10ms\"\nbackoff_max = \"40ms\"\ncontention_step = \"10ms\"\n\
     contention_max = \"40ms\"\ndrain_backoff = \"20ms\"\n";

/// A session whose n-th run ends with the n-th of these codes; after the last one it stays up.
fn ends_with(world: &World, name: &str, codes: &str) {
    let script = format!(
        "n=$(cat \"$ROOT/{name}\" 2>/dev/null || echo 0); echo $((n + 1)) >\"$ROOT/{name}\"; \
         set -- {codes}; shift $n; [ $# -gt 0 ] && exit $1; exec sleep 100000"
    );
    world.guarded(name, &[], &script);
}

fn facts<'a>(events: &'a [Value], fact: &str) -> Vec<&'a Value> {
    events.iter().map(|event| &event[fact]).collect()
}

#[test]
fn one_zero_one_zero_one_trips_a_limit_of_three() {
    let world = configured(&format!("{QUICK}crash_hard_limit = 3\n"));
    ends_with(&world, "flapping", "1 0 1 0 1");
    world.wait("flapping", "failed");
    let exits = world.events_of("flapping", "run_exited");
    assert_eq!(facts(&exits, "crashes"), [1, 1, 2, 2, 3]);
    assert_eq!(facts(&exits, "verdict"), ["crash", "clean", "crash", "clean", "crash"]);
    let events = world.events();
    let last = |kind: &str| events.iter().rposition(|event| event["kind"] == kind);
    assert!(last("backoff") < last("run_exited"), "a wait was announced after the last exit");
    assert!(world.show("flapping")["why"].as_str().unwrap().contains("crashed 3 times"));
    world.check_history();
}

#[test]
fn exit_0_twelve_times_in_a_minute_warns_once_and_backs_off() {
    let world = configured(QUICK);
    ends_with(&world, "eager", "0 0 0 0 0 0 0 0 0 0 0 0");
    let watching = world.watch();
    watching.until("the thirteenth run", |line| {
        line.contains("\"run_started\"") && world.events_of("eager", "run_started").len() >= 13
    });
    let warnings = world.events_of("eager", "health_warn");
    assert_eq!(facts(&warnings, "reason"), ["clean_restart_budget_exceeded"]);
    let waits = world.events_of("eager", "backoff");
    assert_eq!(facts(&waits, "reason"), ["clean_restart_budget_exceeded"; 2]);
    assert_eq!(world.show("eager")["crashes"], 0);
}

#[test]
fn exit_75_six_times_is_blocked_and_no_crash() {
    let world = configured(QUICK);
    ends_with(&world, "contended", "75 75 75 75 75 75");
    world.wait("contended", "blocked");
    let exits = world.events_of("contended", "run_exited");
    assert_eq!(facts(&exits, "verdict"), ["contended"; 6]);
    assert_eq!(facts(&world.events_of("contended", "backoff"), "ms"), [10, 20, 30, 40, 40]);
    assert_eq!(world.show("contended")["crashes"], 0);
}

#[test]
fn a_drain_loop_warns_once_and_never_fails() {
    let world = configured(QUICK);
    let script = format!(
        "n=$(cat \"$ROOT/n\" 2>/dev/null || echo 0); echo $((n + 1)) >\"$ROOT/n\"; \
         [ $n -ge 6 ] && exec sleep 100000; exec {}",
        teller::words().join(" ")
    );
    world.guarded("draining", &["--env", &teller::says("X_PINFOLD_EXIT=drained")], &script);
    let watching = world.watch();
    watching.until("the seventh run", |line| {
        line.contains("\"run_started\"") && world.events_of("draining", "run_started").len() >= 7
    });
    assert_eq!(facts(&world.events_of("draining", "run_exited"), "verdict"), ["drained"; 6]);
    assert_eq!(facts(&world.events_of("draining", "health_warn"), "reason"), ["memory_drain_loop"]);
    assert_eq!(facts(&world.events_of("draining", "backoff"), "ms"), [20, 20, 20]);
    assert_eq!(world.show("draining")["crashes"], 0);
}

#[test]
fn the_soft_limit_warns_once() {
    let world = configured(&format!("{QUICK}crash_soft_limit = 3\ncrash_hard_limit = 6\n"));
    ends_with(&world, "crashing", "1 1 1 1 1 1 1");
    world.wait("crashing", "failed");
    assert_eq!(world.events_of("crashing", "run_exited").len(), 6);
    assert_eq!(facts(&world.events_of("crashing", "health_warn"), "reason"), ["crash_soft_limit"]);
}

#[test]
fn an_agent_is_told_of_its_watchdog_and_silence_is_a_crash() {
    let world = configured(&format!("{QUICK}watchdog = \"300ms\"\nstop_grace = \"1s\"\n"));
    world.guarded("silent", &[], "echo usec $WATCHDOG_USEC; exec sleep 100000");
    assert_eq!(world.printed("silent", "usec"), "300000");
    let watching = world.watch();
    watching.until("the end of a silent run", |line| line.contains("\"run_exited\""));
    let exits = world.events_of("silent", "run_exited");
    assert_eq!(exits[0]["verdict"], "crash", "{exits:?}");
    assert!(exits[0]["crashes"] == 1 && exits[0]["signal"] == 15, "{exits:?}");
}

#[test]
fn a_configuration_that_cannot_be_used_is_refused_with_its_line() {
    let world = configured("[policy]\n\ncrash_hard_limt = 3\n");
    let answer = world.run(&["up"]);
    assert_eq!(answer.code, 78, "{answer:?}");
    for words in ["config.toml", "line 3", "`crash_hard_limt`", "`crash_hard_limit`"] {
        assert!(answer.stderr.contains(words), "no {words} in {}", answer.stderr);
    }
    std::fs::write(world.home.join("config.toml"), "[policy]\nidle_after = 5\n").unwrap();
    let answer = world.run(&["up"]);
    assert!(answer.code == 78 && answer.stderr.contains("10s"), "{answer:?}");
    std::fs::remove_file(world.home.join("config.toml")).unwrap();
    world.ok(&["up"]);
}

#[test]
fn a_reload_counts_from_the_next_run_on_and_a_bad_file_keeps_the_old() {
    let world = configured("[sessions.chatty.policy]\nstop_grace = \"7s\"\n");
    world.guarded("chatty", &[], "exec sleep 100000");
    world.guarded("other", &[], "exec sleep 100000");
    let grace = |name: &str| world.show(name)["policy"]["stop_grace"].clone();
    assert_eq!((grace("chatty"), grace("other")), (7_000.into(), 10_000.into()));
    let pids = (world.pid("chatty"), world.pid("other"));

    std::fs::write(world.home.join("config.toml"), "[policy]\nstop_grace = \"3s\"\n").unwrap();
    reload(&world, "config_reloaded");
    assert_eq!((world.pid("chatty"), world.pid("other")), pids, "a reload disturbs nobody");
    assert_eq!(grace("chatty"), 7_000, "the run that lives keeps its numbers");
    world.ok(&["restart", "chatty"]);
    assert_eq!(grace("chatty"), 3_000);

    std::fs::write(world.home.join("config.toml"), "nonsense").unwrap();
    reload(&world, "config_refused");
    world.ok(&["restart", "other"]);
    assert_eq!(grace("other"), 3_000);
}

#[test]
fn a_refused_file_is_shown_by_status_until_a_good_one_is_read() {
    let world = configured("");
    world.ok(&["up"]);
    let refused = || world.json(&["status"])["config_refused"].clone();
    assert_eq!(refused(), Value::Null);
    std::fs::write(world.home.join("config.toml"), "[sessions.x]\n\nstop_grace = \"1s\"\n").unwrap();
    reload(&world, "config_refused");
    for words in ["config.toml", "line 3", "`stop_grace`", "`policy.stop_grace`"] {
        assert!(refused().as_str().unwrap().contains(words), "no {words} in {}", refused());
        assert!(world.ok(&["status"]).stdout.contains(words));
        assert!(world.daemon_log().contains(words));
    }
    std::fs::remove_file(world.home.join("config.toml")).unwrap();
    reload(&world, "config_reloaded");
    assert_eq!(refused(), Value::Null);
}

#[test]
fn options_outrank_the_session_the_session_its_agent_and_the_agent_what_is_for_all() {
    let world = configured(
        "[policy]\nstop_grace = \"2s\"\nidle_after = \"2s\"\nbackoff_max = \"2s\"\nmessage_tries = 2\n\
         [agents.command.policy]\nstop_grace = \"3s\"\nidle_after = \"3s\"\nbackoff_max = \"3s\"\n\
         [sessions.x.policy]\nstop_grace = \"4s\"\nidle_after = \"4s\"\n",
    );
    world.guarded("x", &["--stop-grace", "5s"], "exec sleep 100000");
    let policy = world.show("x")["policy"].clone();
    assert_eq!((&policy["stop_grace"], &policy["idle_after"]), (&5_000.into(), &4_000.into()));
    assert_eq!((&policy["backoff_max"], &policy["message_tries"]), (&3_000.into(), &2.into()));
    world.ok(&["set", "x", "--idle", "6s"]);
    world.ok(&["restart", "x"]);
    let policy = world.show("x")["policy"].clone();
    assert_eq!((&policy["stop_grace"], &policy["idle_after"]), (&5_000.into(), &6_000.into()));
}

#[test]
fn no_verb_starts_a_daemon_with_a_file_that_cannot_be_used() {
    let files = [
        ("[agents.mine]\ncomand = [\"mine\"]\n", "line 2", "`command`"),
        ("[agents.mine]\ncommand = \"mine\"\n", "line 2", "list of words"),
        ("[agents.mine]\nprotocol = \"carrier-pigeon\"\n", "line 2", "\"stream-json\""),
        ("[agents.mine.policy]\n\nidle_after = 5\n", "line 3", "\"250ms\""),
        ("[sessions.x.policy]\nidle_after = \"5\"\n", "line 2", "10s"),
        ("[sessions.x.policy]\nbackof_max = \"5s\"\n", "line 2", "`backoff_max`"),
        ("[policy]\n[policy]\n", "line 2", "duplicate"),
        ("[policy\n", "line 1", "config.toml"),
    ];
    for (text, line, word) in files {
        let world = configured(text);
        for verb in [&["up"] as &[&str], &["up", "--foreground"], &["ls"], &["new", "x", "--", "true"]] {
            let answer = world.run(&[&["--json"], verb].concat());
            assert_eq!(answer.code, 78, "{verb:?} {text}: {answer:?}");
            assert_eq!(answer.json()["error"]["kind"], "bad_config");
            for wanted in ["config.toml", line, word] {
                assert!(answer.stderr.contains(wanted), "{verb:?}: no {wanted} in {}", answer.stderr);
            }
        }
        assert_eq!(world.run(&["status"]).code, 69);
    }
}

/// Sends SIGHUP and waits for the daemon's event about it.
fn reload(world: &World, kind: &str) {
    let watching = world.watch();
    Held::open(world.daemon_pid()).unwrap().signal(Signal::HUP);
    watching.until(kind, |line| line.contains(kind));
}
