//! Values given to sessions with `--env`: in files of their own, which live as long as a record names them.

use super::hand::Room;
use crate::engine::WhyNot;
use pinfold_store::{DamagedSession, Loaded, SessionId, Ulid};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn keep(room: &Room) -> Ulid {
    let given = BTreeMap::from([("TOKEN".to_owned(), "t".to_owned())]);
    room.engine.values.keep_all([&given].into_iter()).unwrap()[0]
}

fn named(file: Ulid) -> Value {
    json!({ "env": { "harmless": {}, "file": file.to_string() } })
}

fn stored(room: &Room, id: SessionId) -> Value {
    let Ok(Some(Loaded::Whole(stored))) = room.disk.reader().unwrap().session(id) else { panic!("{id}") };
    stored.definition
}

#[test]
fn a_session_has_its_variables_under_the_next_daemon_too() {
    let mut room = Room::new();
    let file = keep(&room);
    let id = room.create("a", &named(file));
    let room = room.again();
    assert_eq!(room.engine.sessions[&id].definition.env.all()["TOKEN"], "t");
}

#[test]
fn a_session_whose_variables_cannot_be_read_is_left_alone() {
    let mut room = Room::new();
    let file = keep(&room);
    let id = room.create("a", &named(file));
    room.engine.values.remove(file);
    let room = room.again();
    assert!(!room.engine.sessions.contains_key(&id));
    let problem = &room.engine.damaged[&id.to_string()].problem;
    assert!(problem.contains(&format!("env-values/{file}")), "{problem}");
}

#[test]
fn a_file_that_no_record_names_goes_when_a_daemon_starts_unless_a_record_cannot_be_read() {
    let mut room = Room::new();
    let (used, unused) = (keep(&room), keep(&room));
    room.create("a", &named(used));
    let mut room = room.again();
    let damaged = DamagedSession { id: "01X".into(), name: "x".into(), problem: "torn".into() };
    room.engine.damaged.insert("01X".into(), damaged);
    room.engine.settle_given().unwrap();
    assert!(room.engine.values.read(unused).is_ok(), "it may be named by the damaged one");
    room.engine.damaged.clear();
    room.engine.settle_given().unwrap();
    assert!(room.engine.values.read(unused).is_err());
    assert!(room.engine.values.read(used).is_ok());
}

#[test]
fn values_that_stand_in_a_record_of_before_get_a_file_of_their_own() {
    let mut room = Room::new();
    let id = room.create("a", &json!({ "env": { "TOKEN": "secret-of-before" } }));
    assert!(stored(&room, id).to_string().contains("secret-of-before"));
    let mut room = room.again();
    room.engine.settle_given().unwrap();
    assert!(!stored(&room, id).to_string().contains("secret-of-before"));
    assert_eq!(room.engine.sessions[&id].definition.env.all()["TOKEN"], "secret-of-before");
    let file = room.engine.sessions[&id].definition.env.file().expect("it has a file");
    assert!(room.engine.values.read(file).is_ok());
}

#[test]
fn what_was_given_to_a_session_that_is_refused_does_not_stay() {
    let mut room = Room::new();
    room.create("a", &json!({}));
    let file = keep(&room);
    assert_eq!(room.try_create("a", &named(file)), Err(WhyNot::Exists { name: "a".into() }));
    assert!(room.engine.values.read(file).is_err());
}
