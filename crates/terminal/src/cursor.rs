//! Where the next character goes, and how it will look.

use crate::pen::Pen;
use crate::size::Size;

/// A cursor with everything that is saved and restored together with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) row: u16,
    pub(crate) column: u16,
    /// The last column is filled: the next character goes to the next line.
    pub(crate) full: bool,
    pub(crate) pen: Pen,
    pub(crate) sets: [Set; 2],
    /// Which of the two sets is in use.
    pub(crate) set: usize,
    /// Positions count from the first line of the region.
    pub(crate) origin: bool,
}

/// A set of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    Text,
    Lines,
}

impl Default for Cursor {
    fn default() -> Self {
        let sets = [Set::Text; 2];
        Cursor { row: 0, column: 0, full: false, pen: Pen::PLAIN, sets, set: 0, origin: false }
    }
}

impl Cursor {
    pub(crate) fn keep_inside(&mut self, size: Size) {
        self.row = self.row.min(size.rows - 1);
        if self.column >= size.columns {
            self.column = size.columns - 1;
        }
        self.full = self.full && self.column == size.columns - 1;
    }

    /// A character as the set in use has it.
    pub(crate) fn drawn(&self, character: char) -> char {
        match (self.sets[self.set], character) {
            (Set::Lines, '\u{5f}'..='\u{7e}') => LINES[character as usize - 0x5f],
            (Set::Lines | Set::Text, _) => character,
        }
    }
}

/// The characters for drawing lines, from `_` to `~`.
const LINES: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽',
    '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];
