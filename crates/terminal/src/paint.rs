//! Paints a screen on a terminal in an unknown state: looks, modes and cursor included.

use crate::cell::CellPart;
use crate::cursor::{CharacterSet, ScreenCursor};
use crate::grid::Grid;
use crate::modes::TerminalModes;
use crate::pen::Pen;
use crate::row::ScreenRow;
use crate::size::Size;
use crate::terminal::Terminal;
use std::io::Write;

/// Hands a terminal back to its owner: main screen, fresh modes, cursor at the bottom left.
pub const LEAVE: &[u8] = b"\x1b[?2026l\x1b[r\x1b[?1049l\x1b[?6l\x1b[4l\x1b[?7h\x1b[m\x1b(B\x1b)B\x0f\
    \x1b[?1l\x1b[?5l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1007l\
    \x1b[?1015l\x1b[?1016l\x1b[?2004l\x1b[?2031l\x1b>\x1b[0 q\x1b[>4;0m\x1b[<16u\x1b[?25h\x1b[9999;1H";

impl Terminal {
    /// Returns everything that makes a terminal of `size` show what this one shows. A smaller terminal shows
    /// the top left part.
    #[must_use]
    pub fn paint(&self, size: Size) -> Vec<u8> {
        let mut out = Vec::with_capacity(4096);
        out.extend_from_slice(b"\x1b[?2026h\x1b[?1049l");
        TerminalModes::write_fresh(&mut out);
        let screen = &self.screen;
        if let Some(main) = &screen.main {
            grid(main, size, &mut out);
            // Switching to the other screen saves this cursor; switching back restores it.
            region(main, size, &mut out);
            cursor(main, main.saved, size, &mut out);
            out.extend_from_slice(b"\x1b[?1049h");
        }
        grid(&screen.grid, size, &mut out);
        region(&screen.grid, size, &mut out);
        // Some terminals share one saved cursor between both screens, so it is written only if it was used.
        if screen.grid.saved != ScreenCursor::default() {
            cursor(&screen.grid, screen.grid.saved, size, &mut out);
            out.extend_from_slice(b"\x1b7");
        }
        cursor(&screen.grid, screen.grid.cursor, size, &mut out);
        screen.modes.write(&mut out);
        let ScreenCursor { row, column, .. } = screen.grid.cursor;
        if screen.modes.cursor_is_visible() && row < size.rows && column < size.columns {
            out.extend_from_slice(b"\x1b[?25h");
        }
        out.extend_from_slice(b"\x1b[?2026l");
        out
    }
}

/// What painting relies on: positions count from the top, all lines scroll, plain characters.
const PLAIN: &[u8] = b"\x1b[r\x1b[?6l\x1b(B\x1b)B\x0f";

fn grid(grid: &Grid, size: Size, out: &mut Vec<u8>) {
    out.extend_from_slice(PLAIN);
    for number in 0..size.rows {
        _ = write!(out, "\x1b[{};1H\x1b[m\x1b[2K", number + 1);
        if let Some(row) = grid.rows.get(usize::from(number)) {
            line(row, size.columns, out);
        }
    }
}

fn region(grid: &Grid, size: Size, out: &mut Vec<u8>) {
    let (top, bottom) = grid.region;
    if size == grid.size && (top, bottom) != (0, size.rows - 1) {
        _ = write!(out, "\x1b[{};{}r", top + 1, bottom + 1);
    }
}

fn line(row: &ScreenRow, columns: u16, out: &mut Vec<u8>) {
    let mut pen = Pen::PLAIN;
    for column in 0..row.length().min(columns) {
        let cell = row.cell(column);
        // Half a character at the edge is left out.
        let cut = cell.part == CellPart::Left && column + 1 >= columns;
        if cell.part == CellPart::Right || cut {
            continue;
        }
        if cell.pen != pen {
            pen = cell.pen;
            pen.write(out);
        }
        write_character(row, column, out);
    }
}

fn write_character(row: &ScreenRow, column: u16, out: &mut Vec<u8>) {
    let mut bytes = [0; 4];
    out.extend_from_slice(row.cell(column).character.encode_utf8(&mut bytes).as_bytes());
    out.extend_from_slice(row.marks(column).as_bytes());
}

/// Places the terminal's cursor, with its pen, character sets and a filled line.
fn cursor(grid: &Grid, cursor: ScreenCursor, size: Size, out: &mut Vec<u8>) {
    let same = size == grid.size;
    out.extend_from_slice(b"\x1b(B\x1b)B\x0f");
    out.extend_from_slice(if cursor.origin && same { b"\x1b[?6h" } else { b"\x1b[?6l" });
    let top = if cursor.origin && same { grid.region.0 } else { 0 };
    let row = cursor.row.min(size.rows - 1).saturating_sub(top);
    let column = cursor.column.min(size.columns - 1);
    let last = grid.rows.get(usize::from(cursor.row));
    // Only printing into the last column leaves a terminal with that column filled.
    match last.filter(|_| cursor.full && same) {
        Some(last) if column > 0 && last.cell(column).part == CellPart::Right => {
            _ = write!(out, "\x1b[{};{}H", row + 1, column);
            last.cell(column - 1).pen.write(out);
            write_character(last, column - 1, out);
        }
        Some(last) => {
            _ = write!(out, "\x1b[{};{}H", row + 1, column + 1);
            last.cell(column).pen.write(out);
            write_character(last, column, out);
        }
        None => _ = write!(out, "\x1b[{};{}H", row + 1, column + 1),
    }
    cursor.pen.write(out);
    for (number, name) in [(0, b'('), (1, b')')] {
        let set = if cursor.sets[number] == CharacterSet::Lines { b'0' } else { b'B' };
        out.extend_from_slice(&[0x1b, name, set]);
    }
    out.push(if cursor.set == 1 { 0x0e } else { 0x0f });
}
