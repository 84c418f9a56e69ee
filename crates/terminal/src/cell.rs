//! One place on the screen: a character with its looks.

use crate::pen::Pen;

/// What stands at one place. Marks that combine with the character are kept by its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) character: char,
    pub(crate) pen: Pen,
    pub(crate) part: Part,
}

/// Which part of a character a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// The left half of a wide one.
    Left,
    /// The right half of a wide one.
    Right,
}

impl Cell {
    /// What stands where nothing was printed.
    pub(crate) const BLANK: Cell = Cell { character: ' ', pen: Pen::PLAIN, part: Part::Whole };

    /// What an eraser leaves: nothing, on the background that was chosen.
    pub(crate) fn erased(pen: Pen) -> Cell {
        Cell { pen: pen.background_only(), ..Cell::BLANK }
    }
}
