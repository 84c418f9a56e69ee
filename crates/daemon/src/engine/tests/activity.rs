//! Programs on a terminal that report what they do, and outside programs that have a vendor session.

use super::hand::{FIRST, PROCESS, Room};
use crate::define::preset::{Does, IdFile};
use crate::engine::input::LoopInput;
use crate::ports::locks::Obstacle;
use crate::ports::shims::observe::SessionSeen;
use pinfold_core::event::{Ask, Machine, ShimSeen};
use pinfold_core::exit::Exit;
use pinfold_core::talk::{Activity, ActivitySource, Dialog};
use pinfold_core::{Life, State, Wall};
use pinfold_shim::{BellRing, Command, Keeping, Report};
use pinfold_store::{MessageState, SessionId};
use serde_json::{Value, json};

const CONFIG: &str = r#"[agents.t]
command = ["cat"]
pty = true
session = "choose"
store = { variable = "T_HOME", default = ".t" }
id_file = "live/{pid}.json"
[agents.t.id_file_keys]
session = "id"
start_ticks = "start"
status = "does"
words = { busy = "working" }
"#;

fn on_terminal(room: &Room) -> Value {
    let store = room.folder().display().to_string();
    json!({ "agent": "t", "pty": true, "vendor_session": "v-1", "env": { "T_HOME": store } })
}

/// A session whose agent runs on a terminal.
fn running(room: &mut Room) -> SessionId {
    let more = on_terminal(room);
    room.running("a", &more)
}

fn filed(room: &mut Room, id: SessionId, does: Option<Does>) {
    let waits_for = (does == Some(Does::Waiting)).then(|| "permission prompt".to_owned());
    let filed = does.map(|_| IdFile { does, waits_for, session: Some("v-1".into()), ..IdFile::default() });
    room.tell(LoopInput::Filed { id, run: FIRST, filed });
}

fn known(room: &Room, id: SessionId) -> (Activity, Option<ActivitySource>) {
    let session = &room.engine.sessions[&id].session;
    (session.activity(), session.standing().map(|standing| standing.from))
}

fn typed(room: &mut Room, id: SessionId) -> usize {
    room.heard(id).iter().filter(|command| matches!(command, Command::Input { .. })).count()
}

/// Makes this process claim to be in a vendor session.
fn is_outside(room: &Room, session: &str) -> std::path::PathBuf {
    let pid = std::process::id();
    let start = crate::define::id_files::started(pid).unwrap().unwrap();
    let file = room.folder().join(format!("live/{pid}.json"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, json!({ "id": session, "start": start }).to_string()).unwrap();
    file
}

#[test]
fn the_file_of_a_program_on_a_terminal_is_watched_as_long_as_it_runs() {
    let mut room = Room::configured(CONFIG);
    let id = running(&mut room);
    let (run, files, agent) = room.desk.lock().filed[0].clone();
    assert_eq!((run, agent, files.folder), (FIRST, PROCESS.pid, room.folder().join("live")));
    filed(&mut room, id, Some(Does::Working));
    assert_eq!(known(&room, id), (Activity::Working, Some(ActivitySource::IdFile)));
    filed(&mut room, id, None);
    assert_eq!(known(&room, id).0, Activity::Unknown);
    room.ends(id, FIRST, Exit::Code(0));
    assert!(room.desk.lock().filed.iter().all(|(run, ..)| *run != FIRST));
}

#[test]
fn a_run_without_a_terminal_and_one_of_an_unknown_program_are_not_watched() {
    let mut room = Room::configured(CONFIG);
    room.running("a", &json!({ "pty": true, "command": ["vim"] }));
    assert!(room.desk.lock().filed.is_empty());
    room.running("b", &json!({ "agent": "t", "vendor_session": "v-2" }));
    assert!(room.desk.lock().filed.is_empty());
    room.running("c", &json!({ "pty": true, "command": ["/usr/bin/claude"], "env": { "HOME": "/h" } }));
    assert_eq!(room.desk.lock().filed[0].1.folder, std::path::Path::new("/h/.claude/sessions"));
}

#[test]
fn a_message_waits_for_a_dialog_and_for_the_look_of_a_new_daemon() {
    let mut room = Room::configured(CONFIG);
    let id = running(&mut room);
    filed(&mut room, id, Some(Does::Waiting));
    let message = room.send(id, "y", None);
    assert_eq!((typed(&mut room, id), room.row(message).state), (0, MessageState::Queued));
    let mut room = room.again();
    let (_, then) = room.desk.lock().looks.pop().unwrap();
    let keeping = Keeping::Running { run: FIRST, process: PROCESS, at: Wall(0) };
    let shim = Some(room.up(id, keeping, Vec::new()));
    let seen = ShimSeen::Keeping { run: FIRST, process: PROCESS };
    then(SessionSeen { shim, ..SessionSeen::of(Machine::Same, seen, Vec::new()) });
    room.settle();
    assert_eq!(room.engine.sessions[&id].session.dialog(), Dialog::Unseen);
    assert_eq!((typed(&mut room, id), room.desk.lock().filed.len()), (0, 1));
    filed(&mut room, id, Some(Does::Waiting));
    assert_eq!(typed(&mut room, id), 0);
    filed(&mut room, id, None);
    assert_eq!(typed(&mut room, id), 1);
}

#[test]
fn a_bell_counts_where_no_file_says_more_and_holds_nothing_back() {
    let mut room = Room::configured(CONFIG);
    let id = running(&mut room);
    let ring = Some(BellRing { at: Wall(7), text: Some("look".into()) });
    room.says(id, Report::Rang { run: FIRST, ring: ring.clone() });
    assert_eq!(known(&room, id), (Activity::Waiting, Some(ActivitySource::Terminal)));
    let standing = room.engine.sessions[&id].session.standing().unwrap();
    assert_eq!((standing.since, standing.detail.as_deref()), (Some(Wall(7)), Some("look")));
    room.send(id, "hello", None);
    assert_eq!(typed(&mut room, id), 1);
    filed(&mut room, id, Some(Does::Idle));
    assert_eq!(known(&room, id), (Activity::Idle, Some(ActivitySource::IdFile)));
    room.says(id, Report::Rang { run: FIRST, ring: None });
    filed(&mut room, id, None);
    assert_eq!(known(&room, id).0, Activity::Unknown);
}

#[test]
fn a_program_outside_that_has_the_vendor_session_is_waited_for_and_nothing_is_started() {
    let mut room = Room::configured(CONFIG);
    let file = is_outside(&room, "v-1");
    let more = on_terminal(&room);
    let id = room.create("a", &more);
    room.ask(id, Ask::Start);
    room.grant();
    assert_eq!((room.state(id), room.desk.lock().births.len()), (State::Blocked, 0));
    assert_eq!(room.desk.lock().locked, 0, "its own locks are free meanwhile");
    let Life::Blocked { holder: Some(holder), .. } = room.engine.sessions[&id].session.life().clone() else {
        panic!("somebody has it")
    };
    assert_eq!((holder.pid, holder.session), (Some(std::process::id()), None));
    let (awaited, gone) = room.desk.lock().waiters.pop().expect("it is waited for");
    let Obstacle::Process(process) = awaited else { panic!("a process has it: {awaited:?}") };
    assert_eq!((process.0.session.as_str(), process.1.pid), ("v-1", std::process::id()));
    std::fs::remove_file(file).unwrap();
    gone(());
    room.settle();
    room.grant();
    assert_eq!((room.state(id), room.desk.lock().births.len()), (State::Starting, 1));
}

#[test]
fn a_program_outside_in_another_conversation_is_in_nobodys_way() {
    let mut room = Room::configured(CONFIG);
    is_outside(&room, "v-2");
    let id = running(&mut room);
    assert_eq!(room.state(id), State::Running);
}

#[test]
fn a_store_that_cannot_be_looked_at_is_not_taken_for_an_empty_one() {
    let mut room = Room::configured(CONFIG);
    let folder = room.folder().join("live");
    std::os::unix::fs::symlink(&folder, &folder).unwrap();
    let more = on_terminal(&room);
    let id = room.create("a", &more);
    room.ask(id, Ask::Start);
    room.grant();
    assert_eq!((room.state(id), room.desk.lock().births.len()), (State::Backoff, 0));
    assert!(room.engine.sessions[&id].session.explain(room.engine.ports.clock.now()).contains("who else"));
}
