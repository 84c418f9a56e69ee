//! Removes escape sequences from a text.

use vte::{Parser, Perform};

/// Returns what a program printed without its sequences: no colours, no titles, no questions to a terminal.
///
/// Single control characters stay; an unfinished sequence takes the rest of the text with it.
///
/// ```
/// assert_eq!(pinfold_terminal::plain("\x1b[1mbold\x1b[m\x1b]0;title\x07, \x1b[cplain"), "bold, plain");
/// ```
#[must_use]
pub fn plain(text: &str) -> String {
    let mut kept = Kept(String::with_capacity(text.len()));
    Parser::new().advance(&mut kept, text.as_bytes());
    kept.0
}

struct Kept(String);

impl Perform for Kept {
    fn print(&mut self, character: char) {
        self.0.push(character);
    }

    fn execute(&mut self, byte: u8) {
        self.0.push(char::from(byte));
    }
}
