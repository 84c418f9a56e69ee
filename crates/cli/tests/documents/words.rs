//! The glossary contains every word that objects use.

use crate::page::root;
use pinfold_api::word::{Activity, MessageState, Mode, State, Verdict};

#[test]
fn the_glossary_has_every_word_of_a_session() {
    let page = std::fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let kinds = [
        ("state", State::WORDS),
        ("mode", Mode::WORDS),
        ("activity", Activity::WORDS),
        ("verdict", Verdict::WORDS),
        ("state of a message", MessageState::WORDS),
    ];
    for (kind, words) in kinds {
        for word in words {
            assert!(page.contains(&format!("`{word}`")), "docs/glossary.md has no {kind} `{word}`");
        }
    }
}
