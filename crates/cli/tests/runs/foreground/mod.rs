//! `pinfold run`: one session in the foreground, without a daemon.

mod ends;

use crate::lines::Lines;
use crate::processes::{self, Held, lives};
use crate::tty::Tty;
use crate::world::{Answer, Ends, Following, World, finish, held, number};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

fn sh(world: &World, options: &[&str], script: &str) -> Answer {
    world.run(&[&["run", "a"], options, &["--", "sh", "-c", script]].concat())
}

/// A run that keeps running, and its output.
fn goes_on(world: &World, options: &[&str], script: &str) -> Following {
    world.follow(&[&["run", "a"], options, &["--", "sh", "-c", script]].concat())
}

fn pid_in(following: &Following, beginning: &str) -> Held {
    let line = following.until(beginning, |line| line.starts_with(beginning));
    held(line[beginning.len()..].trim().parse().unwrap())
}

fn signal(following: &Following, signal: Signal) {
    held(following.child.id()).signal(signal);
}

fn code(mut following: Following) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let status = following.child.ended();
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn configure(world: &World, text: &str) {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), text).unwrap();
}

fn scratch(world: &World) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(world.home.join(".pinfold-runs")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Checks that nothing lives, nothing is held and nothing was written.
#[track_caller]
fn assert_nothing_left(world: &World) {
    assert_eq!(processes::around(&world.root), [].into(), "processes are left");
    assert_eq!(world.json(&["locks"]), Value::Array(Vec::new()), "a lock is held");
    assert_eq!(scratch(world), [] as [PathBuf; 0]);
    assert!(
        !world.home.join("daemon.lock").exists() && !world.home.join("pinfold.db").exists(),
        "a daemon came"
    );
}

#[test]
fn it_ends_with_the_code_of_the_program_and_leaves_nothing() {
    let world = World::new();
    for (script, expected) in
        [("exit 0", 0), ("exit 3", 3), ("exit 75", 75), ("exit 78", 78), ("exit 127", 127), ("exit 255", 255)]
    {
        assert_eq!(sh(&world, &[], script).code, expected, "{script}");
    }
    for number in [9, 11, 15] {
        assert_eq!(sh(&world, &[], &format!("kill -{number} $$")).code, 128 + number, "signal {number}");
    }
    assert_nothing_left(&world);
}

#[test]
fn the_program_has_the_streams_of_the_caller() {
    let world = World::new();
    let answer = sh(&world, &[], "echo out; echo err >&2");
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("out\n", "err\n"));
    let mut command =
        world.command(&["run", "a", "--", "sh", "-c", "read -r line; echo \"first: $line\"; cat"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"one\ntwo\nthree").unwrap();
    drop(stdin);
    let answer = child.finished();
    assert_eq!((answer.stdout.as_str(), answer.code), ("first: one\ntwo\nthree", 0));
    // At first nothing reads: the program waits, and no output is lost.
    let mut command = world.command(&["run", "a", "--", "head", "-c", "30000000", "/dev/zero"]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    assert!(!held(child.id()).ends_within(Duration::from_millis(300)));
    let answer = child.finished();
    assert_eq!((answer.stdout.len(), answer.code), (30_000_000, 0));
    assert_nothing_left(&world);
}

#[test]
fn the_program_is_given_what_the_contract_says_and_no_socket() {
    let world = World::new();
    std::fs::create_dir(world.path("work")).unwrap();
    let mut command = world.command(&[
        "run",
        "a",
        "--env",
        "GIVEN=1",
        "--env",
        "TAKEN",
        "--",
        "sh",
        "-c",
        "env; pwd; umask",
    ]);
    command.env("PINFOLD_SOCKET", "/x").env("PINFOLD_RUN", "outer").env("SECRET", "s").env("GIT_DIR", "g");
    command.env("TAKEN", "2");
    let said = finish(&mut command).stdout;
    let has = |name: &str| said.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    assert_eq!((has("PINFOLD_SESSION"), has("GIVEN"), has("TAKEN")), (Some("a"), Some("1"), Some("2")));
    assert!(has("PINFOLD_FENCE").is_some_and(|fence| fence.parse::<u64>().is_ok()), "{said}");
    assert!(has("PINFOLD_RUN").is_some_and(|run| run != "outer" && !run.is_empty()), "{said}");
    assert!(has("NOTIFY_SOCKET").is_some() && has("PATH").is_some(), "{said}");
    for name in ["PINFOLD_SOCKET", "SECRET", "GIT_DIR"] {
        assert_eq!(has(name), None, "{name}");
    }
    assert!(said.lines().any(|line| line == world.root.to_str().unwrap()), "the caller's directory: {said}");
    let work = world.path("work");
    assert_eq!(sh(&world, &["--dir", "work"], "pwd").stdout.trim(), work.to_str().unwrap());
}

#[test]
fn what_cannot_run_is_refused_before_anything_is_started() {
    let world = World::new();
    let fails = |words: &[&str], code: i32, kind: &str, says: &str| {
        let answer = world.run(&[&["--json", "run"], words].concat());
        assert_eq!(answer.code, code, "{words:?}: {answer:?}");
        let error = answer.json()["error"].clone();
        assert_eq!(error["kind"], kind, "{words:?}: {answer:?}");
        assert!(error["message"].as_str().unwrap().contains(says), "{words:?}: {answer:?}");
    };
    fails(&["a", "--", "no-such-program"], 78, "bad_config", "no-such-program");
    fails(&["a", "--force", "--", "no-such-program"], 78, "bad_config", "no-such-program");
    fails(&["a", "--", "/etc/passwd"], 78, "bad_config", "/etc/passwd");
    fails(&["a", "--dir", "/nowhere", "--", "true"], 78, "bad_config", "/nowhere");
    fails(&["a b", "--", "true"], 2, "usage", "is not a name");
    fails(&["a"], 2, "usage", "command");
    fails(&["a", "--mode", "on-demand", "--", "true"], 2, "usage", "on-demand");
    fails(&["a", "--mode", "never", "--", "true"], 2, "usage", "never");
    fails(&["a", "--pty", "--", "true"], 2, "usage", "no terminal of its own");
    fails(&["a", "--memory", "512", "--", "true"], 2, "usage", "512M, 2G");
    fails(&["a", "--stop-grace", "5", "--", "true"], 2, "usage", "10s");
    configure(&world, "[policy]\n\ncrash_hard_limt = 3\n");
    fails(&["a", "--", "true"], 78, "bad_config", "line 3: there is no key `crash_hard_limt`");
    std::fs::remove_file(world.home.join("config.toml")).unwrap();
    // A first line that names no program: only trying to run it shows that.
    let script = world.path("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fails(&["a", "--mode", "always", "--", script.to_str().unwrap()], 78, "bad_config", "script");
    assert_nothing_left(&world);
}

#[test]
fn options_for_what_only_a_daemon_has_are_said_to_mean_nothing() {
    let world = World::new();
    let options =
        ["--tag", "x", "--parent", "p", "--idle", "1s", "--input", "json", "--turns", "done", "--force"];
    let answer = sh(&world, &options, "exit 4");
    assert_eq!(answer.code, 4, "{answer:?}");
    for option in options.iter().filter(|option| option.starts_with("--")) {
        assert!(answer.stderr.contains(option), "{option}: {answer:?}");
    }
    let answer = sh(&world, &[&["--quiet"], &options[..]].concat(), "exit 4");
    assert_eq!((answer.code, answer.stderr.as_str()), (4, ""));
}

#[test]
fn a_busy_lock_is_75_with_the_holder_and_nothing_is_started() {
    let world = World::new();
    std::fs::create_dir_all(world.path("work/sub")).unwrap();
    let first = goes_on(&world, &["--dir", "work"], "echo agent $$; exec sleep 100000");
    let agent = pid_in(&first, "agent ");
    let marker = world.path("started");
    let touch = ["--", "touch", marker.to_str().unwrap()];
    let rows: [(&[&str], &str); 4] = [
        (&["a"], "session:a"),
        (&["b", "--dir", "work"], "work"),
        (&["b", "--dir", "work/sub"], "work"),
        (&["b", "--mode", "always", "--dir", "."], "work"),
    ];
    for (words, resource) in rows {
        let answer = world.run(&[&["--json", "run"], words, &touch].concat());
        assert_eq!(answer.code, 75, "{words:?}: {answer:?}");
        let error = answer.json()["error"].clone();
        assert_eq!(
            (&error["kind"], &error["holder"]["pid"]),
            (&"busy".into(), &agent.pid.into()),
            "{answer:?}"
        );
        assert_eq!(error["holder"]["session"], "a");
        assert!(error["holder"]["resource"].as_str().unwrap().ends_with(resource), "{error}");
        assert!(answer.stderr.contains("pinfold run a -- sh -c"), "{answer:?}");
    }
    assert!(!marker.exists(), "something was started");
    assert_eq!(world.run(&["run", "b", "--", "true"]).code, 0, "another name, another directory");
    signal(&first, Signal::TERM);
    assert_eq!(code(first), 143);
    assert_nothing_left(&world);
}

#[test]
fn it_is_seen_by_locks_and_who_and_not_by_ls() {
    let world = World::new();
    std::fs::create_dir(world.path("work")).unwrap();
    world.ok(&["up"]);
    let run = goes_on(&world, &["--dir", "work"], "echo agent $$; exec sleep 100000");
    let agent = pid_in(&run, "agent ");
    let locks = world.json(&["locks"]);
    let of = |resource: &str| {
        let found = locks.as_array().unwrap().iter().find(|lock| lock["resource"] == resource).cloned();
        found.unwrap_or_else(|| panic!("no {resource} in {locks}"))
    };
    for resource in ["session:a", world.path("work").to_str().unwrap()] {
        let lock = of(resource);
        assert_eq!((&lock["session"], number(&lock["holder"]["pid"])), (&"a".into(), agent.pid), "{lock}");
        assert_eq!(lock["reason"], "pinfold run");
    }
    let who = world.ok(&["who", "work"]).stdout;
    assert!(who.contains(&agent.pid.to_string()), "{who}");
    assert_eq!(world.json(&["ls", "--all"]), Value::Array(Vec::new()));
    signal(&run, Signal::INT);
    assert_eq!(code(run), 143);
}

#[test]
fn a_session_of_the_daemon_and_a_run_of_the_same_name_exclude_each_other() {
    let world = World::new();
    let session = world.json(&["new", "a", "--", "sleep", "100000"]);
    let refused = world.run(&["--json", "run", "a", "--", "true"]);
    assert_eq!(refused.code, 75, "{refused:?}");
    assert_eq!(number(&refused.json()["error"]["holder"]["pid"]), number(&session["pid"]));
    world.ok(&["stop", "a"]);
    let run = goes_on(&world, &[], "echo agent $$; exec sleep 100000");
    let agent = pid_in(&run, "agent ");
    let refused = world.run(&["--json", "start", "a"]);
    assert_eq!(refused.code, 75, "{refused:?}");
    let blocked = world.show("a");
    assert_eq!((&blocked["state"], number(&blocked["holder"]["pid"])), (&"blocked".into(), agent.pid));
    assert!(blocked["why"].as_str().unwrap().contains("pinfold run a -- sh -c"), "{blocked}");
    // It goes on when the run is over.
    signal(&run, Signal::TERM);
    assert_eq!(code(run), 143);
    world.wait("a", "running");
    assert!(!lives(agent.pid));
}

#[test]
fn a_lock_that_is_lost_in_a_long_wait_is_waited_for() {
    let world = World::new();
    let config = "[sessions.a.policy]\nbackoff_initial = \"3s\"\nbackoff_jitter = 0\n";
    configure(&world, config);
    std::fs::create_dir(world.path("work")).unwrap();
    let words = ["run", "a", "--mode", "always", "--dir", "work", "--", "sh", "-c", "exit 7"];
    let mut child = world.command(&words).stderr(Stdio::piped()).spawn().unwrap();
    let said = Lines::of(child.stderr.take().unwrap());
    let line = said.next("its wait");
    assert!(line.contains("next run in 3 s"), "{line}");
    // During a wait of more than two seconds the locks are free.
    let script = "echo held; while ! test -e free; do sleep 0.05; done";
    let holder = world.follow(&["lock", "work", "--wait", "240s", "--", "sh", "-c", script]);
    holder.until("the lock", |line| line == "held");
    said.until("the lock to be missed", |line| line.contains("another process holds its lock"));
    std::fs::write(world.path("free"), "").unwrap();
    let line = said.next("its next end");
    assert!(line.contains("it exited with 7 (crash, 2 in this streak)"), "{line}");
    held(child.id()).signal(Signal::TERM);
    assert_eq!(child.ended().code(), Some(7));
}

#[test]
fn two_at_once_never_run_beside_each_other() {
    let world = World::new();
    let script = format!("{}sleep 0.01; exit 0", crate::world::GUARD);
    let words = ["run", "a", "--env", "ROOT", "--", "sh", "-c", &script];
    let mut codes = [0, 0];
    for _ in 0..20 {
        let mut pair = [world.command(&words).spawn().unwrap(), world.command(&words).spawn().unwrap()];
        for child in &mut pair {
            match child.ended().code() {
                Some(0) => codes[0] += 1,
                Some(75) => codes[1] += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(world.doubles(), "");
    assert!(codes[0] >= 20, "at least one of each pair runs: {codes:?}");
    assert_nothing_left(&world);
}

#[test]
fn it_starts_no_daemon_and_runs_inside_a_run() {
    let world = World::new();
    let binary = world.binary.to_str().unwrap();
    let script = format!(
        "{binary} --home {} run b -- sh -c 'echo inner $PINFOLD_SESSION; exit 8'",
        world.home.display()
    );
    let answer = sh(&world, &[], &script);
    assert_eq!((answer.code, answer.stdout.as_str()), (8, "inner b\n"), "{answer:?}");
    assert_nothing_left(&world);
}

#[test]
fn what_is_typed_at_a_terminal_is_read_and_control_c_stops_gently() {
    let world = World::new();
    let script =
        "read -r line; echo \"got $line\"; test -t 1 && echo on a terminal; read -r line || echo end; exit 3";
    let mut tty = Tty::start(world.command(&["run", "a", "--", "sh", "-c", script]), 24, 80);
    tty.keys(b"something\r");
    tty.shows("got something");
    tty.shows("on a terminal");
    tty.keys(b"\x04");
    tty.shows("end");
    assert_eq!(tty.ended().code(), Some(3));
    let script = "trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut tty = Tty::start(world.command(&["run", "a", "--", "sh", "-c", script]), 24, 80);
    tty.shows("ready");
    tty.keys(b"\x03");
    tty.shows("once more ends it at once");
    tty.shows("bye");
    assert_eq!(tty.ended().code(), Some(9));
    assert_nothing_left(&world);
}

#[test]
fn folders_of_a_user_in_the_home_are_left_alone() {
    let world = World::new();
    // A directory with files in it does not become a home, but an existing home may get some.
    assert_eq!(world.run(&["run", "w", "--", "true"]).code, 0);
    let weights = world.home.join("runs/exp1/model.ckpt");
    std::fs::create_dir_all(weights.parent().unwrap()).unwrap();
    std::fs::write(&weights, "weights").unwrap();
    assert_eq!(world.run(&["run", "x", "--", "true"]).code, 0);
    assert_eq!(std::fs::read_to_string(&weights).unwrap(), "weights");
}

#[test]
fn a_preset_of_lines_runs_in_the_foreground_and_others_say_why_not() {
    let world = World::new();
    configure(&world, "[agents.hi]\ncommand = [\"echo\", \"hello\"]\n");
    let ran = world.run(&["run", "a", "--agent", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hello\n"), "{ran:?}");
    let spoken = world.run(&["run", "a", "--agent", "claude"]);
    assert_eq!(spoken.code, 2, "{spoken:?}");
    assert!(spoken.stderr.contains("`run` has no inbox"), "{spoken:?}");
    assert!(spoken.stderr.contains("pinfold new a --agent claude"), "{spoken:?}");
    let unknown = world.run(&["run", "a", "--agent", "hii"]);
    assert_eq!(unknown.code, 78, "{unknown:?}");
    assert_nothing_left(&world);
}
