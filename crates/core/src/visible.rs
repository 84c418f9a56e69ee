//! Makes visible what a terminal would obey instead of showing it.
//!
//! Names, paths, keys, commands and reasons are other people's text. Everything that is printed for people goes
//! through here, so that no such text moves the cursor, rings the bell, asks the terminal a question, breaks a line
//! or turns the direction of writing.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with every control character written as JSON writes it: `\n`, `\u001b`, `\u009b`, `\u202e`.
///
/// Text that is JSON already stays the same JSON: there such characters can only stand inside of strings.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_printable(text) || !text.chars().any(is_obeyed) {
        return text.into();
    }
    escaped(text, is_obeyed).into()
}

/// The same for a line of output, in which a tabulator is a blank.
#[must_use]
pub fn visible_line(line: &str) -> Cow<'_, str> {
    let obeyed = |character| character != '\t' && is_obeyed(character);
    if line.chars().any(obeyed) { escaped(line, obeyed).into() } else { line.into() }
}

/// Whether it is all printable ASCII, as nearly everything is. A list of thousands of sessions is looked through for
/// this in microseconds: the compiler takes a chunk at a time.
fn is_printable(text: &str) -> bool {
    let odd = |chunk: &[u8]| chunk.iter().fold(false, |odd, byte| odd | !(0x20..0x7f).contains(byte));
    !text.as_bytes().chunks(64).any(odd)
}

/// C0, DEL and C1 controls, ends of lines and paragraphs, and the marks that change the direction of writing.
fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, obeyed: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            _ if !obeyed(character) => shown.push(character),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            // A string takes everything.
            other => _ = write!(shown, "\\u{:04x}", u32::from(other)),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_instead() {
        for (text, shown) in [
            ("plain, wörld, 日本", "plain, wörld, 日本"),
            ("\x1b[31mred", "\\u001b[31mred"),
            ("bell\x07 del\x7f", "bell\\u0007 del\\u007f"),
            ("csi\u{9b}31m", "csi\\u009b31m"),
            ("two\r\nlines\tand", "two\\r\\nlines\\tand"),
            ("exe.\u{202e}txt\u{2066}\u{200f}\u{2028}", "exe.\\u202etxt\\u2066\\u200f\\u2028"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_line("a\tb\x07"), "a\tb\\u0007");
    }

    #[test]
    fn text_without_controls_is_not_copied() {
        assert!(matches!(visible("a name"), Cow::Borrowed(_)));
    }
}
