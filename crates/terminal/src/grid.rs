//! One screen: its lines, and the region that scrolls.

use crate::cursor::ScreenCursor;
use crate::pen::Pen;
use crate::row::ScreenRow;
use crate::size::Size;
use std::collections::VecDeque;

/// A screen with its cursor.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    pub(crate) rows: VecDeque<ScreenRow>,
    pub(crate) size: Size,
    pub(crate) cursor: ScreenCursor,
    pub(crate) saved: ScreenCursor,
    /// First and last line of the region that scrolls.
    pub(crate) region: (u16, u16),
}

impl Grid {
    pub(crate) fn new(size: Size) -> Grid {
        Grid {
            rows: (0..size.rows).map(|_| ScreenRow::default()).collect(),
            size,
            cursor: ScreenCursor::default(),
            saved: ScreenCursor::default(),
            region: (0, size.rows - 1),
        }
    }

    pub(crate) fn row_mut(&mut self, row: u16) -> &mut ScreenRow {
        // The cursor is kept inside the screen, so an index past the last line cannot occur.
        let last = self.rows.len() - 1;
        &mut self.rows[usize::from(row).min(last)]
    }

    /// Returns the cursor's line.
    pub(crate) fn line(&mut self) -> &mut ScreenRow {
        self.row_mut(self.cursor.row)
    }

    /// Scrolls the region up: its first lines are lost, and empty ones come in below.
    pub(crate) fn scroll_up(&mut self, count: u16, pen: Pen) {
        self.remove_lines(self.region.0, count, pen);
    }

    /// Scrolls the region down.
    pub(crate) fn scroll_down(&mut self, count: u16, pen: Pen) {
        self.insert_lines(self.region.0, count, pen);
    }

    /// Removes lines from the region.
    pub(crate) fn remove_lines(&mut self, at: u16, count: u16, pen: Pen) {
        let bottom = self.region.1;
        for _ in 0..count.min(bottom + 1 - at) {
            let Some(mut row) = self.rows.remove(usize::from(at)) else { return };
            row.told = None;
            row.clear(self.size.columns, pen);
            self.rows.insert(usize::from(bottom), row);
        }
    }

    /// Inserts empty lines into the region.
    pub(crate) fn insert_lines(&mut self, at: u16, count: u16, pen: Pen) {
        let bottom = self.region.1;
        for _ in 0..count.min(bottom + 1 - at) {
            let Some(mut row) = self.rows.remove(usize::from(bottom)) else { return };
            row.told = None;
            row.clear(self.size.columns, pen);
            self.rows.insert(usize::from(at), row);
        }
    }

    /// Returns whether a line is inside the region that scrolls.
    pub(crate) fn scrolls(&self, row: u16) -> bool {
        (self.region.0..=self.region.1).contains(&row)
    }

    /// Clears the lines from `from` up to, but not including, `to`.
    pub(crate) fn clear_lines(&mut self, from: u16, to: u16, pen: Pen) {
        for row in from..to.min(self.size.rows) {
            let columns = self.size.columns;
            self.row_mut(row).clear(columns, pen);
        }
    }

    /// Returns the number of lines down to the last one that is not empty.
    pub(crate) fn written(&self) -> usize {
        self.rows.iter().rposition(|row| row.length() > 0).map_or(0, |last| last + 1)
    }

    /// Returns how many lines a resize drops at the top to keep the cursor on the screen.
    pub(crate) fn above(&self, size: Size) -> u16 {
        (self.cursor.row + 1).saturating_sub(size.rows)
    }

    /// Changes the size. Lines are dropped at the top if the cursor would be lost otherwise, else at the
    /// bottom.
    pub(crate) fn resize(&mut self, size: Size) {
        let above = self.above(size);
        for _ in 0..above {
            self.rows.pop_front();
        }
        self.cursor.row -= above;
        self.saved.row = self.saved.row.saturating_sub(above);
        self.rows.resize_with(usize::from(size.rows), ScreenRow::default);
        for row in &mut self.rows {
            row.cut(size.columns);
        }
        self.rows.shrink_to_fit();
        self.size = size;
        self.region = (0, size.rows - 1);
        self.cursor.keep_inside(size);
        self.saved.keep_inside(size);
    }
}
