//! Small print: counts, boundaries and records that no other test would miss.

use crate::driver::{Driver, End, always, ended, on_demand, shortage};
use crate::people::in_state;
use pinfold_core::decision::Record;
use pinfold_core::event::{Ask, ConsumerKind, Machine, RunEvent, Shim, ShimSeen};
use pinfold_core::rules::memory::{Reading, ReadingSource};
use pinfold_core::session::Upcoming;
use pinfold_core::{Action, Boot, ConsumerId, Event, Mode, Policy, Spec, State, World};
use std::time::Duration;

fn released(driver: &Driver) -> usize {
    driver.count(|record| *record == Record::LockReleased)
}

#[test]
fn words_of_the_contract() {
    let states = [
        (State::Idle, "idle"),
        (State::Starting, "starting"),
        (State::Running, "running"),
        (State::Stopping, "stopping"),
        (State::Backoff, "backoff"),
        (State::Blocked, "blocked"),
        (State::Held, "held"),
        (State::Stopped, "stopped"),
        (State::Failed, "failed"),
        (State::Archived, "archived"),
    ];
    for (state, word) in states {
        assert_eq!(state.word(), word);
    }
    let upcoming = [
        (Upcoming::Restart, "restart"),
        (Upcoming::Retry, "retry"),
        (Upcoming::Park, "park"),
        (Upcoming::TakeoverDeadline, "takeover_deadline"),
        (Upcoming::Watchdog, "watchdog"),
        (Upcoming::NotNeeded, "idle"),
    ];
    for (what, word) in upcoming {
        assert_eq!(what.word(), word);
    }
}

#[test]
fn consumers_are_counted_once_and_remembered_by_the_clock_on_the_wall() {
    let mut driver = on_demand();
    assert_eq!((driver.session.consumers(), driver.session.last_consumer()), (0, None));
    let joined = Event::ConsumerJoined { consumer: ConsumerId(1), kind: ConsumerKind::Watch };
    driver.send(joined.clone());
    driver.send(joined);
    assert_eq!((driver.session.consumers(), driver.session.last_consumer()), (1, Some(driver.now.wall)));
    driver.pass(5_000);
    driver.send(Event::ConsumerLeft { consumer: ConsumerId(1) });
    assert_eq!((driver.session.consumers(), driver.session.last_consumer()), (0, Some(driver.now.wall)));
    driver.send(Event::ConsumerLeft { consumer: ConsumerId(1) });
    assert_eq!(driver.count(|record| matches!(record, Record::ConsumerLeft { .. })), 1);
    assert_eq!(driver.count(|record| matches!(record, Record::ConsumerJoined { .. })), 1);
}

#[test]
fn a_persons_start_counts_until_its_last_moment_and_no_longer() {
    let mut driver = in_state(State::Blocked);
    let deadline = driver.session.next_deadline().expect("what a person started is given up some time");
    assert_eq!(
        (deadline.what, deadline.at.since(driver.now.boot)),
        (Upcoming::NotNeeded, Duration::from_secs(300))
    );
    driver.pass(299_999);
    driver.send(Event::Ticked);
    assert_eq!(driver.session.state(), State::Blocked);
    driver.pass(1);
    driver.send(Event::Ticked);
    assert_eq!(driver.session.state(), State::Idle);
}

#[test]
fn a_wait_that_something_else_keeps_up_is_not_given_up() {
    let mut driver = in_state(State::Blocked);
    driver.send(Event::ConsumerJoined { consumer: ConsumerId(1), kind: ConsumerKind::Attach });
    assert_eq!(driver.session.next_deadline(), None);

    let driver = in_state(State::Backoff);
    let next = driver.session.next_deadline().expect("a wait");
    assert_eq!(next.what, Upcoming::Restart, "the earlier of two deadlines");

    let mut driver = always(Policy::default());
    driver.ask(Ask::Restart);
    driver.ends(End::Signal(15), 1_000);
    driver.ends(End::Code(75), 1_000);
    assert_eq!(driver.session.next_deadline().expect("a wait").what, Upcoming::Restart);
}

#[test]
fn of_two_deadlines_the_earlier_is_next() {
    let policy = Policy {
        watchdog: Duration::from_secs(60),
        idle_after: Duration::from_secs(30),
        ..Policy::default()
    };
    let mut driver = Driver::new(Spec { policy: policy.clone(), ..Spec::new(Mode::OnDemand) });
    driver.ask(Ask::Start);
    assert_eq!(driver.session.next_deadline().expect("two").what, Upcoming::Park);
    let late = Policy { idle_after: Duration::from_secs(90), ..policy };
    let mut driver = Driver::new(Spec { policy: late, ..Spec::new(Mode::OnDemand) });
    driver.ask(Ask::Start);
    assert_eq!(driver.session.next_deadline().expect("two").what, Upcoming::Watchdog);
}

#[test]
fn a_restored_once_session_waits_for_a_person() {
    let mut driver = Driver::new(Spec::new(Mode::Once));
    driver.ask(Ask::Archive);
    driver.ends(End::Signal(15), 1_000);
    driver.ask(Ask::Restore);
    driver.send(Event::Ticked);
    assert_eq!((driver.session.state(), driver.starts), (State::Idle, 1));
}

#[test]
fn a_restored_once_session_that_never_ran_waits_for_a_person_too() {
    let mut driver = Driver::new(Spec::new(Mode::Once));
    driver.session = pinfold_core::Session::new(Spec::new(Mode::Once));
    driver.hear(Event::Created);
    driver.hear(Event::Asked(Ask::Archive));
    assert_eq!((driver.session.state(), driver.session.runs().count), (State::Archived, 0));
    driver.ask(Ask::Restore);
    driver.send(Event::Ticked);
    assert_eq!(driver.session.state(), State::Idle);
}

#[test]
fn a_once_session_that_never_ran_runs_when_the_daemon_is_back() {
    let mut driver = Driver::new(Spec::new(Mode::Once));
    driver.session = pinfold_core::Session::new(Spec::new(Mode::Once));
    driver.starts = 0;
    driver.hear(Event::Created);
    let run = driver.run();
    driver.hear(Event::Run { run, event: RunEvent::LockBusy { holder: None } });
    driver.hear(Event::DownAsked);
    driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
    assert_eq!((driver.session.state(), driver.starts), (State::Running, 1));
}

#[test]
fn the_release_of_locks_is_recorded_when_it_happens() {
    let mut driver = always(Policy::default());
    driver.ends(End::Code(1), 1_000);
    driver.ends(End::Code(1), 1_000);
    assert_eq!(released(&driver), 0, "a short gap keeps them");
    driver.send(Event::ShimLeft);
    assert_eq!(released(&driver), 1, "the shim gave up");
    driver.send(Event::ShimLeft);
    assert_eq!(released(&driver), 1);

    let mut driver = always(Policy::default());
    let run = driver.run();
    let lost = ended(End::Signal(9), 1_000);
    driver.of_run(run, RunEvent::Exited { ended: lost, shim: Shim::Absent, holder: None });
    assert_eq!(released(&driver), 1, "the shim died with the run");

    let mut driver = on_demand();
    driver.start_fails(shortage());
    assert_eq!(released(&driver), 0, "nothing ran");
}

#[test]
fn runs_are_counted_by_what_was_seen_of_them() {
    let mut driver = always(Policy::default());
    driver.exits(1);
    driver.ends_and_waits(End::Code(1), 1_000);
    let runs = driver.session.runs();
    assert_eq!((runs.last.0, runs.seen.0, runs.settled.0, runs.count), (3, 3, 2, 3));

    let mut driver = on_demand();
    driver.start_fails(shortage());
    assert_eq!(driver.session.runs().count, 0, "what never ran is no run");

    // Both the start and the exit happened while the daemon was away.
    let mut driver = on_demand();
    driver.hear(Event::Asked(Ask::Start));
    let run = driver.run();
    driver.hear(Event::Run { run, event: RunEvent::Reserved });
    driver.daemon_restarts(ShimSeen::Nobody, vec![(run, ended(End::Code(0), 1_000))]);
    let runs = driver.session.runs();
    assert_eq!((runs.seen, runs.count), (run.next(), 2), "the one that was missed, and the next");
    assert_eq!(driver.count(|record| matches!(record, Record::RunExited(exit) if exit.run == run)), 1);
}

#[test]
fn waking_is_recorded_and_creation_is_no_waking() {
    let woken = |driver: &Driver| driver.count(|record| *record == Record::Woken);
    let driver = always(Policy::default());
    assert_eq!(woken(&driver), 0);
    let mut driver = on_demand();
    driver.message();
    assert_eq!(woken(&driver), 0, "its first run");
    driver.answers();
    driver.wait();
    driver.ends(End::Signal(15), 1_000);
    driver.message();
    assert_eq!(woken(&driver), 1);
}

#[test]
fn a_crash_wait_is_not_ended_by_somebody_elses_going() {
    let mut driver = always(Policy::default());
    driver.ends_and_waits(End::Code(1), 1_000);
    driver.ends(End::Code(1), 1_000);
    assert_eq!(driver.send(Event::HolderGone).why.rule(), "stale");
    assert_eq!(driver.session.state(), State::Backoff);
}

#[test]
fn a_machine_that_restarts_forgets_windows_and_keeps_the_streak() {
    let mut driver = always(Policy::default());
    driver.exits(1);
    for _ in 0..10 {
        driver.ends_and_waits(End::Code(0), 100);
    }
    driver.session = driver.session.as_stored();
    driver.now.boot = Boot(5);
    let world = World::new(Machine::Restarted, ShimSeen::Nobody, Vec::new());
    driver.send(Event::DaemonStarted(world));
    assert_eq!(driver.crashes(), 1);
    assert_eq!(driver.ends_and_waits(End::Code(0), 100), 0, "exits of another boot are not in the window");
}

#[test]
fn a_restart_asked_before_the_same_boot_ends_still_counts() {
    let mut driver = on_demand();
    driver.ask(Ask::Start);
    let run = driver.run();
    driver.ask(Ask::Restart);
    driver.daemon_restarts(ShimSeen::Nobody, vec![(run, ended(End::Signal(15), 1_000))]);
    assert_eq!(driver.session.state(), State::Running);
}

#[test]
fn the_latest_reading_is_shown_while_the_run_lives() {
    let mut driver = Driver::new(Spec { memory_limit: Some(1_000), ..Spec::new(Mode::Always) });
    let event = RunEvent::MemoryRead { reading: Reading::Bytes(700), source: ReadingSource::Cgroup };
    driver.of_run(driver.run(), event);
    assert_eq!(driver.session.memory_bytes(), Some(700));
    let event = RunEvent::MemoryRead { reading: Reading::Bytes(800), source: ReadingSource::Cgroup };
    driver.of_run(driver.run(), event);
    assert_eq!(driver.count(|record| *record == Record::MemoryWarn { bytes: 800, limit: 1_000 }), 1);
    let event = RunEvent::MemoryRead { reading: Reading::Unknown, source: ReadingSource::Cgroup };
    driver.of_run(driver.run(), event);
    assert_eq!(driver.warnings("memory_unreadable"), 1);
    assert_eq!(driver.session.state(), State::Running);
}

#[test]
fn an_interactive_run_hands_back_to_rest_when_the_daemon_goes_down() {
    let mut driver = in_state(State::Held);
    driver.hear(Event::DownAsked);
    driver.ends(End::Signal(15), 1_000);
    assert_eq!((driver.session.state(), driver.session.live_run()), (State::Idle, None));
}

#[test]
fn a_message_taken_twice_is_one_try() {
    let mut driver = on_demand();
    driver.message();
    driver.takes();
    driver.takes();
    let turn = driver.session.inbox().in_flight().expect("a turn");
    assert_eq!((turn.tries, turn.taken), (1, true));
    assert_eq!(driver.count(|record| matches!(record, Record::MessageDelivered { .. })), 1);
}

#[test]
fn stop_of_a_start_that_takes_its_locks_gives_them_back() {
    let mut driver = in_state(State::Starting);
    let run = driver.run();
    let decision = driver.ask(Ask::Stop { grace: None });
    assert_eq!((&decision.actions[..], driver.session.state()), (&[Action::Release][..], State::Stopped));
    let decision = driver.hear(Event::Run { run, event: RunEvent::Reserved });
    assert_eq!(decision.actions, [Action::Release], "locks that come too late are not kept");
}

#[test]
fn a_wait_watches_a_holder_only_for_contention_and_only_if_it_is_known() {
    let watches = |decision: &pinfold_core::Decision| decision.actions.contains(&Action::AwaitHolder);
    let mut driver = always(Policy::default());
    assert!(!watches(&driver.ends(End::Code(75), 1_000)), "nobody is known");
    let mut driver = always(Policy::default());
    driver.ends_and_waits(End::Code(1), 1_000);
    assert!(!watches(&driver.ends_held_by(End::Code(1), 1_000, Some("codex"))), "a crash is nobody else's");
}

#[test]
fn an_answer_without_a_word_that_it_was_taken_counts_as_taken() {
    let mut driver = on_demand();
    let message = driver.message();
    let run = driver.run();
    let how = pinfold_core::event::TurnEnd::Answered;
    driver.send(Event::Message(pinfold_core::MessageEvent::TurnEnded { run, message, how }));
    assert_eq!(driver.count(|record| matches!(record, Record::MessageDelivered { attempt: 1, .. })), 1);
    assert_eq!(driver.session.inbox().settled(), (1, 0));

    let mut driver = on_demand();
    driver.message();
    driver.answers();
    assert_eq!(
        driver.count(|record| matches!(record, Record::MessageDelivered { .. })),
        1,
        "once, not twice"
    );
}

#[test]
fn a_turn_interrupted_by_a_person_has_failed_and_is_not_tried_again() {
    let mut driver = on_demand();
    let message = driver.message();
    driver.takes();
    driver.ask(Ask::Interrupt);
    let run = driver.run();
    let how = pinfold_core::event::TurnEnd::Interrupted;
    driver.send(Event::Message(pinfold_core::MessageEvent::TurnEnded { run, message, how }));
    assert_eq!((driver.session.inbox().settled(), driver.session.inbox().queued()), ((0, 1), 0));
}

#[test]
fn a_retry_of_what_is_under_way_or_waits_changes_nothing() {
    let mut driver = on_demand();
    let first = driver.message();
    let second = driver.message();
    for message in [first, second] {
        driver.send(Event::Message(pinfold_core::MessageEvent::Retried {
            message,
            read: pinfold_core::inbox::Read::Maybe,
        }));
        assert_eq!(driver.answer, Some(pinfold_core::Answer::Already));
    }
    assert_eq!(driver.session.inbox().queued(), 1);
    driver.answers();
    driver.answers();
    assert_eq!(driver.session.inbox().settled(), (2, 0));
}

#[test]
fn each_delivery_has_the_number_of_its_try() {
    let mut driver = always(Policy::default());
    driver.message();
    driver.takes();
    driver.ends_and_waits(End::Code(1), 1_000);
    let attempts: Vec<u32> = driver
        .actions
        .iter()
        .filter_map(|action| if let Action::Deliver { attempt, .. } = action { Some(*attempt) } else { None })
        .collect();
    assert_eq!(attempts, [1, 2]);
}

#[test]
fn a_restored_session_runs_after_the_next_daemon_start_only_in_mode_always() {
    for (mode, state) in
        [(Mode::Always, State::Running), (Mode::OnDemand, State::Idle), (Mode::Once, State::Idle)]
    {
        let mut driver = Driver::new(Spec::new(mode));
        driver.ask(Ask::Archive);
        if driver.session.live_run().is_some() {
            driver.ends(End::Signal(15), 1_000);
        }
        driver.ask(Ask::Restore);
        driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
        assert_eq!(driver.session.state(), state, "{mode:?}");
    }
}

#[test]
fn a_start_cut_short_by_the_daemons_death_is_made_again_unless_it_may_have_run_once() {
    let mut driver = always(Policy::default());
    driver.exits(0);
    driver.session = pinfold_core::Session::new(Spec::new(Mode::Always));
    driver.hear(Event::Created);
    let run = driver.run();
    driver.hear(Event::Run { run, event: RunEvent::Reserved });
    driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
    assert_eq!(driver.session.state(), State::Running);
    assert!(driver.run() > run, "under a new number");
}

#[test]
fn after_a_terminal_a_needed_session_runs_again_and_another_rests() {
    let mut driver = in_state(State::Held);
    driver.message();
    driver.ends(End::Code(0), 1_000);
    assert_eq!(driver.session.state(), State::Running);
    let mut driver = in_state(State::Held);
    driver.ends(End::Code(0), 1_000);
    assert_eq!(driver.session.state(), State::Idle);
}
