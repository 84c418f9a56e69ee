//! Restart policy. The numbers P1 to P26 are the rows of the incident table.

use crate::driver::{Driver, End, always, on_demand, shortage};
use pinfold_core::decision::Record;
use pinfold_core::event::{Ask, RunEvent, ShimSeen, StartFailure};
use pinfold_core::exit::ExitNotice;
use pinfold_core::life::{CannotStart, FailCause, StartRefused};
use pinfold_core::{Action, Event, Jitter, Life, Policy, State};
use std::time::Duration;

const MINUTE: u64 = 60_000;
const CRASH: End = End::Code(1);

fn hard(limit: u32) -> Policy {
    Policy { crash_hard_limit: limit, ..Policy::default() }
}

/// Returns the crash count after each of these exits (code, life in ms).
fn counts(driver: &mut Driver, exits: &[(i32, u64)]) -> Vec<u32> {
    let mut seen = Vec::new();
    for (code, lived) in exits {
        driver.ends(End::Code(*code), *lived);
        seen.push(driver.crashes());
        if driver.session.state() == State::Backoff {
            driver.wait();
        }
    }
    seen
}

fn waits(record: &Record) -> bool {
    matches!(record, Record::Backoff { .. })
}

#[test]
fn p1_ten_clean_exits_in_a_minute_are_restarted_at_once() {
    let mut driver = always(Policy::default());
    for _ in 0..10 {
        assert_eq!(driver.ends_and_waits(End::Code(0), 5_000), 0);
    }
    assert_eq!(
        (driver.crashes(), driver.starts, driver.warnings("clean_restart_budget_exceeded")),
        (0, 11, 0)
    );
}

#[test]
fn p2_exit_0_twelve_times_in_a_minute_warns_once_and_backs_off() {
    let mut driver = always(Policy::default());
    let row: Vec<u64> = (0..14).map(|_| driver.ends_and_waits(End::Code(0), 1_000)).collect();
    assert_eq!(row, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8]);
    assert_eq!((driver.crashes(), driver.warnings("clean_restart_budget_exceeded")), (0, 1));
}

#[test]
fn p3_a_program_that_exits_0_at_once_is_started_17_times_in_20_seconds_at_the_most() {
    let mut driver = always(Policy::default());
    let end = driver.now.boot + Duration::from_secs(20);
    loop {
        driver.ends(End::Code(0), 1);
        if driver.session.state() == State::Backoff {
            if driver.session.next_deadline().expect("a wait").at > end {
                break;
            }
            driver.wait();
        }
    }
    assert!(driver.starts <= 17, "{} starts", driver.starts);
    assert_eq!(driver.warnings("clean_restart_budget_exceeded"), 1);
}

#[test]
fn p4_the_window_of_clean_exits_slides() {
    let mut driver = always(Policy::default());
    for _ in 0..10 {
        driver.ends_and_waits(End::Code(0), 1_000);
    }
    assert_eq!(driver.ends_and_waits(End::Code(0), 59_000), 0);
    assert_eq!(driver.warnings("clean_restart_budget_exceeded"), 0);
}

#[test]
fn p5_the_sequence_1_0_1_0_1_with_hard_limit_3_fails_at_the_third_crash() {
    let mut driver = always(hard(3));
    let exits = [(1, 1_000), (0, 1_000), (1, 1_000), (0, 1_000), (1, 1_000)];
    assert_eq!(counts(&mut driver, &exits), [1, 1, 2, 2, 3]);
    assert_eq!(driver.session.state(), State::Failed);
    let last_exit = driver.records.iter().rposition(|record| matches!(record, Record::RunExited(_)));
    let last_wait = driver.records.iter().rposition(waits);
    assert!(last_wait < last_exit, "a wait was announced after the last exit");
}

#[test]
fn p6_a_long_clean_run_does_not_touch_the_streak() {
    let mut driver = always(hard(3));
    let exits = [(1, 1_000), (0, 6 * MINUTE), (1, 1_000), (1, 1_000)];
    assert_eq!(counts(&mut driver, &exits), [1, 1, 2, 3]);
    assert_eq!(driver.session.state(), State::Failed);
}

#[test]
fn p7_a_crash_after_more_than_five_minutes_starts_a_new_streak_and_restarts_at_once() {
    let mut driver = always(Policy::default());
    driver.ends_and_waits(CRASH, 1_000);
    assert_eq!(driver.ends_and_waits(CRASH, 5 * MINUTE + 1), 0);
    assert_eq!(driver.crashes(), 1);
}

#[test]
fn p8_five_minutes_are_not_more_than_five_minutes() {
    let mut driver = always(Policy::default());
    assert_eq!(counts(&mut driver, &[(1, 1_000), (1, 5 * MINUTE)]), [1, 2]);
}

#[test]
fn p9_waits_double_up_to_a_minute_and_jitter_takes_a_tenth_at_the_most() {
    for jitter in [0, 1_000, u16::MAX] {
        let mut driver = always(Policy::default());
        driver.now.jitter = Jitter(jitter);
        let mut lived = 5 * MINUTE + 1;
        for expected in [0_u64, 1, 2, 4, 8, 16, 32, 60, 60] {
            driver.ends(CRASH, lived);
            lived = 500;
            let wait = match driver.session.state() {
                State::Running => Duration::ZERO,
                _ => driver.wait(),
            };
            let full = Duration::from_secs(expected);
            assert!(wait <= full && wait >= full.mul_f64(0.9), "{wait:?} for {full:?} with jitter {jitter}");
        }
    }
}

#[test]
fn p10_the_soft_limit_warns_once_at_the_tenth_crash() {
    let mut driver = always(Policy::default());
    let mut waited = 0;
    for n in 1..=12 {
        driver.ends(CRASH, 1_000);
        assert_eq!(driver.warnings("crash_soft_limit"), usize::from(n >= 10), "crash {n}");
        if driver.session.state() == State::Backoff {
            let wait = driver.wait().as_secs();
            waited += if n < 10 { wait } else { 0 };
        }
    }
    assert_eq!(waited, 183);
}

#[test]
fn p11_a_second_streak_warns_a_second_time() {
    let mut driver = always(Policy::default());
    for _ in 0..10 {
        driver.ends_and_waits(CRASH, 1_000);
    }
    driver.ends_and_waits(CRASH, 5 * MINUTE + 1);
    assert_eq!((driver.crashes(), driver.warnings("crash_soft_limit")), (1, 1));
    for _ in 0..9 {
        driver.ends_and_waits(CRASH, 1_000);
    }
    assert_eq!((driver.crashes(), driver.warnings("crash_soft_limit")), (10, 2));
}

#[test]
fn p12_the_hard_limit_fails_at_exactly_one_hundred_after_an_hour_and_a_half() {
    let mut driver = always(Policy::default());
    let mut waited = 0;
    for _ in 0..99 {
        waited += driver.ends_and_waits(CRASH, 1_000);
    }
    assert_eq!((waited, driver.session.state()), (5_583, State::Running));
    driver.ends(CRASH, 1_000);
    assert_eq!((driver.crashes(), driver.session.state()), (100, State::Failed));
    assert_eq!(driver.session.life(), &Life::Failed { cause: FailCause::CrashHardLimit { crashes: 100 } });
}

#[test]
fn p13_a_hard_limit_of_zero_never_fails() {
    let mut driver = always(hard(0));
    for _ in 0..200 {
        driver.ends_and_waits(CRASH, 1_000);
    }
    assert_eq!((driver.crashes(), driver.warnings("crash_soft_limit")), (200, 1));
}

#[test]
fn p14_soft_3_and_hard_6_mean_six_exits_and_one_warning() {
    let mut driver = always(Policy { crash_soft_limit: 3, ..hard(6) });
    let mut exits = 0;
    while driver.session.state() == State::Running {
        driver.ends(CRASH, 1_000);
        exits += 1;
        assert_eq!(driver.warnings("crash_soft_limit"), usize::from(exits >= 3));
        if driver.session.state() == State::Backoff {
            driver.wait();
        }
    }
    assert_eq!((exits, driver.session.state()), (6, State::Failed));
}

#[test]
fn p15_a_missing_program_is_tried_once_and_leaves_no_run_behind() {
    let mut driver = on_demand();
    let cause = CannotStart::ProgramMissing { program: "claude".into() };
    driver.start_fails(StartFailure::Hopeless(cause.clone()));
    assert_eq!(driver.session.life(), &Life::Failed { cause: FailCause::CannotStart(cause) });
    assert_eq!(driver.count(|record| matches!(record, Record::RunStarted { .. })), 0);
    assert_eq!(driver.count(|record| matches!(record, Record::RunExited(_))), 0, "it never ran");
    assert_eq!(driver.count(|record| matches!(record, Record::StartFailed { errno: Some(2), .. })), 1);
    assert_eq!((driver.session.last_exit(), driver.session.runs().count), (None, 0));
    assert_eq!(driver.session.next_deadline(), None);
    let why = driver.session.explain(driver.now);
    assert!(
        why.contains("program `claude` was not found; install it, or run `pinfold set S --env PATH`"),
        "{why}"
    );
    driver.ask(Ask::Start);
    assert_eq!(driver.session.state(), State::Running, "`start` tries again");
}

#[test]
fn a_start_that_the_system_refuses_for_now_waits_longer_each_time_and_is_no_crash() {
    let mut driver = always(Policy { crash_hard_limit: 2, ..Policy::default() });
    driver.ask(Ask::Stop { grace: None });
    driver.ends(End::Signal(15), 1_000);
    let last = driver.session.last_exit().cloned();
    assert!(last.is_some());
    let mut waits = Vec::new();
    driver.start_fails(shortage());
    for _ in 0..4 {
        assert_eq!((driver.session.state(), driver.crashes()), (State::Backoff, 0));
        let wait = driver.session.next_deadline().expect("it waits").at.since(driver.now.boot);
        waits.push(wait.as_secs());
        driver.pass(wait.as_millis() as u64);
        driver.hear(Event::Ticked);
        let run = driver.run();
        driver.hear(Event::Run { run, event: RunEvent::StartFailed(shortage()) });
    }
    assert_eq!(waits, [1, 2, 4, 8]);
    assert_eq!(driver.session.last_exit().cloned(), last, "no run has ended since");
    assert_eq!(driver.count(|record| matches!(record, Record::StartFailed { errno: Some(24), .. })), 5);
    let why = driver.session.explain(driver.now);
    assert!(why.starts_with("waiting: it could not be started: `agent`: too many open files; next"), "{why}");
    driver.wait();
    assert_eq!((driver.session.state(), driver.session.budgets().refused), (State::Running, 0));
}

#[test]
fn what_the_system_will_refuse_again_is_failed_at_once() {
    let mut driver = always(Policy::default());
    driver.ask(Ask::Stop { grace: None });
    driver.ends(End::Signal(15), 1_000);
    let refused = StartRefused { errno: Some(7), text: "`agent`: argument list too long".into() };
    driver.start_fails(StartFailure::Refused(refused));
    assert_eq!((driver.session.state(), driver.crashes()), (State::Failed, 0));
    let why = driver.session.explain(driver.now);
    assert_eq!(
        why,
        "failed: cannot start: `agent`: argument list too long; `start` or a message tries again"
    );
}

#[test]
fn p16_three_drains_in_ten_minutes_are_restarted_at_once() {
    let mut driver = always(Policy::default());
    for _ in 0..3 {
        assert_eq!(driver.ends_and_waits(End::Says(ExitNotice::Drained), MINUTE), 0);
    }
    assert_eq!((driver.crashes(), driver.warnings("memory_drain_loop")), (0, 0));
}

#[test]
fn p17_a_drain_loop_warns_once_waits_half_a_minute_each_time_and_never_fails() {
    let mut driver = always(Policy::default());
    let row: Vec<u64> =
        (0..9).map(|_| driver.ends_and_waits(End::Says(ExitNotice::Drained), 1_000)).collect();
    assert_eq!(row, [0, 0, 0, 30, 30, 30, 30, 30, 30]);
    assert_eq!((driver.crashes(), driver.warnings("memory_drain_loop")), (0, 1));
}

#[test]
fn p18_75_six_times_in_a_row_is_blocked_and_never_a_crash() {
    let mut driver = always(Policy::default());
    let row: Vec<u64> = (0..5).map(|_| driver.ends_and_waits(End::Code(75), 1_000)).collect();
    assert_eq!(row, [10, 20, 30, 40, 50]);
    driver.exits(75);
    assert_eq!((driver.session.state(), driver.crashes()), (State::Blocked, 0));
    assert_eq!(driver.wait(), Duration::from_secs(600), "one try every ten minutes");
    driver.exits(75);
    assert_eq!(driver.session.state(), State::Blocked, "and blocked again at once");
}

#[test]
fn p19_a_holder_that_goes_ends_the_wait_at_once() {
    let mut driver = always(Policy::default());
    for _ in 0..2 {
        driver.ends_and_waits(End::Code(75), 1_000);
    }
    let decision = driver.ends_held_by(End::Code(75), 1_000, Some("codex"));
    assert!(decision.actions.contains(&Action::AwaitHolder));
    driver.send(Event::HolderGone);
    assert_eq!(driver.session.state(), State::Running);
    assert!(driver.actions.contains(&Action::ForgetHolder));
}

#[test]
fn p20_another_end_breaks_the_row_of_contended_ones() {
    let mut driver = always(Policy::default());
    for _ in 0..5 {
        driver.ends_and_waits(End::Code(75), 1_000);
    }
    driver.ends_and_waits(End::Code(0), 1_000);
    let row: Vec<u64> = (0..5).map(|_| driver.ends_and_waits(End::Code(75), 1_000)).collect();
    assert_eq!(row, [10, 20, 30, 40, 50]);
}

#[test]
fn p21_contention_neither_counts_nor_breaks_a_streak() {
    let mut driver = always(Policy::default());
    let exits = [(1, 1_000), (75, 1_000), (75, 1_000), (1, 1_000)];
    assert_eq!(counts(&mut driver, &exits), [1, 1, 1, 2]);
}

#[test]
fn p22_a_message_gives_a_blocked_session_one_try() {
    let mut driver = always(Policy::default());
    for _ in 0..5 {
        driver.ends_and_waits(End::Code(75), 1_000);
    }
    driver.exits(75);
    driver.message();
    assert_eq!(driver.session.state(), State::Running);
    driver.takes();
    driver.exits(75);
    assert_eq!(driver.session.state(), State::Blocked);
    let kept = driver.session.inbox().deliverable().expect("the message is kept");
    assert_eq!(kept.tries, 0, "contention costs no try");
}

#[test]
fn p23_restarts_and_interrupts_by_people_are_no_crashes() {
    let mut driver = always(Policy::default());
    for _ in 0..3 {
        driver.ask(Ask::Restart);
        driver.ends(End::Signal(15), 1_000);
        driver.message();
        driver.takes();
        driver.ask(Ask::Interrupt);
        driver.ends(End::Signal(2), 1_000);
        assert_eq!(driver.session.state(), State::Running);
    }
    assert_eq!((driver.crashes(), driver.starts), (0, 7));
    assert_eq!(driver.session.inbox().settled(), (0, 3), "an interrupted message is not delivered again");
}

#[test]
fn p24_the_streak_survives_the_daemon() {
    let mut driver = always(Policy::default());
    for _ in 0..6 {
        driver.ends_and_waits(CRASH, 1_000);
    }
    driver.ends(CRASH, 1_000);
    driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
    assert_eq!((driver.crashes(), driver.session.state()), (7, State::Backoff));
}

#[test]
fn p25_a_stop_of_what_is_not_running_is_done_at_once() {
    let mut driver = always(Policy::default());
    for _ in 0..8 {
        driver.ends_and_waits(CRASH, 1_000);
    }
    driver.ends(CRASH, 1_000);
    assert_eq!(
        driver.session.next_deadline().expect("a wait").at.since(driver.now.boot),
        Duration::from_secs(60)
    );
    let decision = driver.ask(Ask::Stop { grace: None });
    assert_eq!(driver.session.state(), State::Stopped, "a stop during a 60 s wait ends it at once");
    assert_eq!(driver.session.next_deadline(), None);
    assert!(!decision.actions.iter().any(|action| matches!(action, Action::Stop { .. })));
}

#[test]
fn p26_limits_are_numbers_or_an_error() {
    let policy = |text: &str| serde_json::from_str::<Policy>(&format!("{{\"crash_hard_limit\": {text}}}"));
    assert_eq!(policy("0").expect("a number").crash_hard_limit, 0);
    assert_eq!(policy("5").expect("a number").crash_hard_limit, 5);
    assert!(policy("-1").is_err());
    assert!(policy("\"abc\"").is_err());
    assert!(
        serde_json::from_str::<Policy>("{\"crash_hard_limt\": 5}").is_err(),
        "an unknown key is an error"
    );
}
