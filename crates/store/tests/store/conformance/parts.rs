//! Lists that are read in parts.

use crate::conformance::Ground;
use crate::driven::Driven;
use crate::home::{audit, id, note};
use pinfold_core::{MessageId, Wall};
use pinfold_store::{
    AuditEvent, Batch, COUNTED, EventQuery, MessagePlace, MessageQuery, MessageState, Reader, RowCount,
    Store, Take, Ulid,
};

/// Creates a store with messages 1 to `count` in one session and one of another session between them.
fn with_messages(ground: &Ground, count: u128) -> (Store, MessageQuery) {
    let store = ground.open();
    let (mut first, mut batch) = Driven::on_demand(1, "first");
    let (mut second, created) = Driven::on_demand(2, "second");
    batch.append(created);
    for number in 1..=count {
        batch.append(first.send(MessageId(number), None));
        if number == 2 {
            batch.append(second.send(MessageId(1000), None));
        }
    }
    store.commit(batch).wait().unwrap();
    (store, MessageQuery { session: id(1), state: None })
}

fn ids(reader: &Reader, query: MessageQuery, from: MessagePlace, most: u64, room: usize) -> Vec<Vec<u128>> {
    let (mut all, mut next, mut left) = (Vec::new(), Some(from), most);
    while let Some(at) = next.filter(|_| left > 0) {
        let part = reader.message_part(query, at, left, room).unwrap();
        left -= part.rows.len() as u64;
        all.push(part.rows.iter().map(|row| MessageId::from(row.id).0).collect());
        next = part.next;
    }
    all
}

fn messages_come_in_parts_of_a_size_and_each_of_them_once(ground: &Ground) {
    let (store, query) = with_messages(ground, 7);
    let reader = store.reader().unwrap();
    let all = ids(&reader, query, MessagePlace::default(), u64::MAX, usize::MAX);
    assert_eq!(all, [[1, 2, 3, 4, 5, 6, 7]]);
    // A row takes more than one byte, and a part has at least one row.
    assert_eq!(ids(&reader, query, MessagePlace::default(), u64::MAX, 1).concat(), all.concat());
    assert!(ids(&reader, query, MessagePlace::default(), u64::MAX, 1).len() >= 7);
    assert_eq!(ids(&reader, query, MessagePlace::default(), 3, 1).concat(), [1, 2, 3]);
}

fn a_list_of_messages_begins_behind_one_or_has_the_last_ones(ground: &Ground) {
    let (store, query) = with_messages(ground, 7);
    let reader = store.reader().unwrap();
    let from = |place| ids(&reader, query, place, u64::MAX, usize::MAX).concat();
    assert_eq!(from(reader.place_behind(id(1), MessageId(5)).unwrap().unwrap()), [6, 7]);
    assert_eq!(reader.place_behind(id(1), MessageId(1000)).unwrap(), None, "of another session");
    assert_eq!(reader.place_behind(id(1), MessageId(8)).unwrap(), None);
    for (count, expected) in
        [(0, &[][..]), (2, &[6, 7]), (7, &[1, 2, 3, 4, 5, 6, 7]), (100, &[1, 2, 3, 4, 5, 6, 7])]
    {
        assert_eq!(
            from(reader.message_place(query, Take::Last(count)).unwrap()),
            expected,
            "the last {count}"
        );
    }
    let behind = reader.place_behind(id(1), MessageId(5)).unwrap().unwrap();
    let count = |place| reader.count_messages(query, place).unwrap();
    assert_eq!((count(MessagePlace::default()), count(behind)), (7, 2));
    let done = MessageQuery { state: Some(MessageState::Done), ..query };
    assert_eq!(reader.count_messages(done, MessagePlace::default()).unwrap(), 0);
}

fn more_messages_are_told_of_only_where_there_are_more(ground: &Ground) {
    let (store, query) = with_messages(ground, 7);
    let reader = store.reader().unwrap();
    let more = |most| reader.message_behind_which_more_come(query, MessagePlace::default(), most).unwrap();
    assert_eq!(more(3), Some(Ulid::from(MessageId(3))));
    assert_eq!(more(6), Some(Ulid::from(MessageId(6))));
    assert_eq!((more(7), more(8), more(0)), (None, None, None));
}

fn seqs(reader: &Reader, query: &EventQuery, room: usize) -> Vec<u64> {
    let (mut all, mut next) = (Vec::new(), Some(reader.event_place(query).unwrap()));
    while let Some(after) = next {
        let part = reader.event_part(query, after, u64::MAX, room).unwrap();
        all.extend(part.rows.iter().map(|event| event.seq));
        next = part.next;
    }
    all
}

fn events_come_in_parts_and_are_those_that_come_whole(ground: &Ground) {
    let store = ground.open();
    for number in 1..=1200 {
        drop(store.commit(note(number)));
    }
    let (mut driven, mut batch) = Driven::on_demand(1, "api");
    batch.append(driven.send(MessageId(1), None));
    // A clock that was set back.
    batch.event(audit("late", 5, &[]));
    store.commit(batch).wait().unwrap();
    let reader = store.reader().unwrap();
    let session = Some(id(1));
    let all = EventQuery::default();
    let rows = [
        all.clone(),
        EventQuery { after: 700, ..all.clone() },
        EventQuery { since: Some(Wall(600)), ..all.clone() },
        EventQuery { since: Some(Wall(i64::MAX)), ..all.clone() },
        EventQuery { session, ..all.clone() },
        EventQuery { session, since: Some(Wall(600)), ..all.clone() },
        EventQuery { take: Take::Last(3), ..all.clone() },
        EventQuery { take: Take::Last(0), ..all.clone() },
        EventQuery { take: Take::Last(2), session, after: 10, ..all.clone() },
        EventQuery { until: Some(20), ..all },
    ];
    for query in rows {
        let whole: Vec<u64> = reader.events(&query).unwrap().iter().map(|event| event.seq).collect();
        for room in [1, 4096, usize::MAX] {
            assert_eq!(seqs(&reader, &query, room), whole, "{query:?} in parts of {room}");
        }
        let counted = EventQuery { take: Take::All, ..query };
        let count = reader.events(&counted).unwrap().len() as u64;
        assert_eq!(
            reader.count_events(&counted, counted.after).unwrap(),
            RowCount::Exactly(count),
            "{counted:?}"
        );
    }
}

fn of_a_session_with_many_events_not_all_are_counted(ground: &Ground) {
    let store = ground.open();
    let (_, batch) = Driven::on_demand(1, "api");
    store.commit(batch).wait().unwrap();
    let query = EventQuery { session: Some(id(1)), ..EventQuery::default() };
    let reader = store.reader().unwrap();
    let RowCount::Exactly(before) = reader.count_events(&query, 0).unwrap() else { panic!("it is new") };
    let mut batch = Batch::new();
    (before..COUNTED)
        .for_each(|at| batch.event(AuditEvent { session: Some(id(1)), ..audit("note", at as i64, &[]) }));
    store.commit(batch).wait().unwrap();
    assert_eq!(reader.count_events(&query, 0).unwrap(), RowCount::Exactly(COUNTED));
    let mut one = Batch::new();
    one.event(AuditEvent { session: Some(id(1)), ..audit("note", 1, &[]) });
    store.commit(one).wait().unwrap();
    assert_eq!(reader.count_events(&query, 0).unwrap(), RowCount::MoreThan(COUNTED));
    let all = EventQuery::default();
    assert_eq!(
        reader.count_events(&all, 0).unwrap(),
        RowCount::Exactly(COUNTED + 1),
        "all together are known"
    );
}

fn more_events_are_told_of_only_where_there_are_more(ground: &Ground) {
    let store = ground.open();
    for number in 1..=9 {
        drop(store.commit(note(number)));
    }
    store.commit(note(10)).wait().unwrap();
    let reader = store.reader().unwrap();
    let more =
        |after, most| reader.event_behind_which_more_come(&EventQuery::default(), after, most).unwrap();
    assert_eq!((more(0, 4), more(4, 4), more(8, 4)), (Some(4), Some(8), None));
    assert_eq!((more(0, 10), more(0, 9)), (None, Some(9)));
}

crate::conformance::on_every_back_end! {
    messages_come_in_parts_of_a_size_and_each_of_them_once,
    a_list_of_messages_begins_behind_one_or_has_the_last_ones,
    more_messages_are_told_of_only_where_there_are_more,
    events_come_in_parts_and_are_those_that_come_whole,
    more_events_are_told_of_only_where_there_are_more,
    of_a_session_with_many_events_not_all_are_counted,
}
