//! What a pass lets a caller see and touch.

use super::*;
use pinfold_core::caller::CallerStanding;
use pinfold_store::Ulid;

fn session(number: u128) -> SessionId {
    SessionId(Ulid::new(1, number))
}

fn caller() -> Arc<Caller> {
    let standing = CallerStanding { confined: Vec::new(), shims: vec![7, 8] };
    Arc::new(Caller { pid: None, user: 3, standing })
}

fn kept(confined: bool) -> Pass {
    let kept =
        CallerLimits { own: session(1), parent: Some(session(2)), children: [session(3)].into(), confined };
    Pass::of(By::new(caller(), Some((session(1), "own".into()))), Some(kept))
}

#[test]
fn a_pass_shows_and_touches_what_its_holder_is_kept_to() {
    let all = [1, 2, 3, 4].map(session);
    let rows = [
        (Pass::default(), [true; 4], [true; 4]),
        (Pass::of_person(caller()), [true; 4], [true; 4]),
        (kept(false), [true, true, true, false], [true, false, true, false]),
        (kept(true), [true, false, false, false], [true, false, true, false]),
    ];
    for (pass, shows, touches) in rows {
        assert_eq!(all.map(|id| pass.shows(id)), shows, "{pass:?}");
        assert_eq!(all.map(|id| pass.touches(id)), touches, "{pass:?}");
    }
    assert_eq!((kept(false).own(), Pass::default().own()), (Some(session(1)), None));
    assert_eq!((kept(true).is_kept(), Pass::of_person(caller()).is_kept()), (true, false));
}

#[test]
fn the_highest_shim_above_a_caller_is_its_own() {
    assert_eq!(By::new(caller(), None).shim(), Some(8));
}

#[test]
fn events_say_of_a_run_which_session_it_is_and_of_a_person_who() {
    let of_run = kept(false).by.unwrap().words();
    assert_eq!(
        (&of_run["kind"], &of_run["session"], &of_run["user"]),
        (&"session".into(), &"own".into(), &3.into())
    );
    assert_eq!(of_run.get("confined"), None);
    let standing =
        CallerStanding { confined: vec![pinfold_core::caller::Confinement::Seccomp], shims: Vec::new() };
    let person = Arc::new(Caller { pid: None, user: 3, standing });
    let words = Pass::of_person(person).by.unwrap().words();
    assert_eq!((&words["kind"], words.get("session")), (&"person".into(), None));
    assert_eq!(words["confined"].as_array().map(Vec::len), Some(1));
}
