//! The terminal as its users have it: what is printed goes in, a painting comes out.

use crate::screen::Screen;
use std::fmt;

/// How many lines and columns a terminal has. Never zero, never more than [`Size::MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub(crate) rows: u16,
    pub(crate) columns: u16,
}

impl Size {
    /// More lines or columns than any screen has: what memory is bounded by.
    pub const MOST: u16 = 1000;

    /// A size that can be: zero, which is what a terminal says that does not know, becomes 24 by 80.
    #[must_use]
    pub fn new(rows: u16, columns: u16) -> Size {
        let fit = |count: u16, usual: u16| if count == 0 { usual } else { count.min(Size::MOST) };
        Size { rows: fit(rows, 24), columns: fit(columns, 80) }
    }

    /// Lines.
    #[must_use]
    pub fn rows(self) -> u16 {
        self.rows
    }

    /// Columns.
    #[must_use]
    pub fn columns(self) -> u16 {
        self.columns
    }
}

impl Default for Size {
    fn default() -> Size {
        Size::new(0, 0)
    }
}

/// A terminal that nobody sees.
///
/// ```
/// use pinfold_terminal::{Size, Terminal};
/// let mut terminal = Terminal::new(Size::new(24, 80));
/// terminal.feed("\x1b[1mhello\x1b[m, wörld".as_bytes());
/// assert_eq!(terminal.text().trim_end(), "hello, wörld");
/// let mut twin = Terminal::new(Size::new(24, 80));
/// twin.feed(&terminal.paint(Size::new(24, 80)));
/// assert_eq!(twin.paint(Size::new(24, 80)), terminal.paint(Size::new(24, 80)));
/// ```
pub struct Terminal {
    parser: vte::Parser,
    pub(crate) screen: Screen,
}

impl Terminal {
    /// A fresh terminal.
    #[must_use]
    pub fn new(size: Size) -> Terminal {
        Terminal { parser: vte::Parser::new(), screen: Screen::new(size) }
    }

    /// Follows what was printed; it may end anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.screen, bytes);
    }

    /// Its size.
    #[must_use]
    pub fn size(&self) -> Size {
        self.screen.size
    }

    /// Takes another size.
    pub fn resize(&mut self, size: Size) {
        self.screen.resize(size);
    }

    /// What a terminal would have answered to questions that the program printed since the last call.
    #[must_use]
    pub fn answers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.screen.answers)
    }

    /// What is on the screen, without looks, a line for each line.
    #[must_use]
    pub fn text(&self) -> String {
        self.screen.text()
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is on a screen may be secret.
        f.debug_struct("Terminal").field("size", &self.screen.size).finish_non_exhaustive()
    }
}
