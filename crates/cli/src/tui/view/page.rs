//! The contents of a box in front of the list: lines, the cursor, and the useful keys.

use super::super::keymap::{KeyAction, KeyContext};
use super::super::model::Model;
use super::canvas::Pieces;

/// The contents of a box.
pub(super) struct Page {
    pub(super) title: String,
    pub(super) lines: Vec<Pieces>,
    /// The first visible line.
    pub(super) top: usize,
    /// The cursor's line and column.
    pub(super) cursor: Option<(usize, usize)>,
    /// The useful keys.
    pub(super) foot: String,
}

impl Page {
    pub(super) fn new(title: impl Into<String>, lines: Vec<Pieces>, foot: String) -> Page {
        Page { title: title.into(), lines, top: 0, cursor: None, foot }
    }
}

/// The keys for these actions in a context, with what they do.
pub(super) fn foot(model: &Model, place: KeyContext, acts: &[(KeyAction, &str)]) -> String {
    let one = |(act, what): &(KeyAction, &str)| format!("{} {what}", model.keymap.word(place, *act));
    acts.iter().map(one).collect::<Vec<_>>().join(" · ")
}
