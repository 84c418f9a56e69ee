//! How a run in the foreground ends: by a kill, a signal, a limit or a verdict, and always together with
//! everything it started.

use super::{assert_nothing_left, code, configure, goes_on, pid_in, scratch, sh, signal};
use crate::eater;
use crate::lines::Lines;
use crate::processes::{self, Held, lives};
use crate::world::{Ends, World, held};
use rustix::process::Signal;
use std::io::Read;
use std::process::Stdio;

/// An agent with a grandchild that has left its session; both print their pids.
const WITH_GRANDCHILD: &str = "echo agent $$; setsid sh -c 'echo grandchild $$; exec sleep 100000' & \
     while :; do sleep 1000; done";

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
    // The shim first: otherwise it would end the tree.
    shim.signal(Signal::STOP);
    run_itself.kill();
    run_itself.wait();
    shim.kill();
    shim.wait();
    agent.wait();
    drop(run);
    assert_eq!(scratch(&world).len(), 1, "what nobody was left to remove");
    // A zombie has ended; its parent may take its time to reap it.
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
    let said = Lines::of(child.stderr.take().unwrap());
    let line = said.next("its wait");
    assert!(line.contains("next run in"), "{line}");
    held(child.id()).signal(Signal::INT);
    assert_eq!(child.ended().code(), Some(7));
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
    let said = Lines::of(child.stderr.take().unwrap());
    said.until("its first drain", |line| line.contains("(drained); the next run starts at once"));
    let wait = "it met its memory limit too often; next run in 10 min";
    said.until("its wait", |line| line.contains(wait));
    held(child.id()).signal(Signal::TERM);
    assert_eq!(child.ended().code(), Some(143));
    assert_nothing_left(&world);
}
