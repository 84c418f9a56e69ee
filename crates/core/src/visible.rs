//! Makes control characters visible, which a terminal would obey instead of showing.
//!
//! Names, paths, keys, commands and reasons are other people's text. Everything printed for people goes
//! through here, so that no such text moves the cursor, rings the bell, queries the terminal, breaks a line
//! or reverses the direction of writing.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns the text with every control or invisible character escaped as in JSON: `\n`, `\u001b`, `\u009b`, `\u202e`.
///
/// Text that already is JSON stays the same JSON: such characters can only occur inside its strings.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_printable(text) || !text.chars().any(is_hidden) {
        return text.into();
    }
    escaped(text, is_obeyed).into()
}

/// Does the same for a line of output, in which a tab is only a blank.
#[must_use]
pub fn visible_line(line: &str) -> Cow<'_, str> {
    let obeyed = |character| character != '\t' && is_obeyed(character);
    let odd = |character| obeyed(character) || is_joiner(character);
    if line.chars().any(odd) { escaped(line, obeyed).into() } else { line.into() }
}

/// Whether it is all printable ASCII, as nearly all text is. The compiler vectorises this, so a list of
/// thousands of sessions is checked in microseconds.
fn is_printable(text: &str) -> bool {
    let odd = |chunk: &[u8]| chunk.iter().fold(false, |odd, byte| odd | !(0x20..0x7f).contains(byte));
    !text.as_bytes().chunks(64).any(odd)
}

/// Whether it is a C0, DEL or C1 control, a line or paragraph separator, a mark that changes the direction of
/// writing, or invisible: two names that look the same must be the same. Joiners are allowed where they join.
fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a terminal may obey it or show nothing for it.
pub(crate) fn is_hidden(character: char) -> bool {
    is_obeyed(character) || is_joiner(character)
}

/// Joiners shape emoji and the letters of some scripts; next to ASCII they only hide.
fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}')
}

fn escaped(text: &str, obeyed: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    let mut before = ' ';
    while let Some(character) = characters.next() {
        let joins = !before.is_ascii() && characters.peek().is_some_and(|next| !next.is_ascii());
        match character {
            joiner if is_joiner(joiner) && joins => shown.push(joiner),
            _ if !obeyed(character) && !is_joiner(character) => shown.push(character),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    _ = write!(shown, "\\u{unit:04x}");
                }
            }
        }
        before = character;
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
            ("api\u{200b} \u{feff}\u{2060}\u{ad}", "api\\u200b \\ufeff\\u2060\\u00ad"),
            ("a\u{e0041}", "a\\udb40\\udc41"),
            ("a\u{200d}b", "a\\u200db"),
            ("\u{1f469}\u{200d}\u{1f680} می\u{200c}خواهم", "\u{1f469}\u{200d}\u{1f680} می\u{200c}خواهم"),
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
