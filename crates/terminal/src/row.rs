//! One line of the screen. Cells at its end that were never printed take no memory.

use crate::cell::{Cell, CellPart};
use crate::pen::Pen;
use std::collections::BTreeMap;

/// More marks on one character are not kept: they are unreadable, and memory stays bounded.
const MOST_MARKS: usize = 32;

/// A line of cells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScreenRow {
    cells: Vec<Cell>,
    /// Combining marks by column. Most rows have none.
    marks: BTreeMap<u16, String>,
    /// What a transcript remembers of this line.
    pub(crate) told: Option<Box<LineHistory>>,
}

/// What a transcript remembers of a line between two looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LineHistory {
    /// The text at the last look.
    pub(crate) seen: String,
    /// The text as it was last given out, if it was.
    pub(crate) given: Option<String>,
}

impl ScreenRow {
    /// Returns the cell at a column.
    pub(crate) fn cell(&self, column: u16) -> Cell {
        self.cells.get(usize::from(column)).copied().unwrap_or(Cell::BLANK)
    }

    /// Returns the marks on the character at a column.
    pub(crate) fn marks(&self, column: u16) -> &str {
        self.marks.get(&column).map_or("", String::as_str)
    }

    /// Returns the number of columns up to the last one with something to paint.
    pub(crate) fn length(&self) -> u16 {
        let blank = |cell: &Cell| *cell == Cell::BLANK;
        let used = self.cells.iter().rposition(|cell| !blank(cell)).map_or(0, |last| last + 1);
        used as u16
    }

    /// Returns the line's text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for column in 0..self.length() {
            let cell = self.cell(column);
            if cell.part != CellPart::Right {
                text.push(cell.character);
                text.push_str(self.marks(column));
            }
        }
        text.truncate(text.trim_end_matches(' ').len());
        text
    }

    /// Puts a character that is one or two columns wide.
    pub(crate) fn put(&mut self, column: u16, character: char, pen: Pen, width: u16) {
        let at = usize::from(column);
        let end = at + usize::from(width);
        if self.cells.len() < end {
            self.cells.resize(end, Cell::BLANK);
        }
        self.part_wide(column);
        if width == 2 {
            self.part_wide(column + 1);
        }
        self.forget_marks(column, column + width);
        let part = if width == 2 { CellPart::Left } else { CellPart::Whole };
        self.cells[at] = Cell { character, pen, part };
        if width == 2 {
            self.cells[at + 1] = Cell { character: ' ', pen, part: CellPart::Right };
        }
    }

    /// Adds a mark to the character at a column.
    pub(crate) fn mark(&mut self, column: u16, mark: char) {
        if usize::from(column) >= self.cells.len() {
            self.cells.resize(usize::from(column) + 1, Cell::BLANK);
        }
        let column =
            if self.cell(column).part == CellPart::Right { column.saturating_sub(1) } else { column };
        let marks = self.marks.entry(column).or_default();
        if marks.len() + mark.len_utf8() <= MOST_MARKS {
            marks.push(mark);
        }
    }

    /// Erases columns from `from` up to, but not including, `to`.
    pub(crate) fn erase(&mut self, from: u16, to: u16, columns: u16, pen: Pen) {
        let to = to.min(columns);
        if from >= to {
            return;
        }
        self.part_wide(from);
        self.part_before(to);
        self.forget_marks(from, to);
        let blank = Cell::erased(pen);
        let (begin, end) = (usize::from(from), usize::from(to));
        if blank == Cell::BLANK && end >= self.cells.len() {
            self.cells.truncate(begin);
            return;
        }
        if self.cells.len() < end {
            self.cells.resize(end, Cell::BLANK);
        }
        self.cells[begin..end].fill(blank);
    }

    /// Moves the cells from a column on to the right; what leaves the line is lost.
    pub(crate) fn insert(&mut self, column: u16, count: u16, columns: u16, pen: Pen) {
        let count = count.min(columns - column);
        self.part_before(column);
        let at = usize::from(column);
        if self.cells.len() > at {
            let blanks = std::iter::repeat_n(Cell::erased(pen), usize::from(count));
            self.cells.splice(at..at, blanks);
            self.cut(columns);
        } else if Cell::erased(pen) != Cell::BLANK {
            self.erase(column, column + count, columns, pen);
        }
        self.move_marks(|old| if old < column { Some(old) } else { Some(old + count) }, columns);
    }

    /// Deletes columns; the cells after them move to the left.
    pub(crate) fn delete(&mut self, column: u16, count: u16, columns: u16, pen: Pen) {
        let count = count.min(columns - column);
        self.part_before(column);
        self.part_before(column + count);
        let at = usize::from(column);
        if self.cells.len() > at {
            let end = (at + usize::from(count)).min(self.cells.len());
            self.cells.drain(at..end);
        }
        let moved = |old: u16| match old {
            old if old < column => Some(old),
            old if old < column + count => None,
            old => Some(old - count),
        };
        self.move_marks(moved, columns);
        if Cell::erased(pen) != Cell::BLANK {
            self.erase(columns - count, columns, columns, pen);
        }
    }

    /// Drops the cells beyond the last column.
    pub(crate) fn cut(&mut self, columns: u16) {
        let length = usize::from(columns);
        if self.cells.len() > length {
            if self.cells[length].part == CellPart::Right {
                self.cells[length - 1] = Cell::BLANK;
            }
            self.cells.truncate(length);
        }
        self.move_marks(Some, columns);
    }

    /// Clears the line to a pen's background.
    pub(crate) fn clear(&mut self, columns: u16, pen: Pen) {
        self.cells.clear();
        self.marks.clear();
        if Cell::erased(pen) != Cell::BLANK {
            self.cells.resize(usize::from(columns), Cell::erased(pen));
        }
    }

    /// Blanks the other half of a wide character whose one half is about to go.
    fn part_wide(&mut self, column: u16) {
        let at = usize::from(column);
        let other = match self.cells.get(at).map(|cell| cell.part) {
            Some(CellPart::Left) => at + 1,
            Some(CellPart::Right) => at.saturating_sub(1),
            Some(CellPart::Whole) | None => return,
        };
        for place in [at, other] {
            if let Some(cell) = self.cells.get_mut(place) {
                *cell = Cell { character: ' ', part: CellPart::Whole, ..*cell };
            }
        }
        self.forget_marks(at.min(other) as u16, at.max(other) as u16 + 1);
    }

    /// Splits a wide character that straddles the edge before a column.
    fn part_before(&mut self, column: u16) {
        if self.cell(column).part == CellPart::Right {
            self.part_wide(column);
        }
    }

    fn forget_marks(&mut self, from: u16, to: u16) {
        if !self.marks.is_empty() {
            self.marks.retain(|column, _| *column < from || *column >= to);
        }
    }

    fn move_marks(&mut self, place: impl Fn(u16) -> Option<u16>, columns: u16) {
        if !self.marks.is_empty() {
            let marks = std::mem::take(&mut self.marks).into_iter();
            let moved = marks.filter_map(|(column, text)| Some((place(column)?, text)));
            self.marks = moved.filter(|(column, _)| *column < columns).collect();
        }
    }
}
