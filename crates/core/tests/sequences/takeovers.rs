//! Takeover: request, deadline, interrupt, hand back; an answer in every state.

use crate::driver::{Driver, End};
use crate::people::{STATES, in_state};
use pinfold_core::decision::{Answer, Record, Refusal, TakeoverEnd};
use pinfold_core::event::{Ask, MessageEvent, RunEvent, ShimSeen, StartFailure, TurnEnd};
use pinfold_core::life::{CannotStart, Purpose};
use pinfold_core::{Action, ConsumerId, Event, Mode, Policy, Spec, State};
use std::time::Duration;

const ME: ConsumerId = ConsumerId(1);
const TAKEOVER: Ask = Ask::Takeover { consumer: ME, urgent: false };
const URGENT: Ask = Ask::Takeover { consumer: ME, urgent: true };

fn chat() -> Driver {
    Driver::new(Spec { interactive: true, ..Spec::new(Mode::Always) })
}

fn done(how: TakeoverEnd) -> impl Fn(&Record) -> bool {
    move |record| *record == Record::TakeoverDone { how }
}

#[test]
fn takeover_in_every_state_has_a_named_answer() {
    let busy = Answer::Refused(Refusal::Busy);
    let archived = Answer::Refused(Refusal::Archived);
    let expected = [
        (Answer::UnderWay, State::Held),
        (Answer::UnderWay, State::Held),
        (Answer::UnderWay, State::Stopping),
        (Answer::Joined, State::Held),
        (Answer::UnderWay, State::Stopping),
        (Answer::UnderWay, State::Held),
        (busy, State::Blocked),
        (Answer::UnderWay, State::Held),
        (Answer::UnderWay, State::Held),
        (archived, State::Archived),
    ];
    for (state, (answer, after)) in STATES.into_iter().zip(expected) {
        let mut driver = in_state(state);
        driver.answer = None;
        driver.ask(TAKEOVER);
        assert_eq!((driver.answer.clone(), driver.session.state()), (Some(answer), after), "in {state:?}");
    }
}

#[test]
fn a_session_without_a_terminal_program_or_with_one_run_only_cannot_be_taken_over() {
    let mut driver = Driver::new(Spec::new(Mode::Always));
    driver.ask(TAKEOVER);
    assert_eq!(driver.answer, Some(Answer::Refused(Refusal::NoTerminal)));
    let mut driver = Driver::new(Spec { interactive: true, ..Spec::new(Mode::Once) });
    driver.ask(TAKEOVER);
    assert_eq!(driver.answer, Some(Answer::Refused(Refusal::RunsOnce)));
}

#[test]
fn a_session_whose_terminal_program_needs_the_vendors_id_is_taken_over_once_that_is_known() {
    let mut driver = Driver::new(Spec { interactive_when_named: true, ..Spec::new(Mode::Always) });
    driver.ask(TAKEOVER);
    assert_eq!(driver.answer, Some(Answer::Refused(Refusal::NoTerminal)));
    let run = driver.run();
    driver.of_run(run, RunEvent::VendorLearned { id: "conversation".into() });
    driver.ask(TAKEOVER);
    assert_eq!(driver.answer, Some(Answer::UnderWay));
    driver.ends(End::Code(0), 1_000);
    assert_eq!(driver.session.state(), State::Held);
}

#[test]
fn a_takeover_waits_for_the_turn_then_runs_the_terminal_under_the_same_locks_and_hands_back() {
    let mut driver = chat();
    driver.message();
    driver.message();
    driver.takes();
    driver.ask(TAKEOVER);
    assert_eq!(driver.session.state(), State::Running, "the turn goes on");
    driver.answers();
    assert_eq!(driver.session.state(), State::Stopping, "and no other begins");
    driver.ends(End::Code(0), 1_000);
    assert_eq!((driver.session.state(), driver.count(done(TakeoverEnd::Held))), (State::Held, 1));
    let reserved = driver.actions.iter().filter(|action| matches!(action, Action::Reserve { .. })).count();
    assert_eq!(reserved, 1, "the shim never lets go of the locks");
    driver.message();
    assert_eq!((driver.session.state(), driver.session.inbox().queued()), (State::Held, 2));
    driver.ends(End::Code(130), 60_000);
    assert_eq!((driver.session.state(), driver.crashes()), (State::Running, 0));
    driver.answers();
    driver.answers();
    assert_eq!(driver.session.inbox().settled(), (3, 0), "queued messages go on");
}

#[test]
fn a_deadline_that_passes_calls_the_takeover_off_and_the_run_goes_on() {
    let mut driver = chat();
    driver.message();
    driver.takes();
    driver.ask(TAKEOVER);
    assert_eq!(driver.wait(), Duration::from_secs(30));
    assert_eq!(
        (driver.session.state(), driver.count(done(TakeoverEnd::DeadlinePassed))),
        (State::Running, 1)
    );
    driver.answers();
    assert_eq!((driver.session.state(), driver.session.inbox().settled()), (State::Running, (1, 0)));
}

#[test]
fn an_urgent_takeover_interrupts_and_escalates_and_costs_the_message_no_try() {
    let mut driver = chat();
    let message = driver.message();
    driver.takes();
    let run = driver.run();
    let decision = driver.ask(URGENT);
    assert_eq!(decision.actions, [Action::Interrupt { run }]);
    assert_eq!(driver.wait(), Policy::default().stop_grace, "a hung agent is not waited for");
    assert_eq!(driver.session.state(), State::Stopping);
    driver.ends(End::Signal(9), 1_000);
    assert_eq!(driver.session.state(), State::Held);
    let next = driver.session.inbox().deliverable().expect("requeued");
    assert_eq!((next.message, next.tries), (message, 0));

    let mut driver = chat();
    let message = driver.message();
    driver.takes();
    driver.ask(URGENT);
    let run = driver.run();
    driver.send(Event::Message(MessageEvent::TurnEnded { run, message, how: TurnEnd::Interrupted }));
    assert_eq!(driver.session.state(), State::Stopping);
    assert_eq!(driver.session.inbox().deliverable().expect("requeued").tries, 0);
}

#[test]
fn a_caller_that_goes_calls_the_takeover_off_at_any_stage() {
    let leave = Event::ConsumerLeft { consumer: ME };
    let mut driver = chat();
    driver.message();
    driver.takes();
    driver.ask(TAKEOVER);
    driver.send(leave.clone());
    driver.answers();
    assert_eq!(driver.session.state(), State::Running, "while waiting for the turn");

    let mut driver = chat();
    driver.ask(TAKEOVER);
    driver.send(leave.clone());
    driver.ends(End::Signal(15), 1_000);
    assert_eq!(driver.session.state(), State::Running, "while the headless run ends");
    assert_eq!(driver.count(done(TakeoverEnd::CallerGone)), 1);

    let mut driver = chat();
    driver.ask(TAKEOVER);
    driver.send(Event::ConsumerLeft { consumer: ConsumerId(99) });
    driver.ends(End::Signal(15), 1_000);
    assert_eq!(driver.session.state(), State::Held, "somebody else's going means nothing");
    driver.send(leave);
    assert_eq!(driver.session.state(), State::Held, "a terminal outlives the pane it was opened from");
}

#[test]
fn a_terminal_program_that_is_missing_brings_the_headless_run_back() {
    let mut driver = chat();
    driver.message();
    driver.ask(TAKEOVER);
    driver.answers();
    driver.pass(1_000);
    let run = driver.run();
    let event = RunEvent::Exited {
        ended: crate::driver::ended(End::Signal(15), 1_000),
        shim: pinfold_core::event::Shim::Standing,
        holder: None,
    };
    driver.hear(Event::Run { run, event });
    let terminal = driver.run();
    let cause = CannotStart::ProgramMissing { program: "claude".into() };
    driver.of_run(terminal, RunEvent::StartFailed(StartFailure::Hopeless(cause)));
    assert_eq!((driver.session.state(), driver.crashes()), (State::Running, 0));
    assert_eq!(driver.count(done(TakeoverEnd::CannotStart)), 1);
}

#[test]
fn a_lock_that_is_busy_ends_the_takeover_where_it_began() {
    let mut driver = in_state(State::Stopped);
    driver.hear(Event::Asked(TAKEOVER));
    let run = driver.run();
    driver.hear(Event::Run { run, event: RunEvent::LockBusy { holder: None } });
    assert_eq!((driver.session.state(), driver.count(done(TakeoverEnd::Busy))), (State::Stopped, 1));
}

#[test]
fn a_stopped_session_is_stopped_again_after_its_terminal() {
    let mut driver = in_state(State::Stopped);
    driver.ask(TAKEOVER);
    driver.message();
    driver.ends(End::Code(0), 60_000);
    assert_eq!((driver.session.state(), driver.session.inbox().queued()), (State::Stopped, 1));
}

#[test]
fn two_takeovers_at_once_are_one() {
    let mut driver = chat();
    driver.message();
    driver.takes();
    driver.ask(TAKEOVER);
    driver.ask(Ask::Takeover { consumer: ConsumerId(2), urgent: true });
    assert_eq!(driver.answer, Some(Answer::Joined));
    assert_eq!(driver.session.takeover().expect("one").consumer, ME);
    driver.answers();
    driver.ends(End::Signal(15), 1_000);
    driver.ask(Ask::Takeover { consumer: ConsumerId(2), urgent: false });
    assert_eq!((driver.answer.clone(), driver.session.state()), (Some(Answer::Joined), State::Held));
}

#[test]
fn a_run_that_dies_of_the_interrupt_of_an_urgent_takeover_did_not_crash() {
    let mut driver = chat();
    let message = driver.message();
    driver.takes();
    driver.ask(URGENT);
    driver.ends(End::Signal(2), 1_000);
    assert_eq!((driver.session.state(), driver.crashes()), (State::Held, 0));
    let next = driver.session.inbox().deliverable().expect("requeued");
    assert_eq!((next.message, next.tries), (message, 0));
}

#[test]
fn a_crash_while_a_terminal_waits_gives_it_its_place_at_once() {
    let mut driver = chat();
    driver.message();
    driver.takes();
    driver.ask(TAKEOVER);
    driver.exits(1);
    assert_eq!((driver.session.state(), driver.crashes()), (State::Held, 1));
}

#[test]
fn a_daemon_killed_in_the_middle_brings_the_headless_run_back() {
    let mut driver = chat();
    driver.message();
    driver.ask(TAKEOVER);
    driver.answers();
    let run = driver.run();
    let exits = vec![(run, crate::driver::ended(End::Signal(15), 1_000))];
    driver.daemon_restarts(ShimSeen::Standing, exits);
    assert_eq!(driver.session.state(), State::Running);
    let purposes = |action: &Action| matches!(action, Action::Spawn { purpose: Purpose::Interactive(_), .. });
    assert!(!driver.actions.iter().any(purposes));
}

#[test]
fn a_held_session_that_is_stopped_or_restarted_obeys() {
    let mut driver = in_state(State::Held);
    driver.ask(Ask::Stop { grace: None });
    driver.ends(End::Signal(15), 1_000);
    assert_eq!(driver.session.state(), State::Stopped);
    let mut driver = in_state(State::Held);
    driver.ask(Ask::Restart);
    driver.ends(End::Signal(15), 1_000);
    assert_eq!(driver.session.state(), State::Running);
}

#[test]
fn a_takeover_ends_with_a_run_that_gives_way_to_another_program() {
    let mut driver = chat();
    driver.message();
    driver.ask(TAKEOVER);
    driver.of_run(driver.run(), RunEvent::VendorBusy { holder: None });
    assert_eq!(driver.session.takeover(), None);
    assert_eq!(driver.count(done(TakeoverEnd::Busy)), 1);
}
