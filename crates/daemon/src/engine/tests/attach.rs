//! Attach: which client is told what, and in whose name it is recorded.

use super::hand::{FIRST, Room, SECOND, person, run_of};
use crate::engine::command::EngineCommand as Order;
use crate::engine::input::{AgentsOnDown, LoopInput};
use crate::engine::{AttachRequest, AttachStanding, AttachedTo, NotAttached, ReplyHandle, Standings};
use pinfold_core::exit::Exit;
use pinfold_core::{ConsumerId, RunNumber, State};
use pinfold_shim::Report;
use pinfold_store::SessionId;
use serde_json::json;

const ONE: ConsumerId = ConsumerId(1);
const OTHER: ConsumerId = ConsumerId(2);

fn wish(consumer: ConsumerId) -> AttachRequest {
    AttachRequest {
        consumer,
        size: None,
        urgent: false,
        read_only: false,
        by: Some(person()),
        no_program: None,
    }
}

fn attach(room: &mut Room, id: SessionId, attach: AttachRequest) -> AttachedTo {
    let attach = Box::new(attach);
    match room.order(|reply| Order::Attach { id, attach, reply }).expect("it is answered") {
        Ok(attached) => attached,
        Err(why) => panic!("{why:?}"),
    }
}

fn terminal(room: &mut Room, id: SessionId, wish: AttachRequest) -> Standings {
    match attach(room, id, wish) {
        AttachedTo::Terminal(standings) => standings,
        AttachedTo::Output => panic!("there is a terminal"),
    }
}

pub(super) fn make_socket(room: &Room, id: SessionId) {
    let socket = room.engine.home.shim_socket(id);
    std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
    std::fs::write(socket, "").unwrap();
}

#[test]
fn who_attaches_is_recorded() {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "pty": true }));
    terminal(&mut room, id, wish(ONE));
    assert_eq!(room.last_event("consumer_joined").data["by"]["user"], json!(77));
    let other = room.running("b", &json!({ "pty": true }));
    let (reply, mut again) = ReplyHandle::new();
    let attach = Box::new(AttachRequest { by: Some(run_of(id, "a")), ..wish(OTHER) });
    room.tell(LoopInput::Command(Box::new(Order::AttachAgain { id: other, attach, reply })));
    assert!(again.try_recv().unwrap().is_ok());
    assert_eq!(room.last_event("consumer_joined").data["by"]["session"], json!("a"));
}

#[test]
fn what_has_no_terminal_and_cannot_be_taken_over_is_followed_by_its_output() {
    for more in
        [json!({}), json!({ "mode": "once" }), json!({ "mode": "once", "interactive": ["vendor", "ui"] })]
    {
        let mut room = Room::new();
        let id = room.running("a", &more);
        assert!(matches!(attach(&mut room, id, wish(ONE)), AttachedTo::Output), "{more}");
        assert_eq!(room.state(id), State::Running, "{more}");
    }
    let mut room = Room::new();
    let id = room.running("a", &json!({ "interactive": ["vendor", "ui"] }));
    let reads = AttachRequest { read_only: true, ..wish(ONE) };
    assert!(matches!(attach(&mut room, id, reads), AttachedTo::Output), "whoever only reads ends no run");
    assert_eq!(room.state(id), State::Running);
}

#[test]
fn whoever_attaches_while_the_shim_is_lost_is_told_to_wait() {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "pty": true }));
    room.hangs_up(id);
    assert_eq!(room.state(id), State::Running, "nothing is proved of it yet");
    let standings = terminal(&mut room, id, wish(ONE));
    assert!(matches!(&*standings.borrow(), Some(AttachStanding::Waits(_))), "{:?}", standings.borrow());
}

#[test]
fn whoever_waits_for_a_terminal_hears_when_its_session_stands_otherwise_and_not_before() {
    let mut room = Room::new();
    let id = room.create("a", &json!({ "mode": "always", "pty": true }));
    let mut standings = terminal(&mut room, id, wish(ONE));
    assert!(matches!(&*standings.borrow_and_update(), Some(AttachStanding::Waits(_))));
    room.send(id, "x", None);
    assert!(!standings.has_changed().unwrap(), "it stands as before");
    room.grant();
    room.shim_comes(id);
    make_socket(&room, id);
    room.starts(id, FIRST);
    assert!(
        matches!(&*standings.borrow(), Some(AttachStanding::Ready { run: FIRST, .. })),
        "{:?}",
        standings.borrow()
    );
}

#[test]
fn whoever_has_gone_is_not_waited_with() {
    let mut room = Room::new();
    let id = room.create("a", &json!({ "mode": "always", "pty": true }));
    drop(terminal(&mut room, id, wish(ONE)));
    let stays = terminal(&mut room, id, wish(OTHER));
    room.send(id, "x", None);
    let waiting = &room.engine.sessions[&id].attaching.waiting;
    assert_eq!(waiting.iter().map(|waiting| waiting.consumer).collect::<Vec<_>>(), [OTHER]);
    drop(stays);
}

/// A client whose turn it is, because another's terminal program ended before it could be reached.
fn their_turn(room: &mut Room) -> (SessionId, Standings, Standings) {
    let guest = room.create("b", &json!({}));
    let id = room.running("a", &json!({ "interactive": ["vendor", "ui"] }));
    let first = terminal(room, id, wish(ONE));
    let theirs = AttachRequest { by: Some(run_of(guest, "b")), ..wish(OTHER) };
    let second = terminal(room, id, theirs);
    room.ends(id, FIRST, Exit::Code(0));
    room.says(id, Report::Started { run: SECOND, process: super::hand::PROCESS, at: pinfold_core::Wall(0) });
    assert_eq!(room.state(id), State::Held);
    assert_eq!(room.last_event("takeover_requested").data["by"]["user"], json!(77));
    room.ends(id, SECOND, Exit::Code(0));
    room.says(
        id,
        Report::Started { run: RunNumber(3), process: super::hand::PROCESS, at: pinfold_core::Wall(0) },
    );
    (id, first, second)
}

#[test]
fn whose_turn_it_is_takes_over_in_their_own_name() {
    let mut room = Room::new();
    let (id, first, second) = their_turn(&mut room);
    assert!(
        matches!(&*first.borrow(), Some(AttachStanding::Over(NotAttached::NotTakenOver(..)))),
        "{:?}",
        first.borrow()
    );
    assert_eq!(room.state(id), State::Stopping, "it is the other's turn");
    assert_eq!(room.last_event("takeover_requested").data["by"]["session"], json!("b"));
    assert!(matches!(&*second.borrow(), Some(AttachStanding::Waits(_))), "{:?}", second.borrow());
}

#[test]
fn a_takeover_that_the_daemons_end_overrules_names_who_ended_it() {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "interactive": ["vendor", "ui"], "turns": "done" }));
    room.send(id, "x", None);
    let _standings = terminal(&mut room, id, AttachRequest { by: None, ..wish(ONE) });
    assert_eq!(room.state(id), State::Running, "it waits for the turn");
    room.tell(LoopInput::Down { agents: AgentsOnDown::Stopped, by: Some(person()), reply: None });
    assert_eq!(room.last_event("takeover_done").data["by"]["user"], json!(77));
}

#[test]
fn a_terminal_program_leaves_the_session_that_its_hook_names_else_the_one_that_it_prints() {
    const SAYS: &str = "bye: w --resume printed\n";
    const CONFIG: &str =
        "[agents.w]\ncommand = [\"w\"]\nspool_key = \"id\"\nlast_line = \"w --resume {vendor_session}\"\n";
    // What the hook wrote, marked with the run itself or with another one.
    for (own, spool, left) in [
        (true, r#"{"id":"hooked"}"#, "hooked"),
        (false, r#"{"id":"hooked"}"#, "printed"),
        (true, r#"{"id":"hoo"#, "printed"),
        (true, r#"{"id":"v-1"}"#, "v-1"),
    ] {
        let mut room = Room::configured(CONFIG);
        let more = json!({ "agent": "w", "interactive": ["w"], "vendor_session": "v-1" });
        let id = room.running("a", &more);
        let _standings = terminal(&mut room, id, wish(ONE));
        room.ends(id, FIRST, Exit::Code(0));
        room.says(
            id,
            Report::Started { run: SECOND, process: super::hand::PROCESS, at: pinfold_core::Wall(0) },
        );
        assert_eq!(room.state(id), State::Held);
        let run = room.engine.sessions[&id].run_id(SECOND).unwrap().to_string();
        let run = if own { run } else { format!("x{run}") };
        room.desk.lock().spool = format!("{run} {spool}").into_bytes();
        room.desk.lock().printed = vec![super::ends::printed(SECOND, SAYS)];
        room.ends(id, SECOND, Exit::Code(0));
        let known = room.engine.sessions[&id].session.talk().vendor().map(|vendor| vendor.id.clone());
        assert_eq!(known.as_deref().unwrap_or("v-1"), left, "{own} {spool}");
    }
}
