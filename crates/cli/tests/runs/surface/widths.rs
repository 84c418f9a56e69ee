//! Every page for people, and what every other verb says, on terminals of 60, 80 and 200 columns, with and
//! without colour.

use super::coverage::verbs;
use super::redact::Redaction;
use super::stage::Stage;
use crate::tty::Tty;
use std::fmt::Write as _;
use std::process::Command;

/// More lines than any page has.
const ROWS: u16 = 300;

/// Printed after a verb, to show that all of its output has arrived.
const END: &str = "that was all";

/// What a verb prints on a terminal of this width.
fn on_terminal(stage: &Stage, words: &[&str], columns: u16, colour: bool) -> String {
    let verb = stage.command(words);
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("\"$0\" \"$@\"; echo '{END}'")])
        .arg(verb.get_program())
        .args(verb.get_args());
    command.env_clear().envs(verb.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(&stage.world.root);
    if !colour {
        command.env("NO_COLOR", "1");
    }
    let tty = Tty::start(command, ROWS, columns);
    tty.shows(END);
    let all = tty.everything().replace("\r\n", "\n");
    all.split_once(END).map(|(shown, _)| shown.to_owned()).unwrap_or_default()
}

/// A text without colours.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('m').map_or(part, |(_, rest)| rest))
}

/// How much of a line is shown after a duration depends on its number of digits.
fn cut_at_durations(line: &str) -> String {
    match line.split_once("[duration]") {
        Some((before, _)) if line.ends_with('…') => format!("{before}[duration]…\n"),
        _ => format!("{line}\n"),
    }
}

fn cells(line: &str) -> usize {
    line.chars()
        .map(|letter| if ('\u{1100}'..'\u{ffef}').contains(&letter) && letter != '…' { 2 } else { 1 })
        .sum()
}

/// What is painted, and how: a line for each line that has something painted.
fn painted(text: &str) -> String {
    let of_line = |line: &str| -> Option<String> {
        let parts = line.split("\x1b[").skip(1).filter_map(|part| part.split_once('m'));
        let words =
            parts.filter(|(code, words)| *code != "0" && !code.is_empty() && !words.trim().is_empty());
        let words: Vec<String> = words.map(|(code, words)| format!("{code} {}", words.trim())).collect();
        (!words.is_empty()).then(|| words.join(" | "))
    };
    let lines: Vec<String> = text.lines().filter_map(of_line).collect();
    if lines.is_empty() { "nothing\n".to_owned() } else { lines.join("\n") + "\n" }
}

impl Stage {
    /// A case: a page at all widths, which it must fit. In colour it says the same.
    fn widths(&self, name: &str, words: &[&str]) {
        for (columns, shown) in self.widths_after(name, &[], words) {
            for line in shown.lines().filter(|line| !line.starts_with("  pinfold ")) {
                assert!(cells(line) <= usize::from(columns), "{columns}: {line}");
            }
        }
    }

    /// A case: a verb at all widths, each time after others. Sentences may be longer than the terminal, which
    /// wraps them. Returns what it says without colour.
    fn widths_after(&self, name: &str, before: &[&[&str]], words: &[&str]) -> Vec<(u16, String)> {
        let mut text = String::new();
        let on_terminal = |columns: u16, colour: bool| {
            before.iter().for_each(|words| _ = self.ok(words));
            on_terminal(self, words, columns, colour)
        };
        // Each by itself: what is created twice has two ids.
        let named = |text: &str| -> String {
            Redaction::of(&self.world).tables(text).lines().map(cut_at_durations).collect()
        };
        let mut all = Vec::new();
        for columns in [60, 80, 200] {
            let (shown, coloured) = (on_terminal(columns, false), on_terminal(columns, true));
            assert!(!shown.contains('\x1b'), "{shown:?}");
            let (said, paint) = (named(&shown), named(&painted(&coloured)));
            assert_eq!(named(&plain(&coloured)), said, "{words:?}");
            write!(text, "$ pinfold {} # {columns} columns\n{said}---\n", words.join(" ")).unwrap();
            write!(text, "painted at {columns} columns:\n{paint}---\n").unwrap();
            all.push((columns, shown));
        }
        self.text(name, &text);
        all
    }
}

#[test]
fn the_help_of_every_verb_fits_the_terminal() {
    let stage = Stage::new("help_widths");
    for verb in verbs(&stage) {
        stage.widths(&verb, &["help", &verb]);
    }
    stage.widths("program", &["help"]);
    stage.done();
}

#[test]
fn what_people_look_at_fits_the_terminal() {
    let stage = Stage::new("widths");
    let dir = stage.world.path("user/services/api");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("serving"), "serving\n").unwrap();
    let at = dir.display().to_string();
    stage.ok(&["new", "api", "--dir", &at, "--tag", "team", "--", "tail", "-f", "serving"]);
    stage.said("api", "serving");
    stage.ok(&[
        "new",
        "chat",
        "--parent",
        "api",
        "--mode",
        "on-demand",
        "--no-dir-lock",
        "--dir",
        &at,
        "--",
        "cat",
    ]);
    stage.ok(&[
        "new",
        "job",
        "--mode",
        "once",
        "--no-dir-lock",
        "--dir",
        &at,
        "--",
        "sh",
        "-c",
        "echo 会議 failed: no luck; exit 3",
    ]);
    stage.world.wait("job", "failed");
    stage.ok(&["stop", "chat"]);
    stage.ok(&["send", "chat", "how far are you with the new API, and what is left?"]);
    for (name, words) in [
        ("ls", &["ls"][..]),
        ("show", &["show", "job"]),
        ("show_running", &["show", "api"]),
        ("why", &["why", "job"]),
        ("tree", &["tree"]),
        ("logs", &["logs", "job", "api"]),
        ("locks", &["locks"]),
        ("inbox", &["inbox", "chat"]),
        ("events", &["events", "--session", "job"]),
    ] {
        stage.widths(name, words);
    }
    stage.done();
}

/// Verbs whose output is not for people at a terminal, or is a terminal itself, and where it is tested instead.
const ELSEWHERE: [(&str, &str); 9] = [
    ("attach", "it has the whole terminal: tests/runs/attach.rs"),
    ("completions", "a script for a shell, the same at any width"),
    ("demo", "its lines are those of README, the same at any width: surface/others.rs"),
    ("help", "the snapshots of help_widths"),
    ("man", "a page that `man` sets"),
    ("metrics", "for Prometheus, the same at any width"),
    ("run", "what its program prints: tests/runs/foreground"),
    ("service", "what it says depends on the machine: surface/declared.rs"),
    ("tui", "it has the whole terminal: its frames are snapshots of their own, tests/runs/terminal"),
];

type Words = &'static [&'static str];

/// What every other verb says at a terminal: the lines before it, and the line itself.
const SAID: [(&str, &[Words], Words); 33] = [
    ("accounts", &[], &["accounts"]),
    ("agents", &[], &["agents"]),
    ("answer", &[], &["answer", "chat", "allow"]),
    ("apply", &[], &["apply", "sessions.toml", "--dry-run"]),
    ("archive", &[&["restore", "old"]], &["archive", "old"]),
    ("backup", &[], &["backup", "kept.db"]),
    ("export", &[], &["export", "chat"]),
    ("inbox", &[], &["inbox", "chat"]),
    ("interrupt", &[], &["interrupt", "chat"]),
    ("lock", &[], &["lock", "key:free", "--", "echo", "done"]),
    ("new", &[&["rm", "made", "--yes"]], &["new", "made", "--mode", "on-demand", "--", "cat"]),
    ("new_refused", &[], &["new", "x", "--", "sleep 100"]),
    ("purge", &[], &["purge", "--dry-run"]),
    ("reload", &[], &["reload"]),
    ("rename", &[&["rename", "named", "named-2"]], &["rename", "named-2", "named"]),
    ("restart", &[], &["restart", "api"]),
    ("restore", &[&["archive", "named"]], &["restore", "named"]),
    ("restore-backup", &[], &["restore-backup", "nowhere.db"]),
    ("rm", &[&["new", "gone", "--mode", "on-demand", "--", "cat"]], &["rm", "gone", "--yes"]),
    ("rm_unsure", &[], &["rm", "api"]),
    ("search", &[], &["search", "how far"]),
    ("send", &[], &["send", "chat", "again", "--key", "once"]),
    ("set", &[], &["set", "chat", "--memory", "2G"]),
    ("start", &[&["stop", "api"]], &["start", "api"]),
    ("status", &[], &["status"]),
    ("stop", &[&["start", "api"]], &["stop", "api"]),
    ("unlock", &[], &["unlock", "key:free", "--kill"]),
    ("up", &[], &["up"]),
    ("usage", &[], &["usage"]),
    ("version", &[], &["version"]),
    ("wait", &[], &["wait", "chat", "--for", "stopped"]),
    ("who", &[], &["who", "services"]),
    ("down", &[&["up"], &["start", "api"]], &["down"]),
];

/// The pages, which have their own test.
const PAGES: [&str; 8] = ["ls", "show", "why", "tree", "logs", "locks", "inbox", "events"];

#[test]
fn what_every_verb_says_at_a_terminal() {
    let stage = Stage::new("said_widths");
    let verbs = verbs(&stage);
    let shown = |verb: &&String| {
        let of = |name: &str| name.split('_').next() == Some(verb.as_str());
        SAID.iter().any(|(name, _, _)| of(name)) || PAGES.contains(&verb.as_str())
    };
    let elsewhere = |verb: &&String| ELSEWHERE.iter().any(|(name, _)| name == verb);
    let missing: Vec<&String> = verbs.iter().filter(|verb| !shown(verb) && !elsewhere(verb)).collect();
    assert!(missing.is_empty(), "without a snapshot of what they say at a terminal: {missing:?}");
    std::fs::create_dir_all(stage.world.path("user")).unwrap();
    std::fs::create_dir_all(stage.world.root.join("services")).unwrap();
    let text = "[sessions.chat]\nmode = \"always\"\n[sessions.fresh]\ncommand = [\"cat\"]\n";
    std::fs::write(stage.world.root.join("sessions.toml"), text).unwrap();
    stage.ok(&["new", "api", "--", "sleep", "100000"]);
    for name in ["chat", "named", "old", "made"] {
        stage.ok(&["new", name, "--mode", "on-demand", "--", "cat"]);
    }
    stage.ok(&["backup", "kept.db"]);
    stage.ok(&["archive", "old"]);
    stage.ok(&["stop", "chat"]);
    stage.ok(&["send", "chat", "how far are you with the new API, and what is left?", "--key", "first"]);
    stage.ok(&["send", "chat", "again", "--key", "once"]);
    for (name, before, words) in SAID {
        _ = stage.widths_after(name, before, words);
    }
    stage.done();
}
