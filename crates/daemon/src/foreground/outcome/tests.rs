//! The exit code of `pinfold run`, and what is printed on the way.

use super::*;
use crate::engine::tests::hand::{FIRST, Room, exited};
use crate::ports::locks::LocksRefused;
use pinfold_core::life::{CannotStart, HolderSeen};
use pinfold_core::{RunNumber, State};
use pinfold_lock::{Resource, SessionName};
use pinfold_store::SessionId;
use serde_json::json;

fn look(room: &Room, id: SessionId) -> Option<FinalState> {
    room.view().session(id).map(FinalState::at)
}

fn stopped() -> (Room, SessionId) {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "mode": "once" }));
    room.ends(id, FIRST, Exit::Code(0));
    (room, id)
}

#[test]
fn the_exit_code_is_that_of_the_last_run_as_a_shell_has_it() {
    let (room, id) = stopped();
    let rows = [
        (Some(Exit::Code(0)), None, Ok(0)),
        (Some(Exit::Code(7)), Some(2), Ok(7)),
        (Some(Exit::Code(300)), None, Ok(1)),
        (Some(Exit::Signal(15)), None, Ok(143)),
        (None, Some(2), Ok(130)),
        (Some(Exit::NeverStarted), Some(2), Ok(130)),
        (Some(Exit::ShimLost), Some(2), Err(())),
        (Some(Exit::MachineLost), None, Err(())),
        (Some(Exit::NeverStarted), None, Err(())),
        (None, None, Err(())),
    ];
    for (last, asked, wanted) in rows {
        let code = of(look(&room, id), RunEnds { last }, asked);
        assert_eq!(code.map_err(|_| ()), wanted, "{last:?} {asked:?}");
    }
    let gone = of(None, RunEnds::default(), None).unwrap_err();
    assert_eq!(gone.message, "the session is gone");
    let never = of(look(&room, id), RunEnds::default(), None).unwrap_err();
    assert!(never.message.starts_with("session `a` never ran: "), "{}", never.message);
}

#[test]
fn a_session_that_cannot_start_is_a_bad_configuration() {
    let mut room = Room::new();
    let id = room.create("a", &json!({ "mode": "once" }));
    room.refuse(LocksRefused::Hopeless(CannotStart::DirectoryMissing { directory: "/d".into() }));
    assert_eq!(room.state(id), State::Failed);
    let error = of(look(&room, id), RunEnds::default(), None).unwrap_err();
    assert_eq!(error.kind, ErrorKind::BadConfig);
    assert!(error.message.contains("/d"), "{}", error.message);
}

#[test]
fn whoever_is_in_the_way_is_named_with_how_to_end_it() {
    let mut room = Room::configured("[policy]\ncontention_limit = 1\n");
    let id = room.create("a", &json!({ "mode": "once" }));
    let seen =
        HolderSeen { resource: "session:a".into(), pid: Some(7), command: None, session: None, since: None };
    let resource = Resource::Session(SessionName::new("a").unwrap());
    room.refuse(LocksRefused::Busy { resource, holder: Some(Box::new(seen)), run: None });
    assert_eq!(room.state(id), State::Blocked);
    let error = of(look(&room, id), RunEnds::default(), None).unwrap_err();
    assert_eq!((error.kind, error.holder.unwrap()["pid"].clone()), (ErrorKind::Busy, json!(7)));
    assert!(!error.message.starts_with("blocked: "), "{}", error.message);
    assert_eq!(error.hint.unwrap(), "nothing was started; `pinfold unlock session:a --kill` ends its holder");
}

#[test]
fn a_session_that_crashed_too_often_says_how_often() {
    for (limit, times) in [(1, "once"), (2, "2 times in a streak")] {
        let mut room = Room::configured(&format!("[policy]\ncrash_hard_limit = {limit}\n"));
        let id = room.running("a", &json!({}));
        for run in 1..=limit {
            room.says(
                id,
                pinfold_shim::Report::Exited(exited(RunNumber(run), Exit::Code(1), Duration::ZERO)),
            );
            room.pass(Duration::from_secs(120));
            if run < limit {
                room.starts(id, RunNumber(run + 1));
            }
        }
        let error = of(look(&room, id), RunEnds { last: Some(Exit::Code(1)) }, None).unwrap_err();
        assert_eq!(error.message, format!("session `a` reached its crash limit: it crashed {times}"));
    }
}

/// What is printed about the decisions that these deeds cause.
fn said(room: &mut Room, deeds: impl FnOnce(&mut Room)) -> (Vec<String>, RunEnds) {
    let (ends, lines) = (Arc::new(Mutex::new(RunEnds::default())), Arc::new(Mutex::new(Vec::new())));
    let heard = Arc::clone(&lines);
    let say = Box::new(move |line: &str| heard.lock().unwrap().push(line.to_owned()));
    let mut witness = witness(Arc::clone(&ends), "a".into(), say);
    let decisions = room.decisions();
    deeds(room);
    decisions.lock().unwrap().drain(..).for_each(|decision| witness(&decision));
    drop(witness);
    let lines = lines.lock().unwrap().clone();
    let ends = *ends.lock().unwrap();
    (lines, ends)
}

#[test]
fn restarts_and_waits_are_said_and_what_was_asked_for_is_not() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let (lines, ends) = said(&mut room, |room| room.ends(id, FIRST, Exit::Code(1)));
    assert_eq!((lines.len(), ends.last), (1, Some(Exit::Code(1))));
    assert!(lines[0].starts_with("a: "), "{lines:?}");
    let (lines, _) = said(&mut room, |room| room.starts(id, RunNumber(2)));
    assert_eq!(lines, [""; 0], "that it runs is what was asked for");
}

#[test]
fn a_stop_says_how_long_it_may_take() {
    for (grace, wanted) in [
        (Duration::from_secs(10), "a: stopping it within 10 s; once more ends it at once"),
        (Duration::ZERO, "a: ending it at once"),
    ] {
        let mut room = Room::new();
        let id = room.running("a", &json!({}));
        let ask = pinfold_core::event::Ask::Stop { grace: Some(grace) };
        let (lines, _) = said(&mut room, |room| _ = room.ask(id, ask));
        assert_eq!(lines, [wanted]);
    }
}
