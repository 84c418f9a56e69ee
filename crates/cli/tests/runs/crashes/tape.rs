//! Whichever process dies at a step of a run with a tape, alone or with another, in the end everything is as
//! if none had died.

use super::{up, world};
use crate::processes::{self, Held, PATIENCE};
use crate::world::World;
use rustix::process::Signal;
use serde_json::json;
use std::time::{Duration, Instant};

/// The steps, and how often each is passed before the interesting time: the first turn begins, runs, and
/// ends. Changes committed at once go together, so there may be few commits: no more than nine are certain.
const POINTS: [&str; 16] = [
    "say.taped",
    "say.half",
    "say.written",
    "tape.appended",
    "fold.heard",
    "fold.heard#4",
    "commit.before#5",
    "commit.before#8",
    "commit.after#5",
    "commit.after#8",
    "heard.sent",
    "heard.sent#4",
    "hold.sent",
    "hold.acked",
    "record.written",
    "say.sent#2",
];

/// Which process is killed while one is stopped at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Daemon,
    Shim,
    Agent,
    /// Both daemon and shim.
    Both,
}

/// Waits until a process of the home is stopped; returns its pid.
fn stands(world: &World) -> u32 {
    let until = Instant::now() + PATIENCE;
    loop {
        let marked = world.path("stopped").exists();
        let stopped = |pid: &u32| processes::stands(*pid);
        if let Some(pid) = processes::around(&world.root).into_iter().find(stopped).filter(|_| marked) {
            return pid;
        }
        assert!(Instant::now() < until, "the step is not passed:\n{}", world.daemon_log());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The processes to kill, from the process table: the daemon may be stopped.
fn victims(world: &World, victim: Victim, daemon: u32, stopped: u32) -> Vec<u32> {
    let agent = world.members().remove("a").and_then(|pids| pids.into_iter().min());
    let above = agent.and_then(processes::parent);
    let shim = above.or(Some(stopped)).filter(|pid| *pid != daemon);
    match victim {
        Victim::Daemon => vec![daemon],
        Victim::Shim => shim.into_iter().collect(),
        Victim::Agent => agent.into_iter().collect(),
        Victim::Both => shim.into_iter().chain([daemon]).collect(),
    }
}

/// Sends two messages, the second of which ends the run, and kills the victims at a step.
fn killed_at(point: &str, victim: Victim) {
    let world = world();
    world.with_player("policy.permissions = \"allow\"\npolicy.backoff_initial = \"10ms\"\n");
    up(&world, &format!("stop:{point}@{}", world.path("stopped").display()));
    let daemon = world.daemon_pid();
    world.play("a");
    // Longer than a pipe takes at once.
    let long = format!("asks {}", "x".repeat(100_000));
    let texts = [long.as_str(), "leaves"];
    let answers = std::thread::scope(|scope| {
        let sends = scope.spawn(|| texts.map(|text| world.run(&["send", "a", text, "--key", &text[..4]])));
        let stopped = stands(&world);
        victims(&world, victim, daemon, stopped).into_iter().for_each(processes::kill);
        if let Some(stopped) = Held::open(stopped) {
            stopped.signal(Signal::CONT);
        }
        sends.join().unwrap()
    });
    for (answer, text) in answers.iter().zip(texts) {
        if answer.code != 0 {
            world.ok(&["send", "a", text, "--key", &text[..4]]);
        }
    }
    as_if_nobody_had_died(&world, &format!("{point} {victim:?}"));
}

fn as_if_nobody_had_died(world: &World, what: &str) {
    let rows = world.until("all messages are done", || {
        let rows = world.inbox("a");
        rows.iter().all(|row| row["state"] == "done").then_some(rows)
    });
    let answers: Vec<_> = rows.iter().map(|row| row["answer"].clone()).collect();
    assert_eq!(answers, [json!("allowed"), json!("left")], "{what}");
    world.wait("a", "idle");
    let shown = world.show("a");
    assert_eq!((&shown["vendor_session"], &shown["requests"]), (&json!("conversation"), &json!(0)), "{what}");
    assert_eq!(world.json(&["locks"]), json!([]), "{what}");
    world.assert_said_once();
    world.check_history();
    world.ok(&["down"]);
    world.assert_no_members();
}

/// The file of a long answer exists before its row does: whichever of them is found, there is one answer, and
/// it is complete.
#[test]
fn a_long_answer_is_whole_when_the_daemon_dies_on_its_way_to_the_disk() {
    for point in pinfold_daemon::crash::OF_ANSWERS.iter().chain(&["commit.before#5", "commit.after#5"]) {
        let world = world();
        world.with_player("");
        up(&world, point);
        world.run(&["ls"]);
        world.play("a");
        world.run(&["send", "a", "answer_3000000", "--key", "answer_3000000"]);
        world.until("the daemon has died", || world.daemon_log().contains("aborts at").then_some(()));
        world.ok(&["up"]);
        let answer = crate::answers::answer(&world, "answer_3000000");
        assert!(answer == "x".repeat(3_000_000), "{point}: {} bytes", answer.len());
        let rows = world.inbox("a");
        assert_eq!((rows.len(), &rows[0]["tries"]), (1, &json!(1)), "{point}");
        assert_eq!(crate::answers::names(&crate::answers::folder(&world)).len(), 1, "{point}");
        world.assert_said_once();
        world.check_history();
    }
}

#[test]
fn the_end_of_a_conversation_is_the_same_whoever_dies_at_whatever_step() {
    let mut kills = 0;
    for point in POINTS {
        for victim in [Victim::Daemon, Victim::Shim, Victim::Agent, Victim::Both] {
            println!("{point} {victim:?}");
            killed_at(point, victim);
            kills += 1;
        }
    }
    println!("{kills} kills among conversations, 0 violations");
}
