//! The terminal as callers use it: printed bytes go in, a painting comes out.

use crate::attention::Attention;
use crate::screen::Screens;
use crate::size::Size;
use std::fmt;

/// A virtual terminal, without a display.
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
    pub(crate) screen: Screens,
}

impl Terminal {
    /// Creates a fresh terminal.
    #[must_use]
    pub fn new(size: Size) -> Terminal {
        Terminal { parser: vte::Parser::new(), screen: Screens::new(size) }
    }

    /// Processes printed bytes; a piece may end anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        let rest = self.skim(bytes);
        self.follow(rest);
    }

    pub(crate) fn follow(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.screen, bytes);
    }

    /// Returns the terminal's size.
    #[must_use]
    pub fn size(&self) -> Size {
        self.screen.size
    }

    /// Changes the size.
    pub fn resize(&mut self, size: Size) {
        self.screen.resize(size);
    }

    /// Returns what a terminal would have answered to the questions printed since the last call.
    #[must_use]
    pub fn answers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.screen.answers)
    }

    /// Returns the program's call for a person's attention since the last call, if there was one.
    #[must_use]
    pub fn attention(&mut self) -> Option<Attention> {
        self.screen.attention.take()
    }

    /// Returns the text on the screen, without looks, line by line.
    #[must_use]
    pub fn text(&self) -> String {
        self.screen.text()
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The screen's content may be secret.
        f.debug_struct("Terminal").field("size", &self.screen.size).finish_non_exhaustive()
    }
}
