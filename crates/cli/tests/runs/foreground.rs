//! `pinfold run`: one session in the foreground, without a daemon.

use crate::eater;
use crate::processes::{self, Held, PATIENCE, lives};
use crate::tty::Tty;
use crate::world::{Answer, Ends, Following, World, finish, held, number};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// An agent with a grandchild that has left its session; both say who they are.
const WITH_GRANDCHILD: &str = "echo agent $$; setsid sh -c 'echo grandchild $$; exec sleep 100000' & \
     while :; do sleep 1000; done";

fn sh(world: &World, options: &[&str], script: &str) -> Answer {
    world.run(&[&["run", "a"], options, &["--", "sh", "-c", script]].concat())
}

/// A run that goes on, and what it prints.
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
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = following.child.try_wait().unwrap() {
            return status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        }
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
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

/// Nothing lives, nothing is held, nothing is written.
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
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((said.as_str(), child.ended().code()), ("first: one\ntwo\nthree", Some(0)));
    // Nobody reads at first: the program waits, and nothing is lost.
    let mut command = world.command(&["run", "a", "--", "head", "-c", "30000000", "/dev/zero"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    assert!(!held(child.id()).ends_within(Duration::from_millis(300)));
    let mut bytes = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!((bytes.len(), child.ended().code()), (30_000_000, Some(0)));
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
    // A first line that is no program's: found out only by trying.
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
fn kill_of_it_ends_the_whole_tree_and_leaves_nothing() {
    let world = World::new();
    let run = goes_on(&world, &["--stop-grace", "10m"], WITH_GRANDCHILD);
    let tree = [pid_in(&run, "agent "), pid_in(&run, "grandchild ")];
    let shim = held(processes::parent(tree[0].pid).unwrap());
    let group = processes::group(tree[0].pid);
    processes::kill(run.child.id());
    tree.iter().chain([&shim]).for_each(Held::wait);
    assert!(group.is_none_or(|group| !group.exists()));
    drop(run);
    assert_nothing_left(&world);
}

#[test]
fn kill_of_it_ends_a_tree_that_does_not_listen_after_the_grace() {
    let world = World::new();
    let deaf = format!("trap '' TERM; {WITH_GRANDCHILD}");
    let run = goes_on(&world, &["--stop-grace", "200ms"], &deaf);
    let tree = [pid_in(&run, "agent "), pid_in(&run, "grandchild ")];
    let shim = held(processes::parent(tree[0].pid).unwrap());
    processes::kill(run.child.id());
    tree.iter().chain([&shim]).for_each(Held::wait);
    drop(run);
    assert_nothing_left(&world);
}

#[test]
fn what_outlives_a_kill_of_run_and_shim_ends_before_the_next_run() {
    let world = World::new();
    let run = goes_on(&world, &[], WITH_GRANDCHILD);
    let (agent, grandchild) = (pid_in(&run, "agent "), pid_in(&run, "grandchild "));
    let shim = held(processes::parent(agent.pid).unwrap());
    let run_itself = held(run.child.id());
    // The shim first: it would end the tree.
    shim.signal(Signal::STOP);
    run_itself.kill();
    run_itself.wait();
    shim.kill();
    shim.wait();
    agent.wait();
    drop(run);
    assert_eq!(scratch(&world).len(), 1, "what nobody was left to remove");
    // A zombie has ended; whoever has to reap it may take its time.
    let state = format!("cut -d' ' -f3 /proc/{}/stat 2>/dev/null || echo gone", grandchild.pid);
    let state = sh(&world, &[], &state).stdout;
    assert!(["gone", "Z", "X"].contains(&state.trim()), "the grandchild lives beside the next run: {state}");
    assert_nothing_left(&world);
}

#[test]
fn the_end_of_the_shim_is_the_end_of_a_run_and_not_of_what_is_always_to_run() {
    let world = World::new();
    let run = goes_on(&world, &[], WITH_GRANDCHILD);
    let (agent, grandchild) = (pid_in(&run, "agent "), pid_in(&run, "grandchild "));
    processes::kill(processes::parent(agent.pid).unwrap());
    assert_eq!(code(run), 1, "no exit code is known");
    assert!(!lives(agent.pid) && !lives(grandchild.pid));
    let run = goes_on(&world, &["--mode", "always"], WITH_GRANDCHILD);
    let (agent, grandchild) = (pid_in(&run, "agent "), pid_in(&run, "grandchild "));
    processes::kill(processes::parent(agent.pid).unwrap());
    let next = pid_in(&run, "agent ");
    assert!(!lives(agent.pid) && !lives(grandchild.pid), "beside the next run");
    signal(&run, Signal::TERM);
    assert_eq!(code(run), 143);
    next.wait();
    assert_nothing_left(&world);
}

#[test]
fn a_signal_stops_it_gently_and_a_second_one_at_once() {
    let world = World::new();
    for asked in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let run = goes_on(
            &world,
            &["--stop-grace", "10m"],
            "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done",
        );
        run.until("ready", |line| line == "ready");
        signal(&run, asked);
        run.until("a gentle end", |line| line == "bye");
        assert_eq!(code(run), 5, "{asked:?}");
    }
    let deaf = "trap 'echo asked' TERM; trap '' INT; echo ready; while :; do sleep 0.05; done";
    let run = goes_on(&world, &["--stop-grace", "10m"], deaf);
    run.until("ready", |line| line == "ready");
    signal(&run, Signal::INT);
    run.until("the stop signal", |line| line == "asked");
    signal(&run, Signal::INT);
    assert_eq!(code(run), 137);
    let run = goes_on(&world, &["--stop-grace", "100ms"], deaf);
    run.until("ready", |line| line == "ready");
    signal(&run, Signal::TERM);
    assert_eq!(code(run), 137, "the grace has an end");
    assert_nothing_left(&world);
}

#[test]
fn a_signal_that_the_caller_ignores_is_ignored() {
    let world = World::new();
    let script = "trap '' HUP INT; exec \"$0\" run a -- sh -c 'echo ready; while ! test -e go; do sleep 0.05; done; exit 4'";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, world.binary.to_str().unwrap()]).current_dir(&world.root);
    command
        .env("PINFOLD_HOME", &world.home)
        .env("PINFOLD_LOCKS", world.path("locks"))
        .env("XDG_STATE_HOME", world.path("state"));
    let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    held(child.id()).signal(Signal::HUP);
    held(child.id()).signal(Signal::INT);
    std::fs::write(world.path("go"), "").unwrap();
    assert_eq!(child.ended().code(), Some(4));
    assert_nothing_left(&world);
}

#[test]
fn what_a_program_leaves_behind_ends_with_its_run() {
    let world = World::new();
    let run = goes_on(
        &world,
        &[],
        "setsid sh -c 'trap \"\" TERM HUP; echo left $$; while :; do sleep 1; done' & sleep 0.3; exit 6",
    );
    let left = pid_in(&run, "left ");
    assert_eq!(code(run), 6);
    assert!(!lives(left.pid));
    assert_nothing_left(&world);
}

#[test]
fn the_crash_limit_is_1_and_goes_through_the_normal_clean_up() {
    let world = World::new();
    let config = "[policy]\ncrash_hard_limit = 50\nbackoff_initial = \"10ms\"\n\n[sessions.a.policy]\ncrash_hard_limit = 3\n";
    configure(&world, config);
    let script =
        "echo run; setsid sh -c 'trap \"\" TERM; echo left $$; exec sleep 100000' & sleep 0.2; exit 7";
    let answer = sh(&world, &["--mode", "always"], script);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert_eq!(answer.stdout.lines().filter(|line| *line == "run").count(), 3, "{answer:?}");
    assert!(answer.stderr.contains("it exited with 7 (crash, 1 in this streak); next run in"), "{answer:?}");
    assert!(
        answer.stderr.contains("error: session `a` reached its crash limit: it crashed 3 times"),
        "{answer:?}"
    );
    for left in answer.stdout.lines().filter_map(|line| line.strip_prefix("left ")) {
        assert!(!lives(left.parse().unwrap()), "{left} lives");
    }
    assert_nothing_left(&world);
    let answer = world.run(&["--json", "--quiet", "run", "a", "--mode", "always", "--", "false"]);
    assert_eq!((answer.code, &answer.json()["error"]["kind"]), (1, &"failed".into()), "{answer:?}");
}

#[test]
fn always_restarts_by_the_verdict() {
    let world = World::new();
    configure(&world, "[policy]\nbackoff_initial = \"10ms\"\n");
    // Clean, crash, clean, then hopeless: the last exit code counts, and there is no fifth run.
    let script = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n; echo run $n; \
         case $n in 0) exit 0;; 1) exit 9;; 2) exit 0;; *) exit 78;; esac";
    let answer = sh(&world, &["--mode", "always"], script);
    assert_eq!((answer.code, answer.stdout.as_str()), (78, "run 0\nrun 1\nrun 2\nrun 3\n"), "{answer:?}");
    assert_nothing_left(&world);
}

#[test]
fn a_signal_in_a_wait_between_runs_ends_it_at_once() {
    let world = World::new();
    configure(&world, "[policy]\nbackoff_initial = \"10m\"\nbackoff_max = \"10m\"\n");
    let mut command = world.command(&["run", "a", "--mode", "always", "--", "sh", "-c", "exit 7"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert!(line.contains("next run in"), "{line}");
    held(child.id()).signal(Signal::INT);
    assert_eq!(child.ended().code(), Some(7));
    assert_nothing_left(&world);
}

#[test]
fn a_lock_that_is_lost_in_a_long_wait_is_waited_for() {
    let world = World::new();
    let config = "[sessions.a.policy]\nbackoff_initial = \"3s\"\nbackoff_jitter = 0\n";
    configure(&world, config);
    std::fs::create_dir(world.path("work")).unwrap();
    let words = ["run", "a", "--mode", "always", "--dir", "work", "--", "sh", "-c", "exit 7"];
    let mut child = world.command(&words).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert!(line.contains("next run in 3 s"), "{line}");
    // The locks are free in a wait of more than two seconds.
    let script = "echo held; while ! test -e free; do sleep 0.05; done";
    let holder = world.follow(&["lock", "work", "--wait", "60s", "--", "sh", "-c", script]);
    holder.until("the lock", |line| line == "held");
    while !line.contains("somebody else holds its lock") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut said, &mut line).unwrap(), 0, "it gave up");
    }
    std::fs::write(world.path("free"), "").unwrap();
    line.clear();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
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
fn a_memory_limit_drains_it_as_under_a_daemon() {
    let world = World::new();
    configure(&world, "[policy]\nmemory_sample = \"100ms\"\ndrain_limit = 1\ndrain_backoff = \"10m\"\n");
    let (words, role) = (eater::words(), eater::role("anonymous 400"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let run = ["--memory", "100M", "--env", &role, "--"];
    let once = world.run(&[&["run", "a"], &run[..], &words].concat());
    assert_eq!(once.code, 143, "{once:?}");
    assert!(once.stderr.contains("of its limit of 100 MiB"), "{once:?}");
    let mut command = world.command(&[&["run", "a", "--mode", "always"], &run[..], &words].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut all = String::new();
    while !all.contains("it met its memory limit too often; next run in 10 min") {
        assert_ne!(std::io::BufRead::read_line(&mut said, &mut all).unwrap(), 0, "{all}");
    }
    assert!(all.contains("(drained); the next run starts at once"), "{all}");
    held(child.id()).signal(Signal::TERM);
    assert_eq!(child.ended().code(), Some(143));
    assert_nothing_left(&world);
}

#[test]
fn folders_of_a_user_in_the_home_are_left_alone() {
    let world = World::new();
    // A directory with files in it does not become a home; a home may come to have some.
    assert_eq!(world.run(&["run", "w", "--", "true"]).code, 0);
    let weights = world.home.join("runs/exp1/model.ckpt");
    std::fs::create_dir_all(weights.parent().unwrap()).unwrap();
    std::fs::write(&weights, "weights").unwrap();
    assert_eq!(world.run(&["run", "x", "--", "true"]).code, 0);
    assert_eq!(std::fs::read_to_string(&weights).unwrap(), "weights");
}
