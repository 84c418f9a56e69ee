//! A key as pressed, and its name: `a`, `A`, `ctrl-k`, `alt-enter`, `page-down`, `f5`.

use std::fmt;

/// The key without its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Code {
    Char(char),
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Insert,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    F(u8),
}

/// A key with its modifiers. Shift is part of the character, or of [`Code::BackTab`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyPress {
    pub(crate) code: Code,
    pub(crate) ctrl: bool,
    pub(crate) alt: bool,
}

/// The keys with names.
const NAMES: [(&str, Code); 18] = [
    ("enter", Code::Enter),
    ("esc", Code::Esc),
    ("tab", Code::Tab),
    ("shift-tab", Code::BackTab),
    ("backspace", Code::Backspace),
    ("delete", Code::Delete),
    ("insert", Code::Insert),
    ("up", Code::Up),
    ("down", Code::Down),
    ("left", Code::Left),
    ("right", Code::Right),
    ("home", Code::Home),
    ("end", Code::End),
    ("page-up", Code::PageUp),
    ("page-down", Code::PageDown),
    ("space", Code::Char(' ')),
    ("minus", Code::Char('-')),
    ("plus", Code::Char('+')),
];

impl KeyPress {
    /// A key without modifiers.
    pub(crate) const fn of(code: Code) -> KeyPress {
        KeyPress { code, ctrl: false, alt: false }
    }

    /// A character without modifiers.
    pub(crate) const fn char(character: char) -> KeyPress {
        KeyPress::of(Code::Char(character))
    }

    /// This key with Ctrl.
    pub(crate) const fn with_ctrl(self) -> KeyPress {
        KeyPress { ctrl: true, ..self }
    }

    /// This key with Alt.
    pub(crate) const fn with_alt(self) -> KeyPress {
        KeyPress { alt: true, ..self }
    }

    /// The character this key types, if any.
    pub(crate) fn typed(self) -> Option<char> {
        if let (Code::Char(character), false, false) = (self.code, self.ctrl, self.alt) {
            return Some(character);
        }
        None
    }

    /// Parses the name of a key.
    pub(crate) fn parse(word: &str) -> Option<KeyPress> {
        if let Some(rest) = word.strip_prefix("ctrl-").filter(|rest| !rest.is_empty()) {
            return KeyPress::parse(rest).map(KeyPress::with_ctrl);
        }
        if let Some(rest) = word.strip_prefix("alt-").filter(|rest| !rest.is_empty()) {
            return KeyPress::parse(rest).map(KeyPress::with_alt);
        }
        if let Some((_, code)) = NAMES.iter().find(|(name, _)| *name == word) {
            return Some(KeyPress::of(*code));
        }
        if let Some(number) = word.strip_prefix('f').and_then(|number| number.parse().ok()) {
            return (1..=12).contains(&number).then_some(KeyPress::of(Code::F(number)));
        }
        let mut characters = word.chars();
        let character = characters.next().filter(|character| !character.is_control())?;
        characters.next().is_none().then_some(KeyPress::char(character))
    }
}

impl fmt::Display for KeyPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("ctrl-")?;
        }
        if self.alt {
            f.write_str("alt-")?;
        }
        match (NAMES.iter().find(|(_, code)| *code == self.code), self.code) {
            (Some((name, _)), _) => f.write_str(name),
            (None, Code::F(number)) => write!(f, "f{number}"),
            (None, Code::Char(character)) => write!(f, "{character}"),
            (None, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let words =
            ["a", "A", "?", "ctrl-k", "alt-enter", "page-down", "f5", "f", "space", "ctrl-alt-x", "minus"];
        for word in words {
            let key = KeyPress::parse(word).unwrap_or_else(|| panic!("{word}"));
            assert_eq!(key.to_string(), word);
        }
        for wrong in ["", "ctrl-", "escape", "f13", "ab", "\n"] {
            assert_eq!(KeyPress::parse(wrong), None, "{wrong}");
        }
    }
}
