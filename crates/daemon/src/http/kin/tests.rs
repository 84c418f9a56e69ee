//! What a run may create and change.

use super::*;
use crate::engine::tests::hand::Room;
use serde_json::json;

#[test]
fn a_run_does_not_change_what_it_is_itself_nor_whose_child_anything_is() {
    let mut room = Room::new();
    let (own, child) = (room.create("own", &json!({})), room.create("child", &json!({})));
    let of = |field: &str, value: serde_json::Value| -> NewSession {
        serde_json::from_value(json!({ field: value })).unwrap()
    };
    let rows = [
        (of("command", json!(["sh"])), false, true),
        (of("env", json!({ "A": "1" })), false, true),
        (of("agent", json!("x")), false, true),
        (of("parent", json!("p")), false, false),
        (of("tags", json!(["t"])), true, true),
        (NewSession::default(), true, true),
    ];
    for (request, of_own, of_child) in rows {
        assert_eq!(may_set(own, own, &request).is_ok(), of_own, "{request:?}");
        assert_eq!(may_set(own, child, &request).is_ok(), of_child, "{request:?}");
    }
    let refused = may_set(own, own, &of("command", json!(["sh"]))).unwrap_err();
    assert_eq!(
        (refused.kind, refused.message.as_str()),
        (ErrorKind::NotPermitted, "a run may not set `command` here")
    );
}

#[test]
fn a_session_has_so_many_children_by_its_runs_and_archived_ones_do_not_count() {
    let mut room = Room::configured("[policy]\nchild_limit = 2\n");
    let own = room.create("own", &json!({}));
    let child = json!({ "parent": "own", "parent_id": own.to_string() });
    let has_place = |room: &Room| has_room(room.view(), room.view().session(own).unwrap());
    room.archived("a", &child);
    room.create("b", &child);
    assert!(has_place(&room).is_ok());
    room.create("c", &child);
    let refused = has_place(&room).unwrap_err();
    assert_eq!(refused.message, "session `own` has 2 children, and no more are made by it");
    assert!(refused.hint.unwrap().contains("child_limit"));
}

#[test]
fn runs_make_so_many_generations_below_a_person() {
    let mut room = Room::configured("[policy]\nchild_depth = 2\n");
    let mut above = room.create("g0", &json!({}));
    for (name, allowed) in [("g1", true), ("g2", false)] {
        assert!(has_room(room.view(), room.view().session(above).unwrap()).is_ok());
        above = room.create(name, &json!({ "parent": "p", "parent_id": above.to_string() }));
        let answer = has_room(room.view(), room.view().session(above).unwrap());
        assert_eq!(answer.is_ok(), allowed, "{name}: {:?}", answer.err().map(|error| error.message));
    }
    let refused = has_room(room.view(), room.view().session(above).unwrap()).unwrap_err();
    assert_eq!(refused.message, "session `g2` is 2 generations down, and makes no more");
}
