//! Finding sessions by what people type.

use crate::conformance::Ground;
use crate::driven::Driven;
use crate::home::whole;
use pinfold_core::{Ask, Event};
use pinfold_store::{Batch, Lookup, Reader, SessionId, Ulid};

fn found(reader: &Reader, text: &str) -> Option<SessionId> {
    match reader.find(text).unwrap() {
        Lookup::One(loaded) => Some(whole(loaded).id),
        Lookup::Nobody => None,
        Lookup::Several(several) => panic!("{text}: {several:?}"),
    }
}

fn a_session_is_found_by_its_name_or_a_unique_prefix_of_its_id(ground: &Ground) {
    let store = ground.open();
    let (one, batch) = Driven::on_demand(1, "api");
    store.commit(batch).wait().unwrap();
    // A name that could be the beginning of an id.
    let (two, batch) = Driven::on_demand(2, "01");
    store.commit(batch).wait().unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(found(&reader, "api"), Some(one.id));
    assert_eq!(found(&reader, "01"), Some(two.id), "a name goes before an id");
    for driven in [&one, &two] {
        let text = driven.id.to_string();
        assert_eq!(found(&reader, &text), Some(driven.id));
        assert_eq!(found(&reader, &text.to_lowercase()[..25]), Some(driven.id));
    }
    for text in ["", "ap", "API", "%", "0_", "02", "Z", "'", "01ARYZ6S410000000000000000"] {
        assert_eq!(found(&reader, text), None, "{text}");
    }
}

fn a_prefix_of_several_ids_names_them_all(ground: &Ground) {
    let store = ground.open();
    let ids: Vec<SessionId> = [(1, "a"), (2, "b")]
        .into_iter()
        .map(|(number, name)| {
            let (driven, batch) = Driven::on_demand(number, name);
            store.commit(batch).wait().unwrap();
            driven.id
        })
        .collect();
    let lookup = store.reader().unwrap().find(&ids[0].to_string()[..4]).unwrap();
    let labels = vec![(ids[0].to_string(), "a".to_owned()), (ids[1].to_string(), "b".to_owned())];
    assert_eq!(lookup, Lookup::Several(labels));
}

fn an_archived_session_is_found_by_its_name_while_no_other_has_it(ground: &Ground) {
    let store = ground.open();
    let archive = |number| {
        let (mut driven, mut batch) = Driven::on_demand(number, "api");
        batch.append(driven.handle(&Event::Asked(Ask::Archive)));
        store.commit(batch).wait().unwrap();
        driven.id
    };
    let reader = store.reader().unwrap();
    let old = archive(1);
    assert_eq!(found(&reader, "api"), Some(old));
    archive(2);
    assert!(matches!(reader.find("api").unwrap(), Lookup::Several(both) if both.len() == 2));
    let (new, batch) = Driven::on_demand(3, "api");
    store.commit(batch).wait().unwrap();
    assert_eq!(found(&reader, "api"), Some(new.id));
}

fn a_session_that_was_renamed_is_found_by_its_new_name_only(ground: &Ground) {
    let store = ground.open();
    let (one, batch) = Driven::on_demand(1, "api");
    store.commit(batch).wait().unwrap();
    let (two, batch) = Driven::on_demand(2, "web");
    store.commit(batch).wait().unwrap();
    let rename = |id, name: &str| {
        let mut batch = Batch::new();
        batch.rename(id, name);
        store.commit(batch).wait()
    };
    rename(one.id, "old").unwrap();
    let reader = store.reader().unwrap();
    assert_eq!((found(&reader, "old"), found(&reader, "api")), (Some(one.id), None));
    assert!(rename(two.id, "old").is_err(), "the name is taken");
    let nobody = SessionId(Ulid::new(5, 5));
    assert!(rename(nobody, "any").is_err(), "there is no such session");
}

fn an_id_that_nobody_has_is_no_session_message_or_run(ground: &Ground) {
    let store = ground.open();
    let reader = store.reader().unwrap();
    let id = Ulid::new(5, 5);
    assert_eq!(reader.session(SessionId(id)).unwrap(), None);
    assert_eq!(reader.message(id.into()).unwrap(), None);
    assert_eq!(reader.run(pinfold_store::RunId(id)).unwrap(), None);
}

crate::conformance::on_every_back_end! {
    a_session_is_found_by_its_name_or_a_unique_prefix_of_its_id,
    a_prefix_of_several_ids_names_them_all,
    an_archived_session_is_found_by_its_name_while_no_other_has_it,
    a_session_that_was_renamed_is_found_by_its_new_name_only,
    an_id_that_nobody_has_is_no_session_message_or_run,
}
