//! A new daemon: what is loaded, what is found, and what an earlier one had begun.

use super::hand::{FIRST, LONG, PROCESS, Room, SECOND, exited};
use crate::engine::WhyNot;
use crate::engine::command::EngineCommand as Order;
use crate::engine::input::{AgentsOnDown, LoopInput};
use crate::ports::shims::observe::SessionSeen;
use pinfold_core::event::{Ask, ConsumerKind, Machine, ShimSeen};
use pinfold_core::exit::Exit;
use pinfold_core::unended::Unended;
use pinfold_core::{ConsumerId, Event, RunNumber, State};
use pinfold_shim::{Command, Exited, Keeping, Report, StartFailure};
use pinfold_store::{Batch, SessionId, Trouble};
use serde_json::json;
use std::time::Duration;

/// Makes the look ordered for a session find this.
fn finds(room: &mut Room, id: SessionId, seen: SessionSeen) {
    let mut desk = room.desk.lock();
    let at = desk.looks.iter().position(|(look, _)| look.subject.id == id).expect("it is looked at");
    let (_, then) = desk.looks.remove(at);
    drop(desk);
    then(seen);
    room.settle();
}

fn nobody(records: Vec<Exited>) -> SessionSeen {
    SessionSeen::of(Machine::Same, ShimSeen::Nobody, records)
}

/// What is found of a shim that keeps the first run and whose exits were not all acknowledged.
fn keeping(room: &Room, id: SessionId, run: RunNumber, exits: Vec<Exited>) -> SessionSeen {
    let at = pinfold_core::Wall(0);
    let up = room.up(id, Keeping::Running { run, process: PROCESS, at }, exits.clone());
    SessionSeen {
        shim: Some(up),
        ..SessionSeen::of(Machine::Same, ShimSeen::Keeping { run, process: PROCESS }, exits)
    }
}

fn ping(room: &mut Room) -> Option<(u64, u64)> {
    let (reply, mut pong) = tokio::sync::oneshot::channel();
    room.tell(LoopInput::Ping { reply });
    pong.try_recv().unwrap().starting.map(|starting| (starting.seen, starting.of))
}

fn write_audit(room: &Room, record: &serde_json::Value) {
    crate::offline_audit::append(&room.engine.home.audit(), record).unwrap();
}

#[test]
fn a_run_that_its_shim_kept_goes_on() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let run = room.engine.sessions[&id].latest;
    let mut room = room.again();
    assert_eq!(room.state(id), State::Running);
    assert_eq!(room.engine.sessions[&id].latest, run, "it has its name");
    let seen = keeping(&room, id, FIRST, Vec::new());
    finds(&mut room, id, seen);
    assert_eq!(room.state(id), State::Running);
    assert!(room.engine.sessions[&id].shim.is_some());
    room.ends(id, FIRST, Exit::Code(0));
    assert_eq!(room.engine.sessions[&id].session.runs().settled, FIRST);
}

#[test]
fn what_a_session_may_have_left_is_said_to_whoever_looks() {
    let mut room = Room::new();
    let (live, idle) = (room.running("a", &json!({})), room.create("b", &json!({})));
    let standing = room.running("c", &json!({}));
    room.says(standing, Report::Exited(exited(FIRST, Exit::Code(3), Duration::ZERO)));
    let room = room.again();
    let desk = room.desk.lock();
    let of = |id| &desk.looks.iter().find(|(look, _)| look.subject.id == id).unwrap().0;
    assert_eq!([live, idle, standing].map(|id| of(id).subject.may_live), [true, false, true]);
    let look = of(live);
    assert_eq!((look.generation, look.machine, look.after), (2, Machine::Same, Duration::ZERO));
    assert_eq!((look.subject.lost.name.as_str(), look.subject.lost.run.is_some()), ("a", true));
    assert_eq!(of(idle).subject.lost.run, None);
}

#[test]
fn ends_that_are_stored_are_acknowledged_again() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.ends(id, FIRST, Exit::Code(0));
    room.starts(id, SECOND);
    let mut room = room.again();
    let exits = vec![exited(FIRST, Exit::Code(0), LONG)];
    let seen = keeping(&room, id, SECOND, exits);
    finds(&mut room, id, seen);
    assert!(room.heard(id).contains(&Command::Ack { run: FIRST }));
}

#[test]
fn an_end_that_is_not_stored_is_not_acknowledged_before_it_is() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let mut room = room.again();
    room.desk.lock().held_up = true;
    let exits = vec![exited(FIRST, Exit::Code(0), LONG)];
    let up = room.up(id, Keeping::Standing, exits.clone());
    let seen = SessionSeen { shim: Some(up), ..SessionSeen::of(Machine::Same, ShimSeen::Standing, exits) };
    finds(&mut room, id, seen);
    assert_eq!(room.heard(id), [Command::Follow { on: false }]);
    room.write();
    assert!(room.heard(id).contains(&Command::Ack { run: FIRST }));
}

#[test]
fn a_record_of_a_failed_start_is_told_as_that() {
    let mut room = Room::new();
    let id = room.starting("a", &json!({ "command": ["/no/agent"] }));
    let mut room = room.again();
    let record =
        Exited { failure: Some(StartFailure::ProgramMissing), ..exited(FIRST, Exit::NeverStarted, LONG) };
    finds(&mut room, id, nobody(vec![record]));
    assert_eq!(room.state(id), State::Failed);
    assert!(room.last_event("start_failed").why.contains("/no/agent"));
}

#[test]
fn who_holds_the_lock_and_does_not_answer_is_in_the_way() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.stop(id);
    let mut room = room.again();
    let silent = Some(Unended::Silent { shim: Some(5) });
    finds(&mut room, id, SessionSeen { silent: silent.clone(), ..SessionSeen::nothing(Machine::Same) });
    assert_eq!(room.engine.sessions[&id].session.unended(), silent.as_ref());
}

#[test]
fn inputs_wait_until_their_session_was_looked_at_and_questions_until_all_were() {
    let mut room = Room::new();
    let (a, b) = (room.create("a", &json!({})), room.create("b", &json!({})));
    let mut room = room.again();
    assert_eq!(ping(&mut room), Some((0, 2)));
    assert_eq!(room.ask(a, Ask::Stop { grace: None }), None);
    assert_eq!(room.state(a), State::Idle, "nothing is decided of it");
    room.tell(LoopInput::HolderGone { id: a });
    let (done, mut pruned) = tokio::sync::oneshot::channel();
    room.tell(LoopInput::Command(Box::new(Order::Prune { batch: Batch::new(), done })));
    finds(&mut room, a, nobody(Vec::new()));
    assert_eq!((room.state(a), ping(&mut room)), (State::Stopped, Some((1, 2))));
    assert!(pruned.try_recv().is_err());
    finds(&mut room, b, nobody(Vec::new()));
    assert_eq!(ping(&mut room), None);
    assert!(pruned.try_recv().unwrap().is_ok());
}

#[test]
fn what_an_order_of_before_has_come_to_is_found_by_looking() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let mut room = room.again();
    room.tell(LoopInput::ShimGone { id, run: FIRST, proved: true });
    assert_eq!(room.state(id), State::Running);
    assert!(!room.kinds().contains(&"run_exited".to_owned()));
    let up = room.up(id, Keeping::Standing, Vec::new());
    room.tell(LoopInput::ShimUp { id, run: FIRST, result: Ok(Box::new(up)) });
    assert!(room.engine.sessions[&id].shim.is_none());
}

#[test]
fn a_daemon_that_goes_down_tells_those_that_it_finds() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let mut room = room.again();
    room.tell(LoopInput::Down { agents: AgentsOnDown::Stopped, by: None, reply: None });
    let seen = keeping(&room, id, FIRST, Vec::new());
    finds(&mut room, id, seen);
    assert_eq!(room.state(id), State::Stopping);
}

#[test]
fn a_session_whose_parent_is_gone_is_archived_with_the_reason() {
    let mut room = Room::new();
    let gone = SessionId(pinfold_store::Ulid::new(1, 1));
    let id = room.create("a", &json!({ "parent": "p", "parent_id": gone.to_string() }));
    let other = room.create("b", &json!({}));
    let mut room = room.again();
    finds(&mut room, id, nobody(Vec::new()));
    finds(&mut room, other, nobody(Vec::new()));
    assert_eq!((room.state(id), room.state(other)), (State::Archived, State::Idle));
    assert_eq!(room.last_event("archived").why, "its parent `p` is gone");
    let archived = room.kinds().iter().filter(|kind| *kind == "archived").count();
    let mut room = room.again();
    finds(&mut room, id, nobody(Vec::new()));
    assert_eq!(room.kinds().iter().filter(|kind| *kind == "archived").count(), archived, "once is enough");
}

#[test]
fn a_parent_that_is_known_by_its_name_only_is_found() {
    let mut room = Room::new();
    let parent = room.create("p", &json!({}));
    let child = room.create("c", &json!({ "parent": "p" }));
    let own = room.create("o", &json!({ "parent": "o" }));
    let room = room.again();
    assert_eq!(room.engine.sessions[&child].definition.parent_id, Some(parent));
    assert_eq!(room.engine.sessions[&own].definition.parent_id, None, "nobody is its own parent");
    assert_eq!(room.engine.sessions[&parent].definition.parent_id, None);
}

#[test]
fn a_record_that_cannot_be_read_leaves_one_session_out() {
    let mut room = Room::new();
    let (a, b) = (room.create("a", &json!({})), room.create("b", &json!({})));
    let mut batch = Batch::new();
    batch.define(a, &json!({ "nonsense": true }));
    room.disk.commit(batch).wait().unwrap();
    let mut room = room.again();
    assert!(!room.engine.sessions.contains_key(&a) && room.engine.sessions.contains_key(&b));
    let damaged: Vec<_> = room.view().damaged().map(|damaged| damaged.name.clone()).collect();
    assert_eq!(damaged, ["a"]);
    finds(&mut room, b, nobody(Vec::new()));
    let why = room.view().find("a").unwrap_err();
    assert!(matches!(&why, WhyNot::Damaged { problem, .. } if problem.contains("definition")), "{why:?}");
}

#[test]
fn an_archived_session_has_no_name_after_a_restart_either() {
    let mut room = Room::new();
    let id = room.archived("a", &json!({}));
    let room = room.again();
    assert!(room.engine.names.is_empty());
    assert_eq!(room.state(id), State::Archived);
}

#[test]
fn a_run_that_was_unlocked_while_no_daemon_looked_was_ended_by_a_person() {
    let killed = || vec![exited(FIRST, Exit::Signal(9), LONG)];
    let rows = [
        (true, ShimSeen::Nobody, Vec::new(), Machine::Same, true),
        (true, ShimSeen::Nobody, killed(), Machine::Same, true),
        (true, ShimSeen::Standing, killed(), Machine::Same, true),
        (true, ShimSeen::Nobody, vec![exited(FIRST, Exit::Code(1), LONG)], Machine::Same, false),
        (true, ShimSeen::Nobody, Vec::new(), Machine::Restarted, false),
        (false, ShimSeen::Nobody, Vec::new(), Machine::Same, false),
    ];
    for (unlocked, shim, records, machine, wished) in rows {
        let mut room = Room::new();
        let id = room.running("a", &json!({}));
        if unlocked {
            let run = room.engine.sessions[&id].latest.unwrap().1.to_string();
            write_audit(&room, &json!({ "kind": "unlocked", "session": "a", "run": run, "why": "asked" }));
        }
        let mut room = room.again();
        let what = format!("{unlocked} {shim:?} {records:?} {machine:?}");
        finds(&mut room, id, SessionSeen::of(machine, shim, records));
        let why = room.last_event("run_exited").why;
        assert_eq!(why.contains("unlock"), wished, "{what}: {why}");
    }
}

#[test]
fn what_verbs_wrote_down_is_taken_once_and_told_of_whose_it_is() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let run = room.engine.sessions[&id].latest.unwrap().1.to_string();
    let rows = [
        (json!({ "session": "a" }), Some(id)),
        (json!({ "session": "x" }), None),
        (json!({ "session": "x", "run": run }), Some(id)),
        (json!({ "session": "a", "run": pinfold_store::Ulid::new(5, 5).to_string() }), None),
    ];
    for (record, wanted) in rows {
        let before = room.events().len();
        let mut whole = json!({ "kind": "unlocked", "why": "asked" });
        whole.as_object_mut().unwrap().extend(record.as_object().unwrap().clone());
        write_audit(&room, &whole);
        assert_eq!(room.order(|done| Order::TakeAudit { done }), Some(()));
        assert_eq!(room.events().len(), before + 1, "{record}");
        assert_eq!(room.last_event("unlocked").session, wanted, "{record}");
        room.tell(LoopInput::Audited);
        assert_eq!(room.events().len(), before + 1, "{record}: told twice");
    }
}

#[test]
fn a_run_of_before_says_whose_record_it_is() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let run = room.engine.sessions[&id].latest.unwrap().1.to_string();
    room.ends(id, FIRST, Exit::Code(0));
    write_audit(&room, &json!({ "kind": "unlocked", "run": run }));
    room.tell(LoopInput::Audited);
    assert_eq!(room.last_event("unlocked").session, Some(id));
}

#[test]
fn what_verbs_write_while_records_are_on_their_way_is_taken_after_them() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    room.desk.lock().held_up = true;
    write_audit(&room, &json!({ "kind": "unlocked", "session": "a", "why": "first" }));
    let (done, mut told) = tokio::sync::oneshot::channel();
    room.tell(LoopInput::Command(Box::new(Order::TakeAudit { done })));
    assert!(told.try_recv().is_err(), "it is not durable");
    room.tell(LoopInput::Audited);
    room.write();
    assert_eq!(told.try_recv(), Ok(()));
    assert_eq!(room.last_event("unlocked").session, Some(id));
    assert_eq!(room.kinds().iter().filter(|kind| *kind == "unlocked").count(), 1);
    write_audit(&room, &json!({ "kind": "unlocked", "session": "a", "why": "second" }));
    room.tell(LoopInput::Audited);
    assert_eq!(room.last_event("unlocked").why, "second");
}

#[test]
fn nobody_who_has_the_file_of_the_audit_keeps_the_loop_waiting() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let run = room.engine.sessions[&id].latest.unwrap().1.to_string();
    write_audit(&room, &json!({ "kind": "unlocked", "session": "a", "run": run, "why": "asked" }));
    let file = std::fs::File::open(room.engine.home.audit()).unwrap();
    file.lock().unwrap();
    assert_eq!(room.order(|done| Order::TakeAudit { done }), Some(()));
    assert!(!room.kinds().contains(&"unlocked".to_owned()), "it is taken when the file is free");
    room.ends(id, FIRST, Exit::Signal(9));
    let why = room.last_event("run_exited").why;
    assert!(why.contains("unlock"), "what is written there counts: {why}");
    drop(file);
    room.hear();
    assert_eq!(room.last_event("unlocked").session, Some(id));
    assert_eq!(room.kinds().iter().filter(|kind| *kind == "unlocked").count(), 1);
}

#[test]
fn what_verbs_wrote_down_stays_where_it_is_while_nothing_can_be_recorded() {
    let mut room = Room::new();
    room.create("a", &json!({}));
    write_audit(&room, &json!({ "kind": "unlocked", "session": "a", "why": "asked" }));
    room.desk.lock().trouble = Trouble::Full;
    room.tell(LoopInput::Audited);
    assert!(!room.kinds().contains(&"unlocked".to_owned()));
    room.desk.lock().trouble = Trouble::None;
    room.tell(LoopInput::Trouble(Trouble::None));
    assert!(room.kinds().contains(&"unlocked".to_owned()));
}

#[test]
fn a_configuration_that_is_read_again_counts_from_the_next_run_on() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    std::fs::write(&room.engine.home.config, "[policy]\nstop_grace = \"3s\"\n").unwrap();
    room.tell(LoopInput::Reload);
    let grace = |room: &Room| room.engine.sessions[&id].session.spec().policy.stop_grace;
    assert_eq!(grace(&room), Duration::from_secs(10));
    room.ends(id, FIRST, Exit::Code(0));
    assert_eq!(grace(&room), Duration::from_secs(3));
    assert_eq!(room.last_event("config_reloaded").why, "the configuration was read again");
    let before = room.kinds().len();
    room.tell(LoopInput::Reload);
    assert_eq!(room.kinds().len(), before + 1, "a session whose numbers are the same hears nothing");
}

#[test]
fn a_bad_configuration_leaves_the_old_one_in_force_and_says_so() {
    let mut room = Room::configured("[policy]\nhold_limit = \"5s\"\n");
    std::fs::write(&room.engine.home.config, "nonsense = [").unwrap();
    room.tell(LoopInput::Reload);
    assert_eq!(room.view().hold_limit(), Duration::from_secs(5));
    assert!(room.view().daemon().config_refused.is_some());
    assert!(room.last_event("config_refused").why.starts_with("the configuration stays as it was: "));
    std::fs::write(&room.engine.home.config, "[policy]\nhold_limit = \"7s\"\n").unwrap();
    room.tell(LoopInput::Reload);
    assert_eq!(
        (room.view().hold_limit(), room.view().daemon().config_refused),
        (Duration::from_secs(7), None)
    );
}

#[test]
fn a_daemon_whose_socket_moved_tells_new_runs_the_new_place() {
    let mut room = Room::new();
    room.tell(LoopInput::Moved { runtime: "/new/run".into(), socket: "/new/socket".into() });
    let id = room.starting("a", &json!({}));
    let desk = room.desk.lock();
    let birth = &desk.births[0].0;
    assert_eq!(birth.start.socket.as_deref(), Some(std::path::Path::new("/new/socket")));
    assert_eq!(birth.opening.listen, std::path::Path::new("/new/run/shims").join(format!("{id}.sock")));
}

// Makes the next batch contradict the store.

fn contradict(room: &mut Room, id: SessionId) {
    let mut batch = Batch::new();
    batch.remove(id);
    room.disk.commit(batch).wait().unwrap();
}

#[test]
fn a_session_that_is_not_in_the_store_any_more_is_left_alone_and_whoever_asked_hears_it() {
    let mut room = Room::new();
    let (id, other) = (room.create("a", &json!({})), room.create("b", &json!({})));
    contradict(&mut room, id);
    let why = room.ask(id, Ask::Stop { grace: None }).unwrap().unwrap_err();
    assert!(matches!(why, WhyNot::Contradicted { ref name, .. } if name == "a"), "{why:?}");
    assert!(!room.engine.sessions.contains_key(&id) && !room.engine.names.contains_key("a"));
    assert_eq!(room.view().damaged().next().unwrap().problem, "it is not in the database any more");
    let told = room.view().changes_after(0, 100).unwrap().pop().unwrap();
    assert!(matches!(told.what, crate::engine::FeedChange::Removed(name) if name == "a"));
    assert_eq!(room.last_event("left_alone").session, Some(id));
    assert_eq!(room.view().find("b"), Ok(other));
    assert_eq!(room.ask(other, Ask::Stop { grace: None }), Some(Ok(pinfold_core::decision::Answer::Done)));
}

#[test]
fn a_session_that_contradicts_what_is_stored_begins_again_with_those_who_wait_and_are_connected() {
    use pinfold_store::CommitError;
    let mut room = Room::new();
    let id = room.running("a", &json!({ "memory": 1000 }));
    room.event(id, Event::ConsumerJoined { consumer: ConsumerId(3), kind: ConsumerKind::Watch });
    let (waiter, _hears) = tokio::sync::oneshot::channel();
    room.engine.sessions.get_mut(&id).unwrap().wait_for(pinfold_core::MessageId(1), waiter);
    let before = room.view().revision().1;
    let error = || CommitError::BuildsOnFailed { id };
    room.engine.not_durable(Some(id), &error());
    room.settle();
    let tracked = &room.engine.sessions[&id];
    assert_eq!((tracked.beginnings, tracked.reloaded, tracked.waiters.len()), (1, true, 1));
    assert!(tracked.shim.is_none() && room.view().revision().1 > before);
    assert_eq!(room.desk.lock().memory, [("watch", FIRST), ("forget", FIRST)]);
    let seen = keeping(&room, id, FIRST, Vec::new());
    finds(&mut room, id, seen);
    assert_eq!(room.engine.sessions[&id].session.consumers(), 1);
    assert!(room.last_event("begun_again").why.contains("builds on a change"));
    for _ in 0..3 {
        room.engine.not_durable(Some(id), &error());
        room.settle();
    }
    assert!(!room.engine.sessions.contains_key(&id), "what contradicts itself so often does so for ever");
}

#[test]
fn what_was_decided_before_a_session_began_again_has_not_happened() {
    use crate::engine::input::Committer;
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    room.desk.lock().held_up = true;
    room.ask(id, Ask::Stop { grace: None });
    room.engine.sessions.get_mut(&id).unwrap().beginnings = 1;
    let of = Some(Committer { id, beginnings: 0 });
    let committed = pinfold_store::Committed { seqs: 900..901, ..Default::default() };
    room.tell(LoopInput::Committed { of, outcome: Ok(committed) });
    let failed = pinfold_store::CommitError::BuildsOnFailed { id };
    room.tell(LoopInput::Committed { of, outcome: Err(failed.into()) });
    assert_eq!(room.engine.sessions[&id].beginnings, 1, "it failed with the one before it");
    assert_eq!(room.engine.sessions[&id].pending.len(), 1, "nothing follows from a batch of before");
    assert_eq!(*room.engine.last_event.borrow(), 900, "but its events are there");
}
