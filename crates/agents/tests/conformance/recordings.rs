//! Recordings of real agents, both directions: whichever protocol reads them, a fold of them conforms.

use crate::dice::Dice;
use crate::kit::{Story, conforms, setup};
use pinfold_agents::preset::TurnEndRule;
use pinfold_agents::{Label, Protocol, Setup};
use pinfold_core::{Exit, MessageId};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One recording.
pub(crate) struct Recording {
    pub(crate) agent: String,
    pub(crate) case: String,
    pub(crate) lines: Vec<Recorded>,
    pub(crate) exit: Option<Exit>,
}

/// One line of a recording.
#[derive(Deserialize)]
pub(crate) struct Recorded {
    /// Seconds since the start.
    #[serde(default)]
    t: f64,
    #[serde(rename = "dir")]
    pub(crate) direction: String,
    #[serde(rename = "line")]
    pub(crate) text: String,
}

impl Recording {
    /// Returns when it began, if that was noted.
    pub(crate) fn began(&self) -> i64 {
        let noted = |line: &Recorded| serde_json::from_str::<Value>(&line.text).ok()?.get("at")?.as_i64();
        self.lines.first().and_then(noted).unwrap_or(1_794_800_000_000)
    }
}

impl Recorded {
    /// Returns the milliseconds since the start.
    #[expect(clippy::cast_possible_truncation, reason = "a recording takes minutes")]
    pub(crate) fn millis(&self) -> i64 {
        (self.t * 1000.0) as i64
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// The recording of a case.
pub(crate) fn recorded(agent: &str, case: &str) -> Recording {
    read(agent, &folder().join(agent).join(case).with_extension("jsonl"))
}

/// All recordings, sorted by name.
pub(crate) fn all() -> impl Iterator<Item = Recording> {
    let agents = sorted(&folder()).into_iter();
    agents.flat_map(|agent| {
        let name = agent.file_name().unwrap().to_str().unwrap().to_owned();
        sorted(&agent).into_iter().map(move |file| read(&name, &file))
    })
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn read(agent: &str, file: &Path) -> Recording {
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Recorded> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let exit = lines.iter().filter(|line| line.direction == "note").find_map(|line| exit(&line.text));
    let case = file.file_stem().unwrap().to_str().unwrap().to_owned();
    Recording { agent: agent.to_owned(), case, lines, exit }
}

/// Returns how the agent ended, if the note says that.
fn exit(note: &str) -> Option<Exit> {
    let note: Value = serde_json::from_str(note).ok()?;
    let code = note.get("code").filter(|_| note["did"] == "exit")?;
    let number = |text: &str| text.strip_prefix("signal ")?.parse().ok();
    let code_of = |code: i64| Exit::Code(i32::try_from(code).unwrap());
    code.as_i64().map(code_of).or_else(|| code.as_str().and_then(number).map(Exit::Signal))
}

/// Turns a recording into a story in which everything said is a prompt.
fn story(recording: &Recording) -> Story {
    let mut count = 0;
    let told = recording.lines.iter().fold(Story::new(), |story, line| match line.direction.as_str() {
        "in" => {
            count += 1;
            story
                .said(Label::Prompt { message: MessageId(count), delivery: u64::try_from(count).unwrap() })
                .written()
        }
        "out" => story.line(&line.text),
        "err" => story.err(format!("{}\n", line.text)),
        _ => story,
    });
    match recording.exit {
        Some(exit) => told.ends(exit),
        None => told,
    }
}

fn every_recording_conforms(setup: &Setup) {
    let mut dice = Dice(7);
    let count = all().map(|recording| conforms(setup, &story(&recording), &mut dice)).count();
    assert!(count > 100, "the recordings are there");
}

#[test]
fn every_recording_conforms_when_it_is_read_as_lines() {
    every_recording_conforms(&Setup { turns: TurnEndRule::Done, ..setup(Protocol::Line) });
}

#[test]
fn every_recording_conforms_when_it_is_read_by_a_protocol_that_is_not_its_own() {
    every_recording_conforms(&setup(Protocol::Scripted));
}

#[test]
fn every_recording_conforms_when_it_is_read_as_one_of_claude_code() {
    every_recording_conforms(&setup(Protocol::StreamJson));
}

#[test]
fn every_recording_conforms_when_all_of_it_is_an_answer() {
    every_recording_conforms(&setup(Protocol::Exec));
}

#[test]
fn every_recording_conforms_when_it_is_read_as_one_of_codex() {
    every_recording_conforms(&setup(Protocol::Codex));
}
