//! A store that cannot be written: what is refused, what waits, and what acts first.

use super::hand::{FIRST, Room, SECOND, sending};
use crate::engine::input::{AgentsOnDown, Define, LoopInput, VariablesChange};
use crate::engine::{ReplyHandle, WhyNot};
use crate::ports::stops::{NotedStop, StopWish, Stops};
use pinfold_core::State;
use pinfold_core::decision::Answer;
use pinfold_core::event::Ask;
use pinfold_core::exit::Exit;
use pinfold_shim::Command;
use pinfold_store::{SessionId, Trouble};
use serde_json::json;

fn troubled(room: &mut Room, trouble: Trouble) {
    room.desk.lock().held_up = trouble.holds_up();
    room.tell(LoopInput::Trouble(trouble));
}

fn posted(room: &mut Room, id: SessionId) -> bool {
    let (reply, mut answer) = ReplyHandle::new();
    room.tell(LoopInput::Post { id, post: sending("x", None), by: None, reply });
    match answer.try_recv() {
        Ok(Ok(Answer::Queued { .. })) => true,
        Err(tokio::sync::oneshot::error::TryRecvError::Closed) => false,
        other => panic!("{other:?}"),
    }
}

fn gone() -> Trouble {
    Trouble::Gone { path: "/store".into() }
}

#[test]
fn what_is_new_is_refused_at_the_door_while_the_disk_is_short() {
    let rows = [
        (Trouble::None, true, true),
        (Trouble::Reserve, false, true),
        (Trouble::Full, false, false),
        (gone(), false, false),
        (Trouble::Failed { problem: "p".into() }, false, false),
    ];
    for (trouble, takes_new, takes_other) in rows {
        let mut room = Room::new();
        let id = room.create("a", &json!({}));
        room.tell(LoopInput::Trouble(trouble.clone()));
        assert_eq!(posted(&mut room, id), takes_new, "{trouble:?}: a message");
        let refused = Some(WhyNot::Unrecordable(trouble.clone())).filter(|_| trouble != Trouble::None);
        assert_eq!(room.engine.handle.refusal(), refused);
        assert_eq!(room.try_create("b", &json!({})).err(), refused, "{trouble:?}: a session");
        let (reply, mut defined) = tokio::sync::oneshot::channel();
        let definition = super::hand::definition(&json!({ "tags": ["t"] }));
        let define = Box::new(Define { base: None, definition, given: VariablesChange::Changed, by: None });
        room.tell(LoopInput::Define { id, define, reply });
        assert_eq!(defined.try_recv().is_ok(), takes_other, "{trouble:?}: a definition");
        let asked = room.ask(id, Ask::Archive);
        assert_eq!(asked.is_some(), takes_other, "{trouble:?}: a wish");
    }
}

#[test]
fn another_program_that_writes_is_waited_for() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    room.tell(LoopInput::Trouble(Trouble::Busy));
    assert!(posted(&mut room, id));
}

#[test]
fn a_stop_that_cannot_be_recorded_acts_first() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.engine.stop_as_noted();
    troubled(&mut room, Trouble::Full);
    let before = room.view().revision().1;
    assert_eq!(room.ask(id, Ask::Stop { grace: None }), Some(Ok(Answer::UnderWay)), "it is answered at once");
    assert!(matches!(room.heard(id)[..], [Command::Stop { run: FIRST, .. }]));
    assert!(room.engine.sessions[&id].stops_first && room.view().revision().1 > before);
    let noted = NotedStop { session: id, wish: StopWish::Stop, run: FIRST };
    assert_eq!(
        Stops::open(room.engine.home.stops()).unwrap().all(),
        [noted],
        "and stands where there is room"
    );
    room.desk.lock().held_up = false;
    room.write();
    troubled(&mut room, Trouble::None);
    assert!(!room.engine.sessions[&id].stops_first);
    assert_eq!(
        Stops::open(room.engine.home.stops()).unwrap().all(),
        [],
        "what is recorded is not noted any more"
    );
}

#[test]
fn only_what_ends_something_is_done_before_it_is_recorded() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.engine.stop_as_noted();
    troubled(&mut room, Trouble::Full);
    room.ends(id, FIRST, Exit::Code(0));
    assert_eq!(room.heard(id), [], "a restart waits for its record");
    room.write();
    assert!(
        room.heard(id).iter().any(|command| matches!(command, Command::Start(start) if start.run == SECOND))
    );
}

#[test]
fn a_run_that_nobody_asked_to_stop_is_not_ended_before_that_is_recorded() {
    let mut room = Room::configured("[agents.w.policy]\nwatchdog = \"10s\"\n");
    let id = room.running("a", &json!({ "agent": "w" }));
    troubled(&mut room, Trouble::Full);
    room.pass(std::time::Duration::from_secs(10));
    assert_eq!((room.state(id), room.heard(id)), (State::Stopping, Vec::new()));
    room.write();
    assert!(matches!(room.heard(id)[..], [Command::Stop { run: FIRST, .. }]));
}

#[test]
fn what_ends_nothing_waits_for_its_record_in_a_session_that_stops_first_too() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.engine.stop_as_noted();
    troubled(&mut room, Trouble::Full);
    room.stop(id);
    room.hangs_up(id);
    let (_, then) = room.desk.lock().proofs.pop().unwrap();
    then(false);
    room.settle();
    assert!(room.desk.lock().looks.is_empty());
    room.write();
    assert_eq!(room.desk.lock().looks.len(), 1, "it is looked at again");
}

#[test]
fn a_stop_is_noted_until_everything_that_was_decided_since_is_recorded() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.engine.stop_as_noted();
    troubled(&mut room, Trouble::Full);
    room.stop(id);
    room.ends(id, FIRST, Exit::Code(0));
    room.write_first();
    let noted = NotedStop { session: id, wish: StopWish::Stop, run: FIRST };
    assert_eq!(Stops::open(room.engine.home.stops()).unwrap().all(), [noted]);
    room.write();
    assert_eq!(Stops::open(room.engine.home.stops()).unwrap().all(), []);
}

#[test]
fn a_store_can_be_read_unless_its_file_has_lost_its_name() {
    let mut room = Room::new();
    assert!(room.view().readable().is_some());
    troubled(&mut room, Trouble::Full);
    assert!(room.view().readable().is_some());
    troubled(&mut room, gone());
    assert!(room.view().readable().is_none());
}

#[test]
fn a_stop_that_was_noted_is_recorded_with_the_reason() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.says(
        id,
        pinfold_shim::Report::Exited(super::hand::exited(FIRST, Exit::Code(1), std::time::Duration::ZERO)),
    );
    assert_eq!(room.state(id), State::Backoff);
    let mut noted = Stops::open(room.engine.home.stops()).unwrap();
    noted.note(NotedStop { session: id, wish: StopWish::Stop, run: FIRST }).unwrap();
    room.engine.stop_as_noted();
    room.settle();
    assert_eq!(room.last_event("stopped").why, "it was stopped while nothing could be recorded");
}

#[test]
fn whoever_waits_for_a_record_hears_why_there_is_none() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    room.desk.lock().held_up = true;
    let (reply, mut sent) = ReplyHandle::new();
    room.tell(LoopInput::Post { id, post: sending("x", None), by: None, reply });
    let (reply, mut archived) = ReplyHandle::new();
    let event = Box::new(pinfold_core::Event::Asked(Ask::Archive));
    room.tell(LoopInput::Happened { id, event, facts: Box::default(), reply: Some(reply) });
    room.tell(LoopInput::Trouble(Trouble::Full));
    let what = |why: Result<Answer, WhyNot>| match why {
        Err(WhyNot::PerhapsRecorded { trouble: Trouble::Full, what }) => what,
        other => panic!("{other:?}"),
    };
    let sent = what(sent.try_recv().unwrap());
    assert!(sent.starts_with("message ") && sent.ends_with(" for `a`"), "{sent}");
    assert_eq!(what(archived.try_recv().unwrap()), "what was asked of `a`");
    room.write();
    assert_eq!(room.state(id), State::Archived, "it came true all the same");
}

#[test]
fn a_trouble_is_shown_with_each_session_until_it_is_over_and_stands_in_the_events() {
    let rows = [
        (Trouble::Reserve, "disk_full"),
        (Trouble::Full, "disk_full"),
        (Trouble::Busy, "database_busy"),
        (gone(), "database_gone"),
        (Trouble::Failed { problem: "p".into() }, "database_failed"),
        (Trouble::Damaged { problem: "p".into() }, "database_damaged"),
    ];
    for (trouble, kind) in rows {
        let mut room = Room::new();
        let id = room.create("a", &json!({}));
        let before = room.view().revision().1;
        let words = trouble.to_string();
        room.tell(LoopInput::Trouble(trouble.clone()));
        assert_eq!(room.engine.sessions[&id].held_up.as_deref(), Some(words.as_str()));
        assert_eq!(room.view().daemon().troubles.join(" "), words);
        assert!(room.view().revision().1 > before);
        assert_eq!(room.kinds().contains(&kind.to_owned()), !trouble.holds_up(), "{trouble:?}");
        room.tell(LoopInput::Trouble(Trouble::None));
        assert_eq!(
            (room.engine.sessions[&id].held_up.clone(), room.view().daemon().troubles.len()),
            (None, 0)
        );
        assert_eq!(room.last_event(kind).why, format!("over: {words}"));
        assert_eq!(room.engine.handle.refusal(), None);
    }
}

#[test]
fn what_a_look_at_the_store_finds_is_told_once() {
    let mut room = Room::new();
    room.tell(LoopInput::Checked(vec!["one".into()]));
    room.tell(LoopInput::Checked(vec!["one".into(), "two".into()]));
    let told: Vec<String> = room
        .events()
        .into_iter()
        .filter(|event| event.kind.to_string() == "database_damaged")
        .map(|event| event.why)
        .collect();
    assert_eq!(told, ["one", "two"]);
    assert_eq!(room.view().daemon().troubles, ["one", "two"]);
    room.tell(LoopInput::Checked(Vec::new()));
    assert!(room.view().daemon().troubles.is_empty());
}

#[test]
fn a_stop_that_was_noted_counts_for_the_runs_of_then() {
    for (run, stops) in [(FIRST, true), (pinfold_core::RunNumber(0), false), (SECOND, true)] {
        for wish in [StopWish::Stop, StopWish::Down] {
            let mut room = Room::new();
            let id = room.running("a", &json!({}));
            let mut noted = Stops::open(room.engine.home.stops()).unwrap();
            noted.note(NotedStop { session: id, wish, run }).unwrap();
            room.engine.stop_as_noted();
            room.settle();
            assert_eq!(room.state(id) == State::Stopping, stops, "{run:?} {wish:?}");
            let left = Stops::open(room.engine.home.stops()).unwrap().all();
            assert_eq!(left, [], "what is recorded, or counts for nothing, is not noted any more");
            if stops {
                room.ends(id, FIRST, Exit::Code(0));
                room.pass(super::hand::LONG);
                assert_eq!(room.state(id) == State::Stopped, wish == StopWish::Stop, "{run:?}");
            }
        }
    }
}

#[test]
fn a_daemon_that_goes_down_does_not_wait_for_a_disk_that_is_full() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.engine.stop_as_noted();
    troubled(&mut room, Trouble::Full);
    room.tell(LoopInput::Down { agents: AgentsOnDown::Stopped, by: None, reply: None });
    assert!(matches!(room.heard(id)[..], [Command::Stop { .. }]));
    room.ends(id, FIRST, Exit::Code(0));
    room.engine.end_if_at_rest();
    assert!(!room.engine.is_over(), "its shim is there");
    room.hangs_up(id);
    room.engine.end_if_at_rest();
    assert!(room.engine.is_over());
}

#[test]
fn a_new_session_that_cannot_be_recorded_is_not_there() {
    let mut room = Room::new();
    room.desk.lock().held_up = true;
    let (reply, mut made) = tokio::sync::oneshot::channel();
    let (definition, name) = (super::hand::definition(&json!({})), "a".parse().unwrap());
    let create = crate::engine::input::Create { name, definition, broken: None, by: None, reply };
    room.tell(LoopInput::Create(Box::new(create)));
    let id = room.engine.names["a"];
    let error = || pinfold_store::CommitError::Busy { path: "store".into() };
    room.engine.not_durable(Some(id), &error());
    let why = made.try_recv().unwrap().unwrap_err();
    assert!(matches!(why, WhyNot::NotRecorded { ref name, .. } if name == "a"), "{why:?}");
    assert!(room.engine.sessions.is_empty() && room.engine.names.is_empty());
    assert!(!room.engine.home.session(id).exists());
}

#[test]
fn a_session_that_is_recorded_is_not_taken_back_by_a_full_disk() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    room.engine.not_durable(Some(id), &pinfold_store::CommitError::Busy { path: "store".into() });
    assert!(room.engine.sessions.contains_key(&id));
    assert_eq!(room.engine.sessions[&id].beginnings, 0);
    room.engine.not_durable(None, &pinfold_store::CommitError::WriterGone);
    assert_eq!(room.engine.handle.refusal(), Some(WhyNot::Unrecordable(Trouble::Ended)));
}
