//! The end of a run with a protocol: first a message, then the signal, within the grace.

use crate::driver::{Driver, End, on_demand};
use pinfold_core::event::{Ask, MessageEvent, RunEvent, ShimSeen, TurnEnd};
use pinfold_core::inbox::MessageFailure;
use pinfold_core::life::Process;
use pinfold_core::talk::{Activity, Standing};
use pinfold_core::{Action, Event, Record, State};
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

/// An agent that has told its activity.
fn talks(driver: &mut Driver, activity: Activity) {
    let event = RunEvent::Standing(Box::new(Standing { activity, ..Standing::default() }));
    driver.of_run(driver.run(), event);
}

fn in_a_turn() -> Driver {
    let mut driver = on_demand();
    driver.message();
    driver.takes();
    talks(&mut driver, Activity::Working);
    driver
}

fn at_rest() -> Driver {
    let mut driver = on_demand();
    driver.message();
    driver.answers();
    talks(&mut driver, Activity::Idle);
    driver
}

fn stop(driver: &mut Driver, grace: Duration) -> Vec<Action> {
    driver.ask(Ask::Stop { grace: Some(grace) }).actions.clone()
}

fn turn_ends(driver: &mut Driver, how: TurnEnd) -> Vec<Action> {
    let (run, turn) = (driver.run(), driver.session.inbox().in_flight().expect("a turn"));
    let event = MessageEvent::TurnEnded { run, message: turn.message, how };
    driver.send(Event::Message(event)).actions.clone()
}

#[test]
fn an_agent_between_two_turns_has_its_input_closed_and_the_signal_follows_at_once() {
    let mut driver = at_rest();
    let run = driver.run();
    assert_eq!(stop(&mut driver, GRACE), [Action::Close { run }, Action::Stop { run, grace: GRACE }]);
    assert_eq!(driver.session.next_deadline(), None);
}

#[test]
fn a_turn_is_interrupted_and_the_signal_follows_its_end_in_what_is_left_of_the_grace() {
    let mut driver = in_a_turn();
    let run = driver.run();
    assert_eq!(stop(&mut driver, GRACE), [Action::Interrupt { run }]);
    driver.pass(300);
    let grace = GRACE - Duration::from_millis(300);
    let told = turn_ends(&mut driver, TurnEnd::Interrupted);
    assert_eq!(told, [Action::Close { run }, Action::Stop { run, grace }]);
    assert_eq!((driver.session.inbox().queued(), driver.session.next_deadline()), (1, None), "at no cost");
    driver.ends(End::Code(0), 10);
    assert_eq!(driver.session.state(), State::Stopped);
    assert_eq!(driver.count(|record| matches!(record, Record::MessageFailed { .. })), 0);
}

#[test]
fn a_turn_that_does_not_end_is_waited_for_no_longer_than_a_second() {
    for (grace, waited) in [(GRACE, SECOND), (SECOND, SECOND / 2)] {
        let mut driver = in_a_turn();
        let run = driver.run();
        stop(&mut driver, grace);
        assert_eq!(driver.wait(), waited);
        let last = &driver.actions[driver.actions.len() - 2..];
        assert_eq!(last, [Action::Close { run }, Action::Stop { run, grace: grace - waited }]);
        assert_eq!(turn_ends(&mut driver, TurnEnd::Answered), [], "what it still says counts");
        driver.ends(End::Signal(15), 10);
        assert_eq!(driver.count(|record| matches!(record, Record::MessageDone { .. })), 1);
    }
}

#[test]
fn without_a_grace_there_are_no_words() {
    for mut driver in [in_a_turn(), at_rest()] {
        let run = driver.run();
        let grace = Duration::ZERO;
        assert_eq!(stop(&mut driver, grace), [Action::Stop { run, grace }]);
    }
}

#[test]
fn a_second_stop_with_a_grace_of_its_own_ends_the_wait() {
    let mut driver = in_a_turn();
    let run = driver.run();
    stop(&mut driver, GRACE);
    let grace = Duration::ZERO;
    assert_eq!(stop(&mut driver, grace), [Action::Stop { run, grace }]);
    assert_eq!(driver.session.next_deadline(), None);
}

#[test]
fn an_agent_that_is_parked_may_leave_by_itself_and_is_told_to_after_a_second() {
    for leaves in [true, false] {
        let mut driver = at_rest();
        let run = driver.run();
        driver.wait();
        assert_eq!(driver.actions.last(), Some(&Action::Close { run }));
        if !leaves {
            assert_eq!(driver.wait(), SECOND);
            let stop = |action: &Action| matches!(action, Action::Stop { run: of, .. } if *of == run);
            assert!(driver.actions.last().is_some_and(stop), "{:?}", driver.actions);
        }
        driver.ends(End::Code(0), 10);
        assert_eq!((driver.session.state(), driver.session.next_deadline()), (State::Idle, None));
        assert_eq!(driver.count(|record| matches!(record, Record::Parked)), 1);
    }
}

#[test]
fn a_daemon_that_goes_down_parts_in_the_same_way() {
    let mut driver = in_a_turn();
    let run = driver.run();
    assert_eq!(driver.send(Event::DownAsked).actions, [Action::Interrupt { run }]);
    driver.wait();
    assert!(matches!(driver.actions.last(), Some(Action::Stop { .. })), "{:?}", driver.actions);
}

#[test]
fn a_turn_that_a_person_interrupted_stays_interrupted_when_a_stop_follows() {
    let mut driver = in_a_turn();
    driver.ask(Ask::Interrupt);
    stop(&mut driver, GRACE);
    turn_ends(&mut driver, TurnEnd::Interrupted);
    let interrupted =
        |record: &Record| matches!(record, Record::MessageFailed { why: MessageFailure::Interrupted, .. });
    assert_eq!(driver.count(interrupted), 1);
}

#[test]
fn the_end_of_a_turn_that_was_interrupted_for_a_stop_costs_nothing_under_the_next_daemon_either() {
    let mut driver = in_a_turn();
    let run = driver.run();
    stop(&mut driver, GRACE);
    let process = Process { pid: 100, fence: 1 };
    driver.daemon_restarts(ShimSeen::Keeping { run, process }, Vec::new());
    assert!(matches!(driver.actions.last(), Some(Action::Stop { .. })), "{:?}", driver.actions);
    turn_ends(&mut driver, TurnEnd::Interrupted);
    assert_eq!(driver.session.inbox().queued(), 1);
}
