//! The usage of turns, what is known about accounts, and the files of messages.

use crate::conformance::Ground;
use crate::driven::Driven;
use crate::home::id;
use pinfold_core::usage::{Figures, Money};
use pinfold_core::{MessageId, RunNumber, Wall};
use pinfold_store::{
    Batch, CommitError, SessionId, Spent, Step, Store, Take, Taken, UsageBy, UsageQuery, UsageSum,
};

fn figures(input: u64, cost: u64) -> Figures {
    Figures { input: Some(input), output: Some(1), cached: None, cost: Some(Money(cost)) }
}

fn spent(session: SessionId, message: Option<u128>, at: i64, of: (&str, &str), figures: Figures) -> Batch {
    let message = message.map(|message| MessageId(message).into());
    let (account, model) = (Some(of.0.to_owned()), Some(of.1.to_owned()));
    let row = Spent { at: Wall(at), session, run: RunNumber(3), message, account, model, figures };
    let mut batch = Batch::new();
    batch.steps.push(Step::Spent(Box::new(row)));
    batch
}

fn sums(store: &Store, by: UsageBy, since: Option<i64>) -> Vec<(Option<String>, u64, Option<u64>)> {
    let query = UsageQuery { by, since: since.map(Wall) };
    let short = |sum: UsageSum| (sum.of, sum.turns, sum.figures.input);
    store.reader().unwrap().usage(&query).unwrap().into_iter().map(short).collect()
}

fn what_turns_took_is_summed_by_session_account_model_and_time(ground: &Ground) {
    let store = ground.open();
    let (mut driven, create) = Driven::on_demand(1, "api");
    store.commit(create).wait().unwrap();
    store.commit(driven.send(MessageId(1), None)).wait().unwrap();
    let quarter = 15 * 60 * 1000;
    let all = [
        spent(driven.id, Some(1), 10, ("a", "big"), figures(10, 5)),
        spent(driven.id, Some(1), quarter + 1, ("b", "big"), figures(20, 7)),
        spent(driven.id, None, quarter + 2, ("b", "small"), figures(30, 9)),
    ];
    for batch in all {
        store.commit(batch).wait().unwrap();
    }
    let some = |of: &str| Some(of.to_owned());
    assert_eq!(sums(&store, UsageBy::Account, None), [(some("a"), 1, Some(10)), (some("b"), 2, Some(50))]);
    assert_eq!(sums(&store, UsageBy::Account, Some(11)), [(some("b"), 2, Some(50))]);
    assert_eq!(
        sums(&store, UsageBy::Model, None),
        [(some("big"), 2, Some(30)), (some("small"), 1, Some(30))]
    );
    assert_eq!(sums(&store, UsageBy::Session, None), [(some(&driven.id.to_string()), 3, Some(60))]);
    let begins = (some("0"), 1, Some(10));
    assert_eq!(sums(&store, UsageBy::Quarter, None), [begins, (some(&quarter.to_string()), 2, Some(50))]);
    let message = store.reader().unwrap().message(MessageId(1)).unwrap().unwrap();
    let taken = Figures { output: Some(2), ..figures(30, 12) };
    assert_eq!(message.taken, Some(Taken { figures: taken, model: some("big") }));
    let nobody = spent(id(99), None, 1, ("a", "b"), figures(1, 1));
    let error = store.commit(nobody).wait().unwrap_err();
    assert!(matches!(&*error, CommitError::NoSuchSession { .. }), "{error}");
}

fn what_a_session_took_outlives_it_with_its_name(ground: &Ground) {
    let store = ground.open();
    let (driven, create) = Driven::on_demand(1, "api");
    store.commit(create).wait().unwrap();
    store.commit(spent(driven.id, None, 10, ("a", "m"), figures(10, 5))).wait().unwrap();
    let mut remove = Batch::new();
    remove.remove(driven.id);
    store.commit(remove).wait().unwrap();
    let query = UsageQuery { by: UsageBy::Session, since: None };
    let sums = store.reader().unwrap().usage(&query).unwrap();
    assert_eq!((sums.len(), sums[0].name.as_deref(), sums[0].turns), (1, Some("api"), 1));
}

fn the_latest_state_of_an_account_is_read_back(ground: &Ground) {
    let store = ground.open();
    for (name, state) in [("b", "1"), ("a", "2"), ("b", "3")] {
        let mut batch = Batch::new();
        batch.account(name, state.to_owned());
        store.commit(batch).wait().unwrap();
    }
    let mut refused = Batch::new();
    refused.account("a", "4".to_owned());
    refused.remove(id(99));
    store.commit(refused).wait().unwrap_err();
    let expected = [("a", "2"), ("b", "3")].map(|(name, state)| (name.to_owned(), state.to_owned()));
    assert_eq!(store.reader().unwrap().accounts().unwrap(), expected);
}

fn the_files_of_a_message_go_with_it(ground: &Ground) {
    let store = ground.open();
    let (mut driven, create) = Driven::on_demand(1, "api");
    store.commit(create).wait().unwrap();
    let mut batch = driven.send(MessageId(1), None);
    let paths = vec!["/a b".to_owned(), "/c".to_owned()];
    batch.steps.push(Step::Files { session: driven.id, message: MessageId(1), paths: paths.clone() });
    batch.append(driven.send(MessageId(2), None));
    store.commit(batch).wait().unwrap();
    let rows = store.reader().unwrap().messages(driven.id, None, Take::All).unwrap();
    let files: Vec<_> = rows.into_iter().map(|row| row.files).collect();
    assert_eq!(files, [paths, Vec::new()]);
}

crate::conformance::on_every_back_end! {
    what_turns_took_is_summed_by_session_account_model_and_time,
    what_a_session_took_outlives_it_with_its_name,
    the_latest_state_of_an_account_is_read_back,
    the_files_of_a_message_go_with_it,
}
