//! Reports that come late, twice, or about another run than the current one.

use crate::driver::{Driver, End, always, ended, on_demand, shortage};
use crate::people::{STATES, in_state};
use pinfold_core::decision::Record;
use pinfold_core::event::{Ask, RunEvent, Shim, StartFailure};
use pinfold_core::life::{CannotStart, Process};
use pinfold_core::unended::Unended;
use pinfold_core::{Answer, Event, Mode, Policy, RunNumber, Spec, State};

const PROCESS: Process = Process { pid: 1, fence: 1 };

fn starts(driver: &Driver) -> usize {
    driver.count(|record| matches!(record, Record::RunStarted { .. }))
}

/// Returns everything that can be reported about a run.
fn reports() -> Vec<RunEvent> {
    vec![
        RunEvent::Reserved,
        RunEvent::LockBusy { holder: None },
        RunEvent::Started(PROCESS),
        RunEvent::StartFailed(shortage()),
        RunEvent::StartFailed(StartFailure::ShimGone),
        RunEvent::StartFailed(StartFailure::Hopeless(CannotStart::ProgramMissing { program: "x".into() })),
        RunEvent::VendorBusy { holder: None },
        RunEvent::Exited { ended: ended(End::Code(1), 1_000), shim: Shim::Standing, holder: None },
        RunEvent::SignOfLife,
        RunEvent::Unended(Unended::Silent { shim: None }),
        RunEvent::ShimAnswered,
    ]
}

#[test]
fn a_report_about_another_run_changes_nothing_in_any_state() {
    for state in STATES {
        for report in reports() {
            let mut driver = in_state(state);
            let before = driver.session.clone();
            let other = RunNumber(before.runs().last.0 + 7);
            let decision = driver.hear(Event::Run { run: other, event: report.clone() });
            assert_eq!(decision.why.rule(), "stale", "{report:?} in {state:?}");
            assert_eq!(driver.session, before, "{report:?} in {state:?}");
        }
    }
}

#[test]
fn a_report_about_the_run_before_changes_nothing() {
    for report in reports() {
        let mut driver = always(Policy::default());
        let first = driver.run();
        driver.exits(0);
        let before = driver.session.clone();
        driver.hear(Event::Run { run: first, event: report.clone() });
        assert_eq!(driver.session, before, "{report:?}");
    }
}

#[test]
fn a_run_that_was_asked_to_end_before_it_was_seen_is_recorded_once() {
    let mut driver = on_demand();
    driver.hear(Event::Asked(Ask::Start));
    let run = driver.run();
    driver.hear(Event::Run { run, event: RunEvent::Reserved });
    driver.hear(Event::Asked(Ask::Stop { grace: None }));
    assert_eq!(driver.session.state(), State::Stopping);
    for _ in 0..2 {
        driver.hear(Event::Run { run, event: RunEvent::Started(PROCESS) });
        assert_eq!((driver.session.state(), starts(&driver)), (State::Stopping, 1));
    }
    assert_eq!((driver.session.runs().seen, driver.session.runs().count), (run, 1));
    driver.ends(End::Signal(15), 10);
    assert_eq!((driver.session.state(), driver.session.runs().count), (State::Stopped, 1));
}

#[test]
fn a_start_that_fails_while_it_is_being_stopped_is_stopped() {
    let mut driver = on_demand();
    driver.hear(Event::Asked(Ask::Start));
    let run = driver.run();
    driver.hear(Event::Run { run, event: RunEvent::Reserved });
    driver.hear(Event::Asked(Ask::Stop { grace: None }));
    driver.hear(Event::Run { run, event: RunEvent::StartFailed(shortage()) });
    assert_eq!((driver.session.state(), driver.crashes()), (State::Stopped, 0));
}

#[test]
fn a_started_run_is_not_started_again() {
    let mut driver = always(Policy::default());
    let run = driver.run();
    let since = driver.session.life().clone();
    driver.pass(1_000);
    driver.hear(Event::Run { run, event: RunEvent::Started(PROCESS) });
    assert_eq!((driver.session.life(), starts(&driver)), (&since, 1));
}

#[test]
fn purge_takes_a_chat_whose_queue_is_empty() {
    let mut driver = on_demand();
    driver.ask(Ask::Purge { include_active: false, own: false });
    assert_eq!((driver.answer.clone(), driver.session.state()), (Some(Answer::Done), State::Archived));
}

#[test]
fn a_once_session_whose_run_never_began_is_not_failed_by_a_daemon_that_goes_down() {
    let mut driver = Driver::new(Spec::new(Mode::Once));
    driver.session = pinfold_core::Session::new(Spec::new(Mode::Once));
    driver.hear(Event::Created);
    driver.hear(Event::DownAsked);
    assert_eq!(driver.session.state(), State::Idle);
}
