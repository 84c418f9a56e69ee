//! Sessions by name and by parent: what is found, what may be created, and what can be changed.

use super::hand::{FIRST, Room, definition, person};
use crate::define::definition::Definition;
use crate::engine::input::{Create, Define, DefineOutcome, LoopInput, VariablesChange};
use crate::engine::{EngineCommand, ReplyHandle, WhyNot};
use pinfold_core::event::Ask;
use pinfold_core::exit::Exit;
use pinfold_core::life::CannotStart;
use pinfold_core::{Event, Mode, RunEvent, State};
use pinfold_store::{DamagedSession, Loaded, SessionId};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

fn damaged(room: &mut Room, id: &str, name: &str) {
    let damaged = DamagedSession { id: id.into(), name: name.into(), problem: "torn".into() };
    room.engine.damaged.insert(id.into(), damaged);
}

fn child_of(id: SessionId, name: &str) -> Value {
    json!({ "parent": name, "parent_id": id.to_string() })
}

fn define(
    room: &mut Room,
    id: SessionId,
    more: &Value,
    given: VariablesChange,
) -> oneshot::Receiver<DefineOutcome> {
    let (reply, done) = oneshot::channel();
    let define = Box::new(Define { base: None, definition: definition(more), given, by: Some(person()) });
    room.tell(LoopInput::Define { id, define, reply });
    done
}

fn force(room: &mut Room, mode: &str, cause: CannotStart) -> SessionId {
    let (reply, mut made) = oneshot::channel();
    let (definition, name) = (definition(&json!({ "mode": mode })), "a".parse().unwrap());
    room.tell(LoopInput::Create(Box::new(Create { name, definition, broken: Some(cause), by: None, reply })));
    made.try_recv().unwrap().unwrap()
}

#[test]
fn a_damaged_session_is_named_when_it_may_be_meant() {
    let mut room = Room::new();
    room.create("a", &json!({}));
    assert_eq!(room.view().find("x"), Err(WhyNot::Unknown { wanted: "x".into() }));
    damaged(&mut room, "01X", "broken");
    let state = room.engine.home.state.clone();
    for meant in ["broken", "01X"] {
        let why = WhyNot::Damaged {
            name: meant.into(),
            id: "01X".into(),
            problem: "torn".into(),
            state: state.clone(),
        };
        assert_eq!(room.view().find(meant), Err(why.clone()));
        assert_eq!(room.view().is_free(meant), Err(why));
    }
    let perhaps = WhyNot::PerhapsDamaged { wanted: "x".into(), damaged: vec!["01X".into()], state };
    assert_eq!(room.view().find("x"), Err(perhaps));
    assert!(room.view().find("a").is_ok() && room.view().is_free("c").is_ok());
}

#[test]
fn a_name_is_looked_up_before_ids_and_of_archived_ones_the_latest_counts() {
    let mut room = Room::new();
    let old = room.archived("a", &json!({}));
    room.pass(Duration::from_secs(1));
    let new = room.archived("a", &json!({}));
    assert_eq!(room.view().find("a"), Ok(new));
    assert_eq!(room.view().find_archived("a"), Ok(new));
    room.pass(Duration::from_secs(1));
    let live = room.create("a", &json!({}));
    assert_eq!(room.view().find("a"), Ok(live), "one that lives has the name");
    assert_eq!(room.view().find_archived("a"), Ok(new));
    assert_eq!(room.view().find_archived(&old.to_string()), Ok(old));
    assert_eq!(
        room.view().find(""),
        Err(WhyNot::Unknown { wanted: String::new() }),
        "nothing is no beginning"
    );
}

#[test]
fn an_archived_session_gives_its_name_up_and_has_it_again_when_it_is_restored() {
    let mut room = Room::new();
    let id = room.archived("a", &json!({}));
    assert!(room.view().is_free("a").is_ok());
    room.ask(id, Ask::Restore);
    assert_eq!(room.view().is_free("a"), Err(WhyNot::Exists { name: "a".into() }));
    assert_eq!(room.engine.names["a"], id);
}

#[test]
fn an_archived_session_does_not_take_the_name_from_the_one_that_has_it_now() {
    let mut room = Room::new();
    let old = room.archived("a", &json!({}));
    room.pass(Duration::from_secs(1));
    let new = room.create("a", &json!({}));
    room.ask(old, Ask::Archive);
    assert_eq!(room.view().find("a"), Ok(new));
    assert_eq!(room.view().is_free("a"), Err(WhyNot::Exists { name: "a".into() }));
}

#[test]
fn there_are_as_many_sessions_as_there_may_be() {
    let mut room = Room::configured("[policy]\nsession_limit = 2\n");
    room.create("a", &json!({}));
    room.create("b", &json!({}));
    assert_eq!(room.try_create("c", &json!({})), Err(WhyNot::TooMany { there: 2 }));
    let mut unlimited = Room::configured("[policy]\nsession_limit = 0\n");
    assert!(unlimited.try_create("a", &json!({})).is_ok());
}

#[test]
fn a_session_has_a_folder_before_it_is_recorded() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    assert!(room.engine.home.session(id).is_dir());
    let taken = room.engine.home.state.join("sessions");
    std::fs::remove_dir_all(&taken).unwrap();
    std::fs::write(&taken, "in the way").unwrap();
    let why = room.try_create("b", &json!({})).unwrap_err();
    assert!(matches!(why, WhyNot::NoFolder { full: false, .. }), "{why:?}");
    assert!(room.view().is_free("b").is_ok());
}

#[test]
fn a_parent_is_neither_the_session_itself_nor_below_it() {
    let mut room = Room::new();
    let a = room.create("a", &json!({}));
    let b = room.create("b", &child_of(a, "a"));
    let c = room.create("c", &child_of(b, "b"));
    assert_eq!(room.view().find_parent("b", None), Ok((b, "b".into())));
    assert_eq!(room.view().find_parent("a", Some(c)), Ok((a, "a".into())));
    for below in ["a", "b", "c"] {
        let why = WhyNot::ParentBelow { wanted: below.into() };
        assert_eq!(room.view().find_parent(below, Some(a)), Err(why));
    }
    let nobody = WhyNot::NoParent(Box::new(WhyNot::Unknown { wanted: "x".into() }));
    assert_eq!(room.view().find_parent("x", None), Err(nobody));
    assert_eq!(room.view().line_of(c).collect::<Vec<_>>(), [c, b, a]);
    let children: Vec<_> = room.view().children(a).map(|child| child.id()).collect();
    assert_eq!(children, [b]);
}

#[test]
fn a_line_that_leads_back_to_itself_has_an_end() {
    let mut room = Room::new();
    let a = room.create("a", &json!({}));
    let b = room.create("b", &child_of(a, "a"));
    let tracked = room.engine.sessions.get_mut(&a).unwrap();
    std::sync::Arc::make_mut(&mut tracked.definition).parent_id = Some(b);
    assert_eq!(room.view().line_of(a).collect::<Vec<_>>(), [a, b]);
}

#[test]
fn a_parent_that_is_gone_is_not_recorded() {
    let mut room = Room::new();
    let a = room.create("a", &json!({}));
    let gone = SessionId(pinfold_store::Ulid::new(1, 1));
    for (name, parent, wanted) in [("b", a, Some(a)), ("c", gone, None)] {
        let id = room.create(name, &child_of(parent, "a"));
        let Ok(Some(Loaded::Whole(stored))) = room.disk.reader().unwrap().session(id) else { panic!() };
        assert_eq!(stored.parent, wanted);
    }
}

#[test]
fn a_session_that_was_forced_although_it_cannot_run_has_failed_once() {
    let cause = CannotStart::ProgramMissing { program: "/no/such".into() };
    for mode in ["always", "on-demand"] {
        let mut room = Room::new();
        let id = force(&mut room, mode, cause.clone());
        assert_eq!(room.state(id), State::Failed, "{mode}");
        assert!(room.desk.lock().reservations.is_empty(), "{mode}: it is not tried");
        assert_eq!(room.kinds().iter().filter(|kind| *kind == "start_failed").count(), 1);
    }
}

#[test]
fn a_changed_definition_counts_from_the_next_run_on_and_is_recorded() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let mut done =
        define(&mut room, id, &json!({ "mode": "once", "command": ["new"] }), VariablesChange::Changed);
    assert_eq!(done.try_recv(), Ok(DefineOutcome::Done));
    let before = &room.engine.sessions[&id];
    assert_eq!(
        (&before.definition.command[..], &before.latest_definition().command[..]),
        (&["cat".to_owned()][..], &["new".to_owned()][..])
    );
    assert_eq!(before.session.spec().mode, Mode::Always, "this run was started as another");
    let Ok(Some(Loaded::Whole(stored))) = room.disk.reader().unwrap().session(id) else { panic!() };
    let in_force = &stored.definition["in_force"];
    assert_eq!((&in_force["run"], &in_force["definition"]["command"]), (&json!(FIRST), &json!(["cat"])));
    room.ends(id, FIRST, Exit::Code(0));
    assert_eq!(room.engine.sessions[&id].definition.command, ["new"]);
    assert_eq!(room.engine.sessions[&id].session.spec().mode, Mode::Once);
    let Ok(Some(Loaded::Whole(stored))) = room.disk.reader().unwrap().session(id) else { panic!() };
    assert_eq!(stored.definition["command"], json!(["new"]));
}

#[test]
fn a_change_that_was_made_from_an_older_definition_is_not_taken() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let base = Arc::clone(room.engine.sessions[&id].latest_definition());
    let change = |room: &mut Room, base: &Arc<Definition>, more: &Value| {
        let (reply, mut done) = oneshot::channel();
        let (given, by) = (VariablesChange::AsBefore, Some(person()));
        let define = Define { base: Some(Arc::clone(base)), definition: definition(more), given, by };
        room.tell(LoopInput::Define { id, define: Box::new(define), reply });
        done.try_recv()
    };
    let lower = json!({ "memory": 1 << 20 });
    assert_eq!(change(&mut room, &base, &lower), Ok(DefineOutcome::Done));
    assert_eq!(change(&mut room, &base, &json!({ "tags": ["t"] })), Ok(DefineOutcome::Overtaken));
    let latest = Arc::clone(room.engine.sessions[&id].latest_definition());
    assert_eq!((latest.memory, &latest.tags[..]), (Some(1 << 20), &[][..]), "the limit is not lost");
    assert_eq!(change(&mut room, &latest, &json!({ "tags": ["t"] })), Ok(DefineOutcome::Done));
}

#[test]
fn a_named_conversation_replaces_the_learned_one_with_the_next_run() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let learned = RunEvent::VendorLearned { id: "learned".into() };
    room.tell(LoopInput::Happened {
        id,
        event: Box::new(Event::Run { run: FIRST, event: learned }),
        facts: Box::default(),
        reply: None,
    });
    let known = |room: &Room| {
        let tracked = &room.engine.sessions[&id];
        room.engine.as_known(tracked).vendor_session.clone()
    };
    assert_eq!(known(&room).as_deref(), Some("learned"));
    let named = json!({ "vendor_session": "named", "conversation": 1 });
    define(&mut room, id, &named, VariablesChange::AsBefore);
    assert_eq!(known(&room).as_deref(), Some("learned"), "this run is in that one");
    room.ends(id, FIRST, Exit::Code(0));
    assert_eq!(known(&room).as_deref(), Some("named"));
    let events = room.kinds();
    assert_eq!(events.iter().filter(|kind| *kind == "vendor_session").count(), 2, "{events:?}");
}

#[test]
fn variables_that_a_change_is_not_about_stay_what_they_are() {
    let mut room = Room::new();
    let id = room.create("a", &json!({ "env": { "A": "1" } }));
    define(&mut room, id, &json!({ "env": { "B": "2" } }), VariablesChange::AsBefore);
    assert_eq!(room.engine.sessions[&id].definition.env.get("A"), Some("1"));
    define(&mut room, id, &json!({ "env": { "B": "2" } }), VariablesChange::Changed);
    assert_eq!(room.engine.sessions[&id].definition.env.get("A"), None);
}

#[tokio::test(flavor = "current_thread")]
async fn a_file_of_variables_that_no_record_names_any_more_is_removed() {
    let mut room = Room::new();
    let given = std::collections::BTreeMap::from([("TOKEN".to_owned(), "t".to_owned())]);
    let old = room.engine.values.keep_all([&given].into_iter()).unwrap()[0];
    let id = room.create("a", &json!({ "env": { "harmless": {}, "file": old.to_string() } }));
    let done = define(&mut room, id, &json!({}), VariablesChange::Changed);
    tokio::time::timeout(Duration::from_secs(60), done).await.unwrap().unwrap();
    assert!(room.engine.values.read(old).is_err());
}

#[tokio::test(flavor = "current_thread")]
async fn a_file_of_variables_that_a_change_leaves_in_place_is_kept() {
    let mut room = Room::new();
    let given = std::collections::BTreeMap::from([("TOKEN".to_owned(), "t".to_owned())]);
    let file = room.engine.values.keep_all([&given].into_iter()).unwrap()[0];
    let env = json!({ "env": { "harmless": {}, "file": file.to_string() } });
    let id = room.create("a", &env);
    let mut done = define(&mut room, id, &json!({}), VariablesChange::AsBefore);
    assert_eq!(done.try_recv(), Ok(DefineOutcome::Done), "nothing has to be removed first");
    assert!(room.engine.values.read(file).is_ok());
}

#[test]
fn a_session_has_another_name_only_while_nothing_of_it_runs() {
    let mut room = Room::new();
    let (a, b) = (
        room.create("a", &json!({ "mode": "on-demand" })),
        room.create("b", &json!({ "mode": "on-demand" })),
    );
    let child = room.create("child", &child_of(a, "a"));
    let rename = |room: &mut Room, id, name: &str| {
        let (reply, mut done) = ReplyHandle::new();
        let command = EngineCommand::Rename { id, name: name.into(), by: Some(person()), reply };
        room.tell(LoopInput::Command(Box::new(command)));
        done.try_recv().unwrap().map(drop)
    };
    assert_eq!(rename(&mut room, a, "b"), Err(WhyNot::Exists { name: "b".into() }));
    assert_eq!(rename(&mut room, a, "c"), Ok(()));
    assert_eq!((room.view().find("c"), room.view().is_free("a")), (Ok(a), Ok(())));
    assert_eq!(room.engine.sessions[&child].definition.parent.as_deref(), Some("c"));
    assert_eq!(room.last_event("renamed").data["from"], "a");
    room.ask(b, Ask::Archive);
    assert_eq!(rename(&mut room, b, "c"), Ok(()), "an archived one has its name beside others");
    assert_eq!(room.view().find("c"), Ok(a));
    let live = room.running("live", &json!({}));
    let why = WhyNot::NotAtRest { name: "live".into(), state: "running" };
    assert_eq!(rename(&mut room, live, "x"), Err(why));
    assert_eq!(room.view().find("live"), Ok(live));
}
