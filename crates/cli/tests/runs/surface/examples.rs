//! The examples in every verb's help, run one after another in one home. Those that cannot be run here say why.

use super::coverage::verbs;
use super::stage::Stage;
use crate::world::finish;
use std::process::Stdio;

/// Examples that are not run, with the reason.
const NOT_RUN: [(&str, &str); 13] = [
    ("pinfold run loop --mode always -- ./worker", "it never ends"),
    ("pinfold attach chat", "it follows until somebody detaches; tests/runs/attach.rs does"),
    ("pinfold attach chat --read-only", "the same"),
    ("pinfold tui", "it needs a terminal; tests/runs/terminal does"),
    ("pinfold interrupt chat", "no turn is under way; surface/chats.rs has one"),
    ("pinfold interrupt chat --quiet", "the same"),
    ("pinfold answer chat allow", "nothing is asked; no agent of the machine asks"),
    ("pinfold answer chat deny --message 'not on Fridays'", "the same"),
    ("pinfold accounts --resume claude:default", "no account is held; tests/runs/accounts.rs has one"),
    ("pinfold agents --check claude", "it would use a person's account"),
    ("pinfold demo --json", "surface/others.rs plays it"),
    ("pinfold service install", "it would change the machine; tests/runs/services.rs does"),
    ("pinfold service install --print", "what it says depends on the machine; the same"),
];

/// The order in which they work: what is made first is deleted last.
const ORDER: &str = "demo agents completions man help version lock up new set run start tui ls show why tree logs events wait \
     status usage accounts metrics reload service export apply attach send search inbox interrupt answer locks who unlock stop restart backup purge restore archive \
     down restore-backup rename rm";

/// The words of a line, as a shell would read them.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[test]
fn every_example_of_the_help_works_as_it_is_written() {
    let stage = Stage::new("examples");
    let order: Vec<&str> = ORDER.split_whitespace().collect();
    let mut sorted = verbs(&stage);
    sorted.sort_by_key(|verb| {
        order.iter().position(|known| known == verb).expect("a new verb has its place in ORDER")
    });
    for verb in sorted {
        let help = stage.ok(&["help", &verb]).stdout;
        let examples: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  pinfold ")).collect();
        assert_eq!(examples.len(), 2, "{help}");
        for example in examples {
            let line = format!("pinfold {example}");
            if NOT_RUN.iter().any(|(not_run, _)| *not_run == line) {
                continue;
            }
            prepare(&stage, example);
            let words = words(example);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let mut command = stage.command(&words);
            let answer = finish(command.stdin(Stdio::null()));
            assert_eq!(answer.code, 0, "{line}: {answer:?}");
        }
    }
}

/// Prepares what an example takes for granted.
fn prepare(stage: &Stage, example: &str) {
    match example {
        // The second backup is restored after the first has replaced the sessions: both need the daemon to be down.
        "restore-backup later.db --json" => {
            _ = finish(&mut stage.command(&["down"]));
            _ = std::fs::remove_file(stage.world.home.join("pinfold.db.old"));
        }
        "apply sessions.toml --dry-run" => {
            let declared = stage.ok(&["export"]).stdout;
            std::fs::write(stage.world.root.join("sessions.toml"), declared).unwrap();
        }
        "rename chat talk" => {
            stage.ok(&["up"]);
            _ = finish(&mut stage.command(&["restore", "chat"]));
            stage.ok(&["stop", "chat"]);
        }
        "rm web --yes --json" => {
            _ = finish(&mut stage.command(&["restore", "web"]));
            stage.ok(&["stop", "web"]);
        }
        "archive chat web" | "restore chat" | "restore --all" => {}
        _ => {}
    }
}
