//! Single paths through the loop, step by step: what is on the wire, and when.

use super::case::Case;
use super::ground::Ground;
use super::nursery::BirthTrouble;
use super::script::{AgentEnding, Asking, CommonStep as Common};
use super::steps::SimulationStep;
use super::world::SimulatedHolder;
use pinfold_core::{RunNumber, Session, State};
use pinfold_shim::Command;
use std::rc::Rc;

/// A session that always runs, in its first run.
fn running() -> Case {
    let mut case = Case::new(&Rc::new(Ground::new()), false).unwrap();
    work(&mut case);
    assert_eq!(state(&case), State::Running);
    case
}

fn work(case: &mut Case) {
    for _ in 0..100 {
        super::rest::work_off(case).unwrap();
    }
}

fn session(case: &Case) -> &Session {
    &case.daemon.as_ref().unwrap().engine.sessions[&case.ids[0]].session
}

fn state(case: &Case) -> State {
    session(case).state()
}

fn take_all(case: &mut Case) {
    while case.take(0).unwrap() {}
}

/// Makes everything decided durable and known to the loop.
fn settle(case: &mut Case) {
    take_all(case);
    while case.perform_commit().unwrap() {
        take_all(case);
    }
}

/// What the shim has yet to read: acknowledged ends, and runs to start.
fn on_the_wire(case: &Case) -> Vec<String> {
    let machine = case.shared.lock();
    let commands = machine.links[0].iter().flat_map(|link| &link.commands);
    let words = commands.filter_map(|command| match command {
        Command::Ack { run } => Some(format!("stored {run}")),
        Command::Start(start) => Some(format!("start {}", start.run)),
        _ => None,
    });
    words.collect()
}

fn end(case: &mut Case, ending: AgentEnding) {
    case.play(SimulationStep::Common(Common::Pass(5_000))).unwrap();
    case.play(SimulationStep::Common(Common::AgentEnds(0, ending))).unwrap();
    take_all(case);
}

#[test]
fn an_end_is_acknowledged_and_a_run_started_by_whoever_makes_it_durable_and_not_before() {
    let mut case = running();
    end(&mut case, AgentEnding::Code(1));
    assert_eq!(on_the_wire(&case), [""; 0], "nothing is durable yet");
    assert!(case.perform_commit().unwrap(), "the end and the next run are one batch");
    let [first, second] = [RunNumber(1), RunNumber(2)];
    assert_eq!(on_the_wire(&case), [format!("stored {first}"), format!("start {second}")]);
    take_all(&mut case);
    assert_eq!(on_the_wire(&case).len(), 2, "the loop has nothing left to do for it");
}

#[test]
fn nothing_is_on_the_wire_of_a_batch_that_failed() {
    let mut case = running();
    end(&mut case, AgentEnding::Code(1));
    case.contradicts = true;
    assert!(case.perform_commit().unwrap());
    assert_eq!(on_the_wire(&case), [""; 0]);
    take_all(&mut case);
    assert_eq!(on_the_wire(&case), [""; 0]);
    let beginnings = case.daemon.as_ref().unwrap().engine.sessions[&case.ids[0]].beginnings;
    assert_eq!(beginnings, 1, "the session begins again from what is stored");
    super::rest::come_to_rest(&mut case).unwrap();
    super::rest::at_rest(&case).unwrap();
    assert_eq!(state(&case), State::Running);
}

#[test]
fn an_end_that_leads_nowhere_is_acknowledged_by_the_loop_when_it_is_durable() {
    let mut case = running();
    end(&mut case, AgentEnding::Code(78));
    assert_eq!(on_the_wire(&case), [""; 0]);
    assert!(case.perform_commit().unwrap());
    assert_eq!(on_the_wire(&case), [""; 0], "the loop has not heard of it");
    take_all(&mut case);
    assert_eq!(on_the_wire(&case), [format!("stored {}", RunNumber(1))]);
}

#[test]
fn a_person_hears_that_something_is_so_when_it_is_durable() {
    let mut case = running();
    case.play(SimulationStep::Common(Common::Ask(0, Asking::Stop))).unwrap();
    take_all(&mut case);
    assert_eq!(case.unanswered(), 1);
    assert!(case.perform_commit().unwrap());
    assert_eq!(case.unanswered(), 1, "the loop has not heard of it");
    take_all(&mut case);
    assert_eq!(case.unanswered(), 0);
}

#[test]
fn a_session_starts_at_once_whatever_becomes_of_the_nursery() {
    use BirthTrouble::{NoNursery, NurseryKilled, NurseryStopped, ShimSlow};
    for trouble in [NoNursery, NurseryKilled, NurseryStopped, ShimSlow] {
        let mut case = Case::new(&Rc::new(Ground::new()), false).unwrap();
        case.shared.lock().births[0] = Some(trouble);
        work(&mut case);
        assert_eq!(session(&case).live_run(), Some(RunNumber(1)), "{trouble:?}");
        assert_eq!(state(&case), State::Running, "{trouble:?}");
    }
}

#[test]
fn the_locks_of_a_shim_that_never_answered_are_free_when_it_has_left() {
    let mut case = Case::new(&Rc::new(Ground::new()), false).unwrap();
    case.shared.lock().births[0] = Some(BirthTrouble::ShimMute);
    let held = |case: &Case| case.shared.lock().room.session_locks[0];
    for _ in 0..20 {
        settle(&mut case);
        if held(&case) != SimulatedHolder::Unborn(0) {
            case.perform(0, 1).unwrap();
        }
    }
    assert_eq!(held(&case), SimulatedHolder::Unborn(0));
    assert!(case.shared.lock().orphan_leaves(0));
    assert_eq!(held(&case), SimulatedHolder::Nobody);
}

#[test]
fn a_terminal_is_refused_while_the_shim_is_mute_and_the_end_of_its_run_is_known_later() {
    let mut case = running();
    let play = |case: &mut Case, step| case.play(SimulationStep::Common(step)).unwrap();
    play(&mut case, Common::Mute(0));
    play(&mut case, Common::KillDaemon);
    play(&mut case, Common::StartDaemon);
    case.perform(0, 1).unwrap();
    settle(&mut case);
    play(&mut case, Common::Ask(0, Asking::Takeover(1, false)));
    settle(&mut case);
    assert_eq!((session(&case).takeover(), case.unanswered()), (None, 0), "it was refused");
    play(&mut case, Common::AgentEnds(0, AgentEnding::Drained));
    super::rest::come_to_rest(&mut case).unwrap();
    super::rest::at_rest(&case).unwrap();
    assert_eq!(session(&case).live_run(), Some(RunNumber(2)));
    assert_eq!(session(&case).runs().settled, RunNumber(1));
}
