//! Output that cannot be written: a full disk is an error, and a reader that has gone away is not.

use crate::world::{Answer, Ends, World, verbs_in};
use std::fs::File;
use std::process::Stdio;

/// Verbs that are not in the table, and why.
const SILENT: [(&str, &str); 12] = [
    ("run", "the program writes to stdout"),
    ("lock", "the program writes to stdout"),
    ("attach", "it needs a terminal"),
    ("tui", "it needs a terminal"),
    ("demo", "it takes seconds"),
    ("down", "it would end the daemon of the others"),
    ("answer", "nothing asks for permission here"),
    ("rm", "it would remove what the others need"),
    ("apply", "it needs a file"),
    ("restore-backup", "it needs the daemon to be down"),
    ("unlock", "it needs a holder"),
    ("interrupt", "no turn is in progress here"),
];

/// A command line for each verb that prints, in an order that works.
const LINES: [&[&str]; 45] = [
    &["--json", "up"],
    &["--json", "status"],
    &["--json", "new", "b", "--mode", "on-demand", "--turns", "line", "--", "cat"],
    &["new", "c", "--mode", "on-demand", "--turns", "line", "--", "cat"],
    &["new", "--mode", "on-demand", "--", "cat"],
    &["--json", "set", "b", "--tag", "x"],
    &["ls"],
    &["--json", "ls"],
    &["show", "a"],
    &["tree"],
    &["why", "a"],
    &["--json", "search", "hello"],
    &["send", "a", "hello again"],
    &["--json", "send", "a", "hello again", "--wait"],
    &["inbox", "a"],
    &["logs", "a"],
    &["--json", "logs", "a"],
    &["logs", "-f", "a"],
    &["events"],
    &["--json", "events"],
    &["events", "-f"],
    &["ls", "-w"],
    &["--json", "start", "b"],
    &["--json", "stop", "b"],
    &["--json", "restart", "b"],
    &["--json", "archive", "b"],
    &["--json", "restore", "b"],
    &["--json", "purge", "--dry-run"],
    &["export"],
    &["--json", "reload"],
    &["service", "install", "--print", "--manager", "systemd"],
    &["--json", "rename", "c", "d"],
    &["--json", "wait", "a", "--for", "running"],
    &["--json", "backup", "copy"],
    &["--json", "accounts"],
    &["--json", "agents"],
    &["--json", "locks"],
    &["--json", "usage"],
    &["metrics"],
    &["--json", "who", "."],
    &["completions", "bash"],
    &["man"],
    &["help"],
    &["version"],
    &["--help"],
];

fn printing_to(world: &World, out: Stdio, words: &[&str]) -> Answer {
    world.command(words).stdout(out).stderr(Stdio::piped()).spawn().unwrap().finished()
}

/// A session that answers with what it is sent, and a message to it.
fn chat() -> World {
    let world = World::new();
    world.ok(&["new", "a", "--mode", "on-demand", "--turns", "line", "--idle", "1h", "--", "cat"]);
    world.ok(&["send", "a", "hello", "--wait"]);
    world.wait("a", "running");
    world
}

#[test]
fn a_full_disk_is_an_error_of_every_verb_that_prints() {
    let world = chat();
    for words in LINES {
        let answer = printing_to(&world, File::create("/dev/full").unwrap().into(), words);
        let said = "stdout cannot be written: No space left on device";
        assert!(answer.code == 1 && answer.stderr.contains(said), "{words:?}: {answer:?}");
    }
    // Nothing was done twice, and all of it was done.
    let names: Vec<_> = world.sessions().into_keys().collect();
    assert!(["a", "b", "d"].iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
    assert_eq!(world.json(&["inbox", "a", "-n", "all"]).as_array().unwrap().len(), 3);
}

#[test]
fn what_was_done_is_said_when_its_output_is_lost() {
    let world = chat();
    for (words, said) in [
        (&["new", "b", "--mode", "on-demand", "--", "cat"][..], "the session was created, but stdout cannot"),
        (&["send", "a", "again"], "the message was queued, but stdout cannot"),
        (&["--json", "stop", "a"], "the command succeeded, but stdout cannot"),
        (&["--json", "show", "a"], "error: stdout cannot"),
    ] {
        let answer = printing_to(&world, File::create("/dev/full").unwrap().into(), words);
        assert!(answer.code == 1 && answer.stderr.contains(said), "{words:?}: {answer:?}");
    }
}

#[test]
fn a_reader_that_has_gone_away_is_not_an_error() {
    let world = chat();
    // What follows or waits ends when its reader goes: see `followers`.
    for words in LINES.iter().filter(|words| !words.iter().any(|word| ["-f", "-w", "--wait"].contains(word)))
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let answer = printing_to(&world, writer.into(), words);
        assert!(answer.code == 0 && !answer.stderr.contains("error"), "{words:?}: {answer:?}");
    }
}

#[test]
fn the_table_has_every_verb_that_prints() {
    let world = World::new();
    for verb in verbs_in(&world.ok(&["--help"]).stdout) {
        let listed = LINES.iter().any(|words| words.contains(&verb.as_str()));
        assert!(listed || SILENT.iter().any(|(silent, _)| *silent == verb), "`{verb}` is in neither table");
    }
}
