//! Sessions with one run for each message.

use crate::driver::{Driver, End};
use pinfold_core::decision::{Answer, Record};
use pinfold_core::event::{Ask, MessageEvent, TurnEnd};
use pinfold_core::{Event, Mode, Spec, State};

fn per_message(mode: Mode) -> Driver {
    Driver::new(Spec { run_per_message: true, ..Spec::new(mode) })
}

/// Ends the turn of the message that was delivered, and the run with it.
fn turn(driver: &mut Driver, how: TurnEnd, end: End) {
    driver.message();
    let message = driver.takes();
    let run = driver.run();
    driver.send(Event::Message(MessageEvent::TurnEnded { run, message, how }));
    driver.ends(end, 5);
}

#[test]
fn the_end_of_a_run_is_the_end_of_its_turn_and_costs_nothing() {
    let mut driver = per_message(Mode::OnDemand);
    for number in 1..=50 {
        let (how, end) = match number % 2 {
            0 => (TurnEnd::Answered, End::Code(0)),
            _ => (TurnEnd::Failed, End::Code(3)),
        };
        turn(&mut driver, how, end);
        assert_eq!((driver.session.state(), driver.starts), (State::Idle, number));
    }
    assert_eq!((driver.crashes(), driver.count(|record| matches!(record, Record::Backoff { .. }))), (0, 0));
    assert_eq!(driver.count(|record| matches!(record, Record::HealthWarn { .. })), 0);
}

#[test]
fn messages_that_wait_are_worked_off_without_a_pause() {
    let mut driver = per_message(Mode::OnDemand);
    for _ in 0..30 {
        driver.message();
    }
    for _ in 0..30 {
        let message = driver.takes();
        let run = driver.run();
        let how = TurnEnd::Answered;
        driver.send(Event::Message(MessageEvent::TurnEnded { run, message, how }));
        driver.ends(End::Code(0), 5);
    }
    assert_eq!((driver.session.state(), driver.starts), (State::Idle, 30));
    assert_eq!(driver.count(|record| matches!(record, Record::Backoff { .. })), 0);
}

#[test]
fn a_run_that_dies_in_its_turn_is_a_crash_and_the_message_is_delivered_again() {
    let mut driver = per_message(Mode::OnDemand);
    driver.message();
    driver.takes();
    driver.ends(End::Signal(11), 5);
    assert_eq!((driver.session.state(), driver.crashes()), (State::Backoff, 1));
    assert_eq!(driver.session.inbox().queued(), 1);
}

#[test]
fn nothing_but_a_message_needs_a_run() {
    for mode in [Mode::OnDemand, Mode::Always, Mode::Once] {
        let mut driver = per_message(mode);
        driver.ask(Ask::Start);
        assert_eq!((driver.answer.take(), driver.starts), (Some(Answer::Already), 0));
        driver.ask(Ask::Stop { grace: None });
        driver.message();
        assert_eq!((driver.session.state(), driver.starts), (State::Stopped, 0));
        driver.ask(Ask::Start);
        assert_eq!((driver.session.state(), driver.starts), (State::Running, 1), "{mode:?}");
    }
}
