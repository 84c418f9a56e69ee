//! A daemon that comes back to every state and every world.

use crate::driver::{Driver, End, always, ended, on_demand};
use crate::people::{STATES, in_state};
use pinfold_core::decision::{Answer, Record, Refusal};
use pinfold_core::event::{Ask, ConsumerKind, Machine, MessageEvent, RunEvent, Shim, ShimSeen};
use pinfold_core::life::{FailCause, Process};
use pinfold_core::{Action, ConsumerId, Event, Exit, Life, Mode, Policy, RunNumber, Spec, State, World};

const AGENT: Process = Process { pid: 4711, fence: 9 };

fn exits(driver: &Driver) -> Vec<Exit> {
    let exit = |record: &Record| match record {
        Record::RunExited(exit) => Some(exit.exit),
        _ => None,
    };
    driver.records.iter().filter_map(exit).collect()
}

#[test]
fn a_living_run_is_adopted_and_nothing_is_started() {
    let mut driver = always(Policy::default());
    let run = driver.run();
    driver.daemon_restarts(ShimSeen::Keeping { run, process: AGENT }, Vec::new());
    assert_eq!((driver.session.state(), driver.starts), (State::Running, 1));
    assert_eq!(driver.count(|record| matches!(record, Record::Adopted { .. })), 1);
    assert_eq!(exits(&driver), []);
}

#[test]
fn a_run_killed_between_spawn_and_its_commit_is_adopted() {
    let mut driver = on_demand();
    driver.hear(Event::Asked(Ask::Start));
    let run = driver.run();
    driver.hear(Event::Run { run, event: RunEvent::Reserved });
    driver.daemon_restarts(ShimSeen::Keeping { run, process: AGENT }, Vec::new());
    assert_eq!((driver.session.state(), driver.starts), (State::Running, 0));
    assert_eq!(driver.count(|record| matches!(record, Record::RunStarted { .. })), 1);
}

#[test]
fn an_end_that_happened_meanwhile_is_known_by_its_record() {
    let mut driver = always(Policy::default());
    let run = driver.run();
    driver.daemon_restarts(ShimSeen::Nobody, vec![(run, ended(End::Code(3), 1_000))]);
    assert_eq!(exits(&driver), [Exit::Code(3)]);
    assert_eq!((driver.session.state(), driver.crashes()), (State::Running, 1));
}

#[test]
fn an_end_without_a_record_is_a_lost_shim_and_a_crash() {
    let mut driver = always(Policy::default());
    driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
    assert_eq!(exits(&driver), [Exit::ShimLost]);
    assert_eq!(driver.crashes(), 1);
}

#[test]
fn records_of_settled_runs_do_no_harm() {
    let mut driver = always(Policy::default());
    let first = driver.run();
    driver.exits(1);
    let run = driver.run();
    driver.daemon_restarts(
        ShimSeen::Keeping { run, process: AGENT },
        vec![(first, ended(End::Code(1), 1_000))],
    );
    assert_eq!((exits(&driver), driver.session.state()), (vec![Exit::Code(1)], State::Running));
}

#[test]
fn a_run_of_an_earlier_time_that_is_met_alive_unsettles_no_later_one() {
    let mut driver = always(Policy::default());
    let first = driver.run();
    driver.exits(1);
    driver.send(Event::Asked(Ask::Stop { grace: None }));
    driver.exits(0);
    let settled = driver.session.runs().settled;
    assert!(settled > first, "{settled}");
    driver.daemon_restarts(ShimSeen::Keeping { run: first, process: AGENT }, Vec::new());
    assert_eq!(driver.session.live_run(), Some(first), "it is ended");
    let event = RunEvent::Exited { ended: ended(End::Code(0), 1_000), shim: Shim::Absent, holder: None };
    driver.send(Event::Run { run: first, event });
    assert_eq!((driver.session.live_run(), driver.session.runs().settled), (None, settled));
}

#[test]
fn a_machine_that_restarts_charges_nobody() {
    let mut driver = always(Policy::default());
    for _ in 0..3 {
        driver.session = driver.session.as_stored();
        let world = World::new(Machine::Restarted, ShimSeen::Nobody, Vec::new());
        driver.now.boot = pinfold_core::Boot(10);
        driver.send(Event::DaemonStarted(world));
    }
    assert_eq!(exits(&driver), [Exit::MachineLost; 3]);
    assert_eq!((driver.session.state(), driver.crashes()), (State::Running, 0));
}

#[test]
fn a_backup_that_was_put_back_charges_nobody_and_no_record_of_a_later_life_counts() {
    let mut driver = always(Policy::default());
    for (code, round) in [(None, 1), (Some(1), 2), (Some(0), 3)] {
        driver.session = driver.session.as_stored();
        let run = driver.session.live_run().unwrap();
        let exits = code.map(|code| (run, ended(End::Code(code), 1_000))).into_iter().collect();
        driver.send(Event::DaemonStarted(World::new(Machine::PutBack, ShimSeen::Nobody, exits)));
        assert_eq!((driver.session.state(), driver.crashes()), (State::Running, 0), "round {round}");
    }
    assert_eq!(exits(&driver), [Exit::AfterBackup; 3]);
}

#[test]
fn after_a_restart_of_the_machine_always_starts_and_on_demand_is_idle() {
    for state in STATES {
        let mut driver = in_state(state);
        driver.session = driver.session.as_stored();
        driver.send(Event::DaemonStarted(World::new(Machine::Restarted, ShimSeen::Nobody, Vec::new())));
        let expected = match state {
            State::Stopped | State::Failed | State::Archived => state,
            _ => State::Idle,
        };
        assert_eq!(driver.session.state(), expected, "from {state:?}");
    }
}

#[test]
fn a_once_run_that_was_cut_short_has_failed() {
    let mut driver = Driver::new(Spec::new(Mode::Once));
    driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
    assert_eq!((driver.session.state(), driver.starts), (State::Failed, 1));

    let mut driver = Driver::new(Spec::new(Mode::Once));
    driver.hear(Event::DownAsked);
    driver.ends(End::Signal(15), 1_000);
    assert_eq!(driver.session.life(), &Life::Failed { cause: FailCause::Interrupted });
    driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
    assert_eq!((driver.session.state(), driver.starts), (State::Failed, 1));
}

#[test]
fn a_once_run_that_may_have_run_is_not_run_again() {
    let mut driver = Driver::new(Spec::new(Mode::Once));
    driver.session = pinfold_core::Session::new(Spec::new(Mode::Once));
    driver.hear(Event::Created);
    let run = driver.run();
    driver.hear(Event::Run { run, event: RunEvent::Reserved });
    let starts = driver.starts;
    driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
    assert_eq!((driver.session.state(), driver.starts), (State::Failed, starts));
}

#[test]
fn after_down_always_starts_again_and_on_demand_waits_for_need() {
    let mut driver = always(Policy::default());
    driver.hear(Event::DownAsked);
    driver.ends(End::Signal(15), 1_000);
    assert_eq!((driver.session.state(), driver.crashes()), (State::Idle, 0));
    driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
    assert_eq!(driver.session.state(), State::Running);

    let mut driver = on_demand();
    driver.message();
    driver.takes();
    driver.hear(Event::DownAsked);
    driver.ends(End::Signal(15), 1_000);
    assert_eq!((driver.session.state(), driver.session.inbox().queued()), (State::Idle, 1));
    driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
    assert_eq!(driver.session.state(), State::Running, "something is queued");
}

#[test]
fn a_turn_under_way_is_handed_over_again_with_the_same_number() {
    let mut driver = on_demand();
    let message = driver.message();
    driver.takes();
    let run = driver.run();
    let decision = driver.daemon_restarts(ShimSeen::Keeping { run, process: AGENT }, Vec::new());
    assert_eq!(
        decision.actions,
        [Action::Deliver { run, message, attempt: 1, delivery: 1, repeated: false }]
    );
    driver.send(Event::Message(MessageEvent::TurnEnded {
        run,
        message,
        how: pinfold_core::event::TurnEnd::Answered,
    }));
    assert_eq!(driver.session.inbox().settled(), (1, 0));
}

#[test]
fn a_stop_that_the_daemon_did_not_live_to_see_goes_on() {
    let mut driver = always(Policy::default());
    let run = driver.run();
    driver.hear(Event::Asked(Ask::Stop { grace: None }));
    let decision = driver.daemon_restarts(ShimSeen::Keeping { run, process: AGENT }, Vec::new());
    assert!(matches!(decision.actions[..], [Action::Stop { .. }]));
    driver.ends(End::Signal(15), 1_000);
    assert_eq!((driver.session.state(), driver.crashes()), (State::Stopped, 0));
}

#[test]
fn a_shim_that_stands_is_used_or_dismissed() {
    let mut driver = always(Policy::default());
    driver.ends(End::Code(1), 1_000);
    driver.ends(End::Code(1), 1_000);
    assert_eq!(driver.session.state(), State::Backoff);
    driver.daemon_restarts(ShimSeen::Standing, Vec::new());
    driver.wait();
    assert!(matches!(driver.actions.last(), Some(Action::Spawn { .. })));

    let mut driver = in_state(State::Stopped);
    let decision = driver.daemon_restarts(ShimSeen::Standing, Vec::new());
    assert_eq!((&decision.actions[..], driver.session.shim()), (&[Action::Release][..], Shim::Absent));
}

#[test]
fn an_agent_that_should_not_be_there_is_ended_and_the_record_stays() {
    for state in [State::Idle, State::Stopped, State::Archived] {
        let mut driver = in_state(state);
        let run = RunNumber(77);
        let decision = driver.daemon_restarts(ShimSeen::Keeping { run, process: AGENT }, Vec::new());
        assert!(matches!(decision.actions[..], [Action::Stop { .. }]), "{state:?}");
        driver.ends(End::Signal(9), 1_000);
        assert_eq!(driver.session.state(), state);
    }
}

#[test]
fn nothing_is_decided_while_a_shim_does_not_answer() {
    let mut driver = always(Policy::default());
    let run = driver.run();
    let decision = driver.daemon_restarts(ShimSeen::Mute, Vec::new());
    assert_eq!(decision.actions, [Action::LookAgain]);
    driver.message();
    driver.ask(Ask::Restart);
    assert_eq!(driver.answer, Some(Answer::Refused(Refusal::ShimMute)));
    assert_eq!((driver.starts, driver.session.inbox().queued()), (1, 1));
    assert!(driver.session.explain(driver.now).contains("does not answer"));
    let world = World::new(Machine::Same, ShimSeen::Keeping { run, process: AGENT }, Vec::new());
    driver.send(Event::DaemonStarted(world));
    assert!(driver.session.inbox().in_flight().is_some(), "the message goes on its way");
}

#[test]
fn waiting_for_somebody_elses_lock_is_tried_again_only_if_still_needed() {
    let mut driver = in_state(State::Blocked);
    driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
    assert_eq!(driver.session.state(), State::Running, "a person started it a moment ago");

    let mut driver = in_state(State::Blocked);
    driver.pass(600_000);
    driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
    assert_eq!(driver.session.state(), State::Idle);
}

#[test]
fn a_start_that_nobody_needs_any_more_is_not_made_again_by_the_next_daemon() {
    let mut driver = on_demand();
    driver.hear(Event::ConsumerJoined { consumer: ConsumerId(1), kind: ConsumerKind::Attach });
    let run = driver.run();
    driver.hear(Event::Run { run, event: RunEvent::Reserved });
    let decision = driver.daemon_restarts(ShimSeen::Standing, Vec::new());
    assert_eq!((driver.session.state(), driver.starts), (State::Idle, 0));
    assert_eq!(decision.actions, [Action::Release], "its shim gives the locks back");
}

#[test]
fn after_a_backup_was_put_back_everything_that_waits_may_have_been_read() {
    for machine in [Machine::Same, Machine::PutBack] {
        let mut driver = on_demand();
        driver.message();
        driver.takes();
        let second = driver.message();
        driver.send(Event::DaemonStarted(World::new(machine, ShimSeen::Nobody, Vec::new())));
        driver.session.refill(driver.session.inbox().waiting().collect::<Vec<_>>());
        let later = driver.message();
        let put_back = machine == Machine::PutBack;
        let inbox = driver.session.inbox();
        assert_eq!((inbox.is_repeated(second), inbox.is_repeated(later)), (put_back, false), "{machine:?}");
        driver.takes();
        let turn = driver.session.inbox().in_flight().unwrap();
        assert!(turn.repeated, "it was under way");
        assert_eq!(turn.delivery > 1_000, put_back, "its number is one that no agent knows");
    }
}
