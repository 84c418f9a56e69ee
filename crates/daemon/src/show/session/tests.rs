//! Sessions as they are shown.

use super::*;
use crate::engine::tests::hand::{AGENT, FIRST, Room, SHIM, exited};
use crate::engine::tests::hand::{LONG, SECOND};
use pinfold_api::word;
use pinfold_core::event::Ask;
use pinfold_core::exit::Exit;
use pinfold_core::{Boot, Jitter};
use pinfold_store::SessionId;
use std::time::Duration;

const NOW: Now = Now { wall: Wall(1_700_000_000_000), boot: Boot(1_000), jitter: Jitter(0) };

fn shown(room: &Room, id: SessionId) -> Session {
    session(&room.view().session(id).unwrap().copy(), NOW)
}

#[test]
fn a_session_that_runs_is_told_with_its_processes() {
    let mut room = Room::new();
    let more = json!({ "tags": ["t"], "command": ["agent", "-v"], "env": { "SECRET": "s" }, "memory": 1000 });
    let id = room.running("a", &more);
    room.says(id, pinfold_shim::Report::Notify { run: FIRST, notice: pinfold_shim::Notice::Ready });
    room.says(
        id,
        pinfold_shim::Report::Notify { run: FIRST, notice: pinfold_shim::Notice::Status("busy".into()) },
    );
    let told = shown(&room, id);
    assert_eq!(
        (told.id.as_str(), told.name.as_str(), told.agent.as_str()),
        (&*id.to_string(), "a", "command")
    );
    assert_eq!((told.state, told.mode), (word::State::Running, word::Mode::Always));
    assert_eq!((told.pid, told.shim_pid, told.fence), (Some(AGENT), Some(SHIM), Some(7)));
    assert_eq!((told.ready, told.status.as_deref(), told.restarts), (true, Some("busy"), 0));
    assert_eq!(told.run, room.engine.sessions[&id].latest.map(|(_, run)| run.to_string()));
    assert_eq!(
        (&told.tags[..], &told.command[..], told.dir.as_str()),
        (&["t".to_owned()][..], &["agent".to_owned(), "-v".into()][..], "/")
    );
    assert_eq!(
        (&told.env[..], told.memory_limit_bytes),
        (&["SECRET".to_owned()][..], Some(1000)),
        "names, and no values"
    );
    assert!(told.started_at.is_some() && told.archived_at.is_none() && told.last_exit.is_none());
    assert!(told.policy.is_object() && brief(&room.view().session(id).unwrap().copy(), NOW).policy.is_null());
}

#[test]
fn what_is_of_a_run_is_not_told_of_a_session_without_one() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.stop(id);
    room.ends(id, FIRST, Exit::Signal(15));
    let told = shown(&room, id);
    assert_eq!((told.ready, told.status, told.swap_bytes, told.run), (false, None, None, None));
    assert_eq!((told.pid, told.started_at, told.fence), (None, None, None));
    let exit = told.last_exit.unwrap();
    assert_eq!((exit.code, exit.signal, exit.uptime_ms), (None, Some(15), 3_600_000));
    assert_eq!(exit.verdict, word::Verdict::Clean);
}

#[test]
fn every_run_after_the_first_is_a_restart() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.says(id, pinfold_shim::Report::Exited(exited(FIRST, Exit::Code(1), LONG)));
    room.starts(id, SECOND);
    assert_eq!(shown(&room, id).restarts, 1);
}

#[test]
fn messages_are_counted_by_what_became_of_them() {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "turns": "done" }));
    for text in ["x", "y", "z"] {
        room.send(id, text, None);
    }
    room.engine.sessions.get_mut(&id).unwrap().damaged = 2;
    let inbox = shown(&room, id).inbox;
    assert_eq!((inbox.queued, inbox.in_flight, inbox.done, inbox.failed, inbox.damaged), (2, 1, 0, 0, 2));
}

#[test]
fn why_says_what_is_damaged_and_what_cannot_be_recorded() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    let of = |room: &Room| shown(room, id).why;
    let plain = of(&room);
    let rows = [
        (
            1,
            None,
            false,
            format!("{plain}; 1 damaged message is not delivered, `pinfold inbox a` names them"),
        ),
        (
            2,
            None,
            false,
            format!("{plain}; 2 damaged messages are not delivered, `pinfold inbox a` names them"),
        ),
        (0, Some("the disk is full"), false, format!("{plain}; the disk is full")),
        (0, Some("the disk is full"), true, format!("{plain}; not recorded yet: the disk is full")),
        (0, None, true, plain.clone()),
    ];
    for (damaged, held_up, stops_first, wanted) in rows {
        let tracked = room.engine.sessions.get_mut(&id).unwrap();
        (tracked.damaged, tracked.held_up, tracked.stops_first) =
            (damaged, held_up.map(Into::into), stops_first);
        assert_eq!(of(&room), wanted);
    }
}

#[test]
fn what_comes_next_is_told_by_peoples_clocks() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.says(id, pinfold_shim::Report::Exited(exited(FIRST, Exit::Code(1), Duration::ZERO)));
    let deadline = room.engine.sessions[&id].session.next_deadline().unwrap();
    let next = shown(&room, id).next.unwrap();
    assert_eq!(next.at, time(NOW.wall + deadline.at.since(NOW.boot)));
    assert_eq!(next.what, word::Upcoming::Restart);
}

#[test]
fn an_archived_session_says_since_when() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    assert_eq!(shown(&room, id).archived_at, None);
    room.ask(id, Ask::Archive);
    assert_eq!(shown(&room, id).archived_at, Some(time(NOW.wall)));
}

#[test]
fn whoever_holds_what_a_session_needs_is_told_as_far_as_it_is_known() {
    let seen = HolderSeen {
        resource: "dir:/srv".into(),
        pid: Some(7),
        command: None,
        session: Some("b".into()),
        since: Some(Wall(0)),
    };
    let wanted = json!({
        "resource": "dir:/srv", "pid": 7, "command": null, "session": "b", "since": time(Wall(0)),
    });
    assert_eq!(holder_value(&seen), wanted);
}

#[test]
fn an_agent_that_ends_a_turn_once_too_often_is_told_to_name_the_message() {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "turns": "done" }));
    let advice = "; it printed `PINFOLD_DONE` outside a turn: put the message's ID after that word, or an answer can be \
                  stored under the wrong message";
    let stray = |named| pinfold_shim::Report::StrayDone { run: FIRST, named };
    room.says(id, stray(Some(pinfold_core::MessageId(1))));
    assert!(!shown(&room, id).why.contains(advice), "it names messages");
    room.says(id, stray(None));
    assert!(shown(&room, id).why.ends_with(advice), "{}", shown(&room, id).why);
}
