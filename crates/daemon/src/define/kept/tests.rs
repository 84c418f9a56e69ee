use super::*;

const FIRST: &str = "{\"text\":\"one\"}\n{\"text\":\"reply to one\"}\n";
const SECOND: &str = "{\"text\":\"two\"}\n{\"text\":\"reply to two\"}\n";

/// A store with the transcript of one conversation, and the folder of its copy.
struct Desk {
    temp: tempfile::TempDir,
}

impl Desk {
    fn new() -> Desk {
        let desk = Desk { temp: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(desk.temp.path().join("store/day")).unwrap();
        desk
    }

    /// One that has kept its first turn.
    fn kept() -> Desk {
        let desk = Desk::new();
        desk.write(FIRST);
        assert_eq!(desk.keeps("one"), Saved::Yes);
        desk
    }

    fn path(&self) -> PathBuf {
        self.temp.path().join("store/day/s-1.jsonl")
    }

    fn write(&self, text: &str) {
        std::fs::write(self.path(), text).unwrap();
    }

    fn read(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    fn keeping(&self, turns: &[&str]) -> TranscriptCopy {
        let sought = Sought { folder: self.temp.path().join("store"), pattern: "*/s-1.jsonl".to_owned() };
        let turn = |turn: &&str| SaidTurn { texts: vec![(*turn).to_owned(), format!("replyto{turn}")] };
        TranscriptCopy {
            folder: self.temp.path().join("kept"),
            sought,
            vendor: "s-1".to_owned(),
            choice: 0,
            dir: PathBuf::from("/work"),
            turns: turns.iter().map(turn).collect(),
            alone: Arc::default(),
        }
    }

    fn keeps(&self, turn: &str) -> Saved {
        self.keeping(&[turn]).keep().unwrap()
    }

    fn state(&self) -> FoundState {
        self.keeping(&[]).before_resume().unwrap().state
    }
}

#[test]
fn what_was_kept_is_put_back_byte_for_byte_if_it_is_missing_or_damaged() {
    let zeros = "\0".repeat(FIRST.len());
    let damaged = [None, Some(""), Some(&FIRST[..9]), Some(&FIRST[15..]), Some(&zeros), Some("garbage")];
    for text in damaged {
        let desk = Desk::kept();
        match text {
            None => std::fs::remove_dir_all(desk.temp.path().join("store")).unwrap(),
            Some(text) => desk.write(text),
        }
        assert_eq!(desk.state(), FoundState::PutBack, "{text:?}");
        assert_eq!((desk.read().as_str(), desk.state()), (FIRST, FoundState::AsItWas), "{text:?}");
    }
}

#[test]
fn what_was_added_since_is_left_alone_and_kept_with_the_next_turn() {
    let desk = Desk::kept();
    let longer = format!("{FIRST}{SECOND}");
    desk.write(&longer);
    assert_eq!((desk.state(), desk.read()), (FoundState::AsItWas, longer.clone()));
    assert_eq!(desk.keeps("two"), Saved::Yes);
    desk.write(FIRST);
    assert_eq!((desk.state(), desk.read()), (FoundState::PutBack, longer));
}

#[test]
fn a_turn_that_is_not_in_the_file_is_missing_until_it_is_and_is_told_before_a_resume() {
    for torn in ["", "{\"text\":\"two\"}\n", "{\"text\":\"two\"}\n{\"text\":\"repl", SECOND.trim_end()] {
        let desk = Desk::kept();
        desk.write(&format!("{FIRST}{torn}"));
        assert_eq!(desk.keeps("two"), Saved::No, "{torn:?}");
        assert_eq!(desk.state(), FoundState::Incomplete, "{torn:?}");
        std::fs::remove_file(desk.path()).unwrap();
        assert_eq!(desk.state(), FoundState::Incomplete, "the copy has not got it either: {torn:?}");
        desk.write(&format!("{FIRST}{SECOND}"));
        assert_eq!(desk.keeping(&[]).keep().unwrap(), Saved::Yes, "{torn:?}");
        assert_eq!(desk.state(), FoundState::AsItWas, "{torn:?}");
    }
}

#[test]
fn whoever_names_the_conversation_again_accepts_what_the_vendor_has() {
    let desk = Desk::kept();
    assert_eq!(desk.keeps("two"), Saved::No);
    assert_eq!(desk.state(), FoundState::Incomplete);
    let named = TranscriptCopy { choice: 1, ..desk.keeping(&[]) };
    assert_eq!(named.before_resume().unwrap().state, FoundState::AsItWas);
}

#[test]
fn a_turn_that_could_not_be_looked_for_is_looked_for_before_a_resume() {
    let desk = Desk::kept();
    let found = desk.keeping(&["two"]).before_resume().unwrap();
    assert_eq!(found.state, FoundState::Incomplete);
}

#[test]
fn a_file_with_other_turns_in_the_place_of_those_kept_is_not_overwritten() {
    let desk = Desk::kept();
    desk.write(SECOND);
    assert_eq!((desk.state(), desk.read().as_str()), (FoundState::Incomplete, SECOND));
}

#[test]
fn nothing_is_put_back_from_a_copy_that_is_damaged_itself_or_is_of_another_conversation() {
    let desk = Desk::kept();
    std::fs::write(desk.temp.path().join("kept/transcript"), "\0".repeat(FIRST.len())).unwrap();
    std::fs::remove_file(desk.path()).unwrap();
    let found = desk.keeping(&[]).before_resume().unwrap();
    assert_eq!((found.state, found.kept, desk.path().exists()), (FoundState::AsItWas, true, false));

    let desk = Desk::kept();
    let other = TranscriptCopy { vendor: "s-2".to_owned(), ..desk.keeping(&[]) };
    let found = other.before_resume().unwrap();
    assert_eq!((found.state, found.kept), (FoundState::AsItWas, false));
}

#[test]
fn a_transcript_that_was_never_seen_is_not_missed() {
    let desk = Desk::new();
    assert_eq!(desk.keeps("one"), Saved::No);
    let found = desk.keeping(&[]).before_resume().unwrap();
    assert_eq!((found.state, found.kept), (FoundState::AsItWas, true), "the vendor decides");
    assert_eq!(found.transcript, VendorTranscript::Missing);
}

#[test]
fn the_transcript_of_another_directory_is_told_apart() {
    let desk = Desk::kept();
    let other = TranscriptCopy { dir: PathBuf::from("/other"), ..desk.keeping(&[]) };
    assert_eq!(other.before_resume().unwrap().state, FoundState::Elsewhere);
    assert_eq!(other.keep().unwrap(), Saved::Yes);
    assert_eq!(other.before_resume().unwrap().state, FoundState::AsItWas, "it was answered there");
}

#[test]
fn a_copy_is_private_and_grows_by_what_was_added() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::kept();
    let copy = desk.temp.path().join("kept/transcript");
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    // What a write that failed half-way left behind is not part of it.
    std::fs::OpenOptions::new().append(true).open(&copy).unwrap().write_all(b"{\"tex").unwrap();
    desk.write(&format!("{FIRST}{SECOND}"));
    assert_eq!(desk.keeps("two"), Saved::Yes);
    assert_eq!(std::fs::read_to_string(copy).unwrap(), format!("{FIRST}{SECOND}"));
}

#[test]
fn a_copy_is_forgotten_once_nothing_was_added_for_as_long_as_messages_are_kept() {
    let desk = Desk::kept();
    let folder = desk.temp.path().join("kept");
    assert!(!forget(&folder, Wall(0)) && folder.exists());
    assert!(forget(&folder, Wall(i64::MAX)) && !folder.exists());
    assert!(!forget(&folder, Wall(i64::MAX)), "there is none");
}

#[test]
fn a_link_that_an_agent_made_is_neither_read_nor_written_through() {
    let secret = "{\"token\":\"one reply to one\"}\n";
    let desk = Desk::kept();
    let outside = desk.temp.path().join("outside");
    std::fs::write(&outside, secret).unwrap();
    // In the place of the transcript: what it leads to is not copied, and does not come back.
    std::fs::remove_file(desk.path()).unwrap();
    std::os::unix::fs::symlink(&outside, desk.path()).unwrap();
    assert_eq!((desk.keeps("one"), desk.state()), (Saved::Yes, FoundState::AsItWas));
    std::fs::remove_file(desk.path()).unwrap();
    // In the place where the file is prepared that is put back.
    std::os::unix::fs::symlink(&outside, desk.path().with_extension("pinfold")).unwrap();
    assert_eq!((desk.state(), desk.read().as_str()), (FoundState::PutBack, FIRST));
    assert_eq!(std::fs::read_to_string(outside).unwrap(), secret);
}

#[test]
fn a_pipe_in_the_place_of_a_transcript_is_not_waited_for() {
    let desk = Desk::kept();
    std::fs::remove_file(desk.path()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, desk.path(), rustix::fs::Mode::RUSR).unwrap();
    assert!(open(&desk.path()).is_err());
}
