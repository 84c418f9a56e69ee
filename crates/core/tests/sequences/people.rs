//! People's requests, in every state.

use crate::driver::{Driver, End, always, on_demand};
use pinfold_core::decision::{Answer, Record, Refusal};
use pinfold_core::event::{Ask, ConsumerKind, RunEvent};
use pinfold_core::life::IdleSince;
use pinfold_core::{Action, ConsumerId, Event, Life, Mode, Policy, Spec, State};
use std::time::Duration;

const STOP: Ask = Ask::Stop { grace: None };

/// Brings a session into a state, by events as they really occur.
pub(crate) fn in_state(state: State) -> Driver {
    let spec = Spec { interactive: true, ..Spec::new(Mode::OnDemand) };
    let mut driver = Driver::new(spec);
    let start = Event::Asked(Ask::Start);
    match state {
        State::Idle => {}
        State::Starting => _ = driver.hear(start),
        State::Running => _ = driver.send(start),
        State::Held => _ = driver.ask(Ask::Takeover { consumer: ConsumerId(9), urgent: false }),
        State::Stopping => {
            driver.send(start);
            driver.ask(Ask::Restart);
        }
        State::Backoff => {
            driver.send(start);
            driver.ends(End::Code(1), 500);
        }
        State::Blocked => {
            driver.hear(start);
            let run = driver.run();
            driver.hear(Event::Run { run, event: RunEvent::LockBusy { holder: None } });
        }
        State::Stopped => _ = driver.ask(STOP),
        State::Failed => {
            driver.send(start);
            driver.exits(78);
        }
        State::Archived => _ = driver.ask(Ask::Archive),
    }
    assert_eq!(driver.session.state(), state);
    driver
}

pub(crate) const STATES: [State; 10] = [
    State::Idle,
    State::Starting,
    State::Running,
    State::Held,
    State::Stopping,
    State::Backoff,
    State::Blocked,
    State::Stopped,
    State::Failed,
    State::Archived,
];

/// Returns the answer to a request, and the state right after it.
fn answers(ask: Ask) -> Vec<(State, Option<Answer>, State)> {
    STATES
        .into_iter()
        .map(|state| {
            let mut driver = in_state(state);
            driver.answer = None;
            driver.ask(ask);
            (state, driver.answer.clone(), driver.session.state())
        })
        .collect()
}

fn check(ask: Ask, expected: [(Answer, State); 10]) {
    for ((from, answer, to), (wanted, state)) in answers(ask).into_iter().zip(expected) {
        assert_eq!((answer, to), (Some(wanted), state), "{ask:?} in {from:?}");
    }
}

#[test]
fn start_in_every_state() {
    check(
        Ask::Start,
        [
            (Answer::UnderWay, State::Running),
            (Answer::Already, State::Starting),
            (Answer::Already, State::Running),
            (Answer::Already, State::Held),
            (Answer::UnderWay, State::Stopping),
            (Answer::UnderWay, State::Running),
            (Answer::UnderWay, State::Running),
            (Answer::UnderWay, State::Running),
            (Answer::UnderWay, State::Running),
            (Answer::Refused(Refusal::Archived), State::Archived),
        ],
    );
}

#[test]
fn stop_in_every_state() {
    check(
        STOP,
        [
            (Answer::Done, State::Stopped),
            (Answer::Done, State::Stopped),
            (Answer::UnderWay, State::Stopping),
            (Answer::UnderWay, State::Stopping),
            (Answer::UnderWay, State::Stopping),
            (Answer::Done, State::Stopped),
            (Answer::Done, State::Stopped),
            (Answer::Already, State::Stopped),
            (Answer::Done, State::Stopped),
            (Answer::Already, State::Archived),
        ],
    );
}

#[test]
fn restart_in_every_state() {
    check(
        Ask::Restart,
        [
            (Answer::UnderWay, State::Running),
            (Answer::Joined, State::Starting),
            (Answer::UnderWay, State::Stopping),
            (Answer::UnderWay, State::Stopping),
            (Answer::Joined, State::Stopping),
            (Answer::UnderWay, State::Running),
            (Answer::UnderWay, State::Running),
            (Answer::UnderWay, State::Running),
            (Answer::UnderWay, State::Running),
            (Answer::Refused(Refusal::Archived), State::Archived),
        ],
    );
}

#[test]
fn archive_in_every_state() {
    check(
        Ask::Archive,
        [
            (Answer::Done, State::Archived),
            (Answer::UnderWay, State::Archived),
            (Answer::UnderWay, State::Stopping),
            (Answer::UnderWay, State::Stopping),
            (Answer::UnderWay, State::Stopping),
            (Answer::Done, State::Archived),
            (Answer::Done, State::Archived),
            (Answer::Done, State::Archived),
            (Answer::Done, State::Archived),
            (Answer::Already, State::Archived),
        ],
    );
}

#[test]
fn restore_and_interrupt_say_when_there_is_nothing_to_do() {
    for (state, answer, _) in answers(Ask::Restore) {
        let expected =
            if state == State::Archived { Answer::Done } else { Answer::Refused(Refusal::NotArchived) };
        assert_eq!(answer, Some(expected), "{state:?}");
    }
    for (state, answer, after) in answers(Ask::Interrupt) {
        assert_eq!((answer, after), (Some(Answer::Refused(Refusal::NoTurn)), state));
    }
}

#[test]
fn a_stop_outranks_every_rule() {
    for state in STATES {
        let mut driver = in_state(state);
        driver.ask(STOP);
        if driver.session.live_run().is_some() {
            driver.ends(End::Code(1), 100);
        }
        let starts = driver.starts;
        for event in [Event::Ticked, Event::HolderGone, Event::ShimLeft] {
            driver.pass(3_600_000);
            driver.send(event);
        }
        let expected = if state == State::Archived { State::Archived } else { State::Stopped };
        assert_eq!((driver.session.state(), driver.starts), (expected, starts), "from {state:?}");
    }
}

#[test]
fn ten_restarts_at_once_end_with_one_run() {
    let mut driver = always(Policy::default());
    for _ in 0..10 {
        driver.ask(Ask::Restart);
    }
    driver.ends(End::Signal(15), 1_000);
    assert_eq!((driver.session.state(), driver.starts), (State::Running, 2));
}

#[test]
fn a_second_stop_with_a_shorter_grace_is_passed_on() {
    let mut driver = always(Policy::default());
    let run = driver.run();
    driver.ask(STOP);
    let decision = driver.ask(Ask::Stop { grace: Some(Duration::ZERO) });
    assert_eq!(decision.actions, [Action::Stop { run, grace: Duration::ZERO }]);
}

#[test]
fn a_start_by_a_person_begins_a_new_streak_and_keeps_an_on_demand_run_for_one_idle_time() {
    let mut driver = in_state(State::Backoff);
    assert_eq!(driver.crashes(), 1);
    driver.ask(Ask::Start);
    assert_eq!(driver.crashes(), 0);
    assert_eq!(driver.wait(), Duration::from_secs(300));
    assert_eq!(driver.session.state(), State::Stopping, "one idle time, not two");
}

#[test]
fn what_was_drained_stays_drained_when_a_person_says_stop_meanwhile() {
    let mut driver = Driver::new(Spec { memory_limit: Some(10), ..Spec::new(Mode::Always) });
    let event = RunEvent::MemoryRead {
        reading: pinfold_core::rules::memory::Reading::Bytes(10),
        source: pinfold_core::rules::memory::ReadingSource::Cgroup,
    };
    driver.of_run(driver.run(), event);
    driver.ask(STOP);
    driver.ends(End::Signal(15), 1_000);
    assert_eq!(driver.session.state(), State::Stopped);
    let drained = |record: &Record| matches!(record, Record::RunExited(exit) if exit.verdict == pinfold_core::Verdict::Drained);
    assert_eq!(driver.count(drained), 1);
}

#[test]
fn archived_stays_archived_and_comes_back_parked() {
    for mode in [Mode::OnDemand, Mode::Always, Mode::Once] {
        let mut driver = Driver::new(Spec::new(mode));
        driver.ask(Ask::Archive);
        if driver.session.live_run().is_some() {
            driver.ends(End::Signal(15), 1_000);
        }
        let starts = driver.starts;
        for _ in 0..3 {
            driver.daemon_restarts(pinfold_core::event::ShimSeen::Nobody, Vec::new());
            assert_eq!((driver.session.state(), driver.starts), (State::Archived, starts));
        }
        driver.ask(Ask::Restore);
        assert_eq!(driver.session.life(), &Life::Idle { since: IdleSince::Restored }, "{mode:?}");
        driver.ask(Ask::Start);
        assert_eq!(driver.session.state(), State::Running);
    }
}

#[test]
fn the_archive_keeps_the_queue_and_costs_the_message_in_flight_no_try() {
    let mut driver = on_demand();
    let first = driver.message();
    driver.message();
    driver.takes();
    driver.ask(Ask::Archive);
    driver.ends(End::Signal(15), 1_000);
    let waiting: Vec<_> = driver.session.inbox().waiting().collect();
    assert_eq!((waiting.len(), waiting[0].message, waiting[0].tries), (2, first, 0));
    driver.ask(Ask::Restore);
    assert_eq!(driver.answers(), first);
}

#[test]
fn purge_spares_the_active_says_why_and_is_idempotent() {
    let purge = Ask::Purge { include_active: false, own: false };
    let refused = |driver: &mut Driver, ask: Ask| {
        driver.ask(ask);
        driver.answer.clone()
    };
    let mut driver = on_demand();
    driver.send(Event::ConsumerJoined { consumer: ConsumerId(1), kind: ConsumerKind::Watch });
    assert_eq!(refused(&mut driver, purge), Some(Answer::Refused(Refusal::Connected)));
    driver.send(Event::ConsumerLeft { consumer: ConsumerId(1) });
    driver.message();
    assert_eq!(refused(&mut driver, purge), Some(Answer::Refused(Refusal::TurnUnderWay)));
    driver.answers();
    let own = Ask::Purge { include_active: false, own: true };
    assert_eq!(refused(&mut driver, own), Some(Answer::Refused(Refusal::Own)));
    driver.ask(STOP);
    driver.ends(End::Signal(15), 1_000);
    driver.message();
    assert_eq!(refused(&mut driver, purge), Some(Answer::Refused(Refusal::MessageQueued)));
    let all = Ask::Purge { include_active: true, own: true };
    assert_eq!(refused(&mut driver, all), Some(Answer::Done));
    assert_eq!(refused(&mut driver, all), Some(Answer::Already));
    assert_eq!(driver.count(|record| *record == Record::Purged), 1);
    assert_eq!(driver.session.inbox().queued(), 1);
}

#[test]
fn a_changed_definition_takes_effect_with_the_next_run() {
    let mut driver = always(Policy::default());
    let changed = Spec { memory_limit: Some(7), ..Spec::new(Mode::Always) };
    driver.send(Event::SpecChanged(Box::new(changed.clone())));
    assert_eq!((driver.session.spec().memory_limit, driver.session.next_spec()), (None, Some(&changed)));
    driver.exits(0);
    assert_eq!((driver.session.spec().memory_limit, driver.session.next_spec()), (Some(7), None));

    let mut driver = on_demand();
    driver.send(Event::SpecChanged(Box::new(Spec::new(Mode::Always))));
    assert_eq!(driver.session.state(), State::Running, "without a run that is now");
}

#[test]
fn nothing_starts_once_the_daemon_goes_down() {
    for state in STATES {
        let mut driver = in_state(state);
        driver.hear(Event::DownAsked);
        if driver.session.live_run().is_some() {
            driver.ends(End::Signal(15), 1_000);
        }
        let starts = driver.starts;
        driver.ask(Ask::Start);
        driver.message();
        driver.send(Event::HolderGone);
        driver.pass(3_600_000);
        driver.send(Event::Ticked);
        assert_eq!((driver.session.live_run(), driver.starts), (None, starts), "from {state:?}");
    }
}

#[test]
fn a_persons_start_does_not_outlive_the_daemon_that_heard_it() {
    for state in [State::Running, State::Backoff, State::Blocked, State::Starting] {
        let mut driver = in_state(state);
        driver.hear(Event::DownAsked);
        if driver.session.live_run().is_some() {
            driver.ends(End::Signal(15), 10);
        }
        driver.daemon_restarts(pinfold_core::event::ShimSeen::Nobody, Vec::new());
        assert_eq!((state, driver.session.state()), (state, State::Idle));
    }
}
