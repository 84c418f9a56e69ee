//! What is in a box in front of the list: lines, where the cursor is, and the keys that count.

use super::super::keymap::{Act, Place};
use super::super::model::Model;
use super::canvas::Pieces;

/// What is in a box.
pub(super) struct Page {
    pub(super) title: String,
    pub(super) lines: Vec<Pieces>,
    /// The first line that is shown.
    pub(super) top: usize,
    /// Where the cursor is: line and column.
    pub(super) cursor: Option<(usize, usize)>,
    /// The keys that count.
    pub(super) foot: String,
}

impl Page {
    pub(super) fn new(title: impl Into<String>, lines: Vec<Pieces>, foot: String) -> Page {
        Page { title: title.into(), lines, top: 0, cursor: None, foot }
    }
}

/// The keys of a place, with what they do.
pub(super) fn foot(model: &Model, place: Place, acts: &[(Act, &str)]) -> String {
    let one = |(act, what): &(Act, &str)| format!("{} {what}", model.keymap.word(place, *act));
    acts.iter().map(one).collect::<Vec<_>>().join(" · ")
}
