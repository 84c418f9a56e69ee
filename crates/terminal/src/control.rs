//! What sequences that begin with `ESC [` do.

use crate::screen::{Screens, TAB};
use vte::Params;

/// The numbers of a sequence; a missing or zero one takes its default.
struct Numbers<'a>(&'a Params);

impl Numbers<'_> {
    fn at(&self, index: usize) -> u16 {
        self.0.iter().nth(index).and_then(|group| group.first().copied()).unwrap_or(0)
    }

    fn count(&self, index: usize) -> u16 {
        self.at(index).max(1)
    }
}

impl Screens {
    pub(crate) fn control(&mut self, params: &Params, intermediates: &[u8], action: char) {
        let numbers = Numbers(params);
        match (intermediates, action) {
            ([], 'm') => self.grid.cursor.pen.select(params.iter()),
            ([], 'A'..='H' | 'I' | 'Z' | '`' | 'a' | 'd' | 'e' | 'f') => self.move_cursor(&numbers, action),
            ([], 'J' | 'K' | 'X') | ([b'?'], 'J' | 'K') => self.erase(&numbers, action),
            ([], '@' | 'L' | 'M' | 'P' | 'S' | 'T') => self.shift(&numbers, action),
            ([], 'b') => self.repeat(numbers.count(0)),
            ([], 'r') => self.region(&numbers),
            ([], 's') => self.grid.saved = self.grid.cursor,
            ([], 'u') => self.grid.cursor = self.grid.saved,
            ([], 'h' | 'l') if numbers.at(0) == 4 => self.modes.insert = action == 'h',
            ([b'?'], 'h' | 'l') => {
                for group in params.iter() {
                    self.switch(group.first().copied().unwrap_or(0), action == 'h');
                }
            }
            ([b' '], 'q') => self.modes.cursor_shape = numbers.at(0),
            ([b'!'], 'p') => self.soft_reset(),
            (_, 'c' | 'n') => self.question(&numbers, intermediates, action),
            (_, 'u') => self.keyboard(&numbers, intermediates),
            ([b'>'], 'm') if numbers.at(0) == 4 => self.modes.other_keys = numbers.at(1),
            ([b'>'], 'm') if numbers.at(0) == 0 => self.modes.other_keys = 0,
            _ => {}
        }
    }

    fn move_cursor(&mut self, numbers: &Numbers<'_>, action: char) {
        let (rows, columns) = (self.size.rows, self.size.columns);
        let count = numbers.count(0);
        let grid = &mut self.grid;
        let (top, bottom) = match grid.scrolls(grid.cursor.row) {
            true => grid.region,
            false => (0, rows - 1),
        };
        let cursor = &mut grid.cursor;
        cursor.full = false;
        match action {
            'A' | 'F' => cursor.row = cursor.row.saturating_sub(count).max(top.min(cursor.row)),
            'B' | 'E' | 'e' => cursor.row = cursor.row.saturating_add(count).min(bottom.max(cursor.row)),
            'C' | 'a' => cursor.column = cursor.column.saturating_add(count).min(columns - 1),
            'D' => cursor.column = cursor.column.saturating_sub(count),
            'G' | '`' => cursor.column = (count - 1).min(columns - 1),
            'I' => {
                let stop = (cursor.column / TAB).saturating_add(count);
                cursor.column = stop.saturating_mul(TAB).min(columns - 1);
            }
            'Z' => cursor.column = cursor.column.div_ceil(TAB).saturating_sub(count) * TAB,
            'd' => self.go_to(count - 1, self.grid.cursor.column),
            _ => self.go_to(count - 1, numbers.count(1) - 1),
        }
        if let 'E' | 'F' = action {
            self.grid.cursor.column = 0;
        }
    }

    /// Moves the cursor. In origin mode the position counts from the top of the scrolling region.
    fn go_to(&mut self, row: u16, column: u16) {
        let (top, bottom) = match self.grid.cursor.origin {
            true => self.grid.region,
            false => (0, self.size.rows - 1),
        };
        self.grid.cursor.row = top.saturating_add(row).min(bottom);
        self.grid.cursor.column = column.min(self.size.columns - 1);
        self.grid.cursor.full = false;
    }

    fn erase(&mut self, numbers: &Numbers<'_>, action: char) {
        let (rows, columns) = (self.size.rows, self.size.columns);
        let (row, column, pen) = (self.grid.cursor.row, self.grid.cursor.column, self.pen());
        let line = match (action, numbers.at(0)) {
            ('X', _) => (column, column.saturating_add(numbers.count(0))),
            (_, 0) => (column, columns),
            (_, 1) => (0, column + 1),
            ('K', 2) => (0, columns),
            ('J', 2) => return self.grid.clear_lines(0, rows, pen),
            _ => return,
        };
        self.grid.line().erase(line.0, line.1, columns, pen);
        match (action, numbers.at(0)) {
            ('J', 0) => self.grid.clear_lines(row + 1, rows, pen),
            ('J', 1) => self.grid.clear_lines(0, row, pen),
            _ => {}
        }
    }

    fn shift(&mut self, numbers: &Numbers<'_>, action: char) {
        let (columns, pen, count) = (self.size.columns, self.pen(), numbers.count(0));
        let (row, column) = (self.grid.cursor.row, self.grid.cursor.column);
        let scrolls = self.grid.scrolls(row);
        self.grid.cursor.full = false;
        match action {
            '@' => self.grid.line().insert(column, count, columns, pen),
            'P' => self.grid.line().delete(column, count, columns, pen),
            'L' if scrolls => self.grid.insert_lines(row, count, pen),
            'M' if scrolls => self.grid.remove_lines(row, count, pen),
            'S' => self.scroll_up(count),
            'T' => self.grid.scroll_down(count, pen),
            _ => {}
        }
    }

    fn region(&mut self, numbers: &Numbers<'_>) {
        let last = self.size.rows - 1;
        let top = numbers.count(0) - 1;
        let bottom = if numbers.at(1) == 0 { last } else { (numbers.at(1) - 1).min(last) };
        if top < bottom {
            self.grid.region = (top, bottom);
            self.go_to(0, 0);
        }
    }

    fn switch(&mut self, number: u16, on: bool) {
        match number {
            6 => {
                self.grid.cursor.origin = on;
                self.go_to(0, 0);
            }
            47 | 1047 | 1049 => self.alternate(number, on),
            1048 if on => self.grid.saved = self.grid.cursor,
            1048 => self.grid.cursor = self.grid.saved,
            _ => self.modes.switch(number, on),
        }
    }

    fn soft_reset(&mut self) {
        self.grid.region = (0, self.size.rows - 1);
        self.grid.saved = crate::cursor::ScreenCursor::default();
        let (row, column) = (self.grid.cursor.row, self.grid.cursor.column);
        self.grid.cursor =
            crate::cursor::ScreenCursor { row, column, ..crate::cursor::ScreenCursor::default() };
        (self.modes.insert, self.modes.keypad) = (false, false);
        for (number, on) in [(1, false), (7, true), (25, true)] {
            self.modes.switch(number, on);
        }
    }

    /// Answers a question about the terminal itself, as if the answer were typed.
    fn question(&mut self, numbers: &Numbers<'_>, intermediates: &[u8], action: char) {
        match (intermediates, action, numbers.at(0)) {
            ([], 'c', 0) => self.answer("\x1b[?62;22c"),
            ([b'>'], 'c', 0) => self.answer("\x1b[>1;10;0c"),
            ([], 'n', 5) => self.answer("\x1b[0n"),
            ([], 'n', 6) => {
                let cursor = self.grid.cursor;
                let top = if cursor.origin { self.grid.region.0 } else { 0 };
                self.answer(&format!("\x1b[{};{}R", cursor.row.saturating_sub(top) + 1, cursor.column + 1));
            }
            _ => {}
        }
    }

    fn keyboard(&mut self, numbers: &Numbers<'_>, intermediates: &[u8]) {
        match intermediates {
            [b'>'] => self.modes.push_keyboard(numbers.at(0)),
            [b'<'] => self.modes.pop_keyboards(numbers.at(0)),
            [b'='] => self.modes.change_keyboard(numbers.at(0), numbers.at(1)),
            _ => {}
        }
    }
}
