//! Attach through the loop, step by step: what is decided, which client is told what, and when.

use super::case::Case;
use super::ground::Ground;
use super::script::{AgentEnding, Asking, CommonStep as Common};
use super::steps::SimulationStep;
use crate::engine::attaching::{AttachRequest, AttachStanding, AttachedTo, NotAttached, Standings};
use crate::engine::command::EngineCommand;
use crate::engine::input::LoopInput;
use crate::engine::session::Tracked;
use crate::engine::{ReplyHandle, WhyNot};
use pinfold_core::decision::{Answer, Refusal, TakeoverEnd};
use pinfold_core::life::CannotStart;
use pinfold_core::{ConsumerId, Event, RunNumber, State};
use pinfold_shim::Size;
use std::rc::Rc;
use tokio::sync::oneshot;

const ONE: ConsumerId = ConsumerId(1_001);
const OTHER: ConsumerId = ConsumerId(1_002);

/// The answer to an attach.
type Answered = oneshot::Receiver<Result<AttachedTo, NotAttached>>;

/// A session that always runs and can be taken over, in its first run.
fn running() -> Case {
    let mut case = Case::new(&Rc::new(Ground::new()), false).unwrap();
    work_off(&mut case);
    assert_eq!(tracked(&case).session.state(), State::Running);
    case
}

fn tracked(case: &Case) -> &Tracked {
    &case.daemon.as_ref().unwrap().engine.sessions[&case.ids[0]]
}

fn work_off(case: &mut Case) {
    for _ in 0..100 {
        super::rest::work_off(case).unwrap();
    }
}

fn take_all(case: &mut Case) {
    while case.take(0).unwrap() {}
}

/// Everything becomes durable and is heard of, while no pool thread and no shim acts.
fn settle(case: &mut Case) {
    take_all(case);
    while case.perform_commit().unwrap() {
        take_all(case);
    }
}

fn wish(consumer: ConsumerId) -> AttachRequest {
    AttachRequest { consumer, size: None, urgent: false, read_only: false, by: None, no_program: None }
}

fn ask(case: &mut Case, attach: AttachRequest) -> Answered {
    let (reply, answered) = oneshot::channel();
    let command = EngineCommand::Attach { id: case.ids[0], attach: Box::new(attach), reply };
    case.tell(0, LoopInput::Command(Box::new(command)));
    take_all(case);
    answered
}

/// Attaches, and returns how that stands from then on.
fn attach(case: &mut Case, attach: AttachRequest) -> Standings {
    let mut answered = ask(case, attach);
    settle(case);
    match answered.try_recv().unwrap().ok().unwrap() {
        AttachedTo::Terminal(standings) => standings,
        AttachedTo::Output => panic!("there is a terminal"),
    }
}

fn refused(case: &mut Case, wish: AttachRequest) -> NotAttached {
    let mut answered = ask(case, wish);
    answered.try_recv().unwrap().err().unwrap()
}

fn ready(standings: &Standings) -> Option<RunNumber> {
    let Some(AttachStanding::Ready { run, .. }) = &*standings.borrow() else { return None };
    Some(*run)
}

fn waits(standings: &Standings) -> bool {
    matches!(&*standings.borrow(), Some(AttachStanding::Waits(_)))
}

/// Lets the grace of a run that was told to stop pass.
fn grace_passes(case: &mut Case) {
    work_off(case);
    case.play(SimulationStep::Common(Common::Pass(60_000))).unwrap();
    work_off(case);
}

/// Lets shims, threads and time advance one by one until the condition holds.
fn until(case: &mut Case, so: impl Fn(&Case) -> bool) {
    for _ in 0..200 {
        if so(case) {
            return;
        }
        case.perform(0, 0).unwrap();
        case.play(SimulationStep::Common(Common::Pass(1_000))).unwrap();
        settle(case);
    }
    panic!("it never is");
}

fn agent_ends(case: &mut Case) {
    case.play(SimulationStep::Common(Common::Pass(5_000))).unwrap();
    case.play(SimulationStep::Common(Common::AgentEnds(0, AgentEnding::Code(0)))).unwrap();
}

#[test]
fn an_attach_is_one_decision_that_is_said_when_it_is_durable() {
    let mut case = running();
    let mut answered = ask(&mut case, wish(ONE));
    assert_eq!(tracked(&case).session.state(), State::Stopping, "the headless run is taken over");
    assert_eq!(tracked(&case).session.consumers(), 1, "by somebody who is counted");
    assert!(answered.try_recv().is_err(), "nothing is durable yet");
    assert!(case.perform_commit().unwrap());
    assert_eq!(case.shared.lock().commits.len(), 0, "it was one batch");
    take_all(&mut case);
    assert!(matches!(answered.try_recv(), Ok(Ok(AttachedTo::Terminal(_)))));
}

#[test]
fn a_takeover_is_told_step_by_step_and_whoever_had_the_terminal_leaves_with_it() {
    let mut case = running();
    let standings = attach(&mut case, AttachRequest { size: Some(Size::new(40, 100)), ..wish(ONE) });
    assert!(waits(&standings), "the headless run ends first");
    assert_eq!(tracked(&case).terminal, Size::new(40, 100));
    grace_passes(&mut case);
    assert_eq!((ready(&standings), tracked(&case).session.state()), (Some(RunNumber(2)), State::Held));
    assert!(tracked(&case).attaching.waiting.is_empty(), "nothing is left to be told");
    agent_ends(&mut case);
    work_off(&mut case);
    assert_eq!((tracked(&case).session.state(), tracked(&case).session.consumers()), (State::Running, 0));
}

#[test]
fn what_cannot_be_is_refused_with_its_reason_and_nobody_is_counted() {
    let mut case = running();
    let cause = CannotStart::ProgramMissing { program: "ui".into() };
    let why = refused(&mut case, AttachRequest { no_program: Some(cause.clone()), ..wish(ONE) });
    let NotAttached::NoProgram { cause: told, .. } = why else { panic!("{why:?}") };
    assert_eq!((told, tracked(&case).session.state()), (cause, State::Running));
    case.play(SimulationStep::Common(Common::Ask(0, Asking::Stop))).unwrap();
    grace_passes(&mut case);
    let why = refused(&mut case, AttachRequest { read_only: true, ..wish(ONE) });
    assert!(matches!(why, NotAttached::Refused(Refusal::Stopped, _)), "{why:?}");
    case.play(SimulationStep::Common(Common::Ask(0, Asking::Archive))).unwrap();
    work_off(&mut case);
    let why = refused(&mut case, wish(ONE));
    assert!(matches!(why, NotAttached::Refused(Refusal::Archived, _)), "{why:?}");
    assert_eq!((tracked(&case).session.consumers(), tracked(&case).attaching.waiting.len()), (0, 0));
}

#[test]
fn nobody_is_attached_while_nothing_can_be_recorded() {
    let mut case = running();
    case.play(SimulationStep::Disk { full: true }).unwrap();
    take_all(&mut case);
    let mut answered = ask(&mut case, wish(ONE));
    assert!(matches!(answered.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    assert_eq!(tracked(&case).session.state(), State::Running);
}

#[test]
fn a_takeover_that_is_called_off_ends_those_who_joined_it() {
    let mut case = running();
    case.play(SimulationStep::Common(Common::Send(0, 0))).unwrap();
    settle(&mut case);
    let own = attach(&mut case, wish(ONE));
    let joined = attach(&mut case, wish(OTHER));
    assert!(waits(&own) && waits(&joined), "the turn is finished first");
    let left = LoopInput::Happened {
        id: case.ids[0],
        event: Box::new(Event::ConsumerLeft { consumer: ONE }),
        facts: Box::default(),
        reply: None,
    };
    case.tell(0, left);
    settle(&mut case);
    let last = joined.borrow().clone();
    let Some(AttachStanding::Over(NotAttached::NotTakenOver(how, _))) = last else { panic!("{last:?}") };
    assert_eq!(how, Some(TakeoverEnd::CallerGone));
}

#[test]
fn whoever_joined_a_terminal_program_that_ended_at_once_gets_its_own_turn() {
    let mut case = running();
    let own = attach(&mut case, wish(ONE));
    let joined = attach(&mut case, wish(OTHER));
    until(&mut case, |case| tracked(case).session.state() == State::Held);
    // The thread that looks for the terminal's socket is slower than the terminal program.
    agent_ends(&mut case);
    settle(&mut case);
    assert!(waits(&own) && waits(&joined));
    work_off(&mut case);
    let last = own.borrow().clone();
    let Some(AttachStanding::Over(NotAttached::NotTakenOver(how, _))) = last else { panic!("{last:?}") };
    assert_eq!(how, Some(TakeoverEnd::Held), "its own has ended at once");
    let takeover = tracked(&case).session.takeover().map(|takeover| takeover.consumer);
    assert_eq!(takeover, Some(OTHER));
    grace_passes(&mut case);
    assert!(ready(&joined) > Some(RunNumber(2)), "{:?}", joined.borrow());
}

#[test]
fn a_terminal_whose_socket_was_removed_is_ready_when_its_shim_has_made_another() {
    let mut case = running();
    case.shared.lock().socket_removed[0] = true;
    let standings = attach(&mut case, wish(ONE));
    until(&mut case, |_| matches!(&*standings.borrow(), Some(AttachStanding::NoSocket(_))));
    work_off(&mut case);
    assert_eq!(ready(&standings), Some(RunNumber(2)));
}

#[test]
fn a_shim_that_cannot_make_its_socket_is_told_again_when_time_has_passed() {
    let mut case = running();
    {
        let mut machine = case.shared.lock();
        (machine.socket_removed[0], machine.cannot_listen[0]) = (true, true);
    }
    let standings = attach(&mut case, wish(ONE));
    grace_passes(&mut case);
    assert!(matches!(&*standings.borrow(), Some(AttachStanding::NoSocket(_))));
    case.shared.lock().cannot_listen[0] = false;
    work_off(&mut case);
    assert_eq!(ready(&standings), None, "it is not asked over and over");
    case.play(SimulationStep::Common(Common::Pass(1_000))).unwrap();
    work_off(&mut case);
    assert_eq!(ready(&standings), Some(RunNumber(2)));
}

#[test]
fn a_terminal_outlives_the_daemon_and_whoever_has_it_is_counted_by_the_next_and_leaves_with_it() {
    let mut case = running();
    let waiting = attach(&mut case, wish(ONE));
    grace_passes(&mut case);
    assert_eq!(ready(&waiting), Some(RunNumber(2)));
    let other = attach(&mut case, AttachRequest { read_only: true, ..wish(OTHER) });
    case.kill_daemon();
    assert!(other.has_changed().is_err(), "whoever waits for a daemon that died hears that");
    case.start_daemon().unwrap();
    work_off(&mut case);
    assert_eq!(tracked(&case).session.state(), State::Held);
    let (reply, mut answered) = ReplyHandle::new();
    let command = EngineCommand::AttachAgain { id: case.ids[0], attach: Box::new(wish(ONE)), reply };
    case.tell(0, LoopInput::Command(Box::new(command)));
    settle(&mut case);
    assert_eq!(answered.try_recv().unwrap(), Ok::<Answer, WhyNot>(Answer::Done));
    assert_eq!(tracked(&case).session.consumers(), 1);
    agent_ends(&mut case);
    work_off(&mut case);
    assert_eq!((tracked(&case).session.state(), tracked(&case).session.consumers()), (State::Running, 0));
}
