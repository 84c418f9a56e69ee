//! The terminal as its users have it: what is printed goes in, a painting comes out.

use crate::attention::Attention;
use crate::screen::Screen;
use crate::size::Size;
use std::fmt;

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
        let rest = self.skim(bytes);
        self.follow(rest);
    }

    pub(crate) fn follow(&mut self, bytes: &[u8]) {
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

    /// How the program asked for a person since the last call, if it did.
    #[must_use]
    pub fn attention(&mut self) -> Option<Attention> {
        self.screen.attention.take()
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
