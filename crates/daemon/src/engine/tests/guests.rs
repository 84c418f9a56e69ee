//! Guests: what a shim is told of one, which client is told of its terminal, and what an old shim is spared.

use super::hand::{FIRST, Room, person};
use crate::engine::command::EngineCommand as Order;
use crate::engine::{AttachRequest, AttachStanding, AttachedTo, NotAttached, Standings};
use pinfold_core::exit::Exit;
use pinfold_core::{ConsumerId, State};
use pinfold_shim::{Command, GuestReport, GuestStart, Report, Size, StartFailure};
use pinfold_store::SessionId;
use serde_json::json;

const ONE: ConsumerId = ConsumerId(1);
const PID: u32 = 4712;

fn wish() -> AttachRequest {
    let size = Some(Size::new(40, 100));
    AttachRequest {
        consumer: ONE,
        size,
        urgent: false,
        read_only: false,
        by: Some(person()),
        no_program: None,
    }
}

fn attach(room: &mut Room, id: SessionId, attach: AttachRequest) -> Result<AttachedTo, NotAttached> {
    let attach = Box::new(attach);
    room.order(|reply| Order::Attach { id, attach, reply }).expect("it is answered")
}

/// A session whose terminal program joins its run, and a client that attaches to it.
fn attached() -> (Room, SessionId, Standings) {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "interactive": ["vendor", "ui"], "attach": "join", "umask": 0o27 }));
    let tracked = room.engine.sessions.get_mut(&id).unwrap();
    tracked.shim.as_mut().unwrap().can.guest = true;
    room.heard(id);
    match attach(&mut room, id, wish()) {
        Ok(AttachedTo::Terminal(standings)) => (room, id, standings),
        Ok(AttachedTo::Output) => panic!("there is a terminal"),
        Err(why) => panic!("{why:?}"),
    }
}

fn guests(room: &mut Room, id: SessionId) -> Vec<GuestStart> {
    let guest = |command| if let Command::Guest(guest) = command { Some(*guest) } else { None };
    room.heard(id).into_iter().filter_map(guest).collect()
}

fn ended(exit: Exit, why: Option<StartFailure>) -> Report {
    Report::Guest(GuestReport::Ended { run: FIRST, guest: 1, exit, why })
}

#[test]
fn a_guest_has_the_words_of_the_terminal_program_and_the_rest_of_its_run() {
    let (mut room, id, standings) = attached();
    assert_eq!(room.state(id), State::Running);
    let all = guests(&mut room, id);
    let [guest] = &all[..] else { panic!("{all:?}") };
    assert_eq!((guest.run, guest.number, guest.terminal), (FIRST, 1, Size::new(40, 100)));
    assert_eq!(guest.arguments, ["vendor", "ui"]);
    assert_eq!((guest.rights.umask, guest.run_id.len()), (Some(0o27), 26));
    assert!(guest.socket.is_some());
    assert!(matches!(&*standings.borrow(), Some(AttachStanding::Waits(_))), "{:?}", standings.borrow());
    super::attach::make_socket(&room, id);
    room.says(id, Report::Guest(GuestReport::Started { run: FIRST, guest: 1, pid: PID }));
    let ready =
        matches!(&*standings.borrow(), Some(AttachStanding::Ready { run: FIRST, guest: Some(1), .. }));
    assert!(ready, "{:?}", standings.borrow());
    assert_eq!(room.last_event("guest_started").data["pid"], json!(PID));
    // A client on its terminal is no longer attached when it has ended.
    assert_eq!(room.engine.sessions[&id].session.consumers(), 1);
    room.says(id, ended(Exit::Code(3), None));
    assert_eq!(room.last_event("guest_ended").data["code"], json!(3));
    assert_eq!((room.engine.sessions[&id].session.consumers(), room.state(id)), (0, State::Running));
}

#[test]
fn a_guest_that_cannot_be_started_is_told_with_its_reason() {
    let (mut room, id, standings) = attached();
    room.says(id, ended(Exit::NeverStarted, Some(StartFailure::ProgramMissing)));
    let last = standings.borrow().clone();
    let Some(AttachStanding::Over(NotAttached::NoGuest(Some(how), _))) = last else { panic!("{last:?}") };
    assert_eq!(how.text.as_deref(), Some("program `vendor` was not found"));
    assert_eq!(room.last_event("guest_ended").data["end"], json!("never_started"));
    assert_eq!(room.state(id), State::Running);
}

#[test]
fn a_shim_that_is_older_than_guests_is_not_asked_for_one() {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "interactive": ["vendor", "ui"], "attach": "join" }));
    let refused = attach(&mut room, id, wish());
    assert!(matches!(refused, Err(NotAttached::OldShim { .. })));
    assert_eq!(guests(&mut room, id), []);
    assert_eq!(room.engine.sessions[&id].session.consumers(), 0);
    // A client that only reads starts nothing.
    let reads = attach(&mut room, id, AttachRequest { read_only: true, ..wish() });
    assert!(matches!(reads, Ok(AttachedTo::Output)));
}
