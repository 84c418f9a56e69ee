//! One cell of the screen: a character with its looks.

use crate::pen::Pen;

/// One cell. Combining marks are kept by the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) character: char,
    pub(crate) pen: Pen,
    pub(crate) part: CellPart,
}

/// The part of a character that a cell shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellPart {
    /// A whole character.
    Whole,
    /// The left half of a wide character.
    Left,
    /// The right half of a wide character.
    Right,
}

impl Cell {
    /// A cell in which nothing was printed.
    pub(crate) const BLANK: Cell = Cell { character: ' ', pen: Pen::PLAIN, part: CellPart::Whole };

    /// A cell as erasing leaves it: blank, on the current background.
    pub(crate) fn erased(pen: Pen) -> Cell {
        Cell { pen: pen.background_only(), ..Cell::BLANK }
    }
}
