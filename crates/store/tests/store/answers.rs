//! The files of long answers: private, written before their rows, in every copy, and missed when they are gone.

use crate::conformance::answers::{FIRST, answered, asked, long, part};
use crate::home::{Home, id, note};
use pinfold_core::Wall;
use pinfold_store::{
    ANSWERS, AnswerKept, AnswerTold, Batch, CheckPace, DRAFT, LONGEST_IN_ROW, Old, Prune, ReadError, Reader,
    Reason, Store, Take, Ulid, backup,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

fn folder(home: &Home) -> PathBuf {
    home.folder().join("sessions").join(id(1).to_string()).join(ANSWERS)
}

fn file(home: &Home) -> PathBuf {
    folder(home).join(Ulid::from(FIRST).to_string())
}

fn files(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(folder(home)).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn opened(home: &Home) -> Store {
    Store::open(&home.path(), &home.options()).unwrap()
}

/// Creates a home with a message that has a long answer.
fn with_long_answer(text: &str) -> (Home, Store) {
    let home = Home::new();
    let store = opened(&home);
    let (mut driven, mut batch) = asked();
    batch.append(answered(&mut driven, text, AnswerTold::default()));
    store.commit(batch).wait().unwrap();
    (home, store)
}

fn whole(reader: &Reader) -> Result<String, ReadError> {
    Ok(reader.answered(FIRST)?.unwrap().answer.unwrap())
}

#[test]
fn a_long_answer_is_in_a_file_of_its_owner_alone() {
    let text = long(LONGEST_IN_ROW + 1);
    let (home, _store) = with_long_answer(&text);
    assert_eq!(fs::read_to_string(file(&home)).unwrap(), text);
    assert_eq!(files(&home), [Ulid::from(FIRST).to_string()]);
    for (path, mode) in [(file(&home), 0o600), (folder(&home), 0o700)] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
    }
    let row: i64 = home.raw().query_row("SELECT length(answer) FROM messages", [], |row| row.get(0)).unwrap();
    assert!(row <= 4096, "{row}");
}

#[test]
fn the_file_goes_when_its_message_is_forgotten() {
    let (home, store) = with_long_answer(&long(LONGEST_IN_ROW + 1));
    let old = Old::Messages { session: id(1), ids: vec![Ulid::from(FIRST)] };
    let (before, within) = (Wall(i64::MAX), Duration::MAX);
    let mut batch = Batch::new();
    batch.prune(Prune { old, before, reason: Reason::Age, within, at_least: 0 });
    store.commit(batch).wait().unwrap();
    assert_eq!(files(&home), [""; 0]);
}

#[test]
fn a_draft_that_ends_in_a_row_is_not_left() {
    let home = Home::new();
    let store = opened(&home);
    let (mut driven, mut batch) = asked();
    batch.answer_parts([part(0, "first ")]);
    store.commit(batch).wait().unwrap();
    assert_eq!(files(&home), [format!("{}{DRAFT}", Ulid::from(FIRST))]);
    store.commit(answered(&mut driven, "second", AnswerTold { before: 6, cut: false })).wait().unwrap();
    assert_eq!((files(&home), whole(&store.reader().unwrap()).unwrap()), (Vec::new(), "first second".into()));
}

/// A group that fails is retried batch by batch: by then the file may have its name.
#[test]
fn an_answer_whose_commit_is_repeated_is_the_same() {
    let home = Home::new();
    let text = long(2 * LONGEST_IN_ROW);
    let half = text.floor_char_boundary(text.len() / 2);
    let (mut driven, mut batch) = asked();
    batch.answer_parts([part(0, &text[..half])]);
    let store = opened(&home);
    store.commit(batch).wait().unwrap();
    let end = answered(&mut driven, &text[half..], AnswerTold { before: half as u64, cut: false });
    // It fails after the file was named, because its session does not exist.
    let mut failing = end.clone();
    failing.remove(id(77));
    store.commit(failing).wait().unwrap_err();
    assert_eq!(files(&home), [Ulid::from(FIRST).to_string()], "it has its name and no row");
    let mut end = end;
    end.reloaded(id(1));
    end.reloaded(id(77));
    store.commit(end).wait().unwrap();
    assert_eq!(whole(&store.reader().unwrap()).unwrap(), text);
}

#[test]
fn an_answer_that_is_gone_or_changed_is_named_and_not_shown() {
    let text = long(LONGEST_IN_ROW + 1);
    for spoil in [
        (|path, _| fs::remove_file(path).unwrap()) as fn(&PathBuf, &str),
        |path, text| fs::write(path, &text[..text.len() - 1]).unwrap(),
        |path, text| fs::write(path, text.replacen('7', "8", 1)).unwrap(),
    ] {
        let (home, store) = with_long_answer(&text);
        spoil(&file(&home), &text);
        let error = whole(&store.reader().unwrap()).unwrap_err();
        assert!(matches!(error, ReadError::Row { what: "answer", .. }), "{error}");
    }
}

#[test]
fn a_copy_has_long_answers_within_it() {
    let text = long(LONGEST_IN_ROW + 1);
    let (home, store) = with_long_answer(&text);
    let copy = home.folder().join("copy");
    store.reader().unwrap().backup(&copy).unwrap();
    let other = Home::new();
    let witness = other.folder().join("witness");
    backup::look(&copy).unwrap().put_back(&other.path(), &witness, 1, Wall(1)).unwrap();
    let put_back = opened(&other);
    let mut reader = put_back.reader().unwrap();
    assert_eq!(whole(&reader).unwrap(), text);
    assert!(!reader.message(FIRST).unwrap().unwrap().kept.cut);
    assert_eq!(reader.check(&CheckPace::at_once()).unwrap(), [""; 0]);
    put_back.commit(note(1)).wait().unwrap();
}

#[test]
fn a_copy_says_of_an_answer_that_is_lost_that_it_is_cut() {
    let text = long(LONGEST_IN_ROW + 1);
    let (home, store) = with_long_answer(&text);
    fs::remove_file(file(&home)).unwrap();
    let copy = home.folder().join("copy");
    store.reader().unwrap().backup(&copy).unwrap();
    let row = Reader::open(&copy).unwrap().answered(FIRST).unwrap().unwrap();
    assert!(row.kept.cut && text.starts_with(&row.answer.unwrap()));
}

#[test]
fn a_session_whose_folder_is_spoilt_keeps_its_answer_in_the_row_and_holds_up_nobody() {
    let home = Home::new();
    let store = opened(&home);
    fs::create_dir_all(folder(&home).parent().unwrap()).unwrap();
    fs::write(folder(&home), "not a folder").unwrap();
    let text = long(LONGEST_IN_ROW + 1);
    let (mut driven, mut batch) = asked();
    batch.answer_parts([part(0, "lost")]);
    batch.append(answered(&mut driven, &text, AnswerTold { before: 4, cut: false }));
    store.commit(batch).wait().unwrap();
    let row = store.reader().unwrap().answered(FIRST).unwrap().unwrap();
    assert!(row.answer == Some(text) && row.kept == AnswerKept { beside: None, cut: true });
}

#[test]
fn what_is_known_of_an_answer_may_be_damaged_and_hides_no_other_message() {
    let (home, store) = with_long_answer(&long(LONGEST_IN_ROW + 1));
    home.raw().execute("UPDATE answers SET bytes = bytes + 1", []).unwrap();
    let mut reader = store.reader().unwrap();
    let rows = reader.messages(id(1), None, Take::All).unwrap();
    assert_eq!(rows.len(), 1);
    assert!(rows[0].damage.is_some(), "{:?}", rows[0].kept);
    reader.message(FIRST).unwrap_err();
    assert_eq!(reader.check(&CheckPace::at_once()).unwrap().len(), 1);
}
