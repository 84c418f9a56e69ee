//! Both screens of a terminal, and what printed characters do to them.

use crate::attention::Attention;
use crate::cursor::{CharacterSet, ScreenCursor};
use crate::grid::Grid;
use crate::modes::TerminalModes;
use crate::pen::Pen;
use crate::row::ScreenRow;
use crate::size::Size;
use unicode_width::UnicodeWidthChar;
use vte::{Params, Perform};

/// Columns between two tab stops.
pub(crate) const TAB: u16 = 8;
/// Further answers are dropped: a program that asks this much does not read them.
const MOST_ANSWERS: usize = 4096;

/// What a terminal shows, and the state it keeps besides.
#[derive(Debug, Clone)]
pub(crate) struct Screens {
    pub(crate) size: Size,
    /// The screen in use.
    pub(crate) grid: Grid,
    /// The main screen, while the alternate one is in use.
    pub(crate) main: Option<Box<Grid>>,
    pub(crate) modes: TerminalModes,
    pub(crate) answers: Vec<u8>,
    /// The program's last call for a person's attention.
    pub(crate) attention: Option<Attention>,
    /// Lines that have scrolled away, if a transcript collects them.
    pub(crate) scrolled: Option<Vec<ScreenRow>>,
    /// What was printed last.
    pub(crate) last: Option<char>,
}

impl Screens {
    pub(crate) fn new(size: Size) -> Screens {
        Screens {
            size,
            grid: Grid::new(size),
            main: None,
            modes: TerminalModes::default(),
            answers: Vec::new(),
            attention: None,
            scrolled: None,
            last: None,
        }
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.size = size;
        let main = self.main.as_deref().unwrap_or(&self.grid);
        if let Some(scrolled) = &mut self.scrolled {
            scrolled.extend(main.rows.iter().take(usize::from(main.above(size))).cloned());
        }
        self.grid.resize(size);
        if let Some(main) = &mut self.main {
            main.resize(size);
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.grid.rows {
            text.push_str(&row.text());
            text.push('\n');
        }
        text
    }

    /// Returns the pen for what is printed and erased.
    pub(crate) fn pen(&self) -> Pen {
        self.grid.cursor.pen
    }

    fn asks(&mut self, attention: Attention) {
        self.attention = Some(match self.attention.take() {
            Some(before) => before.and_then(attention),
            None => attention,
        });
    }

    pub(crate) fn answer(&mut self, text: &str) {
        if self.answers.len() + text.len() <= MOST_ANSWERS {
            self.answers.extend_from_slice(text.as_bytes());
        }
    }

    /// Moves to the next line; scrolls at the end of the region.
    pub(crate) fn line_feed(&mut self) {
        let grid = &mut self.grid;
        grid.cursor.full = false;
        if grid.cursor.row == grid.region.1 {
            self.scroll_up(1);
        } else if grid.cursor.row + 1 < grid.size.rows {
            grid.cursor.row += 1;
        }
    }

    /// Scrolls the region up. Lines that leave the top of the main screen have scrolled away.
    pub(crate) fn scroll_up(&mut self, count: u16) {
        let (first, last) = self.grid.region;
        if let Some(scrolled) = self.scrolled.as_mut().filter(|_| self.main.is_none() && first == 0) {
            // Scrolling a blank screen away at once does not produce a screenful of lines.
            let most = if count > 1 { self.grid.written() } else { 1 };
            let going = usize::from(count.min(last + 1)).min(most);
            scrolled.extend(self.grid.rows.iter().take(going).cloned());
        }
        let pen = self.pen();
        self.grid.scroll_up(count, pen);
    }

    pub(crate) fn reverse_line_feed(&mut self) {
        let grid = &mut self.grid;
        grid.cursor.full = false;
        if grid.cursor.row == grid.region.0 {
            let pen = grid.cursor.pen;
            grid.scroll_down(1, pen);
        } else {
            grid.cursor.row = grid.cursor.row.saturating_sub(1);
        }
    }

    pub(crate) fn carriage_return(&mut self) {
        self.grid.cursor.column = 0;
        self.grid.cursor.full = false;
    }

    /// Prints the last character again.
    pub(crate) fn repeat(&mut self, count: u16) {
        if let Some(last) = self.last {
            // More than a screenful looks the same as a screenful.
            for _ in 0..u32::from(count).min(u32::from(self.size.rows) * u32::from(self.size.columns)) {
                self.print(last);
            }
        }
    }

    fn put(&mut self, character: char, width: u16) {
        let columns = self.size.columns;
        let wraps = self.modes.wraps();
        if self.grid.cursor.full && wraps {
            self.carriage_return();
            self.line_feed();
        }
        if self.grid.cursor.column + width > columns {
            match wraps && columns >= width {
                true => {
                    self.carriage_return();
                    self.line_feed();
                }
                false => self.grid.cursor.column = columns.saturating_sub(width),
            }
        }
        let ScreenCursor { column, pen, .. } = self.grid.cursor;
        let width = width.min(columns);
        let insert = self.modes.insert;
        let line = self.grid.line();
        if insert {
            line.insert(column, width, columns, pen);
        }
        line.put(column, character, pen, width);
        let cursor = &mut self.grid.cursor;
        cursor.full = column + width >= columns;
        cursor.column = (column + width).min(columns - 1);
    }

    /// Adds a mark to the character before the cursor.
    fn combine(&mut self, mark: char) {
        let ScreenCursor { column, full, .. } = self.grid.cursor;
        let before = if full { column } else { column.saturating_sub(1) };
        self.grid.line().mark(before, mark);
    }

    /// Switches to the alternate screen and back, as `ESC [ ? n h` and `l` ask; 1049 saves and restores the
    /// cursor.
    pub(crate) fn alternate(&mut self, number: u16, on: bool) {
        let with_cursor = number == 1049;
        if on && with_cursor {
            self.grid.saved = self.grid.cursor;
        }
        match (on, self.main.take()) {
            (true, None) => {
                let mut fresh = Grid::new(self.size);
                fresh.cursor = self.grid.cursor;
                self.main = Some(Box::new(std::mem::replace(&mut self.grid, fresh)));
            }
            (true, Some(main)) => {
                self.main = Some(main);
                if with_cursor {
                    let (rows, pen) = (self.size.rows, self.pen());
                    self.grid.clear_lines(0, rows, pen);
                }
            }
            (false, Some(main)) => {
                let cursor = self.grid.cursor;
                self.grid = *main;
                self.grid.cursor = cursor;
            }
            (false, None) => {}
        }
        if !on && with_cursor {
            self.grid.cursor = self.grid.saved;
        }
    }

    /// Resets everything to a fresh terminal.
    pub(crate) fn reset(&mut self) {
        let (answers, scrolled) = (std::mem::take(&mut self.answers), self.scrolled.take());
        let attention = self.attention.take();
        *self = Screens { answers, attention, scrolled, ..Screens::new(self.size) };
    }
}

impl Perform for Screens {
    fn print(&mut self, character: char) {
        let character = self.grid.cursor.drawn(character);
        let width = if character.is_ascii() { Some(1) } else { character.width() };
        match width {
            Some(0) => self.combine(character),
            Some(width) => {
                self.last = Some(character);
                self.put(character, width.min(2) as u16);
            }
            None => {}
        }
    }

    fn execute(&mut self, byte: u8) {
        let cursor = &mut self.grid.cursor;
        match byte {
            0x07 => self.asks(Attention::Bell),
            0x08 => {
                cursor.column = cursor.column.saturating_sub(1);
                cursor.full = false;
            }
            0x09 => {
                let next = (cursor.column / TAB + 1) * TAB;
                cursor.column = next.min(self.size.columns - 1);
            }
            0x0a..=0x0c => self.line_feed(),
            0x0d => self.carriage_return(),
            0x0e => cursor.set = 1,
            0x0f => cursor.set = 0,
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: char) {
        if !ignore {
            self.control(params, intermediates, action);
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        let set = if byte == b'0' { CharacterSet::Lines } else { CharacterSet::Text };
        match (intermediates, byte) {
            ([b'('], _) => self.grid.cursor.sets[0] = set,
            ([b')'], _) => self.grid.cursor.sets[1] = set,
            ([], b'7') => self.grid.saved = self.grid.cursor,
            ([], b'8') => self.grid.cursor = self.grid.saved,
            ([], b'D') => self.line_feed(),
            ([], b'E') => {
                self.carriage_return();
                self.line_feed();
            }
            ([], b'M') => self.reverse_line_feed(),
            ([], b'=') => self.modes.keypad = true,
            ([], b'>') => self.modes.keypad = false,
            ([], b'c') => self.reset(),
            _ => {}
        }
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], _bell_terminated: bool) {
        if let [b"0" | b"2", title @ ..] = params {
            self.modes.name(&title.join(&b';'));
        } else if let Some(attention) = Attention::of_osc(params) {
            self.asks(attention);
        }
    }
}
