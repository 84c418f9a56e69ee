//! The ends of runs and of the daemon itself: what shims report, what they do not, and what is in the way.

use super::hand::{AGENT, FIRST, LONG, Room, SECOND, SHIM, exited, person};
use crate::engine::Closing;
use crate::engine::input::{AgentsOnDown, LoopInput};
use crate::ports::locks::HolderEnded;
use crate::ports::shims::LinkNumber;
use pinfold_api::object::Left;
use pinfold_core::event::Ask;
use pinfold_core::exit::Exit;
use pinfold_core::unended::{Survivor, Undying, Unended};
use pinfold_core::{RunNumber, State};
use pinfold_shim::log::{LogEntry, Position, Stream};
use pinfold_shim::{Command, Notice, Report, StartFailure};
use pinfold_store::SessionId;
use serde_json::json;
use std::time::Duration;
use tokio::sync::oneshot;

const SECOND_OF_TIME: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(10);
/// The number by which a shim is asked for a sign of life.
const NOBODYS: RunNumber = RunNumber(0);

fn survivor() -> Survivor {
    Survivor { pid: 77, name: "sleeper".into(), why: Undying::DoesNotEnd }
}

/// A session whose run was told to stop a moment ago.
fn stopping(room: &mut Room) -> SessionId {
    let id = room.running("a", &json!({}));
    room.stop(id);
    assert_eq!(room.state(id), State::Stopping);
    assert_eq!(room.heard(id), [Command::Stop { run: FIRST, grace: GRACE }]);
    id
}

fn in_the_way(room: &Room, id: SessionId) -> Option<Unended> {
    room.engine.sessions[&id].session.unended().cloned()
}

pub(super) fn printed(run: RunNumber, text: &str) -> LogEntry {
    let (position, at) = (Position(0), pinfold_core::Wall(0));
    LogEntry {
        position,
        at,
        run,
        stream: Stream::Out,
        bytes: text.as_bytes().to_vec(),
        terminal: None,
        lost: 0,
    }
}

#[test]
fn a_stop_is_watched_for_a_sign_of_life_an_answer_and_an_end() {
    let mut room = Room::new();
    stopping(&mut room);
    let after = |seconds| GRACE + seconds * SECOND_OF_TIME;
    assert_eq!(room.desk.reminders(), [after(1), after(2), after(8)]);
}

#[test]
fn a_shim_that_does_not_answer_after_the_grace_is_in_the_way() {
    let mut room = Room::new();
    let id = stopping(&mut room);
    room.pass(GRACE + SECOND_OF_TIME);
    assert_eq!(room.heard(id), [Command::Interrupt { run: NOBODYS }], "it is asked for a sign of life");
    assert_eq!(in_the_way(&room, id), None);
    room.pass(SECOND_OF_TIME);
    assert_eq!(in_the_way(&room, id), Some(Unended::Silent { shim: Some(SHIM) }));
}

#[test]
fn a_shim_that_gets_little_of_a_busy_machine_has_as_long_as_its_tree() {
    let mut room = Room::new();
    let id = stopping(&mut room);
    room.desk.lock().ran = Some(100);
    room.pass(GRACE + SECOND_OF_TIME);
    room.desk.lock().ran = Some(101);
    room.pass(SECOND_OF_TIME);
    assert_eq!(in_the_way(&room, id), None, "it has run since it was asked");
    room.pass(6 * SECOND_OF_TIME);
    assert_eq!(in_the_way(&room, id), Some(Unended::Silent { shim: Some(SHIM) }));
}

#[test]
fn below_a_shim_that_answers_and_names_nobody_the_daemon_looks_itself() {
    let mut room = Room::new();
    let id = stopping(&mut room);
    room.pass(GRACE + SECOND_OF_TIME);
    room.says(id, Report::NoSuchRun { run: NOBODYS });
    assert_eq!(room.state(id), State::Stopping, "a sign of life is no end");
    room.pass(SECOND_OF_TIME);
    assert_eq!((in_the_way(&room, id), room.desk.lock().searches.len()), (None, 0));
    room.pass(6 * SECOND_OF_TIME);
    let (shim, found) = room.desk.lock().searches.pop().expect("it is looked for");
    assert_eq!(shim, SHIM);
    found(vec![survivor()]);
    room.settle();
    assert_eq!(in_the_way(&room, id), Some(Unended::Survivors { shim: Some(SHIM), left: vec![survivor()] }));
}

#[test]
fn below_a_shim_that_has_named_who_is_left_nobody_looks() {
    let mut room = Room::new();
    let id = stopping(&mut room);
    room.pass(GRACE + SECOND_OF_TIME);
    room.says(id, Report::Survivors { run: FIRST, left: vec![survivor()] });
    assert_eq!(in_the_way(&room, id), Some(Unended::Survivors { shim: Some(SHIM), left: vec![survivor()] }));
    room.pass(7 * SECOND_OF_TIME);
    assert!(room.desk.lock().searches.is_empty());
}

#[test]
fn a_shim_that_was_silent_and_speaks_is_watched_anew() {
    let mut room = Room::new();
    let id = stopping(&mut room);
    room.pass(GRACE + 2 * SECOND_OF_TIME);
    room.pass(7 * SECOND_OF_TIME);
    assert!(in_the_way(&room, id).is_some() && room.desk.reminders().is_empty());
    room.says(id, Report::NoSuchRun { run: NOBODYS });
    assert_eq!(in_the_way(&room, id), None);
    assert_eq!(room.desk.reminders()[0], GRACE + SECOND_OF_TIME);
}

#[test]
fn of_two_stops_the_earlier_end_of_the_grace_counts() {
    let mut room = Room::new();
    let id = stopping(&mut room);
    let watched = room.engine.sessions[&id].run.as_ref().unwrap().watch;
    room.ask(id, Ask::Stop { grace: Some(2 * GRACE) });
    assert_eq!(
        room.engine.sessions[&id].run.as_ref().unwrap().watch,
        watched,
        "the later one changes nothing"
    );
    room.ask(id, Ask::Stop { grace: Some(SECOND_OF_TIME) });
    assert_ne!(room.engine.sessions[&id].run.as_ref().unwrap().watch, watched);
    room.pass(GRACE);
    assert!(in_the_way(&room, id).is_some(), "the earlier one is over");
}

#[test]
fn a_run_that_has_ended_is_not_watched_any_more() {
    let mut room = Room::new();
    let id = stopping(&mut room);
    room.ends(id, FIRST, Exit::Code(0));
    room.heard(id);
    room.pass(GRACE + 8 * SECOND_OF_TIME);
    assert_eq!((room.heard(id), in_the_way(&room, id)), (Vec::new(), None));
    assert_eq!(room.state(id), State::Stopped);
}

#[test]
fn a_run_of_a_lost_shim_has_ended_when_it_is_proved_that_nothing_of_it_lives() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.desk.lock().printed = vec![printed(FIRST, "one\ntwo\n")];
    room.hangs_up(id);
    let (lost, then) = room.desk.lock().proofs.pop().expect("it is proved first");
    assert_eq!(lost.name, "a");
    assert_eq!(lost.run, room.engine.sessions[&id].latest.map(|(_, run)| run.to_string()));
    assert_eq!(lost.listen, room.engine.home.shim_socket(id));
    assert_eq!(room.state(id), State::Running, "nothing is decided yet");
    room.pass(SECOND_OF_TIME);
    then(true);
    room.settle();
    let event = room.last_event("run_exited");
    assert_eq!((&event.data["end"], &event.data["output"]), (&json!("shim_lost"), &json!(["one", "two"])));
    assert_eq!(event.data["uptime_ms"], json!(1000));
}

#[test]
fn a_lost_shim_of_which_nothing_is_proved_is_looked_at_again() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.hangs_up(id);
    let (_, then) = room.desk.lock().proofs.pop().unwrap();
    then(false);
    room.settle();
    assert_eq!(room.state(id), State::Running);
    let look = room.desk.lock().looks.pop().expect("it is looked at again").0;
    assert_eq!(look.after, Duration::from_millis(500));
    assert!(look.subject.may_live);
}

#[test]
fn what_was_proved_of_a_shim_says_nothing_about_the_next_one() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.tell(LoopInput::ShimGone { id, run: FIRST, proved: true });
    assert_eq!(room.state(id), State::Running, "there is a connection with one that lives");
}

#[test]
fn only_the_connection_of_now_is_listened_to() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    for report in [None, Some(Report::Exited(exited(FIRST, Exit::Code(0), LONG)))] {
        room.tell(LoopInput::Shim { id, link: LinkNumber(99), report });
    }
    assert_eq!(room.state(id), State::Running);
    assert!(room.engine.sessions[&id].shim.is_some());
}

#[test]
fn a_shim_that_leaves_in_the_middle_of_a_start_has_not_tried_it() {
    let mut room = Room::new();
    let id = room.starting("a", &json!({}));
    room.shim_comes(id);
    room.says(id, Report::Leaving);
    room.pass(2 * LONG);
    assert_eq!(room.desk.lock().reservations.len(), 1, "it is tried anew");
    assert!(!room.kinds().contains(&"run_exited".to_owned()));
}

#[test]
fn a_start_that_is_on_record_has_ended_as_the_record_says_when_its_shim_leaves() {
    let mut room = Room::new();
    let id = room.starting("a", &json!({}));
    room.shim_comes(id);
    let other = exited(SECOND, Exit::Code(9), LONG);
    room.desk.lock().records = vec![exited(FIRST, Exit::Code(4), LONG), other];
    room.says(id, Report::Leaving);
    assert_eq!(room.last_event("run_exited").data["code"], json!(4));
}

#[test]
fn a_run_that_its_shim_does_not_know_ended_as_its_record_says() {
    for (recorded, wanted) in [(true, json!("code")), (false, json!("shim_lost"))] {
        let mut room = Room::new();
        let id = room.running("a", &json!({}));
        if recorded {
            room.desk.lock().records = vec![exited(FIRST, Exit::Code(3), LONG)];
        }
        room.says(id, Report::NoSuchRun { run: FIRST });
        assert_eq!(room.last_event("run_exited").data["end"], wanted);
    }
}

#[test]
fn a_record_of_a_start_that_failed_is_no_exit() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.ends(id, FIRST, Exit::Code(0));
    let failed = pinfold_shim::Exited {
        failure: Some(StartFailure::ProgramMissing),
        ..exited(SECOND, Exit::NeverStarted, LONG)
    };
    room.says(id, Report::Exited(failed));
    assert_eq!(room.state(id), State::Failed);
    assert_eq!(room.kinds().iter().filter(|kind| *kind == "run_exited").count(), 1);
}

#[test]
fn the_last_lines_of_a_run_stand_in_the_record_of_its_end() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let many: String = (1..=30).map(|line| format!("line {line}\n")).collect();
    room.desk.lock().printed = vec![printed(FIRST, &many), printed(SECOND, "of the next")];
    room.ends(id, FIRST, Exit::Code(1));
    let output = room.last_event("run_exited").data["output"].clone();
    let wanted: Vec<String> = (11..=30).map(|line| format!("line {line}")).collect();
    assert_eq!(output, json!(wanted));
    // The log has not grown since: nothing in it is of this run.
    room.starts(id, SECOND);
    room.says(
        id,
        Report::Exited(pinfold_shim::Exited { log: Position(1), ..exited(SECOND, Exit::Code(1), LONG) }),
    );
    assert_eq!(room.last_event("run_exited").data["output"], json!([]));
}

#[test]
fn an_end_is_recorded_when_it_was_and_with_how_it_was() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.says(id, Report::Exited(exited(FIRST, Exit::Signal(11), Duration::from_millis(1500))));
    let exit = room.engine.sessions[&id].session.last_exit().unwrap().clone();
    assert_eq!(
        (exit.exit, exit.lived, exit.at),
        (Exit::Signal(11), Duration::from_millis(1500), pinfold_core::Wall(5))
    );
}

#[test]
fn only_the_run_that_lives_is_heard() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let live = room.engine.feed.live.latest();
    room.says(id, Report::Notify { run: SECOND, notice: Notice::Ready });
    room.says(id, Report::Notify { run: FIRST, notice: Notice::Stopping });
    assert_eq!(
        (room.engine.sessions[&id].run.as_ref().unwrap().ready, room.engine.feed.live.latest()),
        (false, live)
    );
    room.says(id, Report::Notify { run: FIRST, notice: Notice::Ready });
    assert_eq!(
        (room.engine.sessions[&id].run.as_ref().unwrap().ready, room.engine.feed.live.latest()),
        (true, live + 1)
    );
    room.says(id, Report::Notify { run: FIRST, notice: Notice::Status("at work".into()) });
    assert_eq!(room.engine.feed.live.latest(), live + 2);
    let changed = room.view().live_after(live + 1, 10);
    assert_eq!(changed.iter().map(|change| (change.number, change.id)).collect::<Vec<_>>(), [(live + 2, id)]);
}

#[test]
fn a_watchdog_that_is_fed_does_not_bite() {
    let mut room = Room::configured("[agents.w.policy]\nwatchdog = \"10s\"\n");
    let id = room.running("a", &json!({ "agent": "w" }));
    for _ in 0..4 {
        room.pass(8 * SECOND_OF_TIME);
        room.says(id, Report::Notify { run: FIRST, notice: Notice::Watchdog });
    }
    assert_eq!(room.state(id), State::Running);
    room.pass(10 * SECOND_OF_TIME);
    assert_eq!(room.state(id), State::Stopping);
}

fn unlocks(room: &Room, run: &str) {
    let record = json!({ "kind": "unlocked", "session": "a", "run": run, "why": "asked" });
    crate::offline_audit::append(&room.engine.home.audit(), &record).unwrap();
}

#[test]
fn an_end_that_unlock_wrote_down_before_was_a_persons_wish() {
    let rows =
        [(Exit::Signal(9), true, true), (Exit::Signal(15), true, false), (Exit::Signal(9), false, false)];
    for (exit, noted, wished) in rows {
        let mut room = Room::new();
        let id = room.running("a", &json!({}));
        if noted {
            unlocks(&room, &room.engine.sessions[&id].latest.unwrap().1.to_string());
        }
        room.ends(id, FIRST, exit);
        let why = room.last_event("run_exited").why;
        assert_eq!(why.contains("unlock"), wished, "{exit:?} {noted}: {why}");
    }
}

#[test]
fn an_unlock_of_another_run_says_nothing_about_this_one() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    unlocks(&room, &room.engine.sessions[&id].latest.unwrap().1.to_string());
    room.ends(id, FIRST, Exit::Code(0));
    room.starts(id, SECOND);
    room.ends(id, SECOND, Exit::Signal(9));
    assert!(!room.last_event("run_exited").why.contains("unlock"));
}

#[test]
fn a_shim_that_was_lost_to_an_unlock_of_before_was_a_persons_wish_too() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    unlocks(&room, &room.engine.sessions[&id].latest.unwrap().1.to_string());
    room.tell(LoopInput::Audited);
    room.engine.sessions.get_mut(&id).unwrap().run.as_mut().unwrap().unlocked = false;
    room.hangs_up(id);
    let (_, then) = room.desk.lock().proofs.pop().unwrap();
    then(true);
    room.settle();
    assert!(room.last_event("run_exited").why.contains("unlock"), "{}", room.last_event("run_exited").why);
}

// The daemon's own end.

fn down(room: &mut Room, agents: AgentsOnDown) -> oneshot::Receiver<Vec<Left>> {
    let (reply, said) = oneshot::channel();
    room.tell(LoopInput::Down { agents, by: Some(person()), reply: Some(reply) });
    room.engine.end_if_at_rest();
    said
}

#[test]
fn a_daemon_goes_when_every_run_has_ended_and_its_shim_has_left() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let mut said = down(&mut room, AgentsOnDown::Stopped);
    assert!(!room.engine.is_over() && said.try_recv().is_err());
    assert!(matches!(room.heard(id)[..], [Command::Stop { run: FIRST, .. }]));
    room.ends(id, FIRST, Exit::Code(0));
    room.engine.end_if_at_rest();
    assert!(!room.engine.is_over(), "its shim has the locks still");
    room.says(id, Report::Leaving);
    room.engine.end_if_at_rest();
    assert!(room.engine.is_over());
    room.engine.say_goodbye();
    assert_eq!(said.try_recv().unwrap(), []);
    let last = room.last_event("daemon_stopped");
    assert_eq!((last.data["by"]["user"].clone(), last.data.get("left")), (json!(77), None));
}

#[test]
fn agents_that_are_kept_are_not_waited_for() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let mut said = down(&mut room, AgentsOnDown::Kept);
    assert!(room.engine.is_over());
    assert_eq!((room.heard(id), room.state(id)), (Vec::new(), State::Running));
    room.engine.say_goodbye();
    assert_eq!(said.try_recv().unwrap(), []);
}

#[test]
fn everybody_who_asked_for_the_end_hears_of_it() {
    let mut room = Room::new();
    room.running("a", &json!({}));
    let mut first = down(&mut room, AgentsOnDown::Stopped);
    let mut second = down(&mut room, AgentsOnDown::Kept);
    room.engine.say_goodbye();
    assert!(first.try_recv().is_ok() && second.try_recv().is_ok());
    assert!(matches!(room.engine.closing, Closing::No));
}

#[test]
fn a_session_that_is_not_looked_at_keeps_the_daemon() {
    let mut room = Room::new();
    room.create("a", &json!({}));
    let mut room = room.again();
    down(&mut room, AgentsOnDown::Stopped);
    assert!(!room.engine.is_over());
}

#[test]
fn a_tree_that_its_shim_cannot_end_is_left_behind_and_named() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let mut said = down(&mut room, AgentsOnDown::Stopped);
    assert!(room.desk.reminders().contains(&(GRACE + 2 * SECOND_OF_TIME)));
    room.says(id, Report::Survivors { run: FIRST, left: vec![survivor()] });
    room.pass(GRACE + 2 * SECOND_OF_TIME);
    room.engine.end_if_at_rest();
    assert!(room.engine.is_over() && room.desk.lock().holders.is_empty());
    room.engine.say_goodbye();
    let left = said.try_recv().unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].session.as_str(), left[0].pids.contains(&77)), ("a", true));
    assert_eq!(room.last_event("daemon_stopped").data["left"][0]["session"], json!("a"));
}

#[test]
fn a_shim_that_does_not_answer_is_ended_twice_and_then_left_behind() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let mut said = down(&mut room, AgentsOnDown::Stopped);
    room.pass(GRACE + SECOND_OF_TIME);
    room.pass(SECOND_OF_TIME);
    assert!(in_the_way(&room, id).is_some());
    room.pass(Duration::from_millis(250));
    for time in 0..2 {
        let (name, then) = room.desk.lock().holders.pop().unwrap_or_else(|| panic!("it is ended, {time}"));
        assert_eq!(name, "a");
        then(HolderEnded::Gone);
        room.settle();
        room.engine.end_if_at_rest();
        assert_eq!(room.engine.is_over(), time == 1);
        room.pass(3 * SECOND_OF_TIME);
    }
    room.engine.say_goodbye();
    let left = said.try_recv().unwrap();
    assert_eq!((left[0].session.as_str(), &left[0].pids[..]), ("a", &[SHIM][..]));
}

#[test]
fn a_holder_that_cannot_be_ended_is_left_behind_at_once() {
    let mut room = Room::new();
    room.running("a", &json!({}));
    let mut said = down(&mut room, AgentsOnDown::Stopped);
    room.pass(GRACE + SECOND_OF_TIME);
    room.pass(SECOND_OF_TIME);
    room.pass(Duration::from_millis(250));
    let (_, then) = room.desk.lock().holders.pop().unwrap();
    then(HolderEnded::Still(Unended::Survivors { shim: None, left: vec![survivor()] }));
    room.settle();
    room.engine.end_if_at_rest();
    assert!(room.engine.is_over());
    room.engine.say_goodbye();
    assert_eq!(said.try_recv().unwrap()[0].pids, [77]);
}

#[test]
fn who_was_in_the_way_before_has_had_its_grace() {
    let mut room = Room::new();
    let id = stopping(&mut room);
    room.says(id, Report::Survivors { run: FIRST, left: vec![survivor()] });
    down(&mut room, AgentsOnDown::Stopped);
    assert!(room.desk.reminders().contains(&(2 * SECOND_OF_TIME)));
}

#[test]
fn a_daemon_waits_for_strangers_that_it_ends() {
    let mut room = Room::new();
    room.engine.strangers = 1;
    down(&mut room, AgentsOnDown::Stopped);
    assert!(!room.engine.is_over());
    room.tell(LoopInput::StrangerEnded { id: "x".into() });
    room.engine.end_if_at_rest();
    assert!(room.engine.is_over());
}

#[test]
fn a_run_lives_since_it_runs() {
    let mut room = Room::new();
    let id = room.starting("a", &json!({}));
    room.pass(SECOND_OF_TIME);
    assert_eq!(room.engine.lived(id), Duration::ZERO);
    room.shim_comes(id);
    room.starts(id, FIRST);
    room.pass(3 * SECOND_OF_TIME);
    assert_eq!(room.engine.lived(id), 3 * SECOND_OF_TIME);
    assert_eq!(room.engine.sessions[&id].pid(), Some(AGENT));
}
