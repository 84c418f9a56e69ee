//! The archive and purge: what is archived, what comes back, what is deleted for good, and what is spared.

use super::hand::{FIRST, Room, SHIM, person, run_of};
use crate::engine::command::EngineCommand as Order;
use crate::engine::input::{LoopInput, Post};
use crate::engine::{CallerSocket, PurgeCandidate, PurgeModes, ReplyHandle, WhyNot};
use pinfold_api::object::Removed;
use pinfold_api::request::{Caller, Purge};
use pinfold_core::decision::{Answer, Refusal};
use pinfold_core::event::{Ask, ConsumerKind};
use pinfold_core::exit::Exit;
use pinfold_core::{ConsumerId, Event, Mode, State};
use pinfold_store::{DamagedSession, SessionId, Trouble};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::oneshot;

fn child_of(id: SessionId, name: &str) -> Value {
    json!({ "parent": name, "parent_id": id.to_string() })
}

fn restore(room: &mut Room, id: SessionId) -> Result<Answer, WhyNot> {
    let (reply, mut answer) = ReplyHandle::new();
    room.tell(LoopInput::Command(Box::new(Order::Restore { id, by: Some(person()), reply })));
    answer.try_recv().unwrap()
}

async fn remove(room: &mut Room, id: SessionId) -> Result<Removed, WhyNot> {
    let (done, mut answer) = oneshot::channel();
    room.tell(LoopInput::Command(Box::new(Order::Remove { id, by: Some(person()), done })));
    if let Ok(answer) = answer.try_recv() {
        return answer;
    }
    tokio::time::timeout(Duration::from_secs(60), answer).await.unwrap().unwrap()
}

fn candidates(room: &Room, purge: &Purge) -> Vec<(String, bool, Option<Refusal>)> {
    let of = |candidate: PurgeCandidate| (candidate.name, candidate.own, candidate.spared);
    let socket = purge.caller.socket.as_deref().map(CallerSocket::read);
    room.view().to_purge(PurgeModes::All, purge, socket.as_ref()).into_iter().map(of).collect()
}

fn own(room: &Room, caller: Caller) -> Vec<String> {
    let purge = Purge { caller, ..Purge::default() };
    candidates(room, &purge).into_iter().filter(|(_, own, _)| *own).map(|(name, ..)| name).collect()
}

#[test]
fn a_session_comes_back_parked_in_the_name_of_who_asked() {
    let mut room = Room::new();
    let id = room.archived("a", &json!({}));
    assert_eq!(restore(&mut room, id), Ok(Answer::Done));
    assert_eq!(room.state(id), State::Idle);
    assert_eq!(room.last_event("restored").data["by"]["user"], json!(77));
}

#[test]
fn a_session_whose_name_was_taken_does_not_come_back() {
    let mut room = Room::new();
    let id = room.archived("a", &json!({}));
    room.create("a", &json!({}));
    assert_eq!(restore(&mut room, id), Err(WhyNot::NameTaken { name: "a".into() }));
    assert_eq!(room.state(id), State::Archived);
    let nobody = SessionId(pinfold_store::Ulid::new(1, 1));
    assert_eq!(restore(&mut room, nobody), Err(WhyNot::Gone));
}

#[test]
fn a_session_that_is_there_has_nothing_to_come_back_from() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    assert_eq!(restore(&mut room, id), Ok(Answer::Refused(Refusal::NotArchived)));
    assert_eq!(room.state(id), State::Idle);
}

#[test]
fn nothing_comes_back_or_is_removed_that_cannot_be_recorded() {
    let mut room = Room::new();
    let id = room.archived("a", &json!({}));
    room.tell(LoopInput::Trouble(Trouble::Full));
    assert_eq!(restore(&mut room, id), Err(WhyNot::Unrecordable(Trouble::Full)));
    let why = room.order(|done| Order::Remove { id, by: None, done });
    assert_eq!(why, Some(Err(WhyNot::Unrecordable(Trouble::Full))));
}

#[tokio::test(flavor = "current_thread")]
async fn what_was_removed_is_told_counted_and_gone() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let message = room.send(id, "x", None);
    room.says(
        id,
        pinfold_shim::Report::InputTaken {
            run: FIRST,
            message,
            attempt: 1,
            from: pinfold_shim::log::Position(1),
        },
    );
    room.send(id, "y", None);
    room.send(id, "z", None);
    let cancelled = room.send(id, "not this one", None);
    room.post(id, Post::Cancel { message: cancelled });
    room.ask(id, Ask::Archive);
    room.ends(id, FIRST, Exit::Code(0));
    room.says(id, pinfold_shim::Report::Leaving);
    std::fs::write(room.engine.home.session(id).join("file"), "12345").unwrap();
    let removed = remove(&mut room, id).await.unwrap();
    assert_eq!((removed.id.as_str(), removed.name.as_str()), (id.to_string().as_str(), "a"));
    assert_eq!((removed.runs, removed.messages, removed.bytes), (1, 4, 5));
    let event = room.last_event("removed");
    assert_eq!(
        (&event.data["runs"], &event.data["messages"], &event.data["bytes"]),
        (&json!(1), &json!(4), &json!(5))
    );
    assert_eq!((&event.data["by"]["user"], event.session), (&json!(77), Some(id)));
    assert!(!room.engine.sessions.contains_key(&id) && !room.engine.home.session(id).exists());
    assert!(room.disk.reader().unwrap().session(id).unwrap().is_none());
    let told = room.view().changes_after(0, 100).unwrap().pop().unwrap();
    assert!(matches!(told.what, crate::engine::FeedChange::Removed(name) if name == "a"));
    assert_eq!(*room.engine.last_event.borrow(), event.seq, "whoever follows events is told");
}

#[tokio::test(flavor = "current_thread")]
async fn a_session_without_a_folder_is_removed_all_the_same() {
    let mut room = Room::new();
    let id = room.archived("a", &json!({}));
    std::fs::remove_dir_all(room.engine.home.session(id)).unwrap();
    assert_eq!(remove(&mut room, id).await.unwrap().bytes, 0);
}

#[tokio::test(flavor = "current_thread")]
async fn a_session_whose_files_cannot_be_deleted_stays() {
    let mut room = Room::new();
    let id = room.archived("a", &json!({}));
    let folder = room.engine.home.session(id);
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "not a folder").unwrap();
    let why = remove(&mut room, id).await.unwrap_err();
    assert!(matches!(why, WhyNot::NotDeleted { .. }), "{why:?}");
    assert!(room.engine.sessions.contains_key(&id));
}

#[tokio::test(flavor = "current_thread")]
async fn a_session_that_came_back_while_its_files_were_deleted_stays() {
    let mut room = Room::new();
    let id = room.archived("a", &json!({}));
    let (done, mut answer) = oneshot::channel();
    room.ask(id, Ask::Restore);
    room.tell(LoopInput::FilesDeleted { id, deleted: Ok(1), by: None, done });
    let why = answer.try_recv().unwrap().unwrap_err();
    assert_eq!(why, WhyNot::NotArchived { name: "a".into(), state: "idle" });
    assert!(room.engine.sessions.contains_key(&id));
}

#[tokio::test(flavor = "current_thread")]
async fn a_session_with_a_child_that_runs_is_not_removed_and_one_without_takes_them_along() {
    let mut room = Room::new();
    let parent = room.archived("p", &json!({}));
    let child = room.running("c", &child_of(parent, "p"));
    let other = room.create("other", &json!({}));
    let why = remove(&mut room, parent).await.unwrap_err();
    assert_eq!(why, WhyNot::ChildrenRun { name: "p".into(), running: vec!["c".into()] });
    room.stop(child);
    room.ends(child, FIRST, Exit::Code(0));
    remove(&mut room, parent).await.unwrap();
    room.settle();
    assert_eq!((room.state(child), room.state(other)), (State::Archived, State::Idle));
    assert_eq!(room.last_event("archived").why, "its parent `p` is gone");
}

#[tokio::test(flavor = "current_thread")]
async fn the_variables_of_a_removed_session_go_with_it() {
    let mut room = Room::new();
    let given = std::collections::BTreeMap::from([("TOKEN".to_owned(), "t".to_owned())]);
    let file = room.engine.values.keep_all([&given].into_iter()).unwrap()[0];
    let id = room.archived("a", &json!({ "env": { "harmless": {}, "file": file.to_string() } }));
    remove(&mut room, id).await.unwrap();
    assert!(room.engine.values.read(file).is_err());
}

#[test]
fn an_orphan_comes_back_without_the_parent_that_it_had() {
    let mut room = Room::new();
    let gone = SessionId(pinfold_store::Ulid::new(1, 1));
    let id = room.archived("a", &child_of(gone, "p"));
    assert!(room.engine.has_lost_parent(id));
    restore(&mut room, id).unwrap();
    let definition = &room.engine.sessions[&id].definition;
    assert_eq!((&definition.parent, definition.parent_id), (&None, None));
    assert!(!room.engine.has_lost_parent(id));
}

#[test]
fn a_parent_that_is_there_or_only_damaged_is_not_lost() {
    let mut room = Room::new();
    let parent = room.create("p", &json!({}));
    let child = room.create("a", &child_of(parent, "p"));
    let gone = SessionId(pinfold_store::Ulid::new(1, 1));
    let of_damaged = room.create("b", &child_of(gone, "d"));
    assert!(!room.engine.has_lost_parent(child) && !room.engine.has_lost_parent(parent));
    assert!(room.engine.has_lost_parent(of_damaged));
    let damaged = DamagedSession { id: gone.to_string(), name: "d".into(), problem: "torn".into() };
    room.engine.damaged.insert(gone.to_string(), damaged);
    assert!(!room.engine.has_lost_parent(of_damaged), "it may be this one");
    let id = room.archived("c", &child_of(parent, "p"));
    restore(&mut room, id).unwrap();
    assert_eq!(
        room.engine.sessions[&id].definition.parent_id,
        Some(parent),
        "a parent that is there is kept"
    );
}

#[test]
fn purge_is_about_every_session_of_a_mode_that_is_not_archived() {
    let mut room = Room::new();
    room.create("a", &json!({}));
    room.archived("b", &json!({}));
    room.create("c", &json!({ "mode": "always" }));
    let names = |modes| -> Vec<String> {
        room.view().to_purge(modes, &Purge::default(), None).into_iter().map(|one| one.name).collect()
    };
    assert_eq!(names(PurgeModes::All), ["a", "c"]);
    assert_eq!(names(PurgeModes::Only(Mode::OnDemand)), ["a"]);
    assert_eq!(names(PurgeModes::Only(Mode::Always)), ["c"]);
}

#[test]
fn what_is_in_use_is_spared_unless_that_is_asked_for() {
    let mut room = Room::new();
    let a = room.create("a", &json!({}));
    room.event(a, Event::ConsumerJoined { consumer: ConsumerId(1), kind: ConsumerKind::Watch });
    room.create("b", &json!({}));
    let spared = candidates(&room, &Purge::default());
    assert_eq!(spared, [("a".into(), false, Some(Refusal::Connected)), ("b".into(), false, None)]);
    let all = candidates(&room, &Purge { include_active: true, ..Purge::default() });
    assert!(all.iter().all(|(_, _, spared)| spared.is_none()));
}

#[test]
fn a_caller_is_part_of_the_session_that_it_names_if_it_means_this_home() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    room.create("b", &json!({}));
    let ours = room.engine.socket.display().to_string();
    let elsewhere = Some("/elsewhere/socket".to_owned());
    let link = room.folder().join("link");
    std::os::unix::fs::symlink(room.engine.home.socket(), &link).unwrap();
    let link = Some(link.display().to_string());
    room.engine.socket = "/another/name".into();
    let rows = [
        (Some("a".to_owned()), None, vec!["a"]),
        (Some(id.to_string()), None, vec!["a"]),
        (Some("x".to_owned()), None, vec![]),
        (Some("a".to_owned()), Some(ours), vec!["a"]),
        (Some("a".to_owned()), Some("/another/name".to_owned()), vec!["a"]),
        (Some("a".to_owned()), link, vec!["a"]),
        (Some("a".to_owned()), elsewhere, vec![]),
        (None, None, vec![]),
    ];
    for (session, socket, wanted) in rows {
        let caller = Caller { session, socket, ..Caller::default() };
        assert_eq!(own(&room, caller.clone()), wanted, "{caller:?}");
    }
}

#[test]
fn a_caller_is_part_of_the_session_whose_run_or_process_it_is() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.create("b", &json!({}));
    let run = room.engine.sessions[&id].latest.map(|(_, run)| run.to_string());
    assert_eq!(own(&room, Caller { run, ..Caller::default() }), ["a"]);
    let another = Some(pinfold_store::Ulid::new(1, 1).to_string());
    assert_eq!(own(&room, Caller { run: another, ..Caller::default() }), [""; 0]);
    for (ancestors, wanted) in
        [(vec![1, SHIM], 1), (vec![super::hand::AGENT], 1), (vec![1, 2], 0), (vec![], 0)]
    {
        assert_eq!(
            own(&room, Caller { ancestors: ancestors.clone(), ..Caller::default() }).len(),
            wanted,
            "{ancestors:?}"
        );
    }
    let purge = Purge { caller: Caller { ancestors: vec![SHIM], ..Caller::default() }, ..Purge::default() };
    assert_eq!(candidates(&room, &purge)[0].2, Some(Refusal::Own));
}

#[test]
fn what_takes_a_while_is_told_in_the_name_of_who_asked_for_it() {
    let mut room = Room::new();
    let (id, other) = (room.running("a", &json!({})), room.create("b", &json!({})));
    let facts = Box::new(pinfold_store::Facts { by: Some(run_of(other, "b").words()), ..Default::default() });
    let event = Box::new(Event::Asked(Ask::Stop { grace: None }));
    room.tell(LoopInput::Happened { id, event, facts, reply: None });
    room.ends(id, FIRST, Exit::Code(0));
    assert_eq!(room.last_event("run_exited").data["by"]["session"], json!("b"));
    assert_eq!(room.last_event("stopped").data["by"]["session"], json!("b"));
    room.says(id, pinfold_shim::Report::Leaving);
    room.ask(id, Ask::Start);
    room.grant();
    room.shim_comes(id);
    room.starts(id, super::hand::SECOND);
    room.ends(id, super::hand::SECOND, Exit::Code(0));
    assert_eq!(room.last_event("run_exited").data.get("by"), None, "what is over is nobody's any more");
}
