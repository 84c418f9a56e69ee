//! A text field being edited: one line, or several.

use super::key::{Code, KeyPress};
use pinfold_core::visible::visible;

/// The text, and the position of the cursor in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Editor {
    text: String,
    /// A byte offset, on a character boundary.
    at: usize,
}

impl Editor {
    /// A field with this text and the cursor at its end.
    pub(crate) fn of(text: &str) -> Editor {
        Editor { text: text.to_owned(), at: text.len() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Inserts text at the cursor.
    pub(crate) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.at, text);
        self.at += text.len();
    }

    /// Inserts text at the cursor of a single-line field: line breaks and tabs become blanks.
    pub(crate) fn insert_line(&mut self, text: &str) {
        self.insert(&text.trim_end_matches('\n').replace(['\n', '\t'], " "));
    }

    /// Handles an editing key; returns whether it did anything.
    pub(crate) fn key(&mut self, key: KeyPress) -> bool {
        if let Some(character) = key.typed() {
            self.insert(character.encode_utf8(&mut [0; 4]));
            return true;
        }
        match (key.code, key.ctrl) {
            (Code::Backspace, _) => self.erase(self.before(), self.at),
            (Code::Delete, _) => self.erase(self.at, self.after()),
            (Code::Left, _) => self.at = self.before(),
            (Code::Right, _) => self.at = self.after(),
            (Code::Up, _) => self.go_line(-1),
            (Code::Down, _) => self.go_line(1),
            (Code::Home, _) | (Code::Char('a'), true) => self.at = self.line_begins(),
            (Code::End, _) | (Code::Char('e'), true) => self.at = self.line_ends(),
            (Code::Char('k'), true) => self.erase(self.at, self.line_ends()),
            (Code::Char('u'), true) => self.erase(self.line_begins(), self.at),
            (Code::Char('w'), true) => self.erase(self.word_begins(), self.at),
            _ => return false,
        }
        true
    }

    fn erase(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.at = from;
    }

    fn before(&self) -> usize {
        self.text[..self.at].chars().next_back().map_or(self.at, |character| self.at - character.len_utf8())
    }

    fn after(&self) -> usize {
        self.text[self.at..].chars().next().map_or(self.at, |character| self.at + character.len_utf8())
    }

    fn line_begins(&self) -> usize {
        self.text[..self.at].rfind('\n').map_or(0, |end| end + 1)
    }

    fn line_ends(&self) -> usize {
        self.text[self.at..].find('\n').map_or(self.text.len(), |end| self.at + end)
    }

    fn word_begins(&self) -> usize {
        let before = self.text[..self.at].trim_end();
        before.rfind(char::is_whitespace).map_or(0, |blank| blank + 1)
    }

    /// Moves up or down by lines, to the same column if there is one.
    fn go_line(&mut self, by: i32) {
        let column = self.text[self.line_begins()..self.at].chars().count();
        if by < 0 {
            let begins = self.line_begins();
            if begins == 0 {
                return;
            }
            self.at = begins - 1;
            self.at = self.line_begins();
        } else {
            let ends = self.line_ends();
            if ends == self.text.len() {
                return;
            }
            self.at = ends + 1;
        }
        let line = &self.text[self.at..self.line_ends()];
        self.at += line.chars().take(column).map(char::len_utf8).sum::<usize>();
    }

    /// The lines as shown, with the cursor's line and column, in terminal columns.
    pub(crate) fn shown(&self) -> (Vec<String>, usize, usize) {
        let lines = self.text.split('\n').map(|line| visible(line).into_owned()).collect();
        let row = self.text[..self.at].matches('\n').count();
        let before = visible(&self.text[self.line_begins()..self.at]).into_owned();
        (lines, row, crate::output::columns(&before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &str) -> Editor {
        let mut editor = Editor::default();
        for word in keys.split(' ') {
            match KeyPress::parse(word) {
                Some(key) => assert!(editor.key(key), "{word}"),
                None => editor.insert(word),
            }
        }
        editor
    }

    #[test]
    fn a_text_is_typed_and_mended() {
        let rows = [
            ("a b left X", "aXb"),
            ("hello space world ctrl-w", "hello "),
            ("ab home X end Y", "XabY"),
            ("ab ctrl-a ctrl-k c", "c"),
            ("日 本 backspace", "日"),
            ("ab left delete", "a"),
            ("left right backspace delete", ""),
        ];
        for (keys, text) in rows {
            assert_eq!(typed(keys).text(), text, "{keys}");
        }
    }

    #[test]
    fn the_cursor_goes_from_line_to_line_and_is_shown_in_columns() {
        let mut editor = Editor::of("long line\n日本\n\nend");
        for (key, place) in
            [("up", (2, 0)), ("up", (1, 0)), ("end", (1, 4)), ("up", (0, 2)), ("down", (1, 4))]
        {
            editor.key(KeyPress::parse(key).expect("a key"));
            let (_, row, column) = editor.shown();
            assert_eq!((row, column), place, "{key}");
        }
        assert_eq!(Editor::of("a\u{1b}[31m").shown().0, ["a\\u001b[31m"]);
    }

    #[test]
    fn what_is_pasted_on_one_line_stays_on_it() {
        let mut editor = Editor::default();
        editor.insert_line("a\nb\tc\n");
        assert_eq!(editor.text(), "a b c");
    }
}
