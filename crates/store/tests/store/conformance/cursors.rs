//! Cursors: how far a session's tape was folded, stored together with what was heard.

use crate::conformance::Ground;
use crate::driven::Driven;
use crate::home::id;
use pinfold_core::{MessageId, RunNumber};
use pinfold_store::{Batch, CommitError, Cursor, SessionId};

fn cursor(session: SessionId, position: u64) -> Cursor {
    Cursor { session, run: RunNumber(3), position, state: format!("{{\"to\":{position}}}") }
}

fn noted(cursor: Cursor) -> Batch {
    let mut batch = Batch::new();
    batch.cursor(cursor);
    batch
}

fn the_latest_cursor_of_a_session_is_read_back_and_goes_with_the_session(ground: &Ground) {
    let store = ground.open();
    let (driven, create) = Driven::on_demand(1, "api");
    store.commit(create).wait().unwrap();
    let read = || store.reader().unwrap().cursor(driven.id).unwrap();
    assert_eq!(read(), None);
    for position in [7, u64::from(u32::MAX) * 4, 9] {
        store.commit(noted(cursor(driven.id, position))).wait().unwrap();
        assert_eq!(read(), Some(cursor(driven.id, position)));
    }
    let mut remove = Batch::new();
    remove.remove(driven.id);
    store.commit(remove).wait().unwrap();
    assert_eq!(read(), None);
}

fn a_cursor_is_stored_with_what_was_heard_or_not_at_all(ground: &Ground) {
    let store = ground.open();
    let (mut driven, create) = Driven::on_demand(1, "api");
    store.commit(create).wait().unwrap();
    let mut both = driven.send(MessageId(1), None);
    both.append(noted(cursor(driven.id, 7)));
    store.commit(both).wait().unwrap();
    let mut refused = noted(cursor(driven.id, 8));
    refused.append(noted(cursor(id(99), 1)));
    let error = store.commit(refused).wait().unwrap_err();
    assert!(matches!(&*error, CommitError::NoSuchSession { id: of } if *of == id(99)), "{error}");
    assert_eq!(store.reader().unwrap().cursor(driven.id).unwrap(), Some(cursor(driven.id, 7)));
}

crate::conformance::on_every_back_end! {
    the_latest_cursor_of_a_session_is_read_back_and_goes_with_the_session,
    a_cursor_is_stored_with_what_was_heard_or_not_at_all,
}
