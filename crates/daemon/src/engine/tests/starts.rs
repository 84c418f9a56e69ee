//! From the decision to run to a running agent: locks, the shim, and what it is told.

use super::hand::{FIRST, PROCESS, Room, SECOND, exited};
use crate::ports::locks::{LocksRefused, Obstacle};
use pinfold_core::event::Ask;
use pinfold_core::event::StartFailure as Failure;
use pinfold_core::exit::Exit;
use pinfold_core::life::{CannotStart, StartRefused};
use pinfold_core::{ConsumerId, State};
use pinfold_lock::{Resource, SessionName};
use pinfold_shim::{Command, Directory, JoinRights, Listens, Report, Size, Start, StartFailure, Tie};
use pinfold_store::SessionId;
use serde_json::json;
use std::ffi::OsString;
use std::time::Duration;

/// What the shim of the latest start is told to start.
fn ordered(room: &Room) -> Start {
    let ordered = room.desk.lock();
    (*ordered.births.last().expect("a shim is to be started").0.start).clone()
}

fn variables(start: &Start) -> Vec<String> {
    start.environment.iter().map(|pair| pair.to_str().unwrap().to_owned()).collect()
}

fn busy() -> LocksRefused {
    LocksRefused::Busy {
        resource: Resource::Session(SessionName::new("a").unwrap()),
        holder: None,
        run: None,
    }
}

#[test]
fn a_run_is_started_as_its_session_was_defined() {
    let mut room = Room::new();
    let more = json!({ "command": ["agent", "-v"], "dir": "/srv", "stop_grace": 3000, "turns": "done" });
    let id = room.starting("a", &more);
    let start = ordered(&room);
    assert_eq!(start.run, FIRST);
    assert_eq!(start.run_id, room.engine.sessions[&id].latest.unwrap().1.to_string());
    assert_eq!(start.arguments, ["agent", "-v"].map(OsString::from));
    assert_eq!(start.directory, Directory::Path("/srv".into()));
    assert_eq!(start.socket.as_ref(), Some(&room.engine.socket));
    assert_eq!((start.open_files, start.core, start.umask), (Some((1024, 4096)), Some((0, 1)), Some(0o027)));
    assert_eq!(
        (start.grace, start.terminal, start.joins),
        (Duration::from_secs(3), None, JoinRights::default())
    );
    assert!(start.says_done && start.repeats && !start.give_locks);
}

#[test]
fn a_shim_is_told_where_to_listen_and_where_to_write() {
    let mut room = Room::new();
    let id = room.starting("a", &json!({}));
    let ordered = room.desk.lock();
    let birth = &ordered.births[0].0;
    let (opening, home) = (&birth.opening, &room.engine.home);
    assert_eq!(
        (opening.program.as_os_str(), &opening.arguments[..]),
        ("shim".as_ref(), &["a-word".into()][..])
    );
    assert_eq!((opening.session.as_str(), opening.tie, opening.listens), ("a", Tie::Free, Listens::Late));
    assert_eq!(
        (&opening.listen, &opening.records, &opening.log),
        (&home.shim_socket(id), &home.records(id), &home.log(id))
    );
    assert_eq!((birth.generation, birth.settled.0), (1, 0));
}

#[test]
fn what_a_definition_leaves_open_differs_by_mode_lock_and_turns() {
    let rows = [
        (json!({ "mode": "once" }), (false, false, false)),
        (json!({ "mode": "always", "dir_lock": true }), (true, true, false)),
        (json!({ "mode": "once", "turns": "done" }), (false, false, true)),
    ];
    for (more, wanted) in rows {
        let mut room = Room::new();
        room.starting("a", &more);
        let start = ordered(&room);
        let told = (start.repeats, start.directory == Directory::Locked, start.says_done);
        assert_eq!(told, wanted, "{more}");
    }
}

#[test]
fn a_run_has_the_variables_of_its_session_and_says_where_things_live() {
    let mut room = Room::configured("[agents.guarded.policy]\nwatchdog = \"2s\"\n");
    room.engine.home.variables = vec!["PINFOLD_HOME=/h".into(), "PATH=/places".into()];
    let env = json!({ "PATH": "/own", "A": "1=2" });
    room.starting("a", &json!({ "env": env, "agent": "guarded" }));
    let all = variables(&ordered(&room));
    assert_eq!(all, ["A=1=2", "PATH=/own", "PINFOLD_HOME=/h", "WATCHDOG_USEC=2000000"]);
}

#[test]
fn a_terminal_has_a_name_that_programs_understand() {
    let rows = [
        (json!({ "TERM": "screen" }), vec!["TERM=screen"]),
        (json!({ "TERM": "dumb" }), vec!["TERM=xterm-256color"]),
        (json!({ "TERM": "" }), vec!["TERM=xterm-256color"]),
        (json!({ "TERMINFO": "/t" }), vec!["TERMINFO=/t", "TERM=xterm-256color"]),
    ];
    for (env, wanted) in rows {
        let mut room = Room::new();
        room.starting("a", &json!({ "pty": true, "env": env }));
        let start = ordered(&room);
        assert_eq!(variables(&start), wanted);
        assert_eq!(start.terminal, Some(Size::default()));
        room.starting("b", &json!({ "env": { "TERM": "dumb" } }));
        assert_eq!(variables(&ordered(&room)), ["TERM=dumb"], "no terminal, no other name");
    }
}

#[test]
fn only_a_terminal_can_be_joined_by_those_who_are_confined() {
    let allowed = "[policy]\nconfined = \"allow\"\n";
    for (text, pty, wanted) in [(allowed, true, true), (allowed, false, false), ("", true, false)] {
        let mut room = Room::configured(text);
        room.starting("a", &json!({ "pty": pty }));
        assert_eq!(ordered(&room).joins.confined, wanted, "{text:?} {pty}");
    }
}

#[test]
fn a_takeover_starts_the_vendors_program_in_a_terminal() {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "interactive": ["vendor", "ui"], "turns": "done" }));
    room.event(
        id,
        pinfold_core::Event::ConsumerJoined {
            consumer: ConsumerId(4),
            kind: pinfold_core::event::ConsumerKind::Attach,
        },
    );
    room.ask(id, Ask::Takeover { consumer: ConsumerId(4), urgent: true });
    room.ends(id, FIRST, Exit::Code(0));
    let told = room.heard(id);
    let start =
        told.iter().find_map(|command| if let Command::Start(start) = command { Some(start) } else { None });
    let start = start.unwrap_or_else(|| panic!("{told:?}"));
    assert_eq!(start.arguments, ["vendor", "ui"].map(OsString::from));
    assert!(start.terminal.is_some() && !start.says_done);
    room.says(id, Report::StartFailed { run: SECOND, why: StartFailure::ProgramMissing });
    let said = room.last_event("start_failed").data["text"].clone();
    assert_eq!(said, json!("program `vendor` was not found"));
}

#[test]
fn why_a_start_failed_is_said_in_the_words_of_the_definition() {
    let mut room = Room::new();
    let id = room.starting("a", &json!({ "command": ["/no/agent"], "dir": "/srv/work" }));
    let (program, directory) = ("/no/agent".to_owned(), "/srv/work".to_owned());
    let refused = |errno, text: &str| Failure::Refused(StartRefused { errno, text: text.to_owned() });
    let rows = [
        (
            StartFailure::ProgramMissing,
            Failure::Hopeless(CannotStart::ProgramMissing { program: program.clone() }),
        ),
        (
            StartFailure::NotExecutable { errno: 2 },
            Failure::Hopeless(CannotStart::InterpreterMissing {
                program: program.clone(),
                interpreter: None,
            }),
        ),
        (
            StartFailure::NotExecutable { errno: 13 },
            Failure::Hopeless(CannotStart::NotExecutable { program }),
        ),
        (
            StartFailure::DirectoryMissing,
            Failure::Hopeless(CannotStart::DirectoryMissing { directory: directory.clone() }),
        ),
        (
            StartFailure::DirectoryClosed { errno: 13 },
            Failure::Hopeless(CannotStart::DirectoryClosed { directory }),
        ),
        (
            StartFailure::DirectoryClosed { errno: 40 },
            Failure::Hopeless(crate::ports::locks::another(std::path::Path::new("/srv/work"))),
        ),
        (
            StartFailure::DirectoryClosed { errno: 5 },
            refused(Some(5), "directory `/srv/work`: input/output error"),
        ),
        (StartFailure::Refused { errno: 24 }, refused(Some(24), "`/no/agent`: too many open files")),
        (StartFailure::Outdated { last: FIRST }, refused(None, "its shim has seen a later run")),
        (StartFailure::Occupied { run: FIRST }, refused(None, "its shim still has another run")),
        (StartFailure::RecordsFull, refused(None, "its shim has too many ends that are not stored")),
    ];
    for (said, wanted) in rows {
        assert_eq!(room.engine.cannot_start(id, said), wanted, "{said:?}");
    }
}

#[test]
fn locks_that_nobody_wants_any_more_are_given_back() {
    let mut room = Room::new();
    let id = room.create("a", &json!({ "mode": "always" }));
    room.stop(id);
    assert_eq!(room.state(id), State::Stopped);
    room.grant();
    let desk = room.desk.lock();
    assert_eq!((desk.locked, desk.births.len()), (0, 0));
}

#[test]
fn locks_that_are_under_way_are_those_of_the_next_run_too() {
    let mut room = Room::new();
    let id = room.create("a", &json!({ "mode": "always" }));
    room.stop(id);
    room.ask(id, Ask::Start);
    assert_eq!(room.desk.lock().reservations.len(), 1, "they are not asked for twice");
    room.grant();
    assert_eq!(ordered(&room).run, SECOND);
    room.shim_comes(id);
    room.starts(id, SECOND);
}

#[test]
fn a_start_that_waited_for_its_record_and_was_stopped_meanwhile_is_told_so() {
    let mut room = Room::new();
    let id = room.create("a", &json!({ "mode": "always" }));
    room.desk.lock().held_up = true;
    room.grant();
    assert!(room.desk.lock().births.is_empty(), "the start waits for its record");
    room.stop(id);
    room.write();
    room.shim_comes(id);
    let told = room.heard(id);
    assert!(told.iter().any(|command| matches!(command, Command::Stop { run: FIRST, .. })), "{told:?}");
    assert_eq!(room.desk.lock().locked, 0, "its shim has the locks");
}

#[test]
fn whoever_has_a_lock_is_waited_for_until_a_person_stops_that() {
    let mut room = Room::new();
    let id = room.create("a", &json!({ "mode": "always" }));
    room.refuse(busy());
    assert_eq!(
        room.view()
            .measured()
            .iter()
            .flat_map(|metric| &metric.samples)
            .filter(|s| s.name == "pinfold_lock_waiters")
            .map(|s| s.value)
            .sum::<f64>(),
        1.0
    );
    let (resource, gone) = room.desk.lock().waiters.pop().expect("somebody waits");
    let Obstacle::Lock(resource) = resource else { panic!("a lock was refused") };
    assert_eq!(resource, Resource::Session(SessionName::new("a").unwrap()));
    gone(());
    room.settle();
    assert!(room.engine.sessions[&id].waiting.is_none());
    assert_eq!(room.desk.lock().reservations.len(), 1, "it is tried again");
    room.refuse(busy());
    room.stop(id);
    assert_eq!(room.desk.lock().cancelled, 1);
    assert_eq!(room.state(id), State::Stopped);
}

#[test]
fn a_start_that_the_system_refuses_is_tried_again_and_a_hopeless_one_is_not() {
    let mut room = Room::new();
    let refused = StartRefused { errno: Some(24), text: "too many open files".into() };
    let a = room.create("a", &json!({ "mode": "always" }));
    room.refuse(LocksRefused::System(refused.clone()));
    assert_eq!(room.state(a), State::Backoff);
    let b = room.starting("b", &json!({}));
    let (_, held, then) = room.desk.lock().births.pop().unwrap();
    drop(held);
    then(Err(refused));
    room.settle();
    assert_eq!(room.state(b), State::Backoff);
    assert!(room.last_event("start_failed").why.contains("too many open files"));
    let c = room.create("c", &json!({ "mode": "always" }));
    room.refuse(LocksRefused::Hopeless(CannotStart::DirectoryMissing { directory: "/d".into() }));
    assert_eq!(room.state(c), State::Failed);
}

#[test]
fn a_restart_under_a_shim_that_stands_is_one_order() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.ends(id, FIRST, Exit::Code(0));
    let told = room.heard(id);
    let [Command::Ack { run: FIRST }, Command::Start(start)] = &told[..] else { panic!("{told:?}") };
    assert_eq!(start.run, SECOND);
    assert!(room.desk.lock().births.is_empty());
}

/// A session whose shim was told to leave and has not.
fn leaving(room: &mut Room) -> SessionId {
    let id = room.running("a", &json!({}));
    room.stop(id);
    room.ends(id, FIRST, Exit::Code(0));
    let told = room.heard(id);
    assert!(told.contains(&Command::Release), "{told:?}");
    id
}

#[test]
fn a_run_that_is_wanted_while_its_last_shim_leaves_waits_until_it_has() {
    for says in [true, false] {
        let mut room = Room::new();
        let id = leaving(&mut room);
        room.ask(id, Ask::Start);
        let second = room.engine.sessions[&id].latest.map(|(_, run)| run.to_string());
        assert!(room.desk.lock().reservations.is_empty(), "its own shim has the locks");
        if says {
            room.says(id, Report::Leaving);
        } else {
            room.hangs_up(id);
        }
        assert!(!room.events().iter().any(|event| event.run == second), "nothing of it has been, nor ended");
        room.grant();
        assert_eq!(room.desk.lock().births.len(), 1, "says goodbye: {says}");
    }
}

#[test]
fn a_shim_that_has_left_is_not_told_to_start() {
    let mut room = Room::new();
    let id = leaving(&mut room);
    room.says(id, Report::Leaving);
    assert!(room.engine.sessions[&id].shim.is_none());
    room.ask(id, Ask::Start);
    room.grant();
    room.shim_comes(id);
    room.starts(id, SECOND);
    assert_eq!(room.state(id), State::Running);
}

#[test]
fn how_an_agent_is_spoken_to_counts_from_its_start() {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "turns": "done", "input": "json" }));
    let spoken = room.engine.sessions[&id].speech(FIRST);
    let tracked = room.engine.sessions.get_mut(&id).unwrap();
    tracked.definition = std::sync::Arc::new(super::hand::definition(&json!({ "mode": "always" })));
    assert_eq!(room.engine.sessions[&id].speech(FIRST), spoken, "this run was started with it");
    assert_ne!(room.engine.sessions[&id].speech(SECOND), spoken);
    room.ends(id, FIRST, Exit::Code(0));
    assert_ne!(
        room.engine.sessions[&id].speech(SECOND),
        spoken,
        "the next run is spoken to as it is defined now"
    );
}

#[test]
fn the_memory_of_a_run_with_a_limit_is_watched_while_it_lives() {
    let mut room = Room::configured("[policy]\nmemory_sample = \"7s\"\n");
    let id = room.running("a", &json!({ "memory": 1000 }));
    assert_eq!(room.desk.lock().memory, [("watch", FIRST)]);
    let watch = room.desk.lock().watch.unwrap();
    assert_eq!((watch.subject.agent, watch.limit, watch.sample), (PROCESS.pid, 1000, Duration::from_secs(7)));
    assert_eq!(watch.subject.shim, Some(super::hand::SHIM));
    room.ends(id, FIRST, Exit::Code(0));
    assert_eq!(room.desk.lock().memory[1..], [("forget", FIRST)]);
    room.starts(id, SECOND);
    assert_eq!(room.desk.lock().memory[2..], [("watch", SECOND)]);
    room.running("b", &json!({}));
    assert_eq!(room.desk.lock().memory.len(), 3, "one without a limit is not watched");
}

#[test]
fn only_readings_of_the_run_that_is_watched_count() {
    use crate::engine::input::LoopInput;
    use crate::memory::MeterReading;
    use pinfold_core::rules::memory::{Reading, ReadingSource};
    let mut room = Room::new();
    let id = room.running("a", &json!({ "memory": 1000 }));
    let read =
        |bytes, swap| MeterReading { reading: Reading::Bytes(bytes), source: ReadingSource::Sum, swap };
    room.tell(LoopInput::Memory { id, run: SECOND, read: read(500, 1) });
    assert_eq!(
        (
            room.engine.sessions[&id].run.as_ref().and_then(|run| run.swap()),
            room.engine.sessions[&id].session.memory_bytes()
        ),
        (None, None)
    );
    room.tell(LoopInput::Memory { id, run: FIRST, read: read(500, 3) });
    let tracked = &room.engine.sessions[&id];
    assert_eq!(
        (tracked.run.as_ref().and_then(|run| run.swap()), tracked.session.memory_bytes()),
        (Some(3), Some(500))
    );
    room.tell(LoopInput::Memory { id, run: FIRST, read: read(2000, 3) });
    assert!(
        room.desk.lock().memory.contains(&("confirm", FIRST)),
        "before anything is done it is read exactly"
    );
    room.ends(id, FIRST, Exit::Code(0));
    assert_eq!(
        room.engine.sessions[&id].run.as_ref().and_then(|run| run.swap()),
        None,
        "the next run has nothing on the swap yet"
    );
}

#[test]
fn each_run_has_a_name_of_its_own_and_begins_with_nothing_said() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let first = room.engine.sessions[&id].latest.unwrap();
    room.says(id, Report::Notify { run: FIRST, notice: pinfold_shim::Notice::Ready });
    room.says(id, Report::Notify { run: FIRST, notice: pinfold_shim::Notice::Status("busy".into()) });
    let tracked = &room.engine.sessions[&id];
    assert_eq!((tracked.view().ready, tracked.view().status.as_deref()), (true, Some("busy")));
    room.says(id, Report::Exited(exited(FIRST, Exit::Code(0), super::hand::LONG)));
    let tracked = &room.engine.sessions[&id];
    let second = tracked.latest.unwrap();
    assert_eq!((first.0, second.0), (FIRST, SECOND));
    assert_ne!(first.1, second.1);
    assert_eq!((tracked.view().ready, tracked.view().status), (false, None));
    assert!(second.1.to_string() > first.1.to_string(), "names are in the order of time");
}
