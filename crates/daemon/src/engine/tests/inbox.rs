//! Messages through the loop: what is accepted, what the agent is given, and when a turn is over.

use super::hand::{FIRST, Room, SECOND, run_of, sending};
use crate::engine::ReplyHandle;
use crate::engine::command::EngineCommand as Order;
use crate::engine::input::{LoopInput, Post};
use pinfold_core::decision::{Answer, Refusal};
use pinfold_core::exit::Exit;
use pinfold_core::{MessageId, RunNumber, State};
use pinfold_shim::log::Position;
use pinfold_shim::turn::{DoneLine, Turn};
use pinfold_shim::{Command, InputRefused, Report};
use pinfold_store::{MessageState, SessionId, TurnPlace, Ulid};
use serde_json::json;
use tokio::sync::oneshot;

const UNKNOWN: MessageId = MessageId(12345);

fn turns() -> serde_json::Value {
    json!({ "turns": "done" })
}

/// The one delivery that the shim was told of.
fn delivered(room: &mut Room, id: SessionId) -> (MessageId, u32, String, bool) {
    let told = room.heard(id);
    let mut inputs = told.iter().filter_map(|command| {
        let Command::Input { message, attempt, bytes, says_done, .. } = command else { return None };
        Some((*message, *attempt, String::from_utf8_lossy(bytes).into_owned(), *says_done))
    });
    let first = inputs.next().unwrap_or_else(|| panic!("nothing was delivered: {told:?}"));
    assert_eq!(inputs.next(), None);
    first
}

fn taken(room: &mut Room, id: SessionId, message: MessageId, attempt: u32) {
    room.says(id, Report::InputTaken { run: FIRST, message, attempt, from: Position(10) });
}

fn turn(run: RunNumber, message: MessageId, attempt: u32, named: Option<MessageId>) -> Turn {
    let done = DoneLine { to: Position(20), answer: b" 42".to_vec(), whole: true, named };
    Turn { run, message, attempt, from: Position(10), done: Some(done) }
}

fn done(room: &mut Room, id: SessionId, turn: Turn) {
    room.says(id, Report::TurnDone(Box::new(turn)));
}

fn heavy(room: &mut Room, id: SessionId, text: &str) -> bool {
    let post = sending(text, None);
    match room.post(id, post) {
        Some(Ok(Answer::Refused(Refusal::InboxHeavy))) => true,
        Some(Ok(Answer::Queued { .. })) => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_is_delivered_as_the_agent_reads_it() {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "turns": "done", "input": "json" }));
    let message = room.send(id, "do it", None);
    let (given, attempt, line, says_done) = delivered(&mut room, id);
    assert_eq!((given, attempt, says_done), (message, 1, true));
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line, json!({ "id": Ulid::from(message).to_string(), "text": "do it", "try": 1 }));
    let lines = room.running("b", &json!({}));
    let message = room.send(lines, "two\nlines", None);
    assert_eq!(delivered(&mut room, lines), (message, 1, "two\\nlines\n".into(), false));
}

#[test]
fn a_message_that_is_delivered_again_is_another_delivery() {
    let mut room = Room::new();
    let id = room.running("a", &turns());
    let message = room.send(id, "x", None);
    assert_eq!(delivered(&mut room, id).1, 1);
    room.ends(id, FIRST, Exit::Code(0));
    room.says(id, Report::Started { run: SECOND, process: super::hand::PROCESS, at: pinfold_core::Wall(0) });
    let (again, delivery, ..) = delivered(&mut room, id);
    assert_eq!((again, delivery), (message, 2));
    done(&mut room, id, turn(SECOND, message, 1, None));
    assert_ne!(room.row(message).state, MessageState::Done, "that was said of the first");
    done(&mut room, id, turn(SECOND, message, 2, None));
    assert_eq!(room.row(message).state, MessageState::Done);
}

#[test]
fn what_another_session_sends_is_marked_and_on_record() {
    let mut room = Room::new();
    let (id, other) = (room.running("a", &json!({})), room.create("b", &json!({})));
    let (reply, mut answer) = ReplyHandle::new();
    let post = sending("hello", None);
    room.tell(LoopInput::Post { id, post, by: Some(run_of(other, "b")), reply });
    let Ok(Ok(Answer::Queued { message, .. })) = answer.try_recv() else { panic!("it is taken") };
    assert_eq!(delivered(&mut room, id).2, "[from session b] hello\n");
    assert_eq!(room.row(message).from.as_deref(), Some("b"));
    assert_eq!(room.last_event("message_queued").data["by"]["session"], json!("b"));
}

#[test]
fn a_turn_by_lines_is_over_when_the_agent_has_read_its_line() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let message = room.send(id, "x", None);
    taken(&mut room, id, message, 1);
    let row = room.row(message);
    assert_eq!(row.state, MessageState::Done);
    assert_eq!(row.place, Some(TurnPlace { run: FIRST, from: 10, to: None }));
}

#[test]
fn a_turn_with_an_end_is_over_when_the_agent_says_so_and_its_answer_is_kept() {
    let mut room = Room::new();
    let id = room.running("a", &turns());
    let message = room.send(id, "x", None);
    taken(&mut room, id, message, 1);
    assert_eq!(room.row(message).state, MessageState::Delivered);
    done(&mut room, id, Turn { done: None, ..turn(FIRST, message, 1, None) });
    assert_eq!(room.row(message).state, MessageState::Delivered, "it has no end yet");
    done(&mut room, id, turn(FIRST, message, 1, None));
    let row = room.row(message);
    assert_eq!((row.state, row.answer.as_deref()), (MessageState::Done, Some("42")));
    assert_eq!(row.place, Some(TurnPlace { run: FIRST, from: 10, to: Some(20) }));
}

#[test]
fn only_the_delivery_under_way_is_taken_and_ended() {
    let mut room = Room::new();
    let id = room.running("a", &turns());
    let message = room.send(id, "x", None);
    let others =
        [turn(FIRST, message, 2, None), turn(SECOND, message, 1, None), turn(FIRST, UNKNOWN, 1, None)];
    for other in others {
        let Turn { run, message: of, attempt, from, .. } = other;
        room.says(id, Report::InputTaken { run, message: of, attempt, from });
        done(&mut room, id, other);
        assert_eq!(room.row(message).state, MessageState::Queued);
        assert_eq!(room.row(message).place, None);
    }
    done(&mut room, id, turn(FIRST, message, 1, None));
    assert_eq!(room.row(message).state, MessageState::Done);
}

#[test]
fn an_end_that_names_another_message_of_the_session_is_not_the_end_of_this_one() {
    let mut room = Room::new();
    let id = room.running("a", &turns());
    let first = room.send(id, "x", None);
    done(&mut room, id, turn(FIRST, first, 1, None));
    room.heard(id);
    let second = room.send(id, "y", None);
    let (_, attempt, ..) = delivered(&mut room, id);
    done(&mut room, id, turn(FIRST, second, attempt, Some(first)));
    assert_eq!(room.row(second).state, MessageState::Queued);
    done(&mut room, id, turn(FIRST, second, attempt, Some(UNKNOWN)));
    assert_eq!(
        room.row(second).state,
        MessageState::Done,
        "what is no id of a message here is part of an answer"
    );
}

#[test]
fn an_end_is_not_counted_while_it_cannot_be_read_whose_it_is() {
    let mut room = Room::new();
    let id = room.running("a", &turns());
    let message = room.send(id, "x", None);
    room.desk.lock().unreadable = true;
    done(&mut room, id, turn(FIRST, message, 1, Some(UNKNOWN)));
    assert_eq!(room.row(message).state, MessageState::Queued);
}

#[test]
fn a_message_whose_text_is_damaged_has_failed_and_the_next_is_delivered() {
    let mut room = Room::new();
    let id = room.running("a", &turns());
    room.desk.lock().unreadable = true;
    let message = room.send(id, "x", None);
    room.desk.lock().unreadable = false;
    let row = room.row(message);
    assert_ne!(row.state, MessageState::Delivered);
    let why = room.last_event("message_failed").why;
    assert!(why.contains("is damaged: torn"), "{why}");
}

#[test]
fn a_key_stands_for_the_message_that_had_it_first() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    room.stop(id);
    let first = room.send(id, "x", Some("k"));
    assert_eq!(room.send(id, "y", Some("k")), first);
    assert_ne!(room.send(id, "y", Some("other")), first);
    assert_ne!(room.send(id, "y", None), first);
    room.desk.lock().held_up = true;
    let (reply, mut pending) = ReplyHandle::new();
    let post = |key: &str| sending("z", Some(key));
    room.tell(LoopInput::Post { id, post: post("new"), by: None, reply });
    let (reply, mut again) = ReplyHandle::new();
    room.tell(LoopInput::Post { id, post: post("new"), by: None, reply });
    assert!(pending.try_recv().is_err(), "it is not durable");
    room.write();
    let both = [pending.try_recv().unwrap().unwrap(), again.try_recv().unwrap().unwrap()];
    let [Answer::Queued { message: one, .. }, Answer::Queued { message: two, .. }] = both else {
        panic!("{both:?}")
    };
    assert_eq!(one, two, "also while it is on its way to the disk");
    assert!(room.engine.sessions[&id].keys.is_empty(), "what is durable is looked up there");
}

#[test]
fn an_inbox_takes_so_much_text_and_no_more() {
    let mut room = Room::configured("[policy]\ninbox_limit = \"1K\"\n");
    let id = room.create("a", &json!({}));
    room.stop(id);
    assert!(heavy(&mut room, id, &"x".repeat(1025)));
    assert!(!heavy(&mut room, id, &"x".repeat(500)));
    assert!(!heavy(&mut room, id, &"x".repeat(500)));
    assert!(heavy(&mut room, id, &"x".repeat(25)));
    room.ask(id, pinfold_core::event::Ask::Start);
    room.grant();
    room.shim_comes(id);
    room.says(id, Report::Started { run: FIRST, process: super::hand::PROCESS, at: pinfold_core::Wall(0) });
    let (message, attempt, ..) = delivered(&mut room, id);
    taken(&mut room, id, message, attempt);
    assert!(!heavy(&mut room, id, &"x".repeat(500)), "what has left the inbox is counted out");
}

#[test]
fn an_inbox_without_a_limit_takes_everything() {
    let mut room = Room::configured("[policy]\ninbox_limit = \"0K\"\n");
    let id = room.create("a", &json!({}));
    assert!(!heavy(&mut room, id, &"x".repeat(1 << 20)));
}

#[test]
fn only_a_failed_message_is_tried_again() {
    let mut room = Room::new();
    let id = room.running("a", &turns());
    let message = room.send(id, "x", None);
    assert_eq!(room.post(id, Post::Retry { message }), Some(Ok(Answer::Already)));
    assert_eq!(room.post(id, Post::Retry { message: UNKNOWN }), Some(Ok(Answer::Already)));
    for run in [FIRST, SECOND, RunNumber(3)] {
        if run != FIRST {
            room.says(id, Report::Started { run, process: super::hand::PROCESS, at: pinfold_core::Wall(0) });
        }
        let (_, attempt, ..) = delivered(&mut room, id);
        room.says(id, Report::InputTaken { run, message, attempt, from: Position(10) });
        room.ends(id, run, Exit::Code(1));
        room.pass(super::hand::LONG);
    }
    assert_eq!(room.row(message).state, MessageState::Failed, "it was tried as often as it may be");
    assert!(matches!(room.post(id, Post::Retry { message }), Some(Ok(Answer::Queued { .. }))));
    assert_ne!(room.row(message).state, MessageState::Failed);
}

#[test]
fn a_message_that_waits_is_cancelled_in_the_name_of_who_asked() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    room.stop(id);
    let message = room.send(id, "x", None);
    let (reply, mut answer) = ReplyHandle::new();
    let by = Some(super::hand::person());
    room.tell(LoopInput::Post { id, post: Post::Cancel { message }, by, reply });
    assert_eq!(answer.try_recv().unwrap(), Ok(Answer::Done));
    assert_eq!(room.row(message).state, MessageState::Failed);
    assert_eq!(room.last_event("message_failed").data["by"]["user"], json!(77));
}

#[test]
fn whoever_waits_for_a_message_hears_when_it_is_done_and_not_before() {
    let mut room = Room::new();
    let id = room.running("a", &turns());
    let message = room.send(id, "x", None);
    let (settled, mut hears) = oneshot::channel();
    let watch = room.order(|reply| Order::AwaitMessage { id, message, settled, reply }).unwrap();
    assert_eq!(watch.unwrap().0.borrow().state, State::Running);
    taken(&mut room, id, message, 1);
    assert!(hears.try_recv().is_err());
    room.desk.lock().held_up = true;
    done(&mut room, id, turn(FIRST, message, 1, None));
    assert!(hears.try_recv().is_err(), "it is not durable yet");
    room.write();
    assert_eq!(hears.try_recv(), Ok(()));
}

#[test]
fn those_who_have_gone_are_not_kept_waiting() {
    let mut room = Room::new();
    let id = room.running("a", &turns());
    let tracked = room.engine.sessions.get_mut(&id).unwrap();
    drop(oneshot::channel::<()>());
    let (gone, hears) = oneshot::channel();
    tracked.wait_for(MessageId(1), gone);
    drop(hears);
    let (here, _hears) = oneshot::channel();
    tracked.wait_for(MessageId(2), here);
    assert_eq!(tracked.waiters.keys().copied().collect::<Vec<_>>(), [MessageId(2)]);
}

#[test]
fn a_turn_that_a_shim_wrote_down_counts_before_the_end_of_its_run() {
    let mut room = Room::new();
    let id = room.running("a", &turns());
    let message = room.send(id, "x", None);
    room.desk.lock().turn = Some(turn(FIRST, message, 1, None));
    room.ends(id, FIRST, Exit::Code(1));
    assert_eq!(room.row(message).state, MessageState::Done);
    assert_eq!(room.row(message).answer.as_deref(), Some("42"));
}

#[test]
fn a_turn_that_ends_while_none_is_under_way_changes_nothing() {
    let mut room = Room::new();
    let id = room.running("a", &turns());
    let before = room.kinds();
    room.says(id, Report::StrayDone { run: FIRST, named: None });
    room.says(id, Report::InputRefused { run: FIRST, message: UNKNOWN, attempt: 1, why: InputRefused::Full });
    assert_eq!(room.kinds(), before);
    assert_eq!(room.state(id), State::Running);
}
