//! Runs the examples of docs/http.md as they stand there.

use crate::http::hold;
use crate::world::{Answer, World, finish};
use serde_json::json;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../../../../docs/http.md");
const HELD: &str = "... here the lock is held ...";

struct Example {
    program: &'static str,
    text: String,
    /// Runs the command in `PROBE`, in the example's own language.
    probe: &'static str,
}

fn examples() -> [Example; 2] {
    let text = |language: &str| {
        let begin = format!("<!-- run by the tests -->\n```{language}\n");
        let (_, rest) = PAGE.split_once(&begin).unwrap_or_else(|| panic!("no example in {language}"));
        rest.split_once("\n```").unwrap().0.to_owned()
    };
    let python = "os.system(os.environ['PROBE'])";
    let node =
        "require('node:child_process').spawnSync('sh', ['-c', process.env.PROBE], { stdio: 'inherit' });";
    [
        Example { program: "python3", text: text("python"), probe: python },
        Example { program: "node", text: text("js"), probe: node },
    ]
}

/// Runs an example and, while that holds the lock, a shell command.
fn run(world: &World, example: &Example, text: &str, probe: &str) -> Answer {
    let marked = text.lines().find(|line| line.contains(HELD)).expect("the example shows where it is held");
    let indent: String = marked.chars().take_while(|c| *c == ' ').collect();
    let text = text.replace(marked, &format!("{indent}{}", example.probe));
    let file = world.path(example.program);
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(example.program);
    command.arg(&file).env("PINFOLD_SOCKET", world.home.join("pinfold.sock")).env("PROBE", probe);
    command
        .env("PINFOLD_HOME", &world.home)
        .env("PINFOLD_LOCKS", world.path("locks"))
        .env("XDG_STATE_HOME", world.path("state"))
        .stdin(Stdio::null());
    command.env("PINFOLD", &world.binary);
    let found = Command::new(example.program).arg("--version").output();
    assert!(found.is_ok(), "{} is needed; `./test` installs it", example.program);
    finish(&mut command)
}

#[test]
fn they_hold_the_lock_and_give_it_back() {
    for example in examples() {
        let world = World::new();
        world.ok(&["up"]);
        let probe = "$PINFOLD lock key:deploy -- true; echo probed $?";
        let answer = run(&world, &example, &example.text, probe);
        assert_eq!(answer.code, 0, "{answer:?}");
        assert!(answer.stdout.contains("200") && answer.stdout.contains("fence"), "{answer:?}");
        assert!(answer.stdout.contains("probed 75"), "it was not held: {answer:?}");
        let free = hold(&world, &json!({ "resource": "key:deploy", "wait": "240s" })).granted();
        assert!(free["fence"].is_u64());
        let reasons: Vec<_> =
            world.events().into_iter().filter(|event| event["kind"] == "lock_acquired").collect();
        assert_eq!(reasons[0]["reason"], example.program.trim_end_matches('3'));
    }
}

#[test]
fn they_lose_it_when_they_are_killed_and_are_told_who_has_it() {
    for example in examples() {
        let world = World::new();
        world.ok(&["up"]);
        let answer = run(&world, &example, &example.text, "kill -9 $PPID");
        assert_eq!(answer.code, 128 + 9, "{answer:?}");
        let mut other = hold(&world, &json!({ "resource": "key:deploy", "wait": "240s" }));
        other.granted();
        let impatient = example.text.replace("10s", "0s");
        let answer = run(&world, &example, &impatient, "true");
        assert!(answer.stdout.contains("409") && answer.stdout.contains("busy"), "{answer:?}");
        assert!(answer.stdout.contains(&std::process::id().to_string()), "the holder is named: {answer:?}");
    }
}

#[test]
fn they_are_short() {
    for example in examples() {
        let lines = example.text.lines().filter(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#') && !line.starts_with("//")
        });
        assert!(lines.count() <= 11, "{}", example.text);
    }
}
