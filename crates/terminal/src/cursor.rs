//! Where the next character goes, and how it will look.

use crate::pen::Pen;
use crate::size::Size;

/// The cursor, with everything that is saved and restored with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScreenCursor {
    pub(crate) row: u16,
    pub(crate) column: u16,
    /// The last column is filled, so the next character goes on the next line.
    pub(crate) full: bool,
    pub(crate) pen: Pen,
    pub(crate) sets: [CharacterSet; 2],
    /// Index of the character set in use.
    pub(crate) set: usize,
    /// Positions count from the first line of the scrolling region.
    pub(crate) origin: bool,
}

/// A character set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CharacterSet {
    Text,
    Lines,
}

impl Default for ScreenCursor {
    fn default() -> Self {
        let sets = [CharacterSet::Text; 2];
        ScreenCursor { row: 0, column: 0, full: false, pen: Pen::PLAIN, sets, set: 0, origin: false }
    }
}

impl ScreenCursor {
    pub(crate) fn keep_inside(&mut self, size: Size) {
        self.row = self.row.min(size.rows - 1);
        if self.column >= size.columns {
            self.column = size.columns - 1;
        }
        self.full = self.full && self.column == size.columns - 1;
    }

    /// Returns the character that the set in use draws.
    pub(crate) fn drawn(&self, character: char) -> char {
        match (self.sets[self.set], character) {
            (CharacterSet::Lines, '\u{5f}'..='\u{7e}') => LINES[character as usize - 0x5f],
            (CharacterSet::Lines | CharacterSet::Text, _) => character,
        }
    }
}

/// The line-drawing characters, from `_` to `~`.
const LINES: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽',
    '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];
