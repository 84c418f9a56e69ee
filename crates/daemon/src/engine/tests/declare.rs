//! Several sessions at once: one transaction, or nothing.

use super::hand::{Room, definition, person};
use crate::engine::command::EngineCommand as Order;
use crate::engine::input::{LoopInput, VariablesChange};
use crate::engine::{Declaration, DeclaredChange, DeclaredNew, NotDeclared, Outline, WhyNot};
use pinfold_core::State;
use pinfold_store::{CommitError, SessionId, Ulid};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::oneshot;

type Reply = oneshot::Receiver<Result<Vec<SessionId>, NotDeclared>>;

fn new(name: &str, parent: Option<&str>) -> DeclaredNew {
    let parent = parent.map(str::to_owned);
    DeclaredNew { name: name.parse().unwrap(), definition: definition(&json!({})), broken: None, parent }
}

fn change(id: SessionId, name: &str, parent: Option<&str>) -> DeclaredChange {
    DeclaredChange {
        id,
        name: name.to_owned(),
        definition: definition(&json!({ "tags": ["changed"] })),
        given: VariablesChange::AsBefore,
        parent: parent.map(str::to_owned),
    }
}

fn declare(
    room: &mut Room,
    creates: Vec<DeclaredNew>,
    changes: Vec<DeclaredChange>,
    archives: &[SessionId],
) -> Reply {
    let (reply, receiver) = oneshot::channel();
    let (by, archives) = (Some(person()), archives.to_vec());
    let declaration =
        Declaration { creates, changes, archives, by, reply, folders: Vec::new(), not_made: None };
    room.tell(LoopInput::Command(Box::new(Order::Declare(Box::new(declaration)))));
    receiver
}

/// A room with two sessions, and a declaration that creates two, changes one and archives one.
fn declared() -> (Room, [SessionId; 2], Reply) {
    let mut room = Room::new();
    let ids = ["changes", "goes"].map(|name| room.create(name, &json!({})));
    room.desk.lock().held_up = true;
    let creates = vec![new("child", Some("parent")), new("parent", None)];
    let reply = declare(&mut room, creates, vec![change(ids[0], "changes", Some("child"))], &ids[1..]);
    (room, ids, reply)
}

fn parent_of(room: &Room, name: &str) -> Option<String> {
    let id = room.view().find(name).unwrap();
    room.view().session(id).unwrap().definition().parent.clone()
}

#[test]
fn all_of_it_is_one_transaction() {
    let (mut room, [changes, goes], mut reply) = declared();
    assert_eq!(room.desk.lock().commits.len(), 1);
    assert!(reply.try_recv().is_err(), "nothing is answered before it is durable");
    room.write();
    let created = reply.try_recv().unwrap().unwrap();
    let names = created.iter().map(|id| room.view().session(*id).unwrap().name().to_owned());
    assert_eq!(names.collect::<Vec<_>>(), ["child", "parent"]);
    assert_eq!((room.state(goes), room.state(changes)), (State::Archived, State::Idle));
    let mut room = room.again();
    room.settle();
    assert_eq!(parent_of(&room, "child").as_deref(), Some("parent"));
    assert_eq!(parent_of(&room, "changes").as_deref(), Some("child"));
    assert_eq!(room.state(goes), State::Archived);
}

#[test]
fn if_it_cannot_be_recorded_nothing_of_it_has_happened() {
    let (mut room, [changes, goes], mut reply) = declared();
    let (_, _, then) = room.desk.lock().commits.remove(0);
    room.desk.lock().held_up = false;
    then(Err(Arc::new(CommitError::NameTaken { name: "parent".into() })));
    room.settle();
    let no = reply.try_recv().unwrap().unwrap_err();
    assert!(matches!(no.why, WhyNot::NothingRecorded { .. }), "{no:?}");
    assert!(room.view().find("child").is_err() && room.view().find("parent").is_err());
    let stored = room.view().session(changes).unwrap();
    assert!(stored.definition().tags.is_empty() && stored.definition().parent.is_none());
    assert_ne!(room.state(goes), State::Archived);
    let folders = std::fs::read_dir(room.engine.home.sessions()).unwrap().count();
    assert_eq!(folders, 2, "the folders of what was not created are gone");
}

#[test]
fn what_changed_while_the_folders_were_made_is_seen() {
    let mut room = Room::new();
    let id = room.create("old", &json!({}));
    let outline = |creates: &[(&str, Option<&str>)], changes: &[(SessionId, Option<&str>)]| Outline {
        creates: creates
            .iter()
            .map(|(name, parent)| ((*name).to_owned(), parent.map(str::to_owned)))
            .collect(),
        changes: changes.iter().map(|(id, parent)| (*id, "old".into(), parent.map(str::to_owned))).collect(),
        archives: Vec::new(),
    };
    let nobody = SessionId(Ulid::new(1, 1));
    let below = |wanted: &str| WhyNot::ParentBelow { wanted: wanted.into() };
    let rows = [
        (outline(&[("a", Some("b")), ("b", None)], &[(id, Some("a"))]), None),
        (outline(&[("old", None)], &[]), Some(WhyNot::Exists { name: "old".into() })),
        (outline(&[("a", None), ("a", None)], &[]), Some(WhyNot::Exists { name: "a".into() })),
        (outline(&[("a", Some("a"))], &[]), Some(below("a"))),
        (outline(&[("a", Some("b")), ("b", Some("a"))], &[]), Some(below("b"))),
        (outline(&[("a", Some("old"))], &[(id, Some("a"))]), Some(below("old"))),
        (outline(&[], &[(id, Some("old"))]), Some(below("old"))),
        (outline(&[], &[(nobody, None)]), Some(WhyNot::Gone)),
    ];
    for (outline, why) in rows {
        let allowed = room.view().allows(&outline).map_err(|no| no.why);
        assert_eq!(allowed.err(), why, "{outline:?}");
    }
    let pruned = Outline { archives: vec![id], ..outline(&[("a", Some("old"))], &[]) };
    let no = room.view().allows(&pruned).unwrap_err();
    assert_eq!((no.name.as_deref(), no.why), (Some("a"), WhyNot::ParentPruned { wanted: "old".into() }));
}
