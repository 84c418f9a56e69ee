//! What a run may create and change.

use super::allowed::{self, rules};
use super::*;
use crate::engine::tests::hand::{Room, definition};
use serde_json::{Value, json};

fn of(field: &str, value: &Value) -> NewSession {
    let fields = json!({ "name": "s", field: value });
    serde_json::from_value(fields).unwrap()
}

/// What a run may set: of its own session, and of a child.
fn table() -> Vec<(&'static str, Value, bool, bool)> {
    let worktree =
        json!({ "path": "/t", "repository": "/r", "gitdir": "/g", "commondir": "/c", "created": true });
    vec![
        ("agent", json!("x"), false, false),
        ("vendor_session", json!("x"), false, false),
        ("new_conversation", json!(true), false, false),
        ("dir", json!("/"), false, true),
        ("mode", json!("always"), false, true),
        ("memory", json!("1G"), true, true),
        ("idle", json!("7d"), true, true),
        ("stop_grace", json!("7d"), true, true),
        ("budget", json!("1USD"), true, true),
        ("turn_time", json!("1h"), true, true),
        ("pty", json!(true), false, false),
        ("input", json!("json"), false, false),
        ("turns", json!("done"), false, false),
        ("contended_if", json!("busy"), false, false),
        ("parent", json!("p"), false, false),
        ("tags", json!(["t"]), true, true),
        ("env", json!({ "A": "1" }), false, true),
        ("dir_lock", json!(false), false, false),
        ("beside", json!(true), false, false),
        ("force", json!(true), false, false),
        ("command", json!(["sh"]), false, false),
        ("worktree", worktree, false, false),
    ]
}

#[test]
fn a_run_sets_what_the_table_allows_and_nothing_else() {
    let table = table();
    let fields: Vec<&str> = rules(&NewSession::default()).iter().map(|(field, ..)| *field).collect();
    let tested: Vec<&str> = table.iter().map(|(field, ..)| *field).collect();
    assert_eq!(tested, fields, "every option of a request has its row");
    for (field, value, own, child) in table {
        for (whose, allowed, words) in
            [(Whose::Own, own, "its own session"), (Whose::Child, child, "a child")]
        {
            let answer = allowed::may_set("claude", whose, &of(field, &value));
            assert_eq!(answer.is_ok(), allowed, "{field} of {words}");
            let Err(body) = answer else { continue };
            assert_eq!(body.kind, ErrorKind::NotPermitted);
            assert_eq!(body.message, format!("a run may not set `{field}` of {words}"));
            let way = "a person may; `may = [\"set\"]` under [agents.claude] in config.toml lets its runs";
            assert_eq!(body.hint.as_deref(), Some(way));
        }
    }
}

/// A session with these options.
fn with(options: &[(&str, &Value)]) -> Definition {
    let mut made = definition(&json!({}));
    for (field, value) in options.iter().filter(|(_, value)| !value.is_null()) {
        made.change(&of(field, value)).unwrap();
    }
    made
}

/// The fields with this value, and whether a run that has `most` may set it.
fn limits() -> Vec<(&'static str, Value, Value, bool)> {
    let rows = [
        ("budget", "2USD", "1USD", "2USD", "2.01USD", "0USD"),
        ("turn_time", "2h", "1h", "120min", "3h", "0s"),
        ("memory", "2G", "1G", "2048M", "3G", "0M"),
    ];
    let each = |(field, most, lower, same, above, none): (_, &str, &str, &str, &str, &str)| {
        let row = |own: Value, wanted: &str, allowed| (field, own, json!(wanted), allowed);
        let most = json!(most);
        [
            row(most.clone(), lower, true),
            row(most.clone(), same, true),
            row(most.clone(), above, false),
            row(most, none, false),
            row(Value::Null, above, true),
            row(Value::Null, none, true),
        ]
    };
    rows.into_iter().flat_map(each).collect()
}

#[test]
fn a_run_lowers_its_own_limits_and_a_child_has_at_most_its_parents() {
    for (field, most, wanted, allowed) in limits() {
        let own = with(&[(field, &most)]);
        let row = format!("{field}: {most} to {wanted}");
        let mut lowered = own.clone();
        lowered.change(&of(field, &wanted)).unwrap();
        assert_eq!(allowed::is_lower("a", &lowered, &own).is_ok(), allowed, "{row}");
        let (child, unlimited) = (with(&[(field, &wanted)]), with(&[]));
        for before in [None, Some(unlimited.clone())] {
            let answer = allowed::within("new", &child, before.as_ref(), &own);
            // A child without a limit keeps that, if a person created it so.
            let kept = before.is_some() && child == unlimited;
            assert_eq!(answer.is_ok(), allowed || kept, "{row}");
        }
    }
    let (own, child) = (with(&[("memory", &json!("1G"))]), with(&[("memory", &json!("2G"))]));
    let refused = allowed::within("new", &child, None, &own).unwrap_err();
    assert_eq!(refused.message, "a child has at most its parent's `memory`, 1G: 2G is above that");
    assert!(refused.hint.unwrap().contains("`may = [\"new\"]`"));
    let refused = allowed::is_lower("a", &with(&[]), &own).unwrap_err();
    assert_eq!(refused.message, "a run may not raise `memory` of its own session from 1G to no limit");
}

#[test]
fn a_child_inherits_the_limits_that_it_is_not_given() {
    let parent = with(&[("budget", &json!("5USD")), ("turn_time", &json!("1h")), ("memory", &json!("1G"))]);
    let less = json!("512M");
    let (mut child, request) = (with(&[("memory", &less)]), of("memory", &less));
    inherit_limits(&mut child, &request, &parent);
    assert_eq!(
        (child.budget, child.turn_time, child.memory),
        (parent.budget, parent.turn_time, Some(512 << 20))
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
