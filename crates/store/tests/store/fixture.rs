//! Stores of every version that was ever released load forever.

use crate::home::{Home, note, whole};
use pinfold_core::{EventKind, MessageId, State};
use pinfold_store::{CheckPace, EventQuery, MessageState, Reader, SessionId, StoredSession, Take};

/// Written by `cargo run -p pinfold-store --example write_fixture`, and never again.
const V1: &[u8] = include_bytes!("../fixtures/v1.db");
const V2: &[u8] = include_bytes!("../fixtures/v2.db");
const V3: &[u8] = include_bytes!("../fixtures/v3.db");
const V4: &[u8] = include_bytes!("../fixtures/v4.db");
const V5: &[u8] = include_bytes!("../fixtures/v5.db");
const V6: &[u8] = include_bytes!("../fixtures/v6.db");
const V7: &[u8] = include_bytes!("../fixtures/v7.db");
const V8: &[u8] = include_bytes!("../fixtures/v8.db");

#[test]
fn a_store_of_version_1_loads_whole_and_can_be_written() {
    loads_whole_and_can_be_written(V1);
}

#[test]
fn a_store_of_version_2_loads_whole_and_can_be_written() {
    loads_whole_and_can_be_written(V2);
}

#[test]
fn a_store_of_version_3_loads_whole_and_can_be_written() {
    loads_whole_and_can_be_written(V3);
}

#[test]
fn a_store_of_version_4_loads_whole_and_can_be_written() {
    loads_whole_and_can_be_written(V4);
}

#[test]
fn a_store_of_version_5_loads_whole_and_can_be_written() {
    loads_whole_and_can_be_written(V5);
}

#[test]
fn a_store_of_version_6_loads_whole_and_can_be_written() {
    loads_whole_and_can_be_written(V6);
}

#[test]
fn a_store_of_version_7_loads_whole_and_can_be_written() {
    loads_whole_and_can_be_written(V7);
}

#[test]
fn a_store_of_version_8_loads_whole_and_can_be_written() {
    loads_whole_and_can_be_written(V8);
}

#[test]
fn who_sent_a_message_is_kept_from_version_4_on() {
    for (file, from) in
        [(V3, None), (V4, Some("idle")), (V5, Some("idle")), (V6, Some("idle")), (V7, Some("idle"))]
    {
        let home = Home::new();
        std::fs::write(home.path(), file).unwrap();
        let reader = home.open().reader().unwrap();
        let sent = reader.message(MessageId((1 << 100) + 3)).unwrap().unwrap();
        assert_eq!((sent.from.as_deref(), sent.damage), (from, None));
    }
}

#[test]
fn a_message_that_was_damaged_before_version_4_is_damaged_after_it() {
    let home = Home::new();
    std::fs::write(home.path(), V3).unwrap();
    let file = rusqlite::Connection::open(home.path()).unwrap();
    file.execute("UPDATE messages SET text = 'TWO' WHERE text = 'two'", []).unwrap();
    drop(file);
    let reader = home.open().reader().unwrap();
    assert!(matches!(reader.message(MessageId((1 << 100) + 1)), Err(pinfold_store::ReadError::Row { .. })));
    assert_eq!(reader.message(MessageId(1 << 100)).unwrap().unwrap().text, "one");
}

fn loads_whole_and_can_be_written(file: &[u8]) {
    let home = Home::new();
    std::fs::write(home.path(), file).unwrap();
    let store = home.open();
    assert!(!store.opened().created);
    let reader = store.reader().unwrap();

    let sessions: Vec<_> = reader.sessions().unwrap().into_iter().map(whole).collect();
    let states: Vec<_> =
        sessions.iter().map(|stored| (stored.name.as_str(), stored.session.state())).collect();
    let expected = [
        ("idle", State::Idle),
        ("running", State::Running),
        ("backoff", State::Backoff),
        ("blocked", State::Blocked),
        ("stopping", State::Stopping),
        ("stopped", State::Stopped),
        ("failed", State::Failed),
        ("held", State::Held),
        ("starting", State::Starting),
        ("archived", State::Archived),
    ];
    assert_eq!(states, expected);
    has_its_messages(&reader, &sessions[1], sessions[0].id);
    let exits = reader.events(&EventQuery::default()).unwrap();
    let exits: Vec<_> = exits.iter().filter(|event| event.kind == EventKind::RunExited).collect();
    assert_eq!(exits[0].data["output"], serde_json::json!(["bye"]));
    let backoff = reader.runs(sessions[2].id, Take::All).unwrap();
    assert_eq!((backoff[0].code, backoff[0].verdict.as_deref()), (Some(1), Some("crash")));
    let meta = reader.meta().unwrap();
    assert_eq!((meta.generation, meta.boot_id.as_deref()), (3, Some("boot")));

    assert_eq!(home.reader().check(&CheckPace::at_once()).unwrap(), [""; 0], "every row has its checksum");
    let last = reader.max_seq().unwrap();
    assert_eq!(store.commit(note(1)).wait().unwrap().seqs, last + 1..last + 2);
}

/// Checks that the session with messages in every state is as it was stored.
fn has_its_messages(reader: &Reader, running: &StoredSession, parent: SessionId) {
    assert_eq!(running.definition, serde_json::json!({ "command": ["agent", "running"], "tags": ["ü"] }));
    assert_eq!(running.parent, Some(parent));
    assert_eq!((running.session.inbox().queued(), running.session.inbox().settled()), (1, (1, 1)));
    let known = reader.message_by_key(running.id, "first").unwrap();
    assert_eq!(known.map(|message| message.id.into()), Some(MessageId(1 << 100)));

    let rows = reader.messages(running.id, None, Take::All).unwrap();
    let rows: Vec<_> = rows.iter().map(|row| (row.state, row.tries, row.text.as_str())).collect();
    let expected = [
        (MessageState::Done, 1, "one"),
        (MessageState::Failed, 1, "two"),
        (MessageState::Delivered, 1, "three"),
        (MessageState::Queued, 0, "four"),
    ];
    assert_eq!(rows, expected);
    assert_eq!(
        reader.messages(running.id, Some(MessageState::Done), Take::All).unwrap()[0].answer.as_deref(),
        Some("eins")
    );
}
