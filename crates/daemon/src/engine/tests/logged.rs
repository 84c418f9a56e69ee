//! What the daemon logs about things that change nothing.

use super::hand::{FIRST, Room, SECOND};
use pinfold_core::MessageId;
use pinfold_shim::log::Position;
use pinfold_shim::turn::{DoneLine, Turn};
use pinfold_shim::{InputRefused, Report};
use serde_json::json;
use std::io;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Sheet(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sheet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What this thread logs meanwhile.
fn logged(happens: impl FnOnce()) -> String {
    let sheet = Sheet::default();
    let writer = sheet.clone();
    let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    tracing::subscriber::with_default(log, happens);
    let text = sheet.0.lock().unwrap().clone();
    String::from_utf8(text).unwrap()
}

#[test]
fn an_end_that_is_not_counted_is_logged_where_the_run_lives() {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "turns": "done" }));
    let said = logged(|| room.says(id, Report::StrayDone { run: FIRST, named: None }));
    assert!(said.contains("without a message in flight"), "{said}");
    assert!(said.contains("put the message's ID after PINFOLD_DONE"), "{said}");
    let again = logged(|| room.says(id, Report::StrayDone { run: FIRST, named: None }));
    assert!(!again.contains("put the message's ID"), "once: {again}");
    let said = logged(|| room.says(id, Report::StrayDone { run: FIRST, named: Some(MessageId(1)) }));
    assert!(said.contains("for a message that is not in flight"), "{said}");
    let said = logged(|| room.says(id, Report::StrayDone { run: SECOND, named: None }));
    assert_eq!(said, "");
}

#[test]
fn a_message_that_its_agent_does_not_take_is_logged_where_the_run_lives() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let refused =
        |run| Report::InputRefused { run, message: MessageId(1), attempt: 1, why: InputRefused::Closed };
    let said = logged(|| room.says(id, refused(FIRST)));
    assert!(said.contains("it does not read its standard input any more"), "{said}");
    assert_eq!(logged(|| room.says(id, refused(SECOND))), "");
}

#[test]
fn an_answer_that_is_cut_is_logged() {
    for whole in [false, true] {
        let mut room = Room::new();
        let id = room.running("a", &json!({ "turns": "done" }));
        let message = room.send(id, "x", None);
        let done = DoneLine { to: Position(20), answer: b"42".to_vec(), whole, named: None };
        let turn = Turn { run: FIRST, message, attempt: 1, from: Position(10), done: Some(done) };
        let said = logged(|| room.says(id, Report::TurnDone(Box::new(turn))));
        assert_eq!(said.contains("the answer is cut"), !whole, "{said}");
    }
}
