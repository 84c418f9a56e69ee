//! Messages, consumers, need, parking and waking.

use crate::driver::{Driver, End, always, on_demand};
use pinfold_core::decision::{Answer, Record, Refusal, Wakes};
use pinfold_core::event::{Ask, ConsumerKind, MessageEvent, RunEvent, Shim, TurnEnd};
use pinfold_core::exit::{Ended, Exit};
use pinfold_core::inbox::{MOST_QUEUED, MessageFailure, Queued, Read};
use pinfold_core::session::Need;
use pinfold_core::{Action, ConsumerId, Event, MessageId, Mode, Policy, Spec, State};
use std::time::Duration;

const WATCHER: ConsumerId = ConsumerId(1);

fn joined(consumer: ConsumerId, kind: ConsumerKind) -> Event {
    Event::ConsumerJoined { consumer, kind }
}

fn sent(message: u128, key: &str, known: Option<MessageId>) -> Event {
    Event::Message(MessageEvent::Sent { message: MessageId(message), key: Some(key.into()), known })
}

#[test]
fn an_on_demand_session_that_nobody_needs_never_runs() {
    let mut driver = on_demand();
    for _ in 0..100 {
        driver.pass(60_000);
        driver.send(Event::Ticked);
    }
    assert_eq!(
        (driver.session.state(), driver.starts, driver.session.next_deadline()),
        (State::Idle, 0, None)
    );
}

#[test]
fn a_watcher_wakes_nobody_and_an_attach_does() {
    let mut driver = on_demand();
    driver.send(joined(WATCHER, ConsumerKind::Watch));
    assert_eq!((driver.session.state(), driver.session.consumers()), (State::Idle, 1));
    driver.send(joined(ConsumerId(2), ConsumerKind::Attach));
    assert_eq!(
        (driver.session.state(), driver.session.need(driver.now.boot)),
        (State::Running, Some(Need::Attach))
    );
}

#[test]
fn the_idle_time_starts_when_the_last_reason_ends_and_anybody_connected_delays_it() {
    let mut driver = on_demand();
    driver.message();
    driver.pass(600_000);
    assert_eq!(driver.session.next_deadline(), None, "a turn is under way");
    driver.send(joined(WATCHER, ConsumerKind::Watch));
    driver.answers();
    driver.pass(600_000);
    assert_eq!(driver.session.next_deadline(), None, "somebody watches");
    driver.send(Event::ConsumerLeft { consumer: WATCHER });
    assert_eq!(driver.wait(), Duration::from_secs(300));
    assert_eq!(driver.session.state(), State::Stopping);
    let before = driver.session.budgets().clone();
    driver.ends(End::Signal(15), 1_000);
    assert_eq!(
        (driver.session.state(), driver.session.budgets()),
        (State::Idle, &before),
        "parking is free of charge"
    );
    assert_eq!(driver.count(|record| *record == Record::Parked), 1);
}

#[test]
fn a_message_that_comes_while_parking_gets_a_run() {
    let mut driver = on_demand();
    driver.message();
    driver.answers();
    driver.wait();
    assert_eq!(driver.session.state(), State::Stopping);
    driver.message();
    assert_eq!(driver.session.state(), State::Stopping, "the old run ends first");
    driver.ends(End::Signal(15), 1_000);
    assert_eq!(driver.session.state(), State::Running);
    assert!(driver.session.inbox().in_flight().is_some());
}

#[test]
fn idle_message_running_a_thousand_times() {
    let mut driver = on_demand();
    for round in 1..=1_000 {
        driver.message();
        driver.answers();
        driver.wait();
        driver.ends(End::Signal(15), 1_000);
        assert_eq!((driver.session.state(), driver.starts), (State::Idle, round));
    }
    assert_eq!((driver.session.inbox().settled(), driver.crashes()), ((1_000, 0), 0));
}

#[test]
fn a_run_that_ends_under_a_watcher_goes_to_idle_whatever_it_ends_with() {
    for code in [0, 1, 75] {
        let mut driver = on_demand();
        driver.message();
        driver.answers();
        driver.send(joined(WATCHER, ConsumerKind::Watch));
        driver.exits(code);
        assert_eq!(
            (driver.session.state(), driver.session.next_deadline()),
            (State::Idle, None),
            "code {code}"
        );
    }
}

#[test]
fn messages_are_delivered_in_order_one_turn_at_a_time() {
    let mut driver = on_demand();
    let sent: Vec<MessageId> = (0..5).map(|_| driver.message()).collect();
    assert_eq!(driver.actions.iter().filter(|action| matches!(action, Action::Deliver { .. })).count(), 1);
    let answered: Vec<MessageId> = (0..5).map(|_| driver.answers()).collect();
    assert_eq!(sent, answered);
}

#[test]
fn a_crash_in_mid_turn_redelivers_and_the_bound_holds() {
    let mut driver = always(Policy::default());
    let message = driver.message();
    for attempt in 1..=3 {
        assert_eq!(driver.takes(), message);
        let delivered = Record::MessageDelivered { message, attempt };
        assert_eq!(driver.count(|record| *record == delivered), 1);
        driver.ends_and_waits(End::Code(1), 1_000);
    }
    assert_eq!(driver.session.inbox().settled(), (0, 1));
    let failed = Record::MessageFailed { message, why: MessageFailure::TriesUsedUp };
    assert_eq!(driver.count(|record| *record == failed), 1);
    assert_eq!(driver.session.inbox().in_flight(), None);
}

#[test]
fn a_clean_exit_in_mid_turn_costs_a_try_as_well() {
    let mut driver = always(Policy { message_tries: 1, ..Policy::default() });
    driver.message();
    driver.takes();
    driver.exits(0);
    assert_eq!(driver.session.inbox().settled(), (0, 1));
}

#[test]
fn a_turn_that_never_began_costs_no_try() {
    let mut driver = always(Policy { message_tries: 1, ..Policy::default() });
    driver.message();
    for _ in 0..5 {
        driver.ends_and_waits(End::Code(1), 1_000);
    }
    let turn = driver.session.inbox().in_flight().expect("still to be delivered");
    assert_eq!((turn.tries, turn.taken), (0, false));
}

#[test]
fn stop_park_drain_restart_and_contention_cost_no_try() {
    let policy = Policy { message_tries: 1, ..Policy::default() };
    let drain = RunEvent::MemoryRead {
        reading: pinfold_core::rules::memory::Reading::Bytes(10),
        source: pinfold_core::rules::memory::ReadingSource::Cgroup,
    };
    let cut_short: [fn(&mut Driver, &RunEvent); 4] = [
        |driver, _| {
            driver.ask(Ask::Stop { grace: None });
        },
        |driver, _| {
            driver.ask(Ask::Restart);
        },
        |driver, drain| {
            driver.of_run(driver.run(), drain.clone());
        },
        |_, _| {},
    ];
    for (at, cut) in cut_short.iter().enumerate() {
        let mut driver =
            Driver::new(Spec { policy: policy.clone(), memory_limit: Some(10), ..Spec::new(Mode::Always) });
        driver.message();
        driver.takes();
        cut(&mut driver, &drain);
        driver.exits(75);
        assert_eq!(driver.session.inbox().settled(), (0, 0), "row {at}");
        let inbox = driver.session.inbox();
        let tries = inbox.deliverable().map(|next| next.tries).or(inbox.in_flight().map(|turn| turn.tries));
        assert_eq!(tries, Some(0), "row {at}");
    }
}

#[test]
fn the_same_key_twice_is_one_message_even_after_it_is_done() {
    let mut driver = on_demand();
    driver.send(sent(1, "deploy", None));
    driver.answers();
    driver.send(sent(2, "deploy", Some(MessageId(1))));
    assert_eq!(driver.answer, Some(Answer::Queued { message: MessageId(1), wakes: Wakes::Yes }));
    assert_eq!((driver.session.inbox().queued(), driver.session.inbox().settled()), (0, (1, 0)));
    driver.send(sent(3, "another", None));
    assert_eq!(driver.answers(), MessageId(3));
}

#[test]
fn a_late_answer_is_never_the_answer_to_the_next_message() {
    let mut driver = on_demand();
    let first = driver.message();
    driver.takes();
    let run = driver.run();
    driver.send(Event::Message(MessageEvent::TurnEnded { run, message: first, how: TurnEnd::Failed }));
    let second = driver.message();
    driver.takes();
    let late = MessageEvent::TurnEnded { run, message: first, how: TurnEnd::Answered };
    assert_eq!(driver.send(Event::Message(late)).why.rule(), "stale");
    assert_eq!(driver.session.inbox().in_flight().expect("a turn").message, second);
}

#[test]
fn what_a_message_does_depends_on_the_state_and_is_said() {
    let mut driver = on_demand();
    driver.ask(Ask::Stop { grace: None });
    driver.message();
    assert!(matches!(driver.answer, Some(Answer::Queued { wakes: Wakes::NotWhileStopped, .. })));
    assert_eq!((driver.session.state(), driver.session.inbox().queued()), (State::Stopped, 1));

    driver.ask(Ask::Start);
    assert!(driver.session.inbox().in_flight().is_some(), "delivered once it is started");

    driver.takes();
    driver.exits(78);
    assert_eq!(driver.session.state(), State::Failed);
    driver.message();
    assert_eq!(driver.session.state(), State::Running, "a message gives a failed session one try");
    driver.exits(78);
    assert_eq!(driver.session.state(), State::Failed);
    assert_eq!(driver.session.inbox().queued(), 2);

    driver.ask(Ask::Archive);
    driver.message();
    assert_eq!(driver.answer, Some(Answer::Refused(Refusal::Archived)));
}

#[test]
fn a_message_ends_a_wait_at_once() {
    let mut driver = always(Policy::default());
    for _ in 0..8 {
        driver.ends_and_waits(End::Code(1), 1_000);
    }
    driver.ends(End::Code(1), 1_000);
    assert_eq!(driver.session.state(), State::Backoff);
    driver.message();
    assert_eq!((driver.session.state(), driver.crashes()), (State::Running, 9), "the streak stays");
}

/// What becomes of the next message.
fn wakes(driver: &mut Driver) -> Wakes {
    driver.message();
    match driver.answer {
        Some(Answer::Queued { wakes, .. }) => wakes,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn messages_end_one_backoff_of_a_streak_and_then_wait() {
    let mut driver = on_demand();
    driver.message();
    driver.takes();
    driver.ends(End::Code(1), 10);
    assert_eq!((wakes(&mut driver), driver.session.state()), (Wakes::Yes, State::Running));
    driver.ends(End::Code(1), 10);
    let starts = driver.starts;
    for _ in 0..60 {
        assert_eq!(wakes(&mut driver), Wakes::NotInBackoff);
    }
    assert_eq!((driver.session.state(), driver.starts), (State::Backoff, starts));
    assert!(driver.session.explain(driver.now).contains("`start` runs it now"));
    driver.wait();
    assert_eq!((driver.session.state(), driver.starts), (State::Running, starts + 1));
    // A run that is stable begins a new streak, which a message may shorten once again.
    driver.ends(End::Code(1), 300_001);
    driver.ends(End::Code(1), 10);
    assert_eq!(wakes(&mut driver), Wakes::Yes);
}

#[test]
fn a_wait_that_a_crash_calls_for_is_kept_even_if_nothing_needed_the_session_then() {
    // The message was done before the crash, as with `--turns line`.
    let crash = |driver: &mut Driver| {
        driver.answers();
        driver.ends(End::Code(1), 10);
        assert_eq!(driver.session.state(), State::Idle);
    };
    let mut driver = on_demand();
    driver.message();
    crash(&mut driver);
    assert_eq!(
        (wakes(&mut driver), driver.session.state()),
        (Wakes::Yes, State::Running),
        "once in a streak"
    );
    crash(&mut driver);
    let starts = driver.starts;
    for _ in 0..60 {
        assert_eq!(wakes(&mut driver), Wakes::NotInBackoff);
    }
    assert_eq!((driver.session.state(), driver.starts), (State::Backoff, starts));
    assert!(driver.session.explain(driver.now).contains("`start` runs it now"));
    assert_eq!(driver.wait().as_secs(), 1);
    assert_eq!((driver.session.state(), driver.starts), (State::Running, starts + 1));
    for _ in 0..59 {
        driver.answers();
    }
    crash(&mut driver);
    driver.pass(2_000);
    assert_eq!((wakes(&mut driver), driver.session.state()), (Wakes::Yes, State::Running), "it was over");
    crash(&mut driver);
    assert_eq!(wakes(&mut driver), Wakes::NotInBackoff);
    driver.ask(Ask::Start);
    assert_eq!(driver.session.state(), State::Running, "a person does not wait");
}

#[test]
fn a_clean_exit_does_not_let_messages_end_another_backoff_of_the_streak() {
    let mut driver = on_demand();
    driver.message();
    driver.ends(End::Code(1), 10);
    assert_eq!(wakes(&mut driver), Wakes::Yes);
    driver.ends(End::Code(0), 10);
    driver.ends(End::Code(1), 10);
    assert_eq!(wakes(&mut driver), Wakes::NotInBackoff);
}

#[test]
fn a_failed_session_has_its_try_even_if_a_message_ended_a_backoff_before() {
    let mut driver = Driver::new(Spec {
        policy: Policy { crash_hard_limit: 2, ..Policy::default() },
        ..Spec::new(Mode::OnDemand)
    });
    driver.message();
    driver.ends(End::Code(1), 10);
    assert_eq!(wakes(&mut driver), Wakes::Yes);
    driver.ends(End::Code(1), 10);
    assert_eq!((driver.session.state(), wakes(&mut driver)), (State::Failed, Wakes::Yes));
    driver.ends(End::Code(1), 10);
    assert_eq!((driver.session.state(), wakes(&mut driver)), (State::Failed, Wakes::NotWhileFailed));
}

#[test]
fn a_session_blocked_by_a_lock_of_the_vendors_has_one_try_by_message_in_each_wait() {
    let mut driver = on_demand();
    driver.message();
    for _ in 0..5 {
        driver.ends_and_waits(End::Code(75), 10);
    }
    for wait in 0..3 {
        driver.ends(End::Code(75), 10);
        assert_eq!(driver.session.state(), State::Blocked, "{wait}");
        wakes(&mut driver);
        assert_eq!(driver.session.state(), State::Running, "{wait}");
        driver.ends(End::Code(75), 10);
        let starts = driver.starts;
        for _ in 0..60 {
            assert_eq!(wakes(&mut driver), Wakes::NotWhileBlocked);
        }
        assert_eq!((driver.session.state(), driver.starts), (State::Blocked, starts), "{wait}");
        let why = driver.session.explain(driver.now);
        assert!(why.contains("`start` runs it now, more messages do not"), "{why}");
        assert_eq!(driver.wait().as_secs(), 600);
    }
}

#[test]
fn a_message_that_the_agent_did_not_take_from_the_pipe_never_fails() {
    let mut driver = on_demand();
    let message = driver.message();
    for _ in 0..20 {
        assert_eq!(driver.takes(), message);
        let ended = Ended { read: Read::Never, ..Ended::new(Exit::Code(1), Duration::from_millis(10)) };
        let event = RunEvent::Exited { ended, shim: Shim::Standing, holder: None };
        driver.of_run(driver.run(), event);
        driver.wait();
    }
    assert_eq!(driver.session.inbox().settled(), (0, 0));
    assert_eq!(driver.session.inbox().in_flight().map(|turn| (turn.tries, turn.repeated)), Some((0, false)));
}

#[test]
fn a_failed_session_has_one_try_by_message_until_it_is_started_or_changed() {
    let mut driver = on_demand();
    driver.message();
    driver.exits(78);
    for renewed in [Event::Asked(Ask::Start), Event::SpecChanged(Box::new(Spec::new(Mode::OnDemand)))] {
        assert_eq!((wakes(&mut driver), driver.session.state()), (Wakes::Yes, State::Running));
        driver.exits(78);
        assert_eq!((wakes(&mut driver), driver.session.state()), (Wakes::NotWhileFailed, State::Failed));
        assert!(driver.session.explain(driver.now).contains("; `start` tries again"));
        let starts = renewed == Event::Asked(Ask::Start);
        driver.send(renewed);
        if starts {
            driver.exits(78);
        }
    }
    assert!(driver.session.explain(driver.now).contains("; `start` or a message tries again"));
}

#[test]
fn a_cancelled_message_is_not_delivered_and_a_retried_one_is() {
    let mut driver = on_demand();
    driver.message();
    let second = driver.message();
    driver.send(Event::Message(MessageEvent::Cancelled { message: second }));
    assert_eq!((driver.answer.clone(), driver.session.inbox().queued()), (Some(Answer::Done), 0));
    driver.send(Event::Message(MessageEvent::Cancelled { message: second }));
    assert_eq!(driver.answer, Some(Answer::Refused(Refusal::NoSuchMessage)));
    driver.answers();
    driver.send(Event::Message(MessageEvent::Retried {
        message: second,
        read: pinfold_core::inbox::Read::Maybe,
    }));
    assert_eq!(driver.answers(), second);
    assert_eq!(driver.session.inbox().settled(), (2, 0));
}

#[test]
fn a_message_that_waits_and_cannot_be_delivered_fails_and_one_that_has_its_turn_does_not() {
    let mut driver = on_demand();
    let first = driver.message();
    let second = driver.message();
    for message in [first, second, second] {
        driver.send(Event::Message(MessageEvent::Undeliverable { message }));
    }
    assert_eq!((driver.session.inbox().queued(), driver.session.inbox().settled()), (0, (0, 1)));
    assert_eq!(driver.answers(), first);
    assert_eq!(driver.session.inbox().settled(), (1, 1));
}

#[test]
fn need_that_goes_away_during_a_wait_ends_it_at_rest() {
    let mut driver = on_demand();
    driver.send(joined(WATCHER, ConsumerKind::Attach));
    for _ in 0..3 {
        driver.ends(End::Code(1), 500);
        if driver.session.state() == State::Backoff {
            driver.wait();
        }
    }
    driver.ends(End::Code(1), 500);
    driver.send(Event::ConsumerLeft { consumer: WATCHER });
    assert_eq!((driver.session.state(), driver.session.next_deadline()), (State::Idle, None));
}

#[test]
fn an_idle_time_of_zero_parks_at_once_and_loses_nothing() {
    let policy = Policy { idle_after: Duration::ZERO, ..Policy::default() };
    let mut driver = Driver::new(Spec { policy, ..Spec::new(Mode::OnDemand) });
    driver.message();
    driver.answers();
    assert_eq!(driver.wait(), Duration::ZERO);
    driver.ends(End::Signal(15), 10);
    assert_eq!(driver.session.state(), State::Idle);
    driver.message();
    driver.answers();
    assert_eq!(driver.session.inbox().settled(), (2, 0));
}

#[test]
fn beyond_the_bound_a_message_is_refused_and_nothing_else_changes() {
    let mut driver = on_demand();
    driver.ask(Ask::Stop { grace: None });
    (0..MOST_QUEUED).for_each(|_| _ = driver.message());
    driver.message();
    assert_eq!(driver.answer, Some(Answer::Refused(Refusal::InboxFull)));
    assert_eq!(driver.session.inbox().queued(), MOST_QUEUED);
}

#[test]
fn what_is_stored_of_a_session_does_not_grow_with_its_messages() {
    let stored = |driver: &Driver| serde_json::to_string(&driver.session).map_or(0, |text| text.len());
    let mut driver = on_demand();
    driver.message();
    let before = stored(&driver);
    (0..100).for_each(|_| _ = driver.message());
    assert_eq!(stored(&driver), before);
}

#[test]
fn the_queue_is_put_back_in_its_order_behind_the_turn_under_way() {
    let mut driver = on_demand();
    (0..4).for_each(|_| _ = driver.message());
    driver.takes();
    let waiting: Vec<_> = driver.session.inbox().waiting().collect();
    let turn = driver.session.inbox().in_flight().expect("a turn");
    let mut loaded = driver.session.as_stored();
    // The store does not tell the message in its turn from those that wait.
    let current = Queued { message: turn.message, tries: turn.tries };
    loaded.refill([current].into_iter().chain(waiting.iter().copied()));
    assert_eq!(loaded.inbox(), driver.session.inbox());
}

#[test]
fn a_retried_message_is_delivered_again_in_the_same_run() {
    let mut driver = on_demand();
    let message = driver.message();
    driver.takes();
    let run = driver.run();
    let first = driver.session.inbox().in_flight().expect("a turn").delivery;
    driver.send(Event::Message(MessageEvent::TurnEnded { run, message, how: TurnEnd::Failed }));
    driver.send(Event::Message(MessageEvent::Retried { message, read: pinfold_core::inbox::Read::Maybe }));
    let again = driver.session.inbox().in_flight().expect("its turn again");
    assert_eq!((again.message, again.tries, driver.run()), (message, 0, run));
    assert!(again.delivery > first, "a shim must not take it for the delivery that it knows");
}

#[test]
fn a_retried_message_is_a_repetition_unless_no_agent_has_read_it() {
    use pinfold_core::inbox::Read;
    for (read, repeated) in [(Read::Maybe, true), (Read::Never, false)] {
        let mut driver = on_demand();
        let message = driver.message();
        driver.takes();
        let run = driver.run();
        driver.send(Event::Message(MessageEvent::TurnEnded { run, message, how: TurnEnd::Failed }));
        let other = driver.message();
        driver.send(Event::Message(MessageEvent::Retried { message, read }));
        assert_eq!(driver.session.inbox().is_repeated(message), repeated, "it waits");
        let stored: pinfold_core::inbox::Inbox =
            serde_json::from_value(serde_json::to_value(driver.session.inbox()).unwrap()).unwrap();
        assert_eq!(stored.is_repeated(message), repeated, "a daemon that loads it knows");
        driver.takes();
        driver.send(Event::Message(MessageEvent::TurnEnded { run, message: other, how: TurnEnd::Failed }));
        let again = driver.session.inbox().in_flight().expect("its turn again");
        assert_eq!((again.message, again.repeated), (message, repeated));
        assert!(!driver.session.inbox().is_repeated(message), "it is known of the turn now");
    }
}
