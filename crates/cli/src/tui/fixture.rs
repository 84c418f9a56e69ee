//! Sessions and models for tests; nothing in them depends on the date or the machine.

use super::keymap::Keymap;
use super::model::{Here, Model};
use super::sessions::{FeedSession, SessionsNews};
use super::update::update;
use super::{effect, typed};
use crate::tui::key::KeyPress;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// 2026-11-17T12:00:00Z.
pub(crate) const NOW: u64 = 1_794_916_800_000;

/// A session as the feed sends it.
pub(crate) fn session(number: u32, name: &str, changes: Value) -> Value {
    let mut object = json!({
        "id": format!("01TEST{number:020}"), "name": name, "agent": "claude", "dir": format!("/home/u/src/{name}"),
        "mode": "on-demand", "state": "idle", "why": "idle: not needed yet", "next": null,
        "activity": "unknown", "activity_from": null, "ready": false, "status": null, "pid": null, "shim_pid": null,
        "run": null, "fence": null, "started_at": null, "restarts": 0, "crashes": 0,
        "inbox": {"queued": 0, "in_flight": 0, "done": 0, "failed": 0}, "consumers": 0, "last_consumer_at": null,
        "memory_bytes": null, "memory_limit_bytes": null, "holder": null, "created_at": "2026-11-17T09:00:00Z",
        "archived_at": null, "parent": null, "parent_id": null, "tags": [], "foreign": false, "command": [],
        "vendor_session": null, "env": [], "dir_lock": true, "policy": null, "account": "claude:default"
    });
    if let Value::Object(changes) = changes {
        for (key, value) in changes {
            object[&key] = value;
        }
    }
    object
}

/// Ten sessions, one for each condition a session can be in.
pub(crate) fn ten() -> Vec<Value> {
    [five_for_a_person(), five_others()].concat()
}

fn exit(verdict: &str, code: i32) -> Value {
    json!({"code": code, "signal": null, "verdict": verdict, "at": "2026-11-17T11:40:05Z", "uptime_ms": 1800,
        "last_line": "RuntimeError: boom"})
}

fn five_for_a_person() -> Vec<Value> {
    vec![
        session(
            1,
            "api",
            json!({"state": "running", "why": "running for 3 min; a turn is under way", "activity": "working",
            "activity_since": "2026-11-17T11:57:00Z", "run": "01R", "pid": 4711, "memory_bytes": 300 << 20, "memory_limit_bytes": 1 << 30,
            "inbox": {"queued": 2, "in_flight": 1, "done": 4, "failed": 0}, "tags": ["team"], "usage": {"cost_usd": 0.314}}),
        ),
        session(
            2,
            "deploy",
            json!({"state": "running", "why": "running for 12 min; it asks: Bash: rm -rf build (r1)", "activity": "waiting",
            "activity_since": "2026-11-17T11:48:00Z", "run": "01S", "requests": 1,
            "request": {"id": "r1", "kind": "permission", "title": "Bash: rm -rf build", "since": "2026-11-17T11:48:00Z"}}),
        ),
        session(
            3,
            "crasher",
            json!({"state": "backoff", "why": "waiting: exited with 1 after 1.8 s: `RuntimeError: boom`; crashed 6 times in a row, next run in 15 s",
            "crashes": 6, "restarts": 5, "last_exit": exit("crash", 1), "agent": "command", "command": ["sh", "-c", "exit 1"], "mode": "always"}),
        ),
        session(
            4,
            "broken",
            json!({"state": "failed", "why": "failed: cannot start: `./run`: interpreter `/no/such` not found", "last_exit": exit("hopeless", 127)}),
        ),
        session(
            5,
            "other-agent",
            json!({"state": "blocked", "why": "blocked: /home/u/src is held by pid 99 (claude, since 11:02)"}),
        ),
    ]
}

fn five_others() -> Vec<Value> {
    vec![
        session(
            6,
            "notes",
            json!({"state": "idle", "why": "idle: parked after 5 min without messages", "inbox": {"queued": 0, "in_flight": 0, "done": 9, "failed": 1}}),
        ),
        session(
            7,
            "会議-メモ",
            json!({"state": "stopped", "why": "stopped by a person; `start` runs it again", "last_exit": exit("clean", 0)}),
        ),
        session(
            8,
            "editor",
            json!({"state": "held", "why": "held by a terminal for 2 h", "started_at": "2026-11-17T10:00:00Z", "run": "01T", "consumers": 1}),
        ),
        session(
            9,
            "weird\u{1b}[31m",
            json!({"state": "starting", "why": "starting: its locks are taken", "parent_id": format!("01TEST{:020}", 1)}),
        ),
        session(
            10,
            "old",
            json!({"state": "archived", "why": "archived: by a person", "archived_at": "2026-11-10T09:00:00Z"}),
        ),
    ]
}

/// A model with these sessions.
pub(crate) fn model(size: (u16, u16), sessions: Vec<Value>) -> Model {
    let keymap = Keymap::of(&BTreeMap::new()).expect("the table is sound");
    let here = Here {
        home: Some("/home/u".into()),
        dir: "/home/u/src".into(),
        agents: vec!["claude".into(), "codex".into()],
        own: None,
        utc: true,
    };
    let mut model = Model::new(size, keymap, here);
    snapshot(&mut model, sessions);
    model
}

/// Gives a model a snapshot of all sessions.
pub(crate) fn snapshot(model: &mut Model, sessions: Vec<Value>) -> Vec<effect::Effect> {
    let sessions = sessions.into_iter().map(|one| FeedSession::read(one).expect("a session")).collect();
    let news = SessionsNews::Snapshot { revision: "1.1".into(), sessions, more: false };
    update(model, effect::UiInput::Feed(news), NOW)
}

/// Tells a model that one session has changed.
pub(crate) fn changed(model: &mut Model, session: Value) -> Vec<effect::Effect> {
    let told = Box::new(FeedSession::read(session).expect("a session"));
    update(model, effect::UiInput::Feed(SessionsNews::Changed { revision: "1.2".into(), told }), NOW)
}

/// Presses keys one after the other, given by their names.
pub(crate) fn keys(model: &mut Model, words: &str) -> Vec<effect::Effect> {
    let mut effects = Vec::new();
    for word in words.split(' ') {
        let typed = KeyPress::parse(word).unwrap_or_else(|| panic!("{word}"));
        effects.extend(update(model, effect::UiInput::Typed(typed::Typed::Key(typed)), NOW));
    }
    effects
}

/// Types a text, character by character.
pub(crate) fn text(model: &mut Model, text: &str) -> Vec<effect::Effect> {
    let mut effects = Vec::new();
    for character in text.chars() {
        effects.extend(update(
            model,
            effect::UiInput::Typed(typed::Typed::Key(KeyPress::char(character))),
            NOW,
        ));
    }
    effects
}
