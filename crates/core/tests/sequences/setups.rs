//! A changed definition: a run with other locks or another command never begins under the shim of the last
//! one, and another conversation is continued from the next run on.

use crate::driver::{Driver, End};
use pinfold_core::decision::Record;
use pinfold_core::event::{Ask, RunEvent, Shim, ShimSeen};
use pinfold_core::{Action, Change, Ended, Event, Exit, Mode, Policy, ShimSetup, Spec};
use std::time::Duration;

fn spec(setup: u64) -> Spec {
    let policy = Policy { backoff_initial: Duration::from_millis(50), ..Policy::default() };
    Spec { policy, setup: ShimSetup(setup), ..Spec::new(Mode::Always) }
}

fn set(driver: &mut Driver, spec: Spec) {
    driver.actions.clear();
    driver.send(Event::SpecChanged(Box::new(spec)));
}

/// Which shim the last run was begun under.
#[derive(Debug, PartialEq)]
enum Begun {
    /// The one that stood.
    Standing,
    /// A new one; the one that stood was dismissed first.
    NewAfterRelease,
    /// A new one; none stood.
    New,
}

fn begun(driver: &Driver) -> Begun {
    let last = driver.session.runs().last;
    let at = |wanted: fn(&Action) -> bool| driver.actions.iter().rposition(wanted);
    let reserved = at(|action| matches!(action, Action::Reserve { .. }));
    let spawned = at(|action| matches!(action, Action::Spawn { .. }));
    assert!(matches!(driver.actions[spawned.expect("a spawn")], Action::Spawn { run, .. } if run == last));
    match (at(|action| *action == Action::Release), reserved) {
        (_, None) => Begun::Standing,
        (Some(released), Some(reserved)) if released < reserved => Begun::NewAfterRelease,
        (_, Some(_)) => Begun::New,
    }
}

/// Crashes until the session waits, with the shim of the last run.
fn crashes_and_waits(driver: &mut Driver) {
    while driver.session.live_run().is_some() {
        driver.ends(End::Code(1), 1_000);
    }
    assert_eq!(driver.session.shim(), Shim::Standing);
}

/// The ways in which one run gives way to the next, and whether its shim survives them.
type Way = (&'static str, fn(&mut Driver), bool);

fn ways() -> [Way; 6] {
    [
        (
            "restart",
            |driver| {
                driver.ask(Ask::Restart);
                driver.exits(0);
            },
            true,
        ),
        ("a clean exit", |driver| _ = driver.exits(0), true),
        (
            "a crash",
            |driver| {
                crashes_and_waits(driver);
                driver.wait();
            },
            true,
        ),
        (
            "a lost shim",
            |driver| {
                let ended = Ended::new(Exit::ShimLost, Duration::from_secs(400));
                let event = RunEvent::Exited { ended, shim: Shim::Absent, holder: None };
                driver.of_run(driver.run(), event);
                if driver.session.live_run().is_none() {
                    driver.wait();
                }
            },
            false,
        ),
        (
            "a new daemon that finds the shim",
            |driver| {
                let (run, ended) = (driver.run(), Ended::new(Exit::Code(0), Duration::from_secs(1)));
                driver.daemon_restarts(ShimSeen::Standing, vec![(run, ended)]);
            },
            true,
        ),
        (
            "a new daemon that finds nothing",
            |driver| {
                driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
                if driver.session.live_run().is_none() {
                    driver.wait();
                }
            },
            false,
        ),
    ]
}

#[test]
fn a_run_with_another_setup_needs_a_new_shim() {
    for (way, happens, stands) in ways() {
        for (next, fits) in [(1, true), (2, false)] {
            let mut driver = Driver::new(spec(1));
            set(&mut driver, spec(next));
            happens(&mut driver);
            let expected = match (stands, fits) {
                (true, true) => Begun::Standing,
                (true, false) => Begun::NewAfterRelease,
                (false, _) => Begun::New,
            };
            assert_eq!(begun(&driver), expected, "{way}, setup {next}");
            assert!(driver.session.fits_shim(), "{way}: the new shim is known");
            driver.actions.clear();
            driver.exits(0);
            assert_eq!(begun(&driver), Begun::Standing, "{way}: the next run fits again");
        }
    }
}

#[test]
fn a_shim_that_stands_leaves_once_it_no_longer_fits() {
    let mut driver = Driver::new(spec(1));
    crashes_and_waits(&mut driver);
    set(&mut driver, Spec { memory_limit: Some(1), ..spec(1) });
    assert_eq!((driver.session.shim(), &driver.actions[..]), (Shim::Standing, &[][..]));
    set(&mut driver, spec(2));
    assert_eq!((driver.session.shim(), &driver.actions[..]), (Shim::Absent, &[Action::Release][..]));
    driver.wait();
    assert!(driver.session.live_run().is_some() && driver.session.fits_shim());
}

#[test]
fn a_new_daemon_releases_the_shim_that_the_last_one_did_not_live_to_dismiss() {
    let mut driver = Driver::new(spec(1));
    crashes_and_waits(&mut driver);
    // Decided and stored; the shim has not heard of it.
    driver.hear(Event::SpecChanged(Box::new(spec(2))));
    driver.actions.clear();
    driver.daemon_restarts(ShimSeen::Standing, Vec::new());
    driver.wait();
    assert_eq!(begun(&driver), Begun::NewAfterRelease);
}

#[test]
fn an_older_record_does_not_say_what_its_shim_was_opened_for() {
    let mut driver = Driver::new(spec(0));
    let mut stored = serde_json::to_value(&driver.session).unwrap();
    assert_eq!((stored["spec"].get("setup"), stored["spec"].get("conversation")), (None, None));
    stored.as_object_mut().unwrap().remove("opened");
    driver.session = serde_json::from_value(stored).unwrap();
    set(&mut driver, spec(1));
    driver.exits(0);
    assert_eq!(begun(&driver), Begun::NewAfterRelease);
}

fn learns(driver: &mut Driver, id: &str) {
    driver.of_run(driver.run(), RunEvent::VendorLearned { id: id.to_owned() });
}

#[test]
fn another_conversation_counts_from_the_next_run_on() {
    let chosen = || Spec { conversation: 1, ..spec(2) };
    let mut driver = Driver::new(spec(1));
    learns(&mut driver, "old");
    set(&mut driver, chosen());
    assert_eq!(driver.session.talk().conversation(Some("named")), Some("old"), "this run is in that one");
    let first = driver.run();
    driver.exits(0);
    assert_eq!(driver.session.talk().conversation(Some("named")), Some("named"));
    assert!(driver.records.contains(&Record::VendorSession { run: first, id: None }), "it is recorded");
    driver.of_run(first, RunEvent::VendorLearned { id: "old".to_owned() });
    assert_eq!(driver.session.talk().vendor(), None, "a late report of that run is stale");
    learns(&mut driver, "new");
    driver.exits(0);
    assert_eq!(driver.session.talk().conversation(Some("named")), Some("new"), "it was chosen once");
}

#[test]
fn at_rest_another_conversation_counts_at_once() {
    let mut driver = Driver::new(spec(1));
    learns(&mut driver, "old");
    driver.ask(Ask::Stop { grace: None });
    driver.exits(0);
    let decision = driver.send(Event::SpecChanged(Box::new(Spec { conversation: 1, ..spec(2) })));
    assert!(decision.changes.contains(&Change::VendorForgotten) && Change::VendorForgotten.is_durable());
    assert_eq!(driver.session.talk().vendor(), None);
    let again = driver.send(Event::SpecChanged(Box::new(Spec { conversation: 2, ..spec(2) })));
    assert!(!again.changes.contains(&Change::VendorForgotten), "there is nothing to forget");
}
