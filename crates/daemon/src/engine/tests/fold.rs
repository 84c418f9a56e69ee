//! Runs with a tape, by hand: what their agents print is heard once, what they are told is said once, and
//! nothing happens before its cause is durable.

use super::hand::{AGENT, FIRST, LONG, PROCESS, Room, SECOND, SHIM, exited};
use super::taped::{TapedShim, comes, ready, scripted, started};
use crate::engine::input::LoopInput;
use crate::ports::shims::observe::SessionSeen;
use pinfold_agents::EntryKind;
use pinfold_core::decision::Answer;
use pinfold_core::event::{Ask, Machine, ShimSeen};
use pinfold_core::exit::Exit;
use pinfold_core::talk::{Activity, Permit, RequestAnswer};
use pinfold_core::{Event, RunNumber, State, Wall};
use pinfold_shim::tape::Position;
use pinfold_shim::{Command, Report, SayRefused, TapeEnd, TapeReport};
use pinfold_store::{MessageState, SessionId};
use serde_json::json;
use std::time::Duration;

fn activity(room: &Room, id: SessionId) -> Activity {
    room.engine.sessions[&id].session.activity()
}

#[test]
fn a_message_is_said_when_the_agent_is_ready_and_done_when_its_turn_ended() {
    let mut room = Room::new();
    let mut shim = started(&mut room);
    let message = room.send(shim.id, "hello", None);
    shim.serve(&mut room);
    assert_eq!(shim.labels(), ["handshake"], "it is not ready yet");
    shim.is_ready(&mut room);
    assert_eq!(shim.labels(), ["handshake", "prompt"]);
    assert!(shim.lines[1].1.contains("\"text\":\"hello\""));
    assert_eq!(room.row(message).state, MessageState::Queued, "nothing proves that it has it");
    shim.takes(&mut room);
    assert_eq!(
        (room.row(message).state, activity(&room, shim.id)),
        (MessageState::Delivered, Activity::Working)
    );
    shim.answers(&mut room, "world");
    let row = room.row(message);
    assert_eq!((row.state, row.answer.as_deref()), (MessageState::Done, Some("world")));
    assert_eq!(activity(&room, shim.id), Activity::Idle);
    assert_eq!(shim.heard, shim.end(), "all of it need not be kept");
}

#[test]
fn nothing_is_said_before_what_led_to_it_is_durable() {
    let mut room = Room::new();
    let mut shim = started(&mut room);
    room.desk.lock().held_up = true;
    shim.prints(&mut room, &json!({ "type": "hello", "id": 1, "more": true }).to_string());
    assert_eq!(shim.labels(), ["handshake"]);
    room.write();
    shim.serve(&mut room);
    assert_eq!(shim.labels(), ["handshake", "handshake"]);
    shim.is_ready(&mut room);
    room.desk.lock().held_up = true;
    let row = tokio::sync::oneshot::channel().0;
    let sending = crate::engine::input::Sending { text: "x".into(), key: None, files: Vec::new(), row };
    room.post(shim.id, crate::engine::input::Post::Send(sending));
    shim.serve(&mut room);
    assert_eq!(shim.labels().len(), 2);
    room.write();
    shim.serve(&mut room);
    assert_eq!(shim.labels().last(), Some(&"prompt"));
}

#[test]
fn a_request_waits_for_a_person_and_its_answer_is_said_once() {
    let mut room = Room::new();
    let mut shim = ready(&mut room);
    room.send(shim.id, "hello", None);
    shim.serve(&mut room);
    shim.takes(&mut room);
    let asks = json!({ "type": "asks", "request": "a1", "kind": "permission", "title": "Bash: rm" });
    shim.prints(&mut room, &asks.to_string());
    assert_eq!(activity(&room, shim.id), Activity::Waiting);
    assert_eq!(room.last_event("request_opened").data["title"], "Bash: rm");
    let answer = RequestAnswer { verdict: Permit::Deny, always: false, words: Some("no".into()) };
    for expected in [Answer::Done, Answer::Refused(pinfold_core::decision::Refusal::NoSuchRequest)] {
        let event = Event::Answered { request: None, answer: answer.clone() };
        assert_eq!(room.event(shim.id, event).unwrap().unwrap(), expected);
    }
    shim.serve(&mut room);
    let said: Vec<_> = shim.lines.iter().filter(|(label, _)| label == "answer r1").collect();
    assert_eq!(said.len(), 1, "{:?}", shim.lines);
    assert!(said[0].1.contains("\"allow\":false"), "{said:?}");
    assert_eq!(room.engine.sessions[&shim.id].session.talk().requests(), [], "the agent was told");
    assert_eq!(activity(&room, shim.id), Activity::Working);
}

#[test]
fn an_interrupt_is_said_within_a_turn_and_forgotten_with_it() {
    let mut room = Room::new();
    let mut shim = ready(&mut room);
    let message = room.send(shim.id, "hello", None);
    shim.serve(&mut room);
    shim.takes(&mut room);
    assert_eq!(room.ask(shim.id, Ask::Interrupt).unwrap().unwrap(), Answer::UnderWay);
    shim.serve(&mut room);
    assert_eq!(shim.labels().last(), Some(&"interrupt"));
    let number = shim.number("prompt");
    shim.prints(&mut room, &json!({ "type": "ended", "id": number, "how": "cancelled" }).to_string());
    assert_eq!(room.row(message).state, MessageState::Failed);
    room.send(shim.id, "next", None);
    shim.serve(&mut room);
    shim.answers(&mut room, "done");
    assert_eq!(shim.labels().iter().filter(|label| **label == "interrupt").count(), 1);
}

#[test]
fn an_interrupt_that_came_too_late_to_be_said_does_not_hit_the_next_turn() {
    let mut room = Room::new();
    let mut shim = ready(&mut room);
    let messages = ["hello", "next"].map(|text| room.send(shim.id, text, None));
    shim.serve(&mut room);
    shim.takes(&mut room);
    room.desk.lock().held_up = true;
    room.ask(shim.id, Ask::Interrupt);
    shim.answers(&mut room, "done");
    room.write();
    shim.serve(&mut room);
    assert_eq!(shim.labels(), ["handshake", "prompt", "prompt"]);
    shim.takes(&mut room);
    shim.answers(&mut room, "done");
    assert_eq!(messages.map(|message| room.row(message).state), [MessageState::Done; 2]);
    assert_eq!(shim.labels(), ["handshake", "prompt", "prompt"]);
}

#[test]
fn a_word_that_is_refused_because_more_was_printed_is_tried_again_after_that_was_heard() {
    let mut room = Room::new();
    let mut shim = ready(&mut room);
    room.send(shim.id, "hello", None);
    shim.serve(&mut room);
    shim.takes(&mut room);
    room.ask(shim.id, Ask::Interrupt);
    let Some(Command::Say(say)) = room.heard(shim.id).pop() else { panic!("an interrupt is said") };
    // The end of the turn was already on its way.
    let number = shim.number("prompt");
    shim.append(
        EntryKind::Out,
        format!("{}\n", json!({ "type": "ended", "id": number, "answer": "x" })).as_bytes(),
    );
    let why = SayRefused::MoreWasPrinted;
    room.says(shim.id, Report::Tape(TapeReport::Refused { run: FIRST, number: say.number, why }));
    shim.serve(&mut room);
    assert_eq!(shim.labels(), ["handshake", "prompt"], "there is no turn to end any more");
    assert_eq!(room.engine.sessions[&shim.id].session.inbox().settled(), (1, 0));
}

#[test]
fn an_end_is_judged_when_the_tape_was_heard_to_its_end() {
    let mut room = Room::new();
    let mut shim = ready(&mut room);
    let message = room.send(shim.id, "hello", None);
    shim.serve(&mut room);
    shim.takes(&mut room);
    let number = shim.number("prompt");
    shim.append(
        EntryKind::Out,
        format!("{}\n", json!({ "type": "ended", "id": number, "answer": "x" })).as_bytes(),
    );
    shim.append(EntryKind::End, &[]);
    let tape = TapeEnd { end: Position(shim.end()), said: shim.up_to() };
    let ended = pinfold_shim::Exited { tape: Some(tape), ..exited(FIRST, Exit::Code(0), LONG) };
    room.says(shim.id, Report::Exited(ended));
    assert_eq!((room.state(shim.id), room.row(message).state), (State::Running, MessageState::Delivered));
    shim.serve(&mut room);
    assert_eq!(room.row(message).state, MessageState::Done);
    let kinds = room.kinds();
    let at = |kind: &str| kinds.iter().position(|known| known == kind).unwrap();
    assert!(at("message_done") < at("run_exited"), "{kinds:?}");
    assert!(room.last_event("run_exited").data["output"].to_string().contains("ended"), "its last lines");
    assert!(
        shim.told.iter().any(|told| matches!(told, Command::Start(start) if start.run == SECOND
        && start.tape.is_some_and(|tape| tape.floor.0 == shim.end()))),
        "{:?}",
        shim.told
    );
}

#[test]
fn the_next_daemon_hears_the_rest_of_a_tape_and_says_nothing_twice() {
    let mut room = Room::new();
    let mut shim = ready(&mut room);
    let message = room.send(shim.id, "hello", None);
    shim.serve(&mut room);
    assert_eq!(shim.labels(), ["handshake", "prompt"]);
    // The daemon dies; what the agent prints meanwhile is not heard.
    let number = shim.number("prompt");
    shim.append(EntryKind::Out, format!("{}\n", json!({ "type": "session", "id": "s-9" })).as_bytes());
    shim.append(
        EntryKind::Out,
        format!("{}\n", json!({ "type": "ended", "id": number, "answer": "x" })).as_bytes(),
    );
    let mut room = room.again();
    shim.is_found(&mut room);
    assert_eq!(room.row(message).state, MessageState::Done);
    assert_eq!(shim.labels(), ["handshake", "prompt"]);
    assert_eq!(
        room.engine.sessions[&shim.id].session.talk().vendor().map(|vendor| vendor.id.as_str()),
        Some("s-9")
    );
    assert_eq!((activity(&room, shim.id), room.state(shim.id)), (Activity::Idle, State::Running));
    room.send(shim.id, "more", None);
    shim.serve(&mut room);
    assert_eq!(shim.labels(), ["handshake", "prompt", "prompt"]);
    assert_eq!((AGENT, SHIM), (room.view().session(shim.id).unwrap().pid().unwrap(), SHIM));
}

#[test]
fn a_turn_that_ends_while_it_is_taken_over_is_not_said_again() {
    let mut room = Room::new();
    let mut shim = ready(&mut room);
    let first = room.send(shim.id, "hello", None);
    shim.serve(&mut room);
    shim.takes(&mut room);
    let mut room = room.again();
    room.desk.lock().held_up = true;
    shim.is_found(&mut room);
    shim.answers(&mut room, "done");
    room.write();
    shim.serve(&mut room);
    assert_eq!((shim.labels(), room.row(first).state), (vec!["handshake", "prompt"], MessageState::Done));
    let second = room.send(shim.id, "more", None);
    shim.serve(&mut room);
    shim.takes(&mut room);
    shim.answers(&mut room, "done too");
    assert_eq!(room.row(second).state, MessageState::Done);
    assert_eq!(shim.labels(), ["handshake", "prompt", "prompt"]);
}

#[test]
fn a_run_that_ended_while_no_daemon_lived_is_judged_by_its_tape() {
    let mut room = Room::new();
    let mut shim = ready(&mut room);
    let message = room.send(shim.id, "hello", None);
    shim.serve(&mut room);
    let number = shim.number("prompt");
    shim.append(
        EntryKind::Out,
        format!("{}\n", json!({ "type": "ended", "id": number, "answer": "x" })).as_bytes(),
    );
    shim.append(EntryKind::End, &[]);
    let mut room = room.again();
    let (_, then) = room.desk.lock().looks.pop().unwrap();
    let tape = TapeEnd { end: Position(shim.end()), said: shim.up_to() };
    let ended = pinfold_shim::Exited { tape: Some(tape), ..exited(FIRST, Exit::Code(0), LONG) };
    then(SessionSeen::of(Machine::Same, ShimSeen::Nobody, vec![ended]));
    room.settle();
    assert_eq!(room.row(message).state, MessageState::Queued);
    shim.serve(&mut room);
    assert_eq!(room.row(message).state, MessageState::Done);
    assert!(room.kinds().contains(&"run_exited".to_owned()));
}

#[test]
fn cursors_from_which_nothing_came_are_stored_by_the_sweep_and_not_one_by_one() {
    let mut room = Room::new();
    let mut shim = ready(&mut room);
    room.pass(Duration::from_secs(30));
    shim.serve(&mut room);
    let (before, end) = (shim.heard, shim.end());
    let stored = |room: &Room, id| room.disk.reader().unwrap().cursor(id).unwrap().unwrap().position;
    for _ in 0..5 {
        shim.prints(&mut room, &json!({ "type": "note", "text": "x" }).to_string());
    }
    assert_eq!((shim.heard, stored(&room, shim.id)), (before, end), "a line costs no commit");
    for _ in 0..11 {
        room.pass(Duration::from_secs(1));
    }
    shim.serve(&mut room);
    assert_eq!((shim.heard, stored(&room, shim.id)), (shim.end(), shim.end()));
}

#[test]
fn a_tape_that_was_read_for_a_run_that_is_over_changes_nothing() {
    let mut room = Room::new();
    let shim = ready(&mut room);
    let passage = Box::new(shim.passage(0));
    room.tell(LoopInput::Tape { id: shim.id, run: SECOND, from: 0, passage });
    assert_eq!(room.state(shim.id), State::Running);
}

/// An agent with a tape whose conversation pinfold chose or a person named; its vendor does not know it.
fn on_an_unknown_conversation(room: &mut Room, chosen: bool) -> (TapedShim, pinfold_core::MessageId) {
    let mut definition = scripted();
    definition["vendor_session"] = "v-1".into();
    definition["vendor_chosen"] = chosen.into();
    let id = room.starting("api", &definition);
    comes(room, id);
    let mut shim = TapedShim::new(id);
    room.says(id, Report::Started { run: FIRST, process: PROCESS, at: Wall(0) });
    shim.serve(room);
    shim.is_ready(room);
    let message = room.send(id, "hello", None);
    shim.serve(room);
    (shim, message)
}

/// The vendor does not know the conversation, and the agent ends its turn with that.
fn is_refused(room: &mut Room, shim: &mut TapedShim) {
    shim.prints(room, &json!({ "type": "refused", "why": "unknown" }).to_string());
    let number = shim.number("prompt");
    shim.prints(
        room,
        &json!({ "type": "ended", "id": number, "how": "failed", "why": "unknown" }).to_string(),
    );
}

fn conversation(room: &Room, id: SessionId) -> Option<String> {
    room.engine.sessions[&id].session.talk().vendor().map(|vendor| vendor.id.clone())
}

#[test]
fn a_conversation_that_pinfold_chose_and_its_vendor_does_not_know_is_begun_anew_with_the_same_message() {
    let mut room = Room::new();
    let (mut shim, message) = on_an_unknown_conversation(&mut room, true);
    is_refused(&mut room, &mut shim);
    let another = conversation(&room, shim.id).expect("another one was chosen");
    assert_ne!(another, "v-1");
    assert_eq!(room.row(message).state, MessageState::Delivered, "it has not failed");
    exits(&mut room, &mut shim, 42);
    assert_eq!(room.row(message).state, MessageState::Queued, "the next run gets it");
    assert_eq!(conversation(&room, shim.id), Some(another));
    assert_eq!(room.last_event("run_exited").data["verdict"], "clean");
}

/// The agent exits, and its tape was heard to the end.
fn exits(room: &mut Room, shim: &mut TapedShim, code: i32) {
    shim.append(EntryKind::End, &[]);
    let tape = TapeEnd { end: Position(shim.end()), said: shim.up_to() };
    let ended = pinfold_shim::Exited { tape: Some(tape), ..exited(shim.run, Exit::Code(code), LONG) };
    room.says(shim.id, Report::Exited(ended));
    shim.serve(room);
}

/// The next run is started after a while.
fn runs_again(room: &mut Room, shim: &mut TapedShim) {
    room.pass(Duration::from_secs(60));
    shim.serve(room);
    let starts = |told: &Command| matches!(told, Command::Start(start) if start.run > shim.run);
    assert!(shim.told.iter().any(starts), "{:?}", shim.told);
    shim.run = RunNumber(shim.run.0 + 1);
    (shim.said, shim.lines) = (0, Vec::new());
    room.says(shim.id, Report::Started { run: shim.run, process: PROCESS, at: Wall(0) });
    shim.serve(room);
}

#[test]
fn a_conversation_that_its_agent_named_and_its_vendor_does_not_know_is_begun_anew_unless_it_has_answered() {
    for answered in [false, true] {
        let mut room = Room::new();
        let mut shim = ready(&mut room);
        shim.prints(&mut room, &json!({ "type": "session", "id": "s-1" }).to_string());
        let message = room.send(shim.id, "hello", None);
        shim.serve(&mut room);
        shim.takes(&mut room);
        if answered {
            shim.answers(&mut room, "world");
        }
        exits(&mut room, &mut shim, 1);
        runs_again(&mut room, &mut shim);
        assert!(shim.lines[0].1.contains("s-1"), "{:?}", shim.lines);
        shim.prints(&mut room, &json!({ "type": "refused", "why": "unknown" }).to_string());
        let known = room.engine.sessions[&shim.id].session.talk().conversation(None).map(str::to_owned);
        assert_eq!(known.as_deref(), answered.then_some("s-1"));
        if answered {
            continue;
        }
        assert_eq!(room.last_event("vendor_session").data["vendor_session"], json!(null));
        // The next daemon knows it too.
        let mut room = room.again();
        shim.is_found(&mut room);
        exits(&mut room, &mut shim, 0);
        assert_eq!(room.last_event("run_exited").data["verdict"], "clean");
        runs_again(&mut room, &mut shim);
        assert!(!shim.lines[0].1.contains("s-1"), "{:?}", shim.lines);
        shim.is_ready(&mut room);
        shim.prints(&mut room, &json!({ "type": "session", "id": "s-2" }).to_string());
        shim.takes(&mut room);
        shim.answers(&mut room, "world");
        assert_eq!(room.row(message).state, MessageState::Done);
        assert_eq!(conversation(&room, shim.id).as_deref(), Some("s-2"));
    }
}

#[test]
fn a_conversation_that_a_person_named_or_that_has_answered_is_not_given_up() {
    let mut room = Room::new();
    let (mut shim, message) = on_an_unknown_conversation(&mut room, false);
    is_lost(&mut room, &mut shim, message);

    let mut room = Room::new();
    let (mut shim, _) = on_an_unknown_conversation(&mut room, true);
    shim.takes(&mut room);
    shim.answers(&mut room, "world");
    let message = room.send(shim.id, "again", None);
    shim.serve(&mut room);
    is_lost(&mut room, &mut shim, message);
}

/// The vendor does not know the conversation: the session is failed, and its message waits at no cost.
fn is_lost(room: &mut Room, shim: &mut TapedShim, message: pinfold_core::MessageId) {
    is_refused(room, shim);
    assert_eq!(room.last_event("conversation_lost").data["reason"], "gone");
    exits(room, shim, 1);
    let row = room.row(message);
    assert_eq!((row.state, row.tries, room.state(shim.id)), (MessageState::Queued, 0, State::Failed));
    assert_eq!(room.last_event("run_exited").data["verdict"], "hopeless");
    assert_eq!(conversation(room, shim.id), None, "the id is kept, for when the conversation is back");
}

#[test]
fn an_agent_that_opens_another_conversation_is_ended_unless_a_command_asked_for_it() {
    for text in ["hello", "/clear"] {
        let mut room = Room::new();
        let (mut shim, _) = on_an_unknown_conversation(&mut room, true);
        shim.takes(&mut room);
        shim.answers(&mut room, "world");
        room.send(shim.id, text, None);
        shim.serve(&mut room);
        shim.prints(&mut room, &json!({ "type": "session", "id": "other" }).to_string());
        if text == "hello" {
            assert_eq!(room.last_event("conversation_lost").data["reason"], "replaced");
            assert_eq!((room.state(shim.id), conversation(&room, shim.id)), (State::Stopping, None));
        } else {
            assert_eq!(
                (room.state(shim.id), conversation(&room, shim.id)),
                (State::Running, Some("other".into()))
            );
        }
    }
}

/// An agent in the middle of a turn.
fn in_a_turn(room: &mut Room) -> (TapedShim, pinfold_core::MessageId) {
    let mut shim = ready(room);
    let message = room.send(shim.id, "hello", None);
    shim.serve(room);
    shim.takes(room);
    (shim, message)
}

fn stops(shim: &TapedShim) -> Vec<Duration> {
    let grace =
        |command: &Command| if let Command::Stop { grace, .. } = command { Some(*grace) } else { None };
    shim.told.iter().filter_map(grace).collect()
}

#[test]
fn a_turn_is_ended_by_word_before_its_run_is_and_its_message_waits_at_no_cost() {
    let mut room = Room::new();
    let (mut shim, message) = in_a_turn(&mut room);
    room.ask(shim.id, Ask::Stop { grace: Some(LONG) });
    shim.serve(&mut room);
    assert_eq!((shim.labels().last(), stops(&shim)), (Some(&"interrupt"), Vec::new()));
    let cancelled = json!({ "type": "ended", "id": shim.number("prompt"), "how": "cancelled" });
    shim.prints(&mut room, &cancelled.to_string());
    assert_eq!((shim.labels().last(), stops(&shim)), (Some(&"close"), vec![LONG]));
    let row = room.row(message);
    assert_eq!((row.state, row.tries), (MessageState::Queued, 0));
    room.send(shim.id, "more", None);
    shim.serve(&mut room);
    assert_eq!(shim.labels().last(), Some(&"close"), "nothing is begun with it any more");
}

#[test]
fn a_turn_that_does_not_end_is_waited_for_a_second_and_then_there_is_a_signal() {
    let mut room = Room::new();
    let (mut shim, _) = in_a_turn(&mut room);
    room.ask(shim.id, Ask::Stop { grace: Some(LONG) });
    shim.serve(&mut room);
    room.pass(Duration::from_secs(1));
    shim.serve(&mut room);
    assert_eq!((shim.labels().last(), stops(&shim)), (Some(&"close"), vec![LONG - Duration::from_secs(1)]));
}

#[test]
fn where_nothing_can_be_recorded_nothing_is_said_and_the_signal_comes_at_once() {
    let mut room = Room::new();
    let (mut shim, _) = in_a_turn(&mut room);
    room.engine.stop_as_noted();
    room.desk.lock().held_up = true;
    room.tell(LoopInput::Trouble(pinfold_store::Trouble::Full));
    room.ask(shim.id, Ask::Stop { grace: None });
    shim.serve(&mut room);
    assert_eq!((shim.labels().last(), stops(&shim).len()), (Some(&"prompt"), 1));
}

#[test]
fn an_answer_that_is_told_in_parts_is_whole_under_the_next_daemon() {
    let mut room = Room::new();
    let (mut shim, message) = in_a_turn(&mut room);
    let parts = ["a", "b", "c"].map(|letter| letter.repeat(200_000));
    shim.prints(&mut room, &json!({ "type": "text", "text": parts[0] }).to_string());
    // The cursor is stored with what comes of the output.
    let asks = json!({ "type": "asks", "request": "a1", "kind": "permission", "title": "Bash: rm" });
    shim.prints(&mut room, &asks.to_string());
    assert!(shim.heard > 0);
    let mut room = room.again();
    shim.is_found(&mut room);
    shim.prints(&mut room, &json!({ "type": "text", "text": parts[1] }).to_string());
    shim.prints(&mut room, &json!({ "type": "text", "text": parts[2] }).to_string());
    shim.prints(&mut room, &json!({ "type": "ended", "id": shim.number("prompt") }).to_string());
    let row = room.row(message);
    assert_eq!((row.state, row.kept), (MessageState::Done, pinfold_store::AnswerKept::default()));
    assert!(row.answer == Some(parts.concat()), "{:?} bytes", row.answer.map(|answer| answer.len()));
}
