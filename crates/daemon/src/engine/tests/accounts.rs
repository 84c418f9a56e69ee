//! Accounts by hand, in virtual time: which session is held, which tries first, what the model is asked, and
//! that nothing is lost.

use super::hand::{Room, sending};
use super::taped::{TapedShim, started_as};
use crate::engine::command::EngineCommand as Order;
use crate::engine::input::LoopInput;
use pinfold_core::decision::{Answer, Wakes};
use pinfold_core::hold::HoldKind;
use pinfold_core::talk::Activity;
use pinfold_core::usage::Money;
use pinfold_core::{Event, MessageId, State};
use pinfold_store::{MessageState, SessionId, UsageBy, UsageQuery};
use serde_json::{Value, json};
use std::time::Duration;

const RESUMES: &str = "[policy]\nlimit_resume = true\n";

fn player(room: &mut Room, name: &str, agent: &str, more: &Value) -> TapedShim {
    let mut definition = json!({ "protocol": "scripted", "agent": agent });
    definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut shim = started_as(room, name, &definition);
    shim.is_ready(room);
    shim
}

fn players(room: &mut Room, count: usize) -> Vec<TapedShim> {
    (0..count).map(|number| player(room, &format!("s{number}"), "player", &json!({}))).collect()
}

/// How many turns the model was asked for.
fn asked(shims: &[TapedShim]) -> usize {
    shims.iter().map(|shim| shim.labels().iter().filter(|label| **label == "prompt").count()).sum()
}

fn serve(room: &mut Room, shims: &mut [TapedShim]) {
    for _ in 0..2 {
        shims.iter_mut().for_each(|shim| shim.serve(room));
    }
}

fn ends(room: &mut Room, shim: &mut TapedShim, more: &Value) {
    let number = shim.number("prompt");
    let mut line = json!({ "type": "ended", "id": number });
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    shim.prints(room, &line.to_string());
}

fn refused(room: &mut Room, shim: &mut TapedShim, kind: &str) {
    ends(room, shim, &json!({ "how": "failed", "kind": kind, "why": "no more" }));
}

/// The vendor refuses the turn under way, until this many seconds from now.
fn limited(room: &mut Room, shim: &mut TapedShim, seconds: Option<i64>) {
    let now = room.view().0.ports.clock.wall().0;
    let until = seconds.map(|seconds| now + seconds * 1000);
    let told =
        json!({ "type": "limit", "reach": "reached", "until_ms": until, "window": "five_hour", "used": 1.0 });
    shim.prints(room, &told.to_string());
    refused(room, shim, "limit");
}

fn hold(room: &Room, id: SessionId) -> Option<HoldKind> {
    room.engine.sessions[&id].session.hold().map(|hold| hold.kind)
}

fn activity(room: &Room, id: SessionId) -> Activity {
    room.engine.sessions[&id].session.activity()
}

fn count(room: &Room, kind: &str) -> usize {
    room.kinds().iter().filter(|known| *known == kind).count()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Answers every turn that begins; the first delivery to each was refused.
fn answer_all(room: &mut Room, shims: &mut [TapedShim]) {
    let mut done: Vec<usize> = vec![0; shims.len()];
    for _ in 0..200 {
        serve(room, shims);
        for (number, shim) in shims.iter_mut().enumerate() {
            let said = shim.labels().iter().filter(|label| **label == "prompt").count();
            if said > done[number] + 1 {
                shim.takes(room);
                shim.answers(room, "done");
                done[number] += 1;
            }
        }
    }
}

#[test]
fn twenty_sessions_of_one_account_meet_a_limit_and_one_tries_at_the_reset() {
    let mut room = Room::configured(RESUMES);
    let mut shims = players(&mut room, 20);
    let mut other = player(&mut room, "other", "another", &json!({}));
    let messages: Vec<[MessageId; 2]> =
        shims.iter().map(|shim| ["one", "two"].map(|text| room.send(shim.id, text, None))).collect();
    serve(&mut room, &mut shims);
    assert_eq!(asked(&shims), 20, "all are at work");
    for shim in &mut shims {
        shim.takes(&mut room);
        limited(&mut room, shim, Some(3600));
    }
    let states = shims.iter().map(|shim| (room.state(shim.id), activity(&room, shim.id)));
    assert!(
        states.clone().all(|state| state == (State::Blocked, Activity::Limited)),
        "{:?}",
        states.collect::<Vec<_>>()
    );
    let rows: Vec<_> =
        messages.iter().flatten().map(|id| room.row(*id)).map(|row| (row.state, row.tries)).collect();
    assert!(rows.iter().all(|row| *row == (MessageState::Queued, 0)), "at no cost: {rows:?}");
    assert_eq!((count(&room, "account_held"), count(&room, "message_failed")), (1, 0));
    assert_eq!(room.last_event("account_held").data["account"], "player:default");
    room.pass(seconds(3599));
    serve(&mut room, &mut shims);
    assert_eq!(asked(&shims), 20, "nobody asks while it lasts");
    let message = room.send(other.id, "hello", None);
    other.serve(&mut room);
    other.takes(&mut room);
    other.answers(&mut room, "world");
    assert_eq!(room.row(message).state, MessageState::Done, "another account is not touched");

    room.pass(seconds(1));
    serve(&mut room, &mut shims);
    assert_eq!(asked(&shims), 21, "one tries, alone");
    println!("requests at the model: 20 before the reset, 1 until the first answer after it");
    answer_all(&mut room, &mut shims);
    assert_eq!(asked(&shims), 60, "each message once more");
    for (shim, messages) in shims.iter().zip(&messages) {
        assert_eq!(messages.map(|message| room.row(message).state), [MessageState::Done; 2]);
        let texts = shim.lines.iter().filter(|(label, _)| label.starts_with("prompt"));
        let texts: Vec<_> = texts.map(|(_, line)| if line.contains("\"one\"") { 1 } else { 2 }).collect();
        assert_eq!(texts, [1, 1, 2], "in their order");
        assert_eq!((room.state(shim.id), hold(&room, shim.id)), (State::Running, None));
    }
    assert_eq!((count(&room, "account_held"), count(&room, "account_resumed")), (1, 1));
}

#[test]
fn a_trial_that_is_refused_is_one_request_and_no_new_event() {
    let mut room = Room::configured(RESUMES);
    let mut shims = players(&mut room, 3);
    shims.iter().for_each(|shim| _ = room.send(shim.id, "hello", None));
    serve(&mut room, &mut shims);
    let first = &mut shims[0];
    first.takes(&mut room);
    // No time is given: it is tried every ten minutes.
    limited(&mut room, first, None);
    for shim in &mut shims[1..] {
        shim.takes(&mut room);
        shim.answers(&mut room, "what was under way goes on");
    }
    for trial in 1..=3 {
        room.pass(seconds(599));
        serve(&mut room, &mut shims);
        assert_eq!(asked(&shims), 2 + trial);
        room.pass(seconds(1));
        serve(&mut room, &mut shims);
        assert_eq!(asked(&shims), 3 + trial);
        shims[0].takes(&mut room);
        limited(&mut room, &mut shims[0], None);
    }
    assert_eq!(count(&room, "account_held"), 1);
}

#[test]
fn a_reset_in_the_past_is_waited_for_and_longer_each_time() {
    let mut room = Room::configured(RESUMES);
    let mut shims = players(&mut room, 1);
    room.send(shims[0].id, "hello", None);
    serve(&mut room, &mut shims);
    for wait in [1, 2, 4] {
        shims[0].takes(&mut room);
        let before = asked(&shims);
        limited(&mut room, &mut shims[0], Some(-60));
        serve(&mut room, &mut shims);
        assert_eq!(asked(&shims), before, "not at once");
        room.pass(Duration::from_millis(wait * 1000 - 1));
        serve(&mut room, &mut shims);
        assert_eq!(asked(&shims), before);
        room.pass(Duration::from_millis(1));
        serve(&mut room, &mut shims);
        assert_eq!(asked(&shims), before + 1);
    }
}

#[test]
fn a_step_of_the_wall_clock_neither_hurries_nor_holds_up_a_reset() {
    for step in [86_400_000, -86_400_000] {
        let mut room = Room::configured(RESUMES);
        let mut shims = players(&mut room, 1);
        room.send(shims[0].id, "hello", None);
        serve(&mut room, &mut shims);
        shims[0].takes(&mut room);
        limited(&mut room, &mut shims[0], Some(3600));
        room.desk.lock().stepped = step;
        room.pass(seconds(3599));
        serve(&mut room, &mut shims);
        assert_eq!(asked(&shims), 1, "{step}");
        room.pass(seconds(1));
        serve(&mut room, &mut shims);
        assert_eq!(asked(&shims), 2, "{step}");
    }
}

#[test]
fn without_the_policy_a_person_is_asked_and_the_answer_lets_all_go_on() {
    let mut room = Room::new();
    let mut shims = players(&mut room, 2);
    shims.iter().for_each(|shim| _ = room.send(shim.id, "hello", None));
    serve(&mut room, &mut shims);
    for shim in &mut shims {
        shim.takes(&mut room);
        limited(&mut room, shim, Some(60));
    }
    room.pass(seconds(3600));
    serve(&mut room, &mut shims);
    assert_eq!(asked(&shims), 2, "nothing by itself");
    let held = room.engine.sessions[&shims[1].id].session.hold().map(|hold| (hold.kind, hold.asks));
    assert_eq!(held, Some((HoldKind::Limit, true)));
    let resume = |reply| Order::ResumeAccount { account: "player:default".into(), reply };
    assert_eq!(room.order(resume), Some(true));
    serve(&mut room, &mut shims);
    assert_eq!(asked(&shims), 3, "one first");
    let trying = shims.iter().position(|shim| shim.labels().len() == 3).unwrap();
    shims[trying].takes(&mut room);
    shims[trying].answers(&mut room, "works");
    serve(&mut room, &mut shims);
    assert_eq!(asked(&shims), 4, "then the other");
    assert_eq!(
        room.order(|reply| Order::ResumeAccount { account: "player:default".into(), reply }),
        Some(false)
    );
}

#[test]
fn a_dead_login_is_one_event_and_is_tried_only_when_a_person_says_so() {
    let mut room = Room::configured(RESUMES);
    let mut shims = players(&mut room, 3);
    let messages: Vec<_> = shims.iter().map(|shim| room.send(shim.id, "hello", None)).collect();
    serve(&mut room, &mut shims);
    for shim in &mut shims {
        shim.takes(&mut room);
        shim.prints(&mut room, &json!({ "type": "login", "text": "Please run /login" }).to_string());
        refused(&mut room, shim, "login");
    }
    room.pass(seconds(1_000_000));
    serve(&mut room, &mut shims);
    assert_eq!((asked(&shims), count(&room, "account_held")), (3, 1));
    assert_eq!(room.state(shims[2].id), State::Blocked);
    assert_eq!(hold(&room, shims[2].id), Some(HoldKind::Login));
    let resume = |reply| Order::ResumeAccount { account: "player:default".into(), reply };
    room.order(resume);
    serve(&mut room, &mut shims);
    assert_eq!(asked(&shims), 4, "one tries");
    shims[0].takes(&mut room);
    refused(&mut room, &mut shims[0], "login");
    room.pass(seconds(1_000_000));
    serve(&mut room, &mut shims);
    assert_eq!(asked(&shims), 4, "and not again");
    room.order(|reply| Order::ResumeAccount { account: "player:default".into(), reply });
    for number in 0..3 {
        serve(&mut room, &mut shims);
        assert_eq!(asked(&shims), 5 + number, "one by one");
        shims[number].takes(&mut room);
        shims[number].answers(&mut room, "back");
    }
    assert!(messages.iter().all(|message| room.row(*message).state == MessageState::Done));
}

#[test]
fn an_overloaded_vendor_is_waited_for_and_nobody_is_asked() {
    let mut room = Room::new();
    let mut shims = players(&mut room, 1);
    let message = room.send(shims[0].id, "hello", None);
    serve(&mut room, &mut shims);
    shims[0].takes(&mut room);
    refused(&mut room, &mut shims[0], "overloaded");
    assert_eq!(hold(&room, shims[0].id), Some(HoldKind::Overloaded));
    room.pass(seconds(15));
    serve(&mut room, &mut shims);
    shims[0].takes(&mut room);
    shims[0].answers(&mut room, "world");
    assert_eq!((room.row(message).state, room.row(message).tries), (MessageState::Done, 1));
}

#[test]
fn a_warning_of_the_vendor_holds_nobody_and_is_remembered() {
    let mut room = Room::new();
    let mut shims = players(&mut room, 1);
    let near = json!({ "type": "limit", "reach": "near", "until_ms": 1_800_000_000_000_i64, "window": "weekly", "used": 0.91 });
    shims[0].prints(&mut room, &near.to_string());
    let message = room.send(shims[0].id, "hello", None);
    serve(&mut room, &mut shims);
    shims[0].takes(&mut room);
    shims[0].answers(&mut room, "world");
    assert_eq!((room.row(message).state, hold(&room, shims[0].id)), (MessageState::Done, None));
    let accounts = room.view().accounts();
    assert_eq!(accounts[0].core.windows["weekly"].used, Some(910));
}

#[test]
fn a_hold_outlives_the_daemon_and_the_next_one_goes_on_with_it() {
    let mut room = Room::configured(RESUMES);
    let mut shims = players(&mut room, 1);
    let message = room.send(shims[0].id, "hello", None);
    serve(&mut room, &mut shims);
    shims[0].takes(&mut room);
    limited(&mut room, &mut shims[0], Some(3600));
    let mut room = room.again();
    let id = shims[0].id;
    assert_eq!(hold(&room, id), Some(HoldKind::Limit), "before anything is decided");
    shims[0].is_found(&mut room);
    serve(&mut room, &mut shims);
    assert_eq!((asked(&shims), room.state(id)), (1, State::Blocked));
    room.pass(seconds(3600));
    serve(&mut room, &mut shims);
    assert_eq!(asked(&shims), 2);
    shims[0].takes(&mut room);
    shims[0].answers(&mut room, "world");
    assert_eq!((room.row(message).state, room.row(message).tries), (MessageState::Done, 1));
    assert_eq!((count(&room, "account_held"), hold(&room, id)), (1, None));
}

fn cost(usd: f64) -> Value {
    json!({ "answer": "done", "usage": { "turn": { "input_tokens": 10, "output_tokens": 2, "cost_usd": usd } } })
}

#[test]
fn a_budget_that_is_spent_pauses_after_the_turn_and_goes_on_when_it_is_raised() {
    let mut room = Room::new();
    let budget = json!({ "budget": 1_000_000_000 });
    let mut shims = vec![player(&mut room, "api", "player", &budget)];
    let id = shims[0].id;
    let messages = ["one", "two", "three"].map(|text| room.send(id, text, None));
    serve(&mut room, &mut shims);
    shims[0].takes(&mut room);
    ends(&mut room, &mut shims[0], &cost(0.6));
    serve(&mut room, &mut shims);
    shims[0].takes(&mut room);
    ends(&mut room, &mut shims[0], &cost(0.6));
    serve(&mut room, &mut shims);
    assert_eq!(asked(&shims), 2, "the turn under way was finished, and no other begun");
    assert_eq!((room.state(id), hold(&room, id)), (State::Blocked, Some(HoldKind::Budget)));
    let sent = room.post(id, sending("more", None)).unwrap().unwrap();
    assert!(matches!(sent, Answer::Queued { wakes: Wakes::NotWhileHeld, .. }), "{sent:?}");
    assert_eq!(room.event(id, Event::BudgetRaised).unwrap().unwrap(), Answer::Done);
    serve(&mut room, &mut shims);
    assert_eq!((asked(&shims), room.state(id)), (3, State::Running));
    assert_eq!(room.row(messages[1]).state, MessageState::Done);
    assert_eq!(room.row(messages[0]).taken.unwrap().figures.cost, Money::of_usd(0.6));
}

#[test]
fn a_budget_is_raised_by_another_definition_too() {
    let mut room = Room::new();
    let mut shims = vec![player(&mut room, "api", "player", &json!({ "budget": 1_000_000_000 }))];
    let id = shims[0].id;
    for text in ["one", "two"] {
        room.send(id, text, None);
    }
    serve(&mut room, &mut shims);
    shims[0].takes(&mut room);
    ends(&mut room, &mut shims[0], &cost(1.0));
    assert_eq!(hold(&room, id), Some(HoldKind::Budget));
    let mut raised =
        super::hand::definition(&json!({ "protocol": "scripted", "agent": "player", "mode": "always" }));
    raised.budget = Some(Money(2_000_000_000));
    let (reply, _done) = tokio::sync::oneshot::channel();
    let define = crate::engine::input::Define {
        base: None,
        definition: raised,
        given: crate::engine::input::VariablesChange::AsBefore,
        by: None,
    };
    room.tell(LoopInput::Define { id, define: Box::new(define), reply });
    serve(&mut room, &mut shims);
    assert_eq!((asked(&shims), hold(&room, id)), (2, None));
}

#[test]
fn the_time_of_turns_is_counted_and_a_long_one_is_finished() {
    let mut room = Room::new();
    let mut shims = vec![player(&mut room, "api", "player", &json!({ "turn_time": 60_000 }))];
    let id = shims[0].id;
    let messages = ["one", "two"].map(|text| room.send(id, text, None));
    serve(&mut room, &mut shims);
    shims[0].takes(&mut room);
    room.pass(seconds(600));
    assert_eq!(room.state(id), State::Running, "a turn is never ended for it");
    shims[0].answers(&mut room, "done");
    serve(&mut room, &mut shims);
    assert_eq!((asked(&shims), hold(&room, id)), (1, Some(HoldKind::TurnTime)));
    room.event(id, Event::BudgetRaised);
    serve(&mut room, &mut shims);
    assert_eq!(asked(&shims), 2);
    assert_eq!(room.row(messages[0]).state, MessageState::Done);
}

#[test]
fn what_an_account_spends_on_a_day_is_bounded_and_another_account_is_not_touched() {
    let mut room = Room::configured("[accounts.\"player:default\"]\nbudget = \"1USD\"\n");
    let mut shims = players(&mut room, 2);
    let mut other = player(&mut room, "other", "another", &json!({}));
    for shim in shims.iter().chain([&other]) {
        for text in ["one", "two"] {
            room.send(shim.id, text, None);
        }
    }
    serve(&mut room, &mut shims);
    other.serve(&mut room);
    for shim in shims.iter_mut().chain([&mut other]) {
        shim.takes(&mut room);
        ends(&mut room, shim, &cost(0.7));
    }
    serve(&mut room, &mut shims);
    other.serve(&mut room);
    assert_eq!((asked(&shims), asked(std::slice::from_ref(&other))), (3, 2));
    assert_eq!(hold(&room, shims[1].id), Some(HoldKind::AccountBudget));
    let resume = |reply| Order::ResumeAccount { account: "player:default".into(), reply };
    assert_eq!(room.order(resume), Some(true));
    serve(&mut room, &mut shims);
    assert_eq!(hold(&room, shims[0].id), None, "its turn was under way");
}

#[test]
fn so_many_sessions_of_an_account_have_a_turn_at_once() {
    let mut room = Room::configured("[accounts.\"player:default\"]\nat_work = 2\n");
    let mut shims = players(&mut room, 4);
    shims.iter().for_each(|shim| _ = room.send(shim.id, "hello", None));
    let mut done = 0;
    let mut answered = [false; 4];
    while done < 4 {
        serve(&mut room, &mut shims);
        let said: Vec<usize> = (0..4).filter(|at| shims[*at].labels().len() == 2 && !answered[*at]).collect();
        assert!(!said.is_empty() && said.len() <= 2, "{said:?}");
        let one = said[0];
        shims[one].takes(&mut room);
        shims[one].answers(&mut room, "done");
        answered[one] = true;
        done += 1;
    }
}

#[test]
fn usage_is_counted_once_by_differences_and_summed_over_daemons() {
    let mut room = Room::new();
    let mut shims = players(&mut room, 1);
    let id = shims[0].id;
    let totals = [(100, 3.23), (150, 3.48), (170, 3.71), (20, 0.10)];
    for (number, (input, usd)) in totals.into_iter().enumerate() {
        if number == 2 {
            room = room.again();
            shims[0].is_found(&mut room);
        }
        room.send(id, "hello", None);
        serve(&mut room, &mut shims);
        shims[0].takes(&mut room);
        let session = json!({ "input_tokens": input, "output_tokens": 1, "cost_usd": usd });
        ends(
            &mut room,
            &mut shims[0],
            &json!({ "answer": "x", "usage": { "session": session, "model": "m" } }),
        );
    }
    let sum = room.engine.sessions[&id].session.usage().unwrap().sum;
    assert_eq!((sum.input, sum.cost), (Some(190), Money::of_usd(3.81)), "a lower total is a new count");
    for by in [UsageBy::Session, UsageBy::Account, UsageBy::Model] {
        let sums = room.disk.reader().unwrap().usage(&UsageQuery { by, since: None }).unwrap();
        assert_eq!((sums.len(), sums[0].figures.input, sums[0].turns), (1, Some(190), 4), "{by:?}");
    }
    assert_eq!(room.last_event("message_done").data["usage"]["input_tokens"], 20);
}
