//! Runs that should have ended and have not: reported, and carried out when they can be.

use crate::driver::{Driver, End, always};
use pinfold_core::event::{Ask, Machine, RunEvent, ShimSeen};
use pinfold_core::unended::{Survivor, Undying, Unended};
use pinfold_core::{Event, Policy, State, Why, World};

const SILENT: Unended = Unended::Silent { shim: Some(12) };

fn survivors() -> Unended {
    let left = vec![Survivor { pid: 7, name: "sudo".into(), why: Undying::NotPermitted { uid: 0 } }];
    Unended::Survivors { shim: Some(12), left }
}

/// A run that was asked to end, with something in the way.
fn stuck(by: Unended) -> Driver {
    let mut driver = always(Policy::default());
    driver.ask(Ask::Stop { grace: None });
    let run = driver.run();
    driver.of_run(run, RunEvent::Unended(by));
    driver
}

#[test]
fn whoever_is_in_the_way_is_said_until_the_run_has_ended() {
    for (by, named) in [(SILENT, "its shim (pid 12) does not answer"), (survivors(), "pid 7 (sudo)")] {
        let mut driver = stuck(by.clone());
        assert_eq!((driver.session.unended(), driver.session.state()), (Some(&by), State::Stopping));
        let sentence = driver.session.explain(driver.now);
        assert!(sentence.contains(named), "{sentence}");
        driver.ends(End::Signal(9), 1_000);
        assert_eq!((driver.session.unended(), driver.session.state()), (None, State::Stopped));
    }
}

#[test]
fn an_episode_is_one_warning() {
    let mut driver = stuck(SILENT);
    let run = driver.run();
    driver.of_run(run, RunEvent::Unended(SILENT));
    assert_eq!((driver.warnings("shim_silent"), driver.warnings("survivors")), (1, 0));
    driver.of_run(run, RunEvent::Unended(survivors()));
    driver.of_run(run, RunEvent::Unended(Unended::Survivors { shim: Some(12), left: Vec::new() }));
    assert_eq!((driver.warnings("shim_silent"), driver.warnings("survivors")), (1, 1));
}

#[test]
fn a_shim_that_answers_again_is_not_in_the_way_but_survivors_are() {
    let mut driver = stuck(SILENT);
    let run = driver.run();
    driver.of_run(run, RunEvent::ShimAnswered);
    assert_eq!(driver.session.unended(), None);
    driver.of_run(run, RunEvent::Unended(survivors()));
    assert_eq!(driver.of_run(run, RunEvent::ShimAnswered).why, Why::Stale);
    assert_eq!(driver.session.unended(), Some(&survivors()));
}

#[test]
fn the_last_word_of_a_person_is_what_follows() {
    let mut driver = stuck(SILENT);
    driver.ask(Ask::Restart);
    driver.ends(End::Signal(9), 1_000);
    assert_eq!(driver.session.state(), State::Running);
}

#[test]
fn a_run_that_is_over_has_nobody_in_its_way() {
    let mut driver = stuck(SILENT);
    let run = driver.run();
    driver.ends(End::Signal(9), 1_000);
    assert_eq!(driver.of_run(run, RunEvent::Unended(SILENT)).why, Why::Stale);
    assert_eq!(driver.session.unended(), None);
}

#[test]
fn a_new_daemon_names_a_shim_that_does_not_answer_it_without_a_warning() {
    let mut driver = always(Policy::default());
    let run = driver.run();
    driver.daemon_restarts(ShimSeen::Mute, Vec::new());
    driver.of_run(run, RunEvent::Unended(SILENT));
    assert!(driver.session.explain(driver.now).contains("its shim (pid 12) does not answer"));
    assert_eq!(driver.warnings("shim_silent"), 0);
    let world = World::new(Machine::Same, ShimSeen::Mute, Vec::new());
    driver.send(Event::DaemonStarted(world));
    assert_eq!(driver.session.unended(), Some(&SILENT), "it is looked at again and again");
    driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
    assert_eq!(driver.session.unended(), None);
}
