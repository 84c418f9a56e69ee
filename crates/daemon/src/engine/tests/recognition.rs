//! Ends that a preset or `--contended-if` recognises.

use super::ends::printed;
use super::hand::{FIRST, LONG, Room, exited};
use pinfold_core::exit::Exit;
use pinfold_core::{State, Verdict};
use pinfold_shim::Report;
use pinfold_store::SessionId;
use serde_json::{Value, json};

/// A session whose first run printed something and ended.
fn ended(config: &str, definition: &Value, text: &str, exit: Exit) -> (Room, SessionId) {
    let mut room = Room::configured(config);
    let mut definition = definition.clone();
    definition["mode"] = json!("always");
    let id = room.running("a", &definition);
    room.desk.lock().printed = vec![printed(FIRST, text)];
    room.says(id, Report::Exited(exited(FIRST, exit, LONG)));
    (room, id)
}

fn verdict((room, id): &(Room, SessionId)) -> Verdict {
    room.engine.sessions[id].session.last_exit().unwrap().verdict
}

#[test]
fn an_error_whose_last_lines_have_the_text_of_the_session_is_contended() {
    let busy = "start\nerror: session lock busy\nbye\n";
    let coloured = "\u{1b}[31msession \u{1b}[1mlock busy\u{1b}[0m\r\n";
    let rows = [
        (busy, Exit::Code(1), Verdict::Contended),
        (coloured, Exit::Code(1), Verdict::Contended),
        (busy, Exit::Code(78), Verdict::Contended),
        (busy, Exit::Code(0), Verdict::Clean),
        (busy, Exit::Signal(9), Verdict::Crash),
        ("boom\n", Exit::Code(1), Verdict::Crash),
        ("Session Lock Busy\n", Exit::Code(1), Verdict::Crash),
    ];
    for (text, exit, expected) in rows {
        let seen = ended("", &json!({ "contended_if": "session lock busy" }), text, exit);
        assert_eq!(verdict(&seen), expected, "{text:?} {exit}");
    }
}

#[test]
fn the_texts_and_codes_of_a_preset_count_for_a_program_that_reads_lines_and_on_a_terminal() {
    let config = "[agents.v]\ncommand = [\"v\"]\n\
         recognises = { busy = [\"busy\"], login = [\"log in\"], limit = [\"limit\"], unknown_session = [\"unknown\"], codes = { 3 = \"busy\" } }\n";
    let rows = [
        ("busy\n", 1, Verdict::Contended),
        ("boom\n", 3, Verdict::Contended),
        ("please log in\n", 1, Verdict::Hopeless),
        ("unknown id\n", 1, Verdict::Hopeless),
        ("limit reached\n", 1, Verdict::Limited),
        ("boom\n", 1, Verdict::Crash),
    ];
    for (text, code, expected) in rows {
        for pty in [false, true] {
            let seen = ended(config, &json!({ "agent": "v", "pty": pty }), text, Exit::Code(code));
            assert_eq!(verdict(&seen), expected, "{text:?} {code}");
        }
    }
}

#[test]
fn a_run_that_was_asked_to_end_is_not_recognised() {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "contended_if": "busy" }));
    room.desk.lock().printed = vec![printed(FIRST, "busy\n")];
    room.stop(id);
    room.says(id, Report::Exited(exited(FIRST, Exit::Code(1), LONG)));
    assert_eq!((room.state(id), verdict(&(room, id))), (State::Stopped, Verdict::Clean));
}

#[test]
fn the_process_that_a_line_names_is_the_holder() {
    let mut holder = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let text = format!("session lock busy (pid {})\n", holder.id());
    let definition = json!({ "contended_if": "session lock busy" });
    let (room, id) = ended("", &definition, &text, Exit::Code(1));
    let session = &room.engine.sessions[&id].session;
    assert_eq!(session.state(), State::Backoff);
    assert_eq!(session.life().holder().and_then(|holder| holder.pid), Some(holder.id()));
    _ = holder.kill();
    _ = holder.wait();
    let (room, id) = ended("", &definition, &text, Exit::Code(1));
    assert_eq!(room.engine.sessions[&id].session.life().holder(), None, "it is gone");
}
