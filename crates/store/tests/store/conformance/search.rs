//! Search results, with an index and without: the same on every back-end.

use crate::conformance::{Ground, on_every_back_end};
use crate::driven::Driven;
use crate::home::{audit, id, whole};
use pinfold_core::inbox::MessageChange;
use pinfold_core::{MessageId, Wall};
use pinfold_store::search::{
    Follower, Hit, Index, NamedSession, SearchQuery, SearchResult, SearchWords, Stepped, search,
};
use pinfold_store::{AuditEvent, Batch, Reader, SessionId, Step, Store, Ulid};
use serde_json::Value;
use std::collections::BTreeSet;

/// Creates a step of a message with its text, and the event about it.
fn says(session: SessionId, number: u128, change: MessageChange, words: &str) -> Batch {
    let queued = matches!(change, MessageChange::Queued { .. });
    let (kind, at) = if queued { ("message_queued", number) } else { ("message_done", number + 1) };
    let (at, words) = (Wall(i64::try_from(at).unwrap()), Some(words.to_owned()));
    let mut batch = Batch::new();
    batch.steps.push(Step::Message {
        session,
        at,
        change,
        words,
        told: Default::default(),
        from: None,
        place: None,
    });
    let message = Value::from(Ulid::from(MessageId(number)).to_string());
    batch.event(AuditEvent { session: Some(session), ..audit(kind, at.0, &[("message", message)]) });
    batch
}

fn sent(session: u64, number: u128, text: &str) -> Batch {
    let change = MessageChange::Queued { message: MessageId(number), key: None };
    says(id(session), number, change, text)
}

fn answered(session: u64, number: u128, text: &str) -> Batch {
    let message = MessageId(number);
    let mut batch = Batch::new();
    for change in [MessageChange::Delivering { message }, MessageChange::Taken { message }] {
        let (session, at) = (id(session), Wall(1));
        batch.steps.push(Step::Message {
            session,
            at,
            change,
            words: None,
            told: Default::default(),
            from: None,
            place: None,
        });
    }
    batch.append(says(id(session), number, MessageChange::Done { message }, text));
    batch
}

fn told(session: Option<u64>, why: &str) -> Batch {
    let mut batch = Batch::new();
    batch.event(AuditEvent { session: session.map(id), why: why.to_owned(), ..audit("run_exited", 7, &[]) });
    batch
}

fn filled(ground: &Ground) -> Store {
    let store = ground.open();
    for (number, name) in [(1, "api"), (2, "web-front")] {
        store.commit(Driven::on_demand(number, name).1).wait().unwrap();
    }
    for batch in [
        sent(1, 10, "Fix the login page, please"),
        answered(1, 10, "login is fixed: login was null, login is not"),
        sent(2, 20, "Build the api\u{1b}[2J and the über-page"),
        told(Some(2), "exited with 1 after 1.8 s: RuntimeError: boom"),
        told(None, "the daemon met a boom of its own"),
    ] {
        store.commit(batch).wait().unwrap();
    }
    store
}

fn names(reader: &Reader) -> Vec<NamedSession> {
    let of = |stored: pinfold_store::StoredSession| NamedSession {
        id: stored.id,
        name: stored.name,
        created_at: stored.created_at,
    };
    reader.sessions().unwrap().into_iter().map(|loaded| of(whole(loaded))).collect()
}

fn wanted(text: &str) -> SearchQuery {
    SearchQuery { words: SearchWords::new(text), within: None, limit: 20 }
}

/// Indexes everything.
fn followed(ground: &Ground, reader: &Reader) -> Follower {
    let mut follower = Follower::open(&ground.beside("search.db"), &**reader).unwrap();
    while follower.step(&**reader).unwrap() == Stepped::More {}
    let indexed = follower.indexed(&**reader).unwrap();
    assert_eq!(indexed.done, indexed.total);
    follower
}

/// Returns what is found with an index, which is the same as without one.
fn found(ground: &Ground, store: &Store, wanted: &SearchQuery) -> Vec<Hit> {
    let reader = store.reader().unwrap();
    drop(followed(ground, &reader));
    let index = Index::open(&ground.beside("search.db")).unwrap();
    let sorted = |found: SearchResult| {
        let mut hits: Vec<String> = found.hits.iter().map(|hit| format!("{hit:?}")).collect();
        hits.sort();
        hits
    };
    let with = search(&*reader, Some(&index), &names(&reader), wanted).unwrap();
    let without = search(&*reader, None, &names(&reader), wanted).unwrap();
    assert_eq!(sorted(with.clone()), sorted(without));
    with.hits
}

fn kinds(hits: &[Hit]) -> Vec<&'static str> {
    hits.iter().map(|hit| hit.kind.word()).collect()
}

fn names_messages_answers_and_whys_are_found_best_first(ground: &Ground) {
    let store = filled(ground);
    let rows: [(&str, &[&str]); 9] = [
        ("login", &["answer", "message"]),
        ("api", &["name", "message"]),
        ("front", &["name"]),
        ("eb-fr", &["name"]),
        ("boom", &["why", "why"]),
        ("runtimeerror: BOOM", &["why"]),
        ("über-page build", &["message"]),
        ("nowhere", &[]),
        ("\" OR text : * NEAR(", &[]),
    ];
    for (text, expected) in rows {
        assert_eq!(kinds(&found(ground, &store, &wanted(text))), expected, "{text}");
    }
}

fn a_hit_says_whose_it_is_and_what_stands_around_it(ground: &Ground) {
    let store = filled(ground);
    let hits = found(ground, &store, &wanted("über"));
    let message = Ulid::from(MessageId(20)).to_string();
    assert_eq!((hits[0].session, hits[0].id.as_str(), hits[0].at), (Some(id(2)), message.as_str(), Wall(20)));
    assert_eq!(hits[0].excerpt, "Build the api [2J and the über-page");
}

fn only_what_is_asked_for_is_found(ground: &Ground) {
    let store = filled(ground);
    let within = |ids: &[u64]| Some(ids.iter().map(|number| id(*number)).collect::<BTreeSet<_>>());
    let of = |ids: &[u64]| found(ground, &store, &SearchQuery { within: within(ids), ..wanted("boom") });
    assert_eq!(kinds(&of(&[2])), ["why"], "what is of no session is for those who may see all");
    assert_eq!((of(&[1]).len(), of(&[]).len()), (0, 0));
    assert_eq!(found(ground, &store, &SearchQuery { limit: 1, ..wanted("boom") }).len(), 1);
}

fn what_comes_later_is_taken_in(ground: &Ground) {
    let store = filled(ground);
    assert_eq!(kinds(&found(ground, &store, &wanted("later"))), <[&str; 0]>::default());
    store.commit(sent(1, 11, "a later one")).wait().unwrap();
    assert_eq!(kinds(&found(ground, &store, &wanted("later"))), ["message"]);
    store.commit(answered(1, 11, "later and later")).wait().unwrap();
    assert_eq!(kinds(&found(ground, &store, &wanted("later"))), ["answer", "message"]);
}

fn nothing_of_a_removed_session_is_found_before_and_after_the_index_knows(ground: &Ground) {
    let store = filled(ground);
    let reader = store.reader().unwrap();
    drop(followed(ground, &reader));
    let mut batch = Batch::new();
    batch.remove(id(2));
    batch.event(AuditEvent { session: Some(id(2)), ..audit("removed", 9, &[]) });
    store.commit(batch).wait().unwrap();
    let index = Index::open(&ground.beside("search.db")).unwrap();
    let early = search(&*reader, Some(&index), &names(&reader), &wanted("boom")).unwrap();
    assert_eq!(early.hits.iter().map(|hit| hit.session).collect::<Vec<_>>(), [None]);
    assert!(early.indexed.done < early.indexed.total, "{early:?}");
    drop(index);
    assert_eq!(found(ground, &store, &wanted("über")), []);
    let file = std::fs::read(ground.beside("search.db")).unwrap();
    let log = std::fs::read(ground.beside("search.db-wal")).unwrap_or_default();
    let has = |bytes: &[u8]| bytes.windows(12).any(|piece| piece == b"runtimeerror");
    assert!(!has(&file) && !has(&log), "its words are still in the file");
}

fn an_index_of_another_store_is_begun_anew(ground: &Ground) {
    let store = filled(ground);
    drop(followed(ground, &store.reader().unwrap()));
    let other = ground.another();
    let newer = filled(&other);
    newer.commit(sent(1, 12, "only in the other one")).wait().unwrap();
    std::fs::copy(ground.beside("search.db"), other.beside("search.db")).unwrap();
    assert_eq!(kinds(&found(&other, &newer, &wanted("only"))), ["message"]);
    // A copy from before: the index is ahead of it.
    std::fs::copy(other.beside("search.db"), ground.beside("search.db")).unwrap();
    assert_eq!(kinds(&found(ground, &store, &wanted("only"))), <[&str; 0]>::default());
    assert_eq!(kinds(&found(ground, &store, &wanted("login"))), ["answer", "message"]);
}

fn a_damaged_index_is_begun_anew(ground: &Ground) {
    let store = filled(ground);
    std::fs::write(ground.beside("search.db"), [7; 9000]).unwrap();
    assert!(Index::open(&ground.beside("search.db")).is_err());
    assert_eq!(kinds(&found(ground, &store, &wanted("login"))), ["answer", "message"]);
}

fn an_old_store_is_taken_in_step_by_step_and_it_is_said_how_far(ground: &Ground) {
    let store = filled(ground);
    for number in 100..400_u128 {
        store.commit(sent(1, number, &format!("old number{number}"))).wait().unwrap();
    }
    let reader = store.reader().unwrap();
    let mut follower = Follower::open(&ground.beside("search.db"), &*reader).unwrap();
    let mut before = follower.indexed(&*reader).unwrap();
    assert_eq!(before.done, 0);
    let mut steps = 0;
    while follower.step(&*reader).unwrap() == Stepped::More {
        let now = follower.indexed(&*reader).unwrap();
        assert!(now.done >= before.done && now.done <= now.total, "{now:?}");
        (before, steps) = (now, steps + 1);
        if steps == 3 {
            // It continues where it was.
            drop(follower);
            follower = Follower::open(&ground.beside("search.db"), &*reader).unwrap();
            store.commit(sent(1, 999, "quite new")).wait().unwrap();
        }
        if steps == 5 {
            let index = Index::open(&ground.beside("search.db")).unwrap();
            let new = search(&*reader, Some(&index), &names(&reader), &wanted("quite new")).unwrap();
            assert_eq!(kinds(&new.hits), ["message"], "what is new does not wait for what is old");
        }
    }
    assert!(steps > 8, "{steps}");
    assert_eq!(kinds(&found(ground, &store, &wanted("number399"))), ["message"]);
}

/// More rows than one shelf of the index has.
const MANY: u128 = 9000;

fn what_stands_on_an_older_shelf_is_found_and_removed_too(ground: &Ground) {
    let store = filled(ground);
    let mut batch = Batch::new();
    for number in 0..MANY {
        let session = 1 + u64::try_from(number % 2).unwrap();
        let text = format!("many n{number} {}", if number % 3000 == 0 { "seldom" } else { "often" });
        batch.append(sent(session, 1000 + number, &text));
    }
    store.commit(batch).wait().unwrap();
    let reader = store.reader().unwrap();
    drop(followed(ground, &reader));
    let sought = |text: &str, within: Option<u64>| {
        let index = Index::open(&ground.beside("search.db")).unwrap();
        let within = within.map(|number| [id(number)].into());
        let wanted = SearchQuery { within, ..wanted(text) };
        let mut hits = search(&*reader, Some(&index), &names(&reader), &wanted).unwrap().hits;
        hits.sort_by_key(|hit| hit.at);
        hits.iter().map(|hit| hit.at.0).collect::<Vec<_>>()
    };
    assert_eq!(sought("n0", None), [1000]);
    assert_eq!(sought("seldom", None), [1000, 4000, 7000]);
    assert_eq!(sought("m seldom", None), [1000, 4000, 7000], "a broad beginning beside a rare word");
    assert_eq!(sought("seldom", Some(1)), [1000, 4000, 7000]);
    assert_eq!(sought("seldom", Some(2)), <[i64; 0]>::default());
    assert_eq!(sought("often nowhere", None), <[i64; 0]>::default());
    let broad = sought("m", None);
    assert!(broad.len() == 20 && broad[0] > 7999, "the best of the newest: {broad:?}");
    let mut batch = Batch::new();
    batch.remove(id(1));
    batch.event(AuditEvent { session: Some(id(1)), ..audit("removed", 9, &[]) });
    store.commit(batch).wait().unwrap();
    drop(followed(ground, &reader));
    let file = std::fs::read(ground.beside("search.db")).unwrap();
    assert!(!file.windows(6).any(|piece| piece == b"seldom"), "its words are still in the file");
    assert_eq!(sought("often", Some(1)), <[i64; 0]>::default());
    assert_eq!(sought("n8999", Some(2)), [9999]);
    assert_eq!(sought("n1", Some(1)), <[i64; 0]>::default());
}

/// A file that was put in the place of ours, beside a log of ours, is not mistaken for ours.
fn a_file_in_the_place_of_the_index_is_noticed(ground: &Ground) {
    let store = filled(ground);
    let reader = store.reader().unwrap();
    let follower = followed(ground, &reader);
    assert!(follower.is_in_place());
    let (path, copy) = (ground.beside("search.db"), ground.beside("copy.db"));
    std::fs::copy(&path, &copy).unwrap();
    std::fs::rename(&copy, &path).unwrap();
    assert!(!follower.is_in_place());
    drop(follower);
    let opened = Follower::open(&path, &*reader).unwrap();
    assert_eq!(opened.indexed(&*reader).unwrap().done, 0, "it is begun anew");
    drop(opened);
    assert_eq!(kinds(&found(ground, &store, &wanted("login"))), ["answer", "message"]);
    let mut anew = Follower::anew(&path, &*reader).unwrap();
    assert!(anew.is_in_place() && anew.indexed(&*reader).unwrap().done == 0);
    while anew.step(&*reader).unwrap() == Stepped::More {}
    assert!(anew.is_in_place());
    std::fs::write(ground.beside("search.db-wal"), "").unwrap();
    assert!(!anew.is_in_place(), "its log is not as it was left");
}

fn damage_that_is_met_while_seeking_is_told_and_everything_is_read(ground: &Ground) {
    let store = filled(ground);
    let reader = store.reader().unwrap();
    drop(followed(ground, &reader));
    let path = ground.beside("search.db");
    let index = Index::open(&path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // The pages of the words; the first pages describe the file.
    bytes[8192..].fill(0x55);
    std::fs::write(&path, bytes).unwrap();
    let damaged = search(&*reader, Some(&index), &names(&reader), &wanted("login")).unwrap();
    assert_eq!((kinds(&damaged.hits), damaged.damaged), (vec!["answer", "message"], true));
}

on_every_back_end! {
    what_stands_on_an_older_shelf_is_found_and_removed_too,
    a_file_in_the_place_of_the_index_is_noticed,
    damage_that_is_met_while_seeking_is_told_and_everything_is_read,
    names_messages_answers_and_whys_are_found_best_first,
    a_hit_says_whose_it_is_and_what_stands_around_it,
    only_what_is_asked_for_is_found,
    what_comes_later_is_taken_in,
    nothing_of_a_removed_session_is_found_before_and_after_the_index_knows,
    an_index_of_another_store_is_begun_anew,
    a_damaged_index_is_begun_anew,
    an_old_store_is_taken_in_step_by_step_and_it_is_said_how_far,
}
