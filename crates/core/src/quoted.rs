//! Writes other people's text as one word of a shell command.
//!
//! Hints are commands that people and agents paste. A directory, key or name in them is always exactly one
//! word, whatever it contains, and nothing in it is ever run.

use crate::visible::is_hidden;
use std::borrow::Cow;
use std::fmt::Write;

/// Returns the text as one word for a shell: unchanged if nothing in it is special to a shell, otherwise quoted.
///
/// Control characters must not appear in a hint, and no quotes of the standard shell can express them. So the
/// shell prints them itself: `"$(printf 'a\033b')"` is the same word to sh, dash, bash, zsh and fish, while
/// `$'a\033b'` would be another word to dash. A substitution loses newlines at its end: only for those is `$'..'` used.
#[must_use]
pub fn quoted(text: &str) -> Cow<'_, str> {
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.into();
    }
    if !text.chars().any(is_escaped) {
        return format!("'{}'", text.replace('\'', r"'\''")).into();
    }
    if text.ends_with('\n') {
        return format!("$'{}'", escaped(text)).into();
    }
    // A format that begins with a dash would be an option.
    format!("\"$(printf -- '{}')\"", escaped(text).replace('%', "%%")).into()
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_./:@%+=-".contains(&byte)
}

/// A hint has backticks around its command: one inside would look like the end of the command.
fn is_escaped(character: char) -> bool {
    character == '`' || is_hidden(character)
}

/// Returns the text with octal escapes, which are safe within single quotes whether or not a shell knows `$'..'`.
fn escaped(text: &str) -> String {
    let mut word = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\\' => word.push_str("\\\\"),
            '\'' => word.push_str("\\047"),
            other if is_escaped(other) => {
                for byte in other.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string cannot fail.
                    _ = write!(word, "\\{byte:03o}");
                }
            }
            other => word.push(other),
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_left_alone_where_a_shell_would_take_it_as_it_is() {
        for plain in ["api", "/home/me/repo-1.2", "key:a@b+c=d", "session:a_b", "50%"] {
            assert!(matches!(quoted(plain), Cow::Borrowed(_)), "{plain}");
        }
    }

    #[test]
    fn everything_else_is_one_quoted_word() {
        for (text, word) in [
            ("", "''"),
            ("~", "'~'"),
            ("repo; touch X #", "'repo; touch X #'"),
            ("$(touch X)", "'$(touch X)'"),
            ("a'b", r"'a'\''b'"),
            ("größe", "'größe'"),
            ("a\nb", "\"$(printf -- 'a\\012b')\""),
            ("\x1b]0;x\x07'", "\"$(printf -- '\\033]0;x\\007\\047')\""),
            ("a`b`", "\"$(printf -- 'a\\140b\\140')\""),
            ("50%\\\u{202e}", "\"$(printf -- '50%%\\\\\\342\\200\\256')\""),
            ("a'\n", "$'a\\047\\012'"),
        ] {
            assert_eq!(quoted(text), word);
        }
    }
}
