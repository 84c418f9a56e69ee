//! Attach: one request, its answer in every state, and its progress.

use crate::driver::{Driver, End};
use crate::people::{STATES, in_state};
use pinfold_core::attach::Reached;
use pinfold_core::decision::{Answer, Record, Refusal};
use pinfold_core::event::{Ask, Joins, Machine, ShimSeen};
use pinfold_core::{ConsumerId, Event, Mode, RunNumber, Spec, State, World};

const ME: ConsumerId = ConsumerId(1);

fn attach(joins: Joins, urgent: bool) -> Ask {
    Ask::Attach { consumer: ME, joins, urgent }
}

/// The answer to an attach, the state right after it, and whether the client is counted.
fn answers(joins: Joins, urgent: bool) -> Vec<(State, Option<Answer>, State, bool)> {
    let answer = |state| {
        let mut driver = in_state(state);
        driver.answer = None;
        driver.hear(Event::Asked(attach(joins, urgent)));
        let counted = driver.session.connected().any(|(consumer, _)| consumer == ME);
        (state, driver.answer.clone(), driver.session.state(), counted)
    };
    STATES.into_iter().map(answer).collect()
}

fn refused(state: State, why: Refusal) -> (State, Option<Answer>, State, bool) {
    (state, Some(Answer::Refused(why)), state, false)
}

#[test]
fn a_run_is_joined_woken_or_refused_in_one_decision() {
    let joined = |state, after| (state, Some(Answer::Joined), after, true);
    let expected = [
        joined(State::Idle, State::Starting),
        joined(State::Starting, State::Starting),
        joined(State::Running, State::Running),
        joined(State::Held, State::Held),
        joined(State::Stopping, State::Stopping),
        joined(State::Backoff, State::Backoff),
        refused(State::Blocked, Refusal::Busy),
        refused(State::Stopped, Refusal::Stopped),
        refused(State::Failed, Refusal::Failed),
        refused(State::Archived, Refusal::Archived),
    ];
    assert_eq!(answers(Joins::Terminal, false), expected);
    assert_eq!(answers(Joins::Output, false), expected);
    assert_eq!(answers(Joins::Guest, false), expected);
    let mut urgent = expected.to_vec();
    urgent[5] = (State::Backoff, Some(Answer::UnderWay), State::Starting, true);
    assert_eq!(answers(Joins::Terminal, true), urgent, "only a wait is cut short");
}

#[test]
fn a_takeover_is_begun_joined_or_refused_and_its_asker_counted_in_one_decision() {
    let under_way = |state, after| (state, Some(Answer::UnderWay), after, true);
    let expected = [
        under_way(State::Idle, State::Starting),
        under_way(State::Starting, State::Starting),
        under_way(State::Running, State::Stopping),
        (State::Held, Some(Answer::Joined), State::Held, true),
        under_way(State::Stopping, State::Stopping),
        under_way(State::Backoff, State::Starting),
        refused(State::Blocked, Refusal::Busy),
        under_way(State::Stopped, State::Starting),
        under_way(State::Failed, State::Starting),
        refused(State::Archived, Refusal::Archived),
    ];
    assert_eq!(answers(Joins::Takeover, false), expected);
}

#[test]
fn whoever_attaches_twice_is_counted_once() {
    let mut driver = in_state(State::Running);
    driver.ask(attach(Joins::Terminal, false));
    driver.ask(attach(Joins::Terminal, false));
    assert_eq!(driver.session.consumers(), 1);
    assert_eq!(driver.count(|record| *record == Record::ConsumerJoined { consumer: ME }), 1);
}

#[test]
fn while_a_shim_is_silent_somebody_may_wait_for_it_and_nothing_is_taken_over() {
    let silent = |driver: &mut Driver| {
        let world = World::new(Machine::Same, ShimSeen::Mute, Vec::new());
        driver.hear(Event::DaemonStarted(world));
        driver.answer = None;
    };
    let mut driver = in_state(State::Running);
    silent(&mut driver);
    driver.ask(attach(Joins::Takeover, true));
    assert_eq!(driver.answer, Some(Answer::Refused(Refusal::ShimMute)));
    assert_eq!(driver.session.consumers(), 0);
    driver.ask(attach(Joins::Terminal, true));
    assert_eq!((driver.answer.clone(), driver.session.consumers()), (Some(Answer::Joined), 1));
}

#[test]
fn how_far_an_attach_has_come_is_said_in_every_state() {
    let first = Reached::Terminal(RunNumber(1));
    let never = Reached::Never;
    let expected = [
        (State::Idle, Reached::NotYet, Reached::NoTakeover),
        (State::Starting, Reached::NotYet, Reached::NotYet),
        (State::Running, first, Reached::NoTakeover),
        (State::Held, first, first),
        (State::Stopping, Reached::NotYet, Reached::NotYet),
        (State::Backoff, Reached::NotYet, Reached::NoTakeover),
        (State::Blocked, never(Refusal::Busy), never(Refusal::Busy)),
        (State::Stopped, never(Refusal::Stopped), never(Refusal::Stopped)),
        (State::Failed, never(Refusal::Failed), never(Refusal::Failed)),
        (State::Archived, never(Refusal::Archived), never(Refusal::Archived)),
    ];
    for (state, terminal, takeover) in expected {
        let session = in_state(state).session;
        let reached = (session.reached(Joins::Terminal), session.reached(Joins::Takeover));
        assert_eq!(reached, (terminal, takeover), "in {state:?}");
    }
}

#[test]
fn a_takeover_that_waits_for_a_turn_is_under_way_until_it_is_called_off() {
    let mut driver = Driver::new(Spec { interactive: true, ..Spec::new(Mode::Always) });
    driver.message();
    driver.takes();
    driver.ask(attach(Joins::Takeover, false));
    assert_eq!(driver.session.reached(Joins::Takeover), Reached::NotYet);
    driver.hear(Event::ConsumerLeft { consumer: ME });
    assert_eq!(driver.session.reached(Joins::Takeover), Reached::NoTakeover);
    driver.ask(attach(Joins::Takeover, false));
    driver.answers();
    driver.ends(End::Code(0), 1_000);
    assert_eq!(driver.session.reached(Joins::Takeover), Reached::Terminal(RunNumber(2)));
}
