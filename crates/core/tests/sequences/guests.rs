//! Guests: an attached client gets a terminal beside the run once it is ready; the run itself does not change.

use crate::driver::{Driver, End};
use pinfold_core::attach::Reached;
use pinfold_core::decision::Record;
use pinfold_core::event::{Ask, GuestEvent, Joins, Machine, RunEvent, ShimSeen};
use pinfold_core::guest::{Attaching, GuestSeen, Presence, Welcomes};
use pinfold_core::life::Process;
use pinfold_core::talk::{Activity, Standing};
use pinfold_core::{Action, ConsumerId, Ended, Event, Exit, Mode, RunNumber, Spec, State, World};

const ME: ConsumerId = ConsumerId(1);
const YOU: ConsumerId = ConsumerId(2);
const RUN: RunNumber = RunNumber(1);

fn driver(mode: Mode, when: Welcomes) -> Driver {
    Driver::new(Spec { interactive: true, attach: Attaching::Join(when), ..Spec::new(mode) })
}

/// A session whose run is ready for a guest.
fn ready() -> Driver {
    let mut driver = driver(Mode::Always, Welcomes::WhenReady);
    idle(&mut driver);
    driver
}

fn idle(driver: &mut Driver) {
    let standing = Standing { activity: Activity::Idle, ..Standing::default() };
    driver.of_run(driver.run(), RunEvent::Standing(Box::new(standing)));
}

fn attach(driver: &mut Driver, consumer: ConsumerId) {
    driver.ask(Ask::Attach { consumer, joins: Joins::Guest, urgent: false });
}

fn guest(driver: &mut Driver, guest: u64, event: GuestEvent) {
    driver.of_run(driver.run(), RunEvent::Guest { guest, event });
}

fn comes(driver: &mut Driver, number: u64) {
    guest(driver, number, GuestEvent::Started { pid: 4711 });
}

fn goes(driver: &mut Driver, number: u64) {
    guest(driver, number, GuestEvent::Ended { exit: Exit::Code(3), text: None });
}

/// The guests that were to be started.
fn asked(driver: &Driver) -> Vec<u64> {
    let guests = driver.actions.iter().filter_map(|action| match action {
        Action::StartGuest { guest, .. } => Some(*guest),
        _ => None,
    });
    guests.collect()
}

fn reached(driver: &Driver) -> Reached {
    driver.session.reached(Joins::Guest)
}

fn told(driver: &Driver) -> (usize, usize) {
    let started = driver.count(|record| matches!(record, Record::GuestStarted { .. }));
    (started, driver.count(|record| matches!(record, Record::GuestEnded { .. })))
}

#[test]
fn a_guest_comes_to_a_turn_under_way_and_goes_and_the_turn_goes_on() {
    let mut driver = ready();
    driver.message();
    let message = driver.takes();
    attach(&mut driver, ME);
    assert_eq!((asked(&driver), reached(&driver)), (vec![1], Reached::NotYet));
    comes(&mut driver, 1);
    assert_eq!((reached(&driver), driver.session.state()), (Reached::Terminal(RUN), State::Running));
    assert_eq!(driver.session.inbox().in_flight().map(|turn| turn.message), Some(message));
    assert!(driver.session.explain(driver.now).contains("its terminal program runs beside it, pid 4711"));
    goes(&mut driver, 1);
    assert_eq!((reached(&driver), told(&driver)), (Reached::NoGuest, (1, 1)));
    assert_eq!(driver.answers(), message);
    assert_eq!((driver.session.state(), driver.run(), driver.starts), (State::Running, RUN, 1));
    assert!(
        !driver.actions.iter().any(|action| matches!(action, Action::Stop { .. } | Action::Interrupt { .. }))
    );
}

#[test]
fn whoever_comes_later_joins_the_same_guest_and_the_next_one_has_another_number() {
    let mut driver = ready();
    attach(&mut driver, ME);
    attach(&mut driver, YOU);
    assert_eq!(asked(&driver), [1], "one is asked for");
    comes(&mut driver, 1);
    comes(&mut driver, 1);
    attach(&mut driver, ConsumerId(3));
    driver.send(Event::ConsumerLeft { consumer: ME });
    assert_eq!((asked(&driver), told(&driver)), (vec![1], (1, 0)), "it stays when somebody goes");
    goes(&mut driver, 1);
    goes(&mut driver, 1);
    comes(&mut driver, 1);
    assert_eq!((asked(&driver), told(&driver)), (vec![1], (1, 1)), "nobody asked for another");
    attach(&mut driver, ME);
    assert_eq!(asked(&driver), [1, 2]);
}

#[test]
fn a_guest_waits_until_the_agent_can_be_spoken_to_and_its_conversation_is_known() {
    for (when, at_once, when_idle) in [
        (Welcomes::AtOnce, true, true),
        (Welcomes::WhenReady, false, true),
        (Welcomes::WhenNamed, false, false),
    ] {
        let mut driver = driver(Mode::OnDemand, when);
        attach(&mut driver, ME);
        assert_eq!(driver.session.state(), State::Running, "it was woken");
        assert_eq!(!asked(&driver).is_empty(), at_once, "{when:?}");
        idle(&mut driver);
        assert_eq!(!asked(&driver).is_empty(), when_idle, "{when:?}");
        driver.of_run(RUN, RunEvent::VendorLearned { id: "conversation".into() });
        assert_eq!(asked(&driver), [1], "{when:?}");
    }
}

#[test]
fn a_guest_that_cannot_be_started_is_not_tried_again_by_itself() {
    let mut driver = ready();
    attach(&mut driver, ME);
    let text = Some("no such program".to_owned());
    guest(&mut driver, 1, GuestEvent::Ended { exit: Exit::NeverStarted, text });
    driver.send(Event::Ticked);
    assert_eq!((asked(&driver), reached(&driver), told(&driver)), (vec![1], Reached::NoGuest, (0, 1)));
    assert_eq!(driver.session.state(), State::Running);
}

#[test]
fn whoever_goes_before_the_guest_came_asks_for_none() {
    let mut driver = driver(Mode::Always, Welcomes::WhenReady);
    attach(&mut driver, ME);
    driver.send(Event::ConsumerLeft { consumer: ME });
    idle(&mut driver);
    assert_eq!(asked(&driver), [] as [u64; 0]);
}

#[test]
fn the_end_of_a_run_ends_its_guest_and_whoever_waited_gets_that_of_the_next() {
    let mut driver = ready();
    attach(&mut driver, ME);
    comes(&mut driver, 1);
    driver.ends(End::Code(0), 1_000);
    assert_eq!((told(&driver), driver.session.guest_here()), ((1, 1), None));
    let mut waits = ready();
    attach(&mut waits, ME);
    waits.ends(End::Code(0), 60_000);
    assert_eq!(told(&waits), (0, 0), "it never came");
    assert_eq!((waits.session.state(), waits.run()), (State::Running, RunNumber(2)));
    idle(&mut waits);
    assert_eq!(asked(&waits), [1, 1], "the first of each run");
}

#[test]
fn an_attached_guest_keeps_its_run_from_being_parked_and_one_that_is_alone_does_not() {
    let mut driver = driver(Mode::OnDemand, Welcomes::AtOnce);
    attach(&mut driver, ME);
    comes(&mut driver, 1);
    driver.pass(100_000_000);
    driver.send(Event::Ticked);
    assert_eq!(driver.session.state(), State::Running);
    driver.send(Event::ConsumerLeft { consumer: ME });
    assert!(driver.session.has_guest(), "whoever comes back finds the same screen");
    driver.wait();
    assert_eq!(driver.session.state(), State::Stopping);
}

/// The daemon is killed, and the next one finds this of the guest.
fn restarts(driver: &mut Driver, guest: Option<GuestSeen>) {
    driver.session = driver.session.as_stored();
    let shim = ShimSeen::Keeping { run: RUN, process: Process { pid: 101, fence: 1 } };
    let world = World { guest, ..World::new(Machine::Same, shim, Vec::new()) };
    driver.send(Event::DaemonStarted(world));
}

#[test]
fn each_coming_and_going_is_told_once_whenever_the_daemon_dies() {
    let here = Some(GuestSeen { number: 1, presence: Presence::Here { pid: 4711 } });
    let gone = Some(GuestSeen { number: 1, presence: Presence::Gone(Exit::Code(3)) });
    let after = |before: fn(&mut Driver), seen| {
        let mut driver = ready();
        before(&mut driver);
        restarts(&mut driver, seen);
        restarts(&mut driver, seen);
        (told(&driver), driver.session.has_guest(), asked(&driver))
    };
    let wanted: fn(&mut Driver) = |driver| attach(driver, ME);
    let came: fn(&mut Driver) = |driver| {
        attach(driver, ME);
        comes(driver, 1);
    };
    let went: fn(&mut Driver) = |driver| {
        attach(driver, ME);
        comes(driver, 1);
        goes(driver, 1);
    };
    assert_eq!(after(wanted, None), ((0, 0), false, vec![1]), "it was never told to start");
    assert_eq!(after(wanted, here), ((1, 0), true, vec![1]));
    assert_eq!(after(wanted, gone), ((0, 1), false, vec![1]));
    assert_eq!(after(came, here), ((1, 0), true, vec![1]));
    assert_eq!(after(came, gone), ((1, 1), false, vec![1]));
    assert_eq!(after(went, gone), ((1, 1), false, vec![1]));
}

#[test]
fn a_lost_shim_takes_the_guest_along() {
    let mut driver = ready();
    attach(&mut driver, ME);
    comes(&mut driver, 1);
    let lost = RunEvent::Exited {
        ended: Ended::new(Exit::ShimLost, std::time::Duration::from_secs(5)),
        shim: pinfold_core::event::Shim::Absent,
        holder: None,
    };
    driver.of_run(RUN, lost);
    let lost = |record: &Record| matches!(record, Record::GuestEnded { exit: Exit::ShimLost, .. });
    assert_eq!((driver.count(lost), told(&driver), driver.session.has_guest()), (1, (1, 1), false));
}
