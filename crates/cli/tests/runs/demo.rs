//! `pinfold demo`: it shows what it promises, and leaves nothing behind, however it ends.

use crate::lines::Lines;
use crate::processes;
use crate::world::{Ends, World, finish, held};
use rustix::process::Signal;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const STEPS: usize = 6;

/// A demo whose throw-away folder is where the test can see it.
fn demo(world: &World, words: &[&str]) -> Command {
    let temp = world.path("temp");
    std::fs::create_dir_all(&temp).unwrap();
    let mut command = world.command(&[&["demo"], words].concat());
    command.env("TMPDIR", &temp);
    command
}

#[track_caller]
fn assert_nothing_left(world: &World) {
    let temp = world.path("temp");
    let files: Vec<_> = std::fs::read_dir(&temp).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(files.is_empty(), "{files:?} are left");
    assert_eq!(processes::around(&temp), [].into(), "processes are left");
    assert!(!world.home.exists() && !world.path("locks").exists(), "it used a home that is not its own");
}

/// Starts a demo and waits until it announces a step.
fn until_step(world: &World, step: usize) -> (Child, Lines) {
    let mut child = demo(world, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = Lines::of(child.stdout.take().unwrap());
    lines.until(&format!("step {step}"), |line| line.starts_with(&format!("{step}. ")));
    (child, lines)
}

#[test]
fn it_shows_every_promise_and_leaves_nothing() {
    let world = World::new();
    let answer = finish(&mut demo(&world, &[]));
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(answer.stderr, "");
    for fact in [
        "verdict `crash`, 1 in its streak",
        "the same pids, none doubled",
        "twin is blocked: `",
        "is held by session `api` (pid ",
        "exit code 75",
        "answer: you said: are you there?",
        "no process, no lock and",
    ] {
        assert!(answer.stdout.contains(fact), "{fact} in {}", answer.stdout);
    }
    assert!(!answer.stdout.contains('\x1b'), "colours where there is no terminal");
    assert_nothing_left(&world);
}

#[test]
fn it_tells_the_same_as_an_object() {
    let world = World::new();
    // As if an agent had started it: none of these variables count.
    let mut command = demo(&world, &["--json"]);
    let outer = ["PINFOLD_RUN", "PINFOLD_SESSION", "PINFOLD_SOCKET", "NOTIFY_SOCKET"];
    let answer = finish(command.envs(outer.map(|name| (name, "outer"))));
    assert_eq!(answer.code, 0, "{answer:?}");
    let told = answer.json();
    let steps = told["steps"].as_array().unwrap();
    assert_eq!((&told["ok"], steps.len()), (&true.into(), STEPS), "{told}");
    assert!(
        steps.iter().all(|step| step["facts"].as_array().is_some_and(|facts| !facts.is_empty())),
        "{told}"
    );
    assert_nothing_left(&world);
}

#[test]
fn a_signal_at_any_step_ends_it_and_leaves_nothing() {
    let world = World::new();
    let signals = [Signal::INT, Signal::TERM, Signal::HUP];
    for step in 1..=STEPS {
        let (child, lines) = until_step(&world, step);
        let own = held(child.id());
        own.signal(signals[step % signals.len()]);
        // Once more while it cleans up, which is not cut short.
        own.signal(signals[step % signals.len()]);
        let answer = child.finished();
        drop(lines);
        // The last step may be over before the signal arrives.
        let interrupted = "the demo was interrupted; nothing of it is left";
        let interrupted = answer.code == 1 && answer.stderr.contains(interrupted);
        assert!(interrupted || step == STEPS && answer.code == 0, "step {step}: {answer:?}");
        assert_nothing_left(&world);
    }
}

#[test]
fn a_step_that_fails_is_named_and_nothing_is_left() {
    let world = World::new();
    let answer = finish(demo(&world, &[]).env("PATH", "/nowhere"));
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stderr.starts_with("error: the demo failed at `Sessions run`: "), "{answer:?}");
    assert!(answer.stderr.contains("program `sh` was not found"), "{answer:?}");
    assert_nothing_left(&world);
}

#[test]
fn whoever_interferes_cannot_make_it_leave_anything() {
    let world = World::new();
    let (child, _lines) = until_step(&world, 3);
    // The agents that are about to be adopted die at an arbitrary moment.
    let agents = world.until("an agent", || {
        let around = processes::around(&world.path("temp")).into_iter();
        Some(around.filter(|pid| is_agent(*pid)).collect::<Vec<_>>()).filter(|agents| !agents.is_empty())
    });
    agents.into_iter().for_each(processes::kill);
    let answer = child.finished();
    // A run that was replaced in time is as good as one that was not killed; only what is left counts.
    assert!([0, 1].contains(&answer.code), "{answer:?}");
    assert_nothing_left(&world);
}

fn is_agent(pid: u32) -> bool {
    processes::variable(pid, "PINFOLD_RUN").is_some()
}

#[test]
fn it_goes_on_when_nobody_reads_and_two_at_once_do_not_meet() {
    let world = World::new();
    let (mut one, lines) = until_step(&world, 1);
    drop(lines);
    let other = finish(&mut demo(&world, &["--json"]));
    assert_eq!(other.code, 0, "{other:?}");
    assert_eq!(one.ended().code(), Some(0));
    assert_nothing_left(&world);
}

#[test]
fn it_needs_no_small_shim_beside_it() {
    let mut world = World::new();
    let alone = world.path("bin");
    std::fs::create_dir(&alone).unwrap();
    crate::program::copy(&world.binary, &alone.join("pinfold"));
    assert!(!Path::new(&alone.join("pinfold-shim")).exists());
    world.binary = alone.join("pinfold");
    let answer = finish(&mut demo(&world, &[]));
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_nothing_left(&world);
}
