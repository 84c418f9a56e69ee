//! Who is admitted: a person always, a run or a confined caller depending on its relation to the session.

use super::*;
use crate::engine::tests::hand::{Room, SHIM};
use pinfold_core::caller::Confinement;
use pinfold_store::SessionId;
use serde_json::json;

/// The shim of another home.
const FOREIGN: u32 = 4_100_000;

struct Family {
    room: Room,
    own: SessionId,
}

/// A running session with a parent, a child and an unrelated session, under this configuration.
fn family(config: &str) -> Family {
    let mut room = Room::configured(config);
    let parent = room.create("parent", &json!({}));
    let own = room.running("own", &json!({ "parent": "parent", "parent_id": parent.to_string() }));
    room.create("child", &json!({ "parent": "own", "parent_id": own.to_string() }));
    room.create("stranger", &json!({}));
    Family { room, own }
}

fn caller(confined: Vec<Confinement>, shims: Vec<u32>) -> Arc<Caller> {
    Arc::new(Caller { pid: None, user: 1, standing: CallerStanding { confined, shims } })
}

fn of_run() -> Arc<Caller> {
    caller(Vec::new(), vec![SHIM])
}

fn confined() -> Arc<Caller> {
    caller(vec![Confinement::Seccomp], vec![SHIM])
}

fn ask(family: &Family, caller: &Arc<Caller>, act: Act, session: Option<&str>) -> Result<Pass, ErrorBody> {
    let wanted = AdmissionRequest { act, verb: "the verb", session: session.map(str::to_owned) };
    admit(family.room.view(), caller, &wanted)
}

#[test]
fn a_caller_that_is_neither_of_a_run_nor_confined_is_kept_to_nothing() {
    let family = family("");
    let pass = ask(&family, &caller(Vec::new(), Vec::new()), Act::Down, None).unwrap();
    assert!(!pass.is_kept() && pass.by.is_some());
}

#[test]
fn what_a_session_is_to_the_caller_decides() {
    let family = family("");
    let rows = [
        (of_run(), Act::Steer, "own", true),
        (of_run(), Act::Steer, "child", true),
        (of_run(), Act::Steer, "parent", false),
        (of_run(), Act::Send, "parent", true),
        (of_run(), Act::Send, "stranger", false),
        (confined(), Act::Read, "own", true),
        (confined(), Act::Read, "child", false),
        (confined(), Act::Send, "parent", true),
        (confined(), Act::Steer, "own", false),
    ];
    for (caller, act, session, allowed) in rows {
        let answer = ask(&family, &caller, act, Some(session));
        assert_eq!(answer.is_ok(), allowed, "{act:?} of {session} by {caller:?}");
    }
}

#[test]
fn a_run_of_another_home_is_a_stranger_to_all() {
    let family = family("");
    let foreign = caller(Vec::new(), vec![FOREIGN]);
    assert!(ask(&family, &foreign, Act::Ping, None).is_ok());
    let refused = ask(&family, &foreign, Act::Read, Some("own")).unwrap_err();
    assert!(
        refused.message.starts_with("you are part of a run that is not of this home: "),
        "{}",
        refused.message
    );
    assert_eq!(refused.hint.as_deref(), Some("call it outside of any run"));
}

#[test]
fn the_nearest_shim_of_this_home_says_whose_run_it_is() {
    let family = family("");
    let nested = caller(Vec::new(), vec![FOREIGN, SHIM]);
    let pass = ask(&family, &nested, Act::Read, Some("own")).unwrap();
    assert_eq!(pass.own(), Some(family.own));
    assert_eq!(pass.by.unwrap().session, Some((family.own, "own".to_owned())));
}

#[test]
fn a_run_is_kept_to_itself_its_children_and_what_it_may_read_of_its_parent() {
    let family = family("");
    let id = |name: &str| family.room.view().find(name).unwrap();
    let names = ["own", "child", "parent", "stranger"];
    let pass = ask(&family, &of_run(), Act::List, None).unwrap();
    assert_eq!(names.map(|name| pass.shows(id(name))), [true, true, true, false]);
    assert_eq!(names.map(|name| pass.touches(id(name))), [true, true, false, false]);
    let pass = ask(&family, &confined(), Act::List, None).unwrap();
    assert_eq!(names.map(|name| pass.shows(id(name))), [true, false, false, false]);
}

#[test]
fn the_configuration_lets_runs_do_as_people_do() {
    let family = family("[agents.command]\nmay = [\"down\"]\n");
    assert!(!ask(&family, &of_run(), Act::Down, None).unwrap().is_kept());
    assert!(ask(&family, &of_run(), Act::Remove, Some("own")).is_err());
    assert!(ask(&family, &confined(), Act::Down, None).is_err(), "but not who is confined");
}

#[test]
fn the_configuration_lets_the_confined_count_as_if_they_were_not() {
    let family = family("[policy]\nconfined = \"allow\"\n");
    assert!(ask(&family, &confined(), Act::Steer, Some("child")).is_ok(), "as any process of the run");
    assert!(ask(&family, &confined(), Act::Steer, Some("stranger")).is_err());
    let outside = caller(vec![Confinement::Seccomp], Vec::new());
    assert!(!ask(&family, &outside, Act::Down, None).unwrap().is_kept(), "as any process outside");
}

#[test]
fn a_refusal_says_who_one_is_what_one_may_and_what_would_allow_it() {
    let family = family("");
    let refused = ask(&family, &of_run(), Act::Attach, Some("stranger")).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NotPermitted);
    assert!(
        refused
            .message
            .starts_with("you are part of a run of session `own`: `the verb` of `stranger` is not")
    );
    assert!(refused.hint.unwrap().contains("`may = [\"attach\"]` under [agents.command]"));
    let refused = ask(&family, &confined(), Act::Down, None).unwrap_err();
    assert!(refused.message.starts_with("you are confined ("), "{}", refused.message);
    assert!(refused.hint.unwrap().contains("`confined = \"allow\"`"));
}

#[test]
fn a_session_that_is_not_there_is_named() {
    let family = family("");
    let missing = ask(&family, &of_run(), Act::Read, Some("nobody")).unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
}
