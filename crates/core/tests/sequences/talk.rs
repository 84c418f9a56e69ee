//! The conversation with an agent: requests, who answers, what it is doing, its vendor's conversation, and repetitions.

use crate::driver::{Driver, End, always, on_demand};
use pinfold_core::decision::{Answer, Record, Refusal};
use pinfold_core::event::{Ask, Machine, MessageEvent, RequestEvent, RunEvent, Shim, ShimSeen, TurnEnd};
use pinfold_core::exit::{Ended, Exit};
use pinfold_core::ids::RequestNumber;
use pinfold_core::inbox::Read;
use pinfold_core::life::Process;
use pinfold_core::session::Need;
use pinfold_core::talk::{
    Activity, ActivitySource, Dialog, Permissions, Permit, RequestAnswer, RequestKind, Standing,
};
use pinfold_core::{Action, Event, Mode, Policy, Spec, State, Wall, World};
use std::time::Duration;

fn opened(driver: &mut Driver, key: &str, kind: RequestKind) {
    let event = RequestEvent::Opened { key: key.into(), kind, title: "Bash: rm -rf build".into() };
    let run = driver.run();
    driver.send(Event::Request { run, event });
}

fn yes() -> RequestAnswer {
    RequestAnswer { verdict: Permit::Allow, always: false, words: None }
}

fn answered(driver: &mut Driver, request: Option<u64>) {
    driver.send(Event::Answered { request: request.map(RequestNumber), answer: yes() });
}

/// Returns how often the agent was to be told an answer.
fn told(driver: &Driver) -> usize {
    driver.actions.iter().filter(|action| matches!(action, Action::Answer { .. })).count()
}

fn in_a_turn() -> Driver {
    let mut driver = on_demand();
    driver.message();
    driver.takes();
    driver.send(standing(&driver, Activity::Working, false));
    driver
}

fn standing(driver: &Driver, activity: Activity, own_work: bool) -> Event {
    Event::Run { run: driver.run(), event: standing_of(activity, own_work) }
}

fn standing_of(activity: Activity, own_work: bool) -> RunEvent {
    RunEvent::Standing(Box::new(Standing { activity, own_work, ..Standing::default() }))
}

/// Reports what the file of its program says.
fn filed(driver: &mut Driver, activity: Activity, dialog: Dialog, since: Option<Wall>) {
    let detail = (dialog == Dialog::Open).then(|| "permission prompt".to_owned());
    let standing =
        Standing { activity, own_work: false, from: ActivitySource::IdFile, since, dialog, detail };
    driver.of_run(driver.run(), RunEvent::Standing(Box::new(standing)));
}

/// Returns how many messages were handed to the agent.
fn handed(driver: &Driver) -> usize {
    driver.actions.iter().filter(|action| matches!(action, Action::Deliver { .. })).count()
}

/// Waits until it runs again, if a crash is followed by a wait.
fn runs_again(driver: &mut Driver) {
    if driver.session.state() == State::Backoff {
        driver.wait();
    }
    assert_eq!(driver.session.state(), State::Running);
}

#[test]
fn a_request_waits_for_a_person_and_the_oldest_is_answered_first() {
    let mut driver = in_a_turn();
    opened(&mut driver, "a", RequestKind::Permission);
    opened(&mut driver, "b", RequestKind::Question);
    opened(&mut driver, "a", RequestKind::Permission);
    assert_eq!((driver.session.talk().requests().len(), driver.session.activity()), (2, Activity::Waiting));
    answered(&mut driver, None);
    assert_eq!(driver.answer, Some(Answer::Done));
    assert!(matches!(driver.actions.last(), Some(Action::Answer { key, .. }) if key == "a"));
    answered(&mut driver, None);
    assert!(matches!(driver.actions.last(), Some(Action::Answer { key, .. }) if key == "b"));
    assert_eq!(driver.session.activity(), Activity::Working);
}

#[test]
fn of_two_answers_to_one_request_one_counts() {
    let mut driver = in_a_turn();
    opened(&mut driver, "a", RequestKind::Permission);
    answered(&mut driver, Some(1));
    answered(&mut driver, Some(1));
    assert_eq!(driver.answer, Some(Answer::Refused(Refusal::NoSuchRequest)));
    assert_eq!(told(&driver), 1);
}

#[test]
fn what_was_withdrawn_cannot_be_answered() {
    let mut driver = in_a_turn();
    opened(&mut driver, "a", RequestKind::Permission);
    let run = driver.run();
    driver.send(Event::Request { run, event: RequestEvent::Withdrawn { key: "a".into() } });
    answered(&mut driver, None);
    assert_eq!((driver.answer.clone(), told(&driver)), (Some(Answer::Refused(Refusal::NoSuchRequest)), 0));
    assert_eq!(driver.count(|record| matches!(record, Record::RequestWithdrawn { .. })), 1);
}

#[test]
fn the_policy_answers_permissions_and_no_questions() {
    for (permissions, verdict) in [(Permissions::Allow, Permit::Allow), (Permissions::Deny, Permit::Deny)] {
        let policy = Policy { permissions, ..Policy::default() };
        let mut driver = Driver::new(Spec { policy, ..Spec::new(Mode::OnDemand) });
        driver.message();
        opened(&mut driver, "q", RequestKind::Question);
        assert_eq!(told(&driver), 0);
        opened(&mut driver, "p", RequestKind::Permission);
        let Some(Action::Answer { key, answer, .. }) = driver.actions.last() else { panic!("not answered") };
        assert_eq!((key.as_str(), answer.verdict), ("p", verdict));
    }
}

#[test]
fn the_end_of_a_turn_and_the_end_of_a_run_withdraw_what_was_asked() {
    let mut driver = in_a_turn();
    opened(&mut driver, "a", RequestKind::Permission);
    driver.answers();
    assert_eq!(driver.session.talk().requests(), []);
    driver.message();
    opened(&mut driver, "a", RequestKind::Permission);
    assert_eq!(driver.session.talk().requests()[0].number, RequestNumber(2), "a number is not used again");
    driver.exits(1);
    assert_eq!(driver.session.talk().requests(), []);
}

#[test]
fn an_answer_that_was_decided_is_told_again_by_the_next_daemon_and_no_other_is_taken() {
    let mut driver = in_a_turn();
    opened(&mut driver, "a", RequestKind::Permission);
    answered(&mut driver, None);
    let (run, process) = (driver.run(), Process { pid: 101, fence: 1 });
    driver.daemon_restarts(ShimSeen::Keeping { run, process }, Vec::new());
    assert_eq!(told(&driver), 2, "the same answer: the agent is told it once, by its number");
    driver.send(Event::Answered { request: None, answer: RequestAnswer { verdict: Permit::Deny, ..yes() } });
    assert_eq!(driver.answer, Some(Answer::Refused(Refusal::NoSuchRequest)));
    driver.send(Event::Request { run, event: RequestEvent::Told { key: "a".into() } });
    driver.daemon_restarts(ShimSeen::Keeping { run, process }, Vec::new());
    assert_eq!((told(&driver), driver.session.talk().requests().len()), (2, 0));
}

#[test]
fn what_an_earlier_run_asked_or_said_is_stale() {
    let mut driver = in_a_turn();
    let earlier = driver.run();
    driver.exits(1);
    runs_again(&mut driver);
    let event = RequestEvent::Opened { key: "a".into(), kind: RequestKind::Question, title: "?".into() };
    driver.send(Event::Request { run: earlier, event });
    driver.of_run(earlier, RunEvent::VendorLearned { id: "v".into() });
    driver.of_run(earlier, standing_of(Activity::Idle, true));
    assert_eq!((driver.session.talk().requests(), driver.session.talk().vendor()), (&[][..], None));
    assert_eq!(driver.session.activity(), Activity::Unknown);
}

#[test]
fn a_message_is_not_typed_into_a_dialog_and_goes_when_that_is_answered() {
    let mut driver = Driver::new(Spec::new(Mode::Always));
    filed(&mut driver, Activity::Waiting, Dialog::Open, None);
    driver.message();
    driver.message();
    assert_eq!((handed(&driver), driver.session.inbox().queued()), (0, 2));
    filed(&mut driver, Activity::Working, Dialog::None, None);
    assert_eq!((handed(&driver), driver.session.inbox().queued()), (1, 1));
    // A dialog that opens meanwhile holds the next message back.
    filed(&mut driver, Activity::Waiting, Dialog::Open, None);
    driver.answers();
    assert_eq!(handed(&driver), 1);
    filed(&mut driver, Activity::Idle, Dialog::None, None);
    assert_eq!(handed(&driver), 2);
}

#[test]
fn a_dialog_ends_with_its_run() {
    let mut driver = always(Policy::default());
    filed(&mut driver, Activity::Waiting, Dialog::Open, None);
    driver.message();
    driver.exits(0);
    runs_again(&mut driver);
    assert_eq!((handed(&driver), driver.session.dialog()), (1, Dialog::None));
}

#[test]
fn a_daemon_that_comes_back_looks_for_a_dialog_before_it_types() {
    for (found, handed_over) in [(Dialog::None, 1), (Dialog::Open, 0)] {
        let mut driver = always(Policy::default());
        filed(&mut driver, Activity::Waiting, Dialog::Open, None);
        driver.message();
        driver.session = driver.session.as_stored();
        let keeping = ShimSeen::Keeping { run: driver.run(), process: Process { pid: 7, fence: 1 } };
        let world = World { dialog: Dialog::Unseen, ..World::new(Machine::Same, keeping, Vec::new()) };
        driver.send(Event::DaemonStarted(world));
        assert_eq!((handed(&driver), driver.session.activity()), (0, Activity::Unknown));
        filed(&mut driver, Activity::Unknown, found, None);
        assert_eq!(handed(&driver), handed_over, "{found:?}");
    }
}

#[test]
fn what_it_does_has_a_source_and_an_age_and_the_same_again_is_no_news() {
    let mut driver = always(Policy::default());
    let began = driver.now.wall;
    filed(&mut driver, Activity::Working, Dialog::None, None);
    driver.pass(60_000);
    filed(&mut driver, Activity::Working, Dialog::None, None);
    let standing = driver.session.standing().unwrap();
    assert_eq!((standing.since, standing.from), (Some(began), ActivitySource::IdFile));
    // The file knows better.
    filed(&mut driver, Activity::Working, Dialog::None, Some(Wall(1)));
    assert_eq!(driver.session.standing().unwrap().since, Some(Wall(1)));
    filed(&mut driver, Activity::Idle, Dialog::None, None);
    assert_eq!(driver.session.standing().unwrap().since, Some(driver.now.wall));
}

#[test]
fn a_run_with_work_of_its_own_is_needed_until_that_is_over() {
    let mut driver = in_a_turn();
    driver.answers();
    driver.send(standing(&driver, Activity::Idle, true));
    assert_eq!(driver.session.need(driver.now.boot), Some(Need::OwnWork));
    assert_eq!((driver.session.next_deadline(), driver.session.activity()), (None, Activity::Working));
    driver.send(standing(&driver, Activity::Idle, false));
    assert_eq!(driver.wait(), Duration::from_secs(300), "its idle time begins now");
}

#[test]
fn a_conversation_that_is_not_saved_is_not_parked_and_said_so_once() {
    let mut driver = in_a_turn();
    driver.answers();
    let run = driver.run();
    let saved = |saved| RunEvent::Saved { saved };
    driver.of_run(run, saved(false));
    driver.of_run(run, saved(false));
    assert_eq!(driver.session.need(driver.now.boot), Some(Need::Unsaved));
    assert_eq!(driver.session.next_deadline(), None);
    assert!(driver.session.explain(driver.now).contains("has not saved what was said last"));
    let warned = |record: &Record| matches!(record, Record::HealthWarn { .. });
    assert_eq!(driver.count(warned), 1);
    driver.of_run(run, saved(true));
    assert_eq!(driver.wait(), Duration::from_secs(300), "its idle time begins now");
    driver.of_run(run, saved(false));
    driver.exits(0);
    assert_eq!(driver.session.need(driver.now.boot), None, "it ended with its run");
}

#[test]
fn a_vendor_session_that_is_learned_is_locked_once_and_again_by_the_next_daemon() {
    let mut driver = in_a_turn();
    let run = driver.run();
    let holds = |driver: &Driver| {
        let held = |action: &&Action| matches!(action, Action::HoldVendor { .. });
        driver.actions.iter().filter(held).cloned().collect::<Vec<_>>()
    };
    driver.of_run(run, RunEvent::VendorLearned { id: "one".into() });
    driver.of_run(run, RunEvent::VendorLearned { id: "one".into() });
    driver.of_run(run, RunEvent::VendorLearned { id: "two".into() });
    let hold = |id: &str| Action::HoldVendor { run, id: id.into() };
    assert_eq!(holds(&driver), [hold("one"), hold("two")]);
    driver.daemon_restarts(ShimSeen::Keeping { run, process: Process { pid: 101, fence: 1 } }, Vec::new());
    assert_eq!(holds(&driver), [hold("one"), hold("two"), hold("two")]);
}

#[test]
fn a_conversation_that_its_vendor_lost_is_neither_locked_nor_gone_on_with_and_may_come_back() {
    let mut driver = in_a_turn();
    let run = driver.run();
    driver.of_run(run, RunEvent::VendorLost { another: None });
    assert_eq!(driver.session.talk().conversation(Some("defined")), Some("defined"), "there is none to lose");
    driver.of_run(run, RunEvent::VendorLearned { id: "one".into() });
    assert_eq!(driver.session.talk().conversation(Some("defined")), Some("one"));
    driver.of_run(run, RunEvent::VendorLost { another: None });
    assert_eq!(driver.session.talk().conversation(Some("defined")), None);
    let before = driver.actions.len();
    driver.daemon_restarts(ShimSeen::Keeping { run, process: Process { pid: 101, fence: 1 } }, Vec::new());
    let held = |action: &Action| matches!(action, Action::HoldVendor { .. });
    assert!(!driver.actions[before..].iter().any(held), "{:?}", driver.actions);
    driver.of_run(run, RunEvent::VendorLearned { id: "one".into() });
    assert_eq!(driver.session.talk().conversation(None), Some("one"));
    driver.of_run(run, RunEvent::VendorLost { another: Some("two".into()) });
    assert_eq!(driver.session.talk().conversation(None), Some("two"));
    let stale = pinfold_core::RunNumber(run.0 + 1);
    driver.of_run(stale, RunEvent::VendorLost { another: None });
    assert_eq!(driver.session.talk().conversation(None), Some("two"), "another run's loss");
}

#[test]
fn an_interrupt_that_crossed_the_end_of_a_turn_costs_the_next_message_nothing() {
    let mut driver = in_a_turn();
    driver.answers();
    let next = driver.message();
    driver.takes();
    let run = driver.run();
    for _ in 0..10 {
        let crossed = MessageEvent::TurnEnded { run, message: next, how: TurnEnd::Crossed };
        driver.send(Event::Message(crossed));
        driver.takes();
    }
    let turn = driver.session.inbox().in_flight().unwrap();
    assert_eq!((turn.message, turn.tries, turn.repeated), (next, 1, true));
    driver.answers();
    assert_eq!(driver.session.inbox().settled(), (2, 0));
}

#[test]
fn a_message_that_an_agent_may_have_read_is_marked_when_it_is_delivered_again() {
    for (read, repeated) in [(Read::Maybe, true), (Read::Never, false)] {
        let mut driver = on_demand();
        driver.message();
        let ended = Ended { read, ..Ended::new(Exit::Code(1), Duration::from_secs(1)) };
        let event = RunEvent::Exited { ended, shim: Shim::Absent, holder: None };
        driver.of_run(driver.run(), event);
        runs_again(&mut driver);
        let Some(Action::Deliver { repeated: marked, attempt, .. }) = driver.actions.last() else {
            panic!("not delivered: {:?}", driver.actions)
        };
        assert_eq!((*marked, *attempt), (repeated, 1), "{read:?}");
    }
}

#[test]
fn a_message_that_was_marked_stays_marked_and_the_one_after_it_is_not() {
    let mut driver = on_demand();
    driver.message();
    driver.message();
    driver.ends_and_waits(End::Code(1), 1_000);
    let never = Ended { read: Read::Never, ..Ended::new(Exit::Code(1), Duration::from_secs(1)) };
    let event = RunEvent::Exited { ended: never, shim: Shim::Absent, holder: None };
    driver.of_run(driver.run(), event);
    runs_again(&mut driver);
    assert!(driver.session.inbox().in_flight().unwrap().repeated, "an earlier run may have read it");
    driver.answers();
    assert!(!driver.session.inbox().in_flight().unwrap().repeated);
}

#[test]
fn a_stop_withdraws_what_was_asked_and_the_message_waits() {
    let mut driver = in_a_turn();
    opened(&mut driver, "a", RequestKind::Permission);
    driver.ask(Ask::Stop { grace: None });
    driver.ends(End::Signal(15), 10);
    assert_eq!((driver.session.talk().requests(), driver.session.inbox().queued()), (&[][..], 1));
}
