//! Every page for people on terminals of 60, 80 and 200 columns, with and without colour.

use super::coverage::verbs;
use super::redact::Redaction;
use super::stage::Stage;
use crate::tty::Tty;
use std::fmt::Write as _;
use std::process::Command;

/// More lines than any page has.
const ROWS: u16 = 300;

/// Printed after what a verb prints: then all of that has come.
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

fn cells(line: &str) -> usize {
    line.chars()
        .map(|letter| if ('\u{1100}'..'\u{ffef}').contains(&letter) && letter != '…' { 2 } else { 1 })
        .sum()
}

impl Stage {
    /// A case: one verb at all widths. In colour it says the same.
    fn widths(&self, name: &str, words: &[&str]) {
        let mut text = String::new();
        for columns in [60, 80, 200] {
            let shown = on_terminal(self, words, columns, false);
            assert!(!shown.contains('\x1b'), "{shown:?}");
            for line in shown.lines().filter(|line| !line.starts_with("  pinfold ")) {
                assert!(cells(line) <= usize::from(columns), "{columns}: {line}");
            }
            let redaction = Redaction::of(&self.world);
            write!(
                text,
                "$ pinfold {} # {columns} columns\n{}---\n",
                words.join(" "),
                redaction.tables(&shown)
            )
            .unwrap();
        }
        let coloured = on_terminal(self, words, 80, true);
        let uncoloured = on_terminal(self, words, 80, false);
        let redaction = Redaction::of(&self.world);
        assert_eq!(redaction.tables(&plain(&coloured)), redaction.tables(&uncoloured), "{words:?}");
        self.text(name, &text);
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
