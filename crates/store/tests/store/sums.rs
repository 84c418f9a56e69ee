//! Every row carries a checksum; a row with a wrong one is named but never shown.

use crate::driven::Driven;
use crate::home::{Home, note};
use pinfold_core::MessageId;
use pinfold_store::{CheckPace, Damage, EventQuery, Loaded, OpenError, ReadError, Store, StoreOptions, Take};

/// Creates a closed store with a session, messages, a run and events.
fn filled() -> (Home, Driven) {
    let home = Home::new();
    let store = home.open();
    let (mut driven, create) = Driven::on_demand(1, "api");
    store.commit(create).wait().unwrap();
    for number in 1..=5 {
        store.commit(driven.send(MessageId(number), Some(&format!("key {number}")))).wait().unwrap();
    }
    store.commit(note(1)).wait().unwrap();
    drop(store);
    (home, driven)
}

/// Changes a column behind the store's back, as a bad disk would.
fn change(home: &Home, sql: &str) {
    let raw = home.raw();
    raw.pragma_update(None, "foreign_keys", false).unwrap();
    raw.pragma_update(None, "ignore_check_constraints", true).unwrap();
    assert_eq!(raw.execute(sql, []).unwrap(), 1, "{sql}");
}

#[test]
fn a_message_that_was_changed_is_named_and_not_shown() {
    for column in
        ["text = 'another'", "state = 'done'", "tries = 7", "answer = 'forged'", "key = NULL", "sum = NULL"]
    {
        let (home, driven) = filled();
        let id = pinfold_store::Ulid::from(MessageId(3)).to_string();
        change(&home, &format!("UPDATE messages SET {column} WHERE id = '{id}'"));
        let reader = home.reader();
        let rows = reader.messages(driven.id, None, Take::All).unwrap();
        let damaged: Vec<_> = rows.iter().filter_map(|row| row.damage.as_ref()).collect();
        assert_eq!((rows.len(), damaged.len(), &damaged[0].id), (5, 1, &id), "{column}");
        assert!(rows.iter().all(|row| row.damage.is_none() || row.text.is_empty()), "{column}");
        let one = reader.message(MessageId(3)).unwrap_err();
        assert!(matches!(&one, ReadError::Row { id: named, .. } if *named == id), "{one}");
    }
}

#[test]
fn a_cursor_that_was_changed_is_named_and_not_given() {
    for column in ["run = 4", "position = 8", "state = '{}'", "sum = NULL"] {
        let (home, driven) = filled();
        let mut batch = pinfold_store::Batch::new();
        let (session, run) = (driven.id, pinfold_core::RunNumber(3));
        batch.cursor(pinfold_store::Cursor { session, run, position: 7, state: "{\"a\":1}".into() });
        home.open().commit(batch).wait().unwrap();
        change(&home, &format!("UPDATE cursors SET {column}"));
        assert!(matches!(home.reader().cursor(driven.id), Err(ReadError::Row { .. })), "{column}");
        let findings = home.open().reader().unwrap().check(&CheckPace::at_once()).unwrap();
        assert_eq!(findings.len(), 1, "{column}: {findings:?}");
        let mut again = pinfold_store::Batch::new();
        again.cursor(pinfold_store::Cursor { session, run, position: 9, state: "{}".into() });
        home.open().commit(again).wait().unwrap();
        assert_eq!(home.reader().cursor(driven.id).unwrap().map(|found| found.position), Some(9));
    }
}

#[test]
fn what_a_turn_took_is_not_counted_where_it_was_changed_and_is_named() {
    use pinfold_store::{Spent, Step, UsageBy, UsageQuery};
    for column in ["input = 4", "account = 'another'", "message = NULL", "sum = NULL"] {
        let (home, driven) = filled();
        let mut batch = pinfold_store::Batch::new();
        let figures = pinfold_core::usage::Figures { input: Some(3), ..Default::default() };
        let (account, model) = (Some("a".to_owned()), None);
        let (session, run) = (driven.id, pinfold_core::RunNumber(3));
        let message = Some(MessageId(3).into());
        let at = pinfold_core::Wall(7);
        batch.steps.push(Step::Spent(Box::new(Spent { at, session, run, message, account, model, figures })));
        batch.account("a", "{}".to_owned());
        home.open().commit(batch).wait().unwrap();
        let sums = || home.reader().usage(&UsageQuery { by: UsageBy::Account, since: None }).unwrap().len();
        assert_eq!((sums(), home.reader().accounts().unwrap().len()), (1, 1));
        change(&home, &format!("UPDATE usage SET {column}"));
        change(&home, "UPDATE accounts SET state = '[]'");
        assert_eq!((sums(), home.reader().accounts().unwrap().len()), (0, 0), "{column}");
        let findings = home.open().reader().unwrap().check(&CheckPace::at_once()).unwrap();
        assert_eq!(findings.len(), 2, "{column}: {findings:?}");
    }
}

#[test]
fn a_damaged_message_is_not_delivered() {
    let (home, _) = filled();
    let id = pinfold_store::Ulid::from(MessageId(2)).to_string();
    change(&home, &format!("UPDATE messages SET text = 'rm -rf' WHERE id = '{id}'"));
    let Loaded::Whole(stored) = home.reader().sessions().unwrap().remove(0) else {
        panic!("the session is whole")
    };
    let waiting: Vec<_> = stored.session.inbox().waiting().map(|queued| queued.message).collect();
    assert_eq!(waiting, [1, 3, 4, 5].map(MessageId));
}

#[test]
fn a_session_that_was_changed_is_named() {
    for column in ["name = 'apo'", "definition = '{}'", "created_at = 5", "archived_at = 5", "position = 9"] {
        let (home, driven) = filled();
        change(&home, &format!("UPDATE sessions SET {column}"));
        let Loaded::Damaged(damaged) = home.reader().sessions().unwrap().remove(0) else {
            panic!("{column}")
        };
        assert_eq!(damaged.id, driven.id.to_string(), "{column}");
    }
}

#[test]
fn an_event_that_was_changed_is_named_with_its_number() {
    for column in ["why = 'nothing'", "at = 7", "kind = 'other'", "data = '{}'", "seq = 1000"] {
        let (home, _) = filled();
        change(&home, &format!("UPDATE events SET {column} WHERE kind = 'note'"));
        let events = home.reader().events(&EventQuery::default()).unwrap();
        let damaged: Vec<_> = events.iter().filter(|event| event.damage.is_some()).collect();
        assert_eq!((damaged.len(), damaged[0].kind.word()), (1, "damaged"), "{column}");
    }
}

#[test]
fn a_look_at_everything_names_each_row_that_is_wrong() {
    let (home, _) = filled();
    assert_eq!(home.reader().check(&CheckPace::at_once()).unwrap(), [""; 0]);
    change(&home, "UPDATE events SET why = 'nothing' WHERE kind = 'note'");
    change(&home, "UPDATE messages SET text = 'x' WHERE rowid = 1");
    let findings = home.reader().check(&CheckPace::at_once()).unwrap();
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings.iter().any(|finding| finding.starts_with("message 0")), "{findings:?}");
    assert!(findings.iter().any(|finding| finding.starts_with("event 7 is damaged")), "{findings:?}");
}

#[test]
fn a_changed_description_of_the_tables_is_refused() {
    let (home, _) = filled();
    let raw = home.raw();
    raw.execute("DROP INDEX messages_by_session", []).unwrap();
    raw.execute("CREATE INDEX messages_by_session ON messages (session) WHERE key IS NULL", []).unwrap();
    drop(raw);
    let error = Store::open(&home.path(), &StoreOptions::default()).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { problem: Damage::Tables, .. }), "{error:?}");
}

#[test]
fn a_damaged_event_hides_no_other() {
    let home = Home::new();
    let store = home.open();
    (1..=3).for_each(|number| drop(store.commit(note(number))));
    drop(store);
    home.raw().execute("UPDATE events SET data = '{torn', session = 'no id' WHERE seq = 2", []).unwrap();
    let events = home.reader().events(&EventQuery::default()).unwrap();
    assert_eq!(events.len(), 3);
    assert_eq!((events[1].kind.word(), events[1].data.is_empty()), ("damaged", true), "{:?}", events[1]);
    assert_eq!(events[1].damage.as_ref().map(|damage| damage.id.as_str()), Some("2"));
    assert!(events[0].damage.is_none() && events[2].damage.is_none());
}
