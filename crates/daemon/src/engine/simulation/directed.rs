//! Single journeys through the loop, step by step: what is on the wire, and when.

use super::case::Case;
use super::ground::Ground;
use super::script::{Asking, Ending, Step as Common};
use super::steps::Step;
use pinfold_core::{RunNumber, State};
use pinfold_shim::Command;
use std::rc::Rc;

/// A session that always runs, in its first run.
fn running() -> Case {
    let mut case = Case::new(&Rc::new(Ground::new()), false).unwrap();
    for _ in 0..100 {
        super::rest::work_off(&mut case).unwrap();
    }
    assert_eq!(state(&case), State::Running);
    case
}

fn state(case: &Case) -> State {
    case.daemon.as_ref().unwrap().engine.sessions[&case.ids[0]].session.state()
}

fn take_all(case: &mut Case) {
    while case.take(0).unwrap() {}
}

/// What the shim has before it: ends that are stored, and runs to start.
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

fn end(case: &mut Case, ending: Ending) {
    case.play(Step::Common(Common::Pass(5_000))).unwrap();
    case.play(Step::Common(Common::AgentEnds(0, ending))).unwrap();
    take_all(case);
}

#[test]
fn an_end_is_acknowledged_and_a_run_started_by_whoever_makes_it_durable_and_not_before() {
    let mut case = running();
    end(&mut case, Ending::Code(1));
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
    end(&mut case, Ending::Code(1));
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
    end(&mut case, Ending::Code(78));
    assert_eq!(on_the_wire(&case), [""; 0]);
    assert!(case.perform_commit().unwrap());
    assert_eq!(on_the_wire(&case), [""; 0], "the loop has not heard of it");
    take_all(&mut case);
    assert_eq!(on_the_wire(&case), [format!("stored {}", RunNumber(1))]);
}

#[test]
fn a_person_hears_that_something_is_so_when_it_is_durable() {
    let mut case = running();
    case.play(Step::Common(Common::Ask(0, Asking::Stop))).unwrap();
    take_all(&mut case);
    assert_eq!(case.unanswered(), 1);
    assert!(case.perform_commit().unwrap());
    assert_eq!(case.unanswered(), 1, "the loop has not heard of it");
    take_all(&mut case);
    assert_eq!(case.unanswered(), 0);
}
