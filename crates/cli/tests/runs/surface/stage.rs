//! One home with one daemon for a group of cases, and the snapshots of that group.

use super::redact::Redaction;
use super::spread::spread;
use crate::world::{Answer, World, finish};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the snapshots of all groups are.
pub(super) fn snapshots() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/surface/snapshots")
}

/// A group of cases that share a home.
pub(super) struct Stage {
    pub(super) world: World,
    group: &'static str,
    shown: RefCell<BTreeSet<String>>,
}

impl Stage {
    pub(super) fn new(group: &'static str) -> Stage {
        Stage { world: World::new(), group, shown: RefCell::default() }
    }

    /// A verb with nothing of the tester's own environment, such as the path, the language or the terminal.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let usual = self.world.command(words);
        let mut command = Command::new(&self.world.binary);
        command.args(words).stdin(Stdio::null()).current_dir(&self.world.root).env_clear();
        command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.envs([("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TERM", "dumb")]);
        command.env("HOME", self.world.path("user"));
        command
    }

    /// Runs a verb that must succeed and whose answer is not shown.
    pub(super) fn ok(&self, words: &[&str]) -> Answer {
        let answer = finish(&mut self.command(words));
        assert_eq!(answer.code, 0, "{words:?}: {answer:?}\n{}", self.world.daemon_log());
        answer
    }

    /// A case: a verb, for people and with `--json`. For verbs that may be repeated.
    pub(super) fn both(&self, name: &str, words: &[&str]) {
        self.case(name, &[words, &[&["--json"], words].concat()]);
    }

    /// A case: several command lines, one after another.
    pub(super) fn case(&self, name: &str, lines: &[&[&str]]) {
        self.commands(name, lines.iter().map(|words| self.command(words)).collect());
    }

    /// A case: several commands, one after another.
    pub(super) fn commands(&self, name: &str, commands: Vec<Command>) {
        let redaction = Redaction::of(&self.world);
        let mut text = String::new();
        for mut command in commands {
            let answer = finish(&mut command);
            let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
            text.push_str(&told(words.iter().map(AsRef::as_ref), &answer, &redaction));
        }
        self.text(name, &text);
    }

    /// A case: command lines that ran elsewhere, with their answers.
    pub(super) fn answers(&self, name: &str, answers: &[(&Vec<&str>, &Answer)]) {
        let redaction = Redaction::of(&self.world);
        let told = |(words, answer): &(&Vec<&str>, &Answer)| told(words.iter().copied(), answer, &redaction);
        self.text(name, &answers.iter().map(told).collect::<String>());
    }

    /// A case that is not about a verb: any text.
    pub(super) fn text(&self, name: &str, text: &str) {
        assert!(self.shown.borrow_mut().insert(name.to_owned()), "two cases are called `{name}`");
        let mut settings = insta::Settings::new();
        settings.set_snapshot_path(snapshots().join(self.group));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name, text));
    }

    /// Checks that every snapshot of the group belongs to a case: one that no case shows any more is not kept.
    pub(super) fn done(self) {
        let files = std::fs::read_dir(snapshots().join(self.group)).unwrap().flatten();
        let names = files.map(|file| file.file_name().into_string().unwrap());
        let kept: BTreeSet<String> =
            names.filter_map(|name| Some(name.strip_suffix(".snap")?.to_owned())).collect();
        let shown = self.shown.borrow();
        let stale: Vec<&String> = kept.difference(&shown).collect();
        assert!(stale.is_empty(), "no case of `{}` has these snapshots: {stale:?}", self.group);
    }
}

/// What is kept of one command: the line, the exit code, and both streams as they are.
fn told<'a>(words: impl Iterator<Item = &'a str>, answer: &Answer, redaction: &Redaction) -> String {
    let words: Vec<String> = words.map(quoted).collect();
    let is_json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    let line = redaction.names(&format!("$ pinfold {}", words.join(" ")));
    let stdout =
        if is_json { redaction.names(&spread(&answer.stdout)) } else { redaction.tables(&answer.stdout) };
    let stderr = redaction.names(&answer.stderr);
    let mut text = format!("{}\nexit {}\n", line.trim_end(), answer.code);
    for (name, stream) in [("stdout", stdout), ("stderr", stderr)] {
        match stream.as_str() {
            "" => {}
            whole if whole.ends_with('\n') => text.push_str(&format!("--- {name}\n{whole}")),
            cut => text.push_str(&format!("--- {name}, its last line without an end\n{cut}\n")),
        }
    }
    // A last line, so that blanks before it are part of the snapshot.
    text.push_str("---\n");
    text
}

/// A word of a command line, quoted for a shell; a very long one is cut.
fn quoted(word: &str) -> String {
    if word.len() > 300 {
        return format!("'{}...' ({} bytes)", &word[..20], word.len());
    }
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}
