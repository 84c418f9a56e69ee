//! A conversation is never replaced by a blank one: what is missing or damaged is put back, and what cannot be
//! put back is told, with the queue kept.

use super::stage::Stage;
use serde_json::Value;
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

/// An id that no vendor has.
const TYPO: &str = "0b9c1b5e-5a0f-4c4e-9d3b-2f6f3c1f7a11";

/// A session with one answered turn, at rest, whose transcript is kept.
fn rests(agent: &'static str) -> Stage {
    let stage = Stage::new(agent);
    stage.new_session();
    assert_eq!(stage.says("TURN-one"), "reply to one");
    stage.ok(&["stop", "api"]);
    is_kept(&stage);
    stage
}

/// The folder in which the agent of a stage has its transcripts.
fn store(stage: &Stage) -> PathBuf {
    stage.world.path("user").join(match stage.agent() {
        "claude" => ".claude/projects",
        "codex" => ".codex/sessions",
        "gemini" => ".gemini/tmp",
        _ => ".pi/agent/sessions",
    })
}

/// The transcript of the session.
fn transcript(stage: &Stage) -> PathBuf {
    let vendor = stage.show()["vendor_session"].as_str().unwrap().to_owned();
    let found = found_below(&store(stage), &vendor[..8]);
    found.unwrap_or_else(|| panic!("no transcript of {vendor}"))
}

fn found_below(folder: &Path, part: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let is_it = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_file() && name.contains(part) && name.ends_with(".jsonl")
    };
    let own = entries.iter().find(is_it).cloned();
    own.or_else(|| entries.iter().filter(|path| path.is_dir()).find_map(|folder| found_below(folder, part)))
}

/// What pinfold knows of the copy.
fn note(stage: &Stage) -> Option<Value> {
    let sessions = std::fs::read_dir(stage.world.home.join("sessions")).ok()?;
    let mut texts = sessions.flatten().map(|session| std::fs::read(session.path().join("kept/note.json")));
    serde_json::from_slice(&texts.find_map(Result::ok)?).ok()
}

/// Waits until all of the transcript is kept.
fn is_kept(stage: &Stage) {
    let length = || std::fs::metadata(transcript(stage)).map(|facts| facts.len()).unwrap_or_default();
    let kept = || {
        note(stage).is_some_and(|note| {
            note["size"] == length() && note["missing"] == Value::from(Vec::<Value>::new())
        })
    };
    stage.world.until("a transcript that is kept", || kept().then_some(()));
}

/// A way to damage a transcript, and its name.
type Damage = (&'static str, fn(&Path));

const DAMAGES: [Damage; 6] = [
    ("deleted", |path| std::fs::remove_file(path).unwrap()),
    ("truncated", |path| cut(path, |length| length / 2)),
    ("emptied", |path| cut(path, |_| 0)),
    ("half of it zero", |path| {
        let length = std::fs::metadata(path).unwrap().len();
        let zeros = vec![0; usize::try_from(length - length / 2).unwrap()];
        OpenOptions::new().write(true).open(path).unwrap().write_all_at(&zeros, length / 2).unwrap();
    }),
    ("garbage", |path| std::fs::write(path, "not what it was").unwrap()),
    ("its first line gone", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        std::fs::write(path, text.split_once('\n').unwrap().1).unwrap();
    }),
];

fn cut(path: &Path, to: impl Fn(u64) -> u64) {
    let length = std::fs::metadata(path).unwrap().len();
    OpenOptions::new().write(true).open(path).unwrap().set_len(to(length)).unwrap();
}

/// After each damage between two runs, the next request has every earlier turn once, and an event says so.
fn a_damaged_transcript_is_put_back(agent: &'static str) {
    let stage = rests(agent);
    let mut turns = vec!["one".to_owned()];
    for (index, (name, damage)) in DAMAGES.into_iter().enumerate() {
        damage(&transcript(&stage));
        stage.ok(&["start", "api"]);
        let turn = format!("after{index}");
        assert_eq!(stage.says(&format!("TURN-{turn}")), format!("reply to {turn}"), "{name}");
        turns.push(turn.clone());
        assert_eq!(stage.model.shown_with(&turn), turns, "{name}");
        assert_eq!(stage.world.events_of("api", "conversation_put_back").len(), index + 1, "{name}");
        stage.ok(&["stop", "api"]);
        is_kept(&stage);
    }
    stage.shown("transcript deleted or damaged: put back");
}

/// The folder of the transcripts is away for one message, and back afterwards.
fn a_store_that_was_away_loses_nothing(agent: &'static str) {
    let stage = rests(agent);
    let (store, away) = (store(&stage), stage.world.path("away"));
    std::fs::rename(&store, &away).unwrap();
    stage.ok(&["start", "api"]);
    stage.says("TURN-two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.ok(&["stop", "api"]);
    is_kept(&stage);
    std::fs::remove_dir_all(&store).unwrap();
    std::fs::rename(&away, &store).unwrap();
    stage.ok(&["start", "api"]);
    stage.says("TURN-three");
    assert_eq!(stage.model.shown_with("three"), ["one", "two", "three"]);
    stage.shown("its store away for one message");
}

/// A folder that cannot be read is not one without the conversation.
fn a_store_that_cannot_be_read_is_a_refused_start(agent: &'static str) {
    let stage = rests(agent);
    let (store, away) = (store(&stage), stage.world.path("away"));
    std::fs::rename(&store, &away).unwrap();
    // Root may read everything, but nobody can follow a link to itself.
    symlink(&store, &store).unwrap();
    assert_ne!(stage.run(&["start", "api"]).code, 0);
    let why = stage.ok(&["why", "api"]).stdout;
    assert!(why.contains("conversations cannot be read") && why.contains("start"), "{why}");
    std::fs::remove_file(&store).unwrap();
    std::fs::rename(&away, &store).unwrap();
    stage.ok(&["start", "api"]);
    stage.says("TURN-two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.shown("its store unreadable");
}

/// The session has lost its conversation: it says so, keeps its queue, and goes on when it is told to begin anew.
fn is_lost(stage: &Stage, message: &str, reason: &str) {
    stage.ok(&["wait", "api", "--for", "failed", "--timeout", "240s"]);
    let why = stage.ok(&["why", "api"]).stdout;
    assert!(why.contains("the conversation of `api`"), "{why}");
    assert!(why.contains("`pinfold set api --new-conversation` to begin a new one"), "{why}");
    let lost = stage.world.events_of("api", "conversation_lost");
    assert_eq!((lost.len(), &lost[0]["reason"]), (1, &reason.into()), "{lost:?}");
    assert_eq!(stage.comes_to(message, "queued")["tries"], 0);
}

/// An id that a person named is only ever resumed.
fn a_mistyped_conversation_is_not_begun(agent: &'static str) {
    let stage = Stage::new(agent);
    stage.new_session_with(&["--vendor-session", TYPO]);
    let message = stage.sends("TURN-one");
    is_lost(&stage, &message, "gone");
    assert_eq!((stage.world.events_of("api", "run_started").len(), stage.model.times("one")), (1, 0));
    stage.ok(&["set", "api", "--new-conversation"]);
    stage.comes_to(&message, "done");
    assert_eq!(stage.model.shown_with("one"), ["one"]);
    stage.shown("a mistyped conversation");
}

/// The copy is gone too: the vendor refuses, and no blank conversation begins.
fn a_conversation_that_is_gone_for_good_is_told(agent: &'static str) {
    let stage = rests(agent);
    let path = transcript(&stage);
    std::fs::remove_file(&path).unwrap();
    for session in std::fs::read_dir(stage.world.home.join("sessions")).unwrap().flatten() {
        std::fs::remove_dir_all(session.path().join("kept")).unwrap();
    }
    let message = stage.sends("TURN-two");
    _ = stage.run(&["start", "api"]);
    is_lost(&stage, &message, "gone");
    assert!(!path.exists() && stage.model.times("two") == 0);
    stage.ok(&["set", "api", "--new-conversation"]);
    stage.comes_to(&message, "done");
    assert_eq!(stage.model.shown_with("two"), ["two"]);
    stage.shown("transcript gone for good: told");
}

/// What an agent answers on a full disk is in its memory only: that is told at once, and again before a resume.
fn what_a_full_disk_swallowed_is_told(agent: &'static str) {
    let stage = Stage::new(agent);
    stage.new_session();
    stage.says("TURN-one");
    is_kept(&stage);
    let (path, aside) = (transcript(&stage), stage.world.path("aside"));
    std::fs::rename(&path, &aside).unwrap();
    symlink("/dev/full", &path).unwrap();
    stage.says("TURN-two");
    let told = || stage.ok(&["why", "api"]).stdout.contains("has not saved what was said last");
    stage.world.until("a warning", || told().then_some(()));
    stage.says("TURN-three");
    assert_eq!(stage.model.shown_with("three"), ["one", "two", "three"]);
    let warned = stage.world.events_of("api", "health_warn");
    assert!(warned.iter().any(|event| event["reason"] == "conversation_unsaved"), "{warned:?}");
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(&aside, &path).unwrap();
    stage.ok(&["stop", "api"]);
    let message = stage.sends("TURN-four");
    _ = stage.run(&["start", "api"]);
    is_lost(&stage, &message, "incomplete");
    stage.shown("disk full for two turns: told");
}

/// The vendor opens a conversation only in the directory in which it began.
fn a_conversation_of_another_directory_is_told(agent: &'static str) {
    let stage = rests(agent);
    stage.ok(&["set", "api", "--dir", &stage.text("other")]);
    let message = stage.sends("TURN-two");
    _ = stage.run(&["start", "api"]);
    is_lost(&stage, &message, "elsewhere");
    assert_eq!(stage.world.events_of("api", "run_started").len(), 2, "it is not tried again");
    stage.ok(&["set", "api", "--dir", &stage.text("work")]);
    stage.ok(&["start", "api"]);
    stage.comes_to(&message, "done");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.shown("another directory: told");
}

macro_rules! cases {
    ($agent:ident: $($case:ident),+) => {
        mod $agent {
            $(#[test]
            fn $case() {
                super::$case(stringify!($agent));
            })+
        }
    };
}

cases!(
    claude: a_damaged_transcript_is_put_back,
    a_store_that_was_away_loses_nothing,
    a_store_that_cannot_be_read_is_a_refused_start,
    a_mistyped_conversation_is_not_begun,
    a_conversation_that_is_gone_for_good_is_told,
    what_a_full_disk_swallowed_is_told
);
cases!(
    codex: a_damaged_transcript_is_put_back,
    a_store_that_was_away_loses_nothing,
    a_mistyped_conversation_is_not_begun,
    a_conversation_that_is_gone_for_good_is_told
);
cases!(
    pi: a_damaged_transcript_is_put_back,
    a_store_that_was_away_loses_nothing,
    a_mistyped_conversation_is_not_begun,
    a_conversation_that_is_gone_for_good_is_told,
    what_a_full_disk_swallowed_is_told,
    a_conversation_of_another_directory_is_told
);
cases!(
    gemini: a_damaged_transcript_is_put_back,
    a_store_that_was_away_loses_nothing,
    a_mistyped_conversation_is_not_begun,
    a_conversation_that_is_gone_for_good_is_told,
    a_conversation_of_another_directory_is_told
);

#[test]
fn pi_with_a_session_folder_of_its_users_own_goes_on_with_its_conversation() {
    let stage = Stage::new("pi");
    let folder = stage.text("own-sessions");
    let stage = stage.with("PI_CODING_AGENT_SESSION_DIR", Some(&folder));
    stage.new_session();
    stage.says("TURN-one");
    stage.ok(&["stop", "api"]);
    stage.ok(&["start", "api"]);
    stage.says("TURN-two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    let moved = stage.run(&["set", "api", "--env", "PI_CODING_AGENT_SESSION_DIR=/elsewhere"]);
    assert!(moved.code == 75 && moved.stderr.contains("--new-conversation"), "{moved:?}");
    stage.shown("session folder elsewhere");
}

#[test]
fn claude_without_a_history_says_so_and_its_loss_is_told() {
    let stage = Stage::new("claude").with("CLAUDE_CODE_SKIP_PROMPT_HISTORY", Some("1"));
    stage.new_session();
    stage.says("TURN-one");
    let told = || stage.ok(&["why", "api"]).stdout.contains("has not saved what was said last");
    stage.world.until("a warning", || told().then_some(()));
    stage.ok(&["stop", "api"]);
    let message = stage.sends("TURN-two");
    _ = stage.run(&["start", "api"]);
    is_lost(&stage, &message, "gone");
    stage.shown("no history: told");
}
