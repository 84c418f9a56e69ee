//! The screen with its looks, for callers that draw it elsewhere.

use crate::cell::CellPart;
use crate::looks::Looks;
use crate::pen::Pen;
use crate::terminal::Terminal;

/// Adjacent characters of one line that look the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The first column.
    pub column: u16,
    /// How many columns they take.
    pub columns: u16,
    /// The characters, with their combining marks.
    pub text: String,
    /// How they look.
    pub looks: Looks,
}

impl Terminal {
    /// Returns the screen line by line, each as pieces from left to right; cells that were never printed are
    /// left out. A character whose width varies between fonts is a piece of its own, so that the next one can
    /// be placed exactly.
    #[must_use]
    pub fn pieces(&self) -> Vec<Vec<Piece>> {
        (0..self.size().rows).map(|row| self.pieces_of(row)).collect()
    }

    /// Returns the cursor's row and column if it is visible.
    #[must_use]
    pub fn cursor(&self) -> Option<(u16, u16)> {
        let cursor = &self.screen.grid.cursor;
        self.screen.modes.cursor_is_visible().then_some((cursor.row, cursor.column))
    }

    fn pieces_of(&self, row: u16) -> Vec<Piece> {
        let mut pieces: Vec<(Piece, Pen)> = Vec::new();
        let Some(line) = self.screen.grid.rows.get(usize::from(row)) else { return Vec::new() };
        let mut joins = false;
        for column in 0..line.length() {
            let cell = line.cell(column);
            let marks = line.marks(column);
            match (cell.part, pieces.last_mut()) {
                (CellPart::Right, Some((last, _))) => last.columns += 1,
                (CellPart::Whole, Some((last, pen)))
                    if joins && *pen == cell.pen && is_even(cell.character) && marks.is_empty() =>
                {
                    last.text.push(cell.character);
                    last.columns += 1;
                }
                (CellPart::Whole | CellPart::Left | CellPart::Right, _) => {
                    let text = format!("{}{marks}", cell.character);
                    pieces.push((Piece { column, columns: 1, text, looks: cell.pen.looks() }, cell.pen));
                    joins = cell.part == CellPart::Whole && is_even(cell.character) && marks.is_empty();
                }
            }
        }
        pieces.into_iter().map(|(piece, _)| piece).collect()
    }
}

/// Returns whether every monospaced font draws the character at the same width: ASCII, and box-drawing lines.
fn is_even(character: char) -> bool {
    character.is_ascii() || ('\u{2500}'..='\u{257f}').contains(&character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looks::Colour;
    use crate::size::Size;

    fn pieces(printed: &str) -> Vec<(u16, u16, String, Looks)> {
        let mut terminal = Terminal::new(Size::new(2, 20));
        terminal.feed(printed.as_bytes());
        let of = |piece: Piece| (piece.column, piece.columns, piece.text, piece.looks);
        terminal.pieces().remove(0).into_iter().map(of).collect()
    }

    #[test]
    fn what_looks_the_same_is_one_piece() {
        let all = pieces("ab \x1b[1;31mcd\x1b[0m e");
        let places: Vec<_> =
            all.iter().map(|(column, columns, text, _)| (*column, *columns, text.as_str())).collect();
        assert_eq!(places, [(0, 3, "ab "), (3, 2, "cd"), (5, 2, " e")]);
        assert_eq!((all[1].3.foreground, all[1].3.bold), (Colour::Numbered(1), true));
        assert_eq!((all[2].3.foreground, all[2].3.bold), (Colour::Plain, false));
    }

    #[test]
    fn what_may_be_wider_than_its_place_is_a_piece_of_its_own() {
        let places: Vec<_> = pieces("● 会議 e\u{301}├─┤")
            .into_iter()
            .map(|(column, columns, text, _)| (column, columns, text))
            .collect();
        let of = |column, columns, text: &str| (column, columns, text.to_owned());
        let expected = [
            of(0, 1, "●"),
            of(1, 1, " "),
            of(2, 2, "会"),
            of(4, 2, "議"),
            of(6, 1, " "),
            of(7, 1, "e\u{301}"),
            of(8, 3, "├─┤"),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn the_cursor_is_told_while_it_is_shown() {
        let mut terminal = Terminal::new(Size::new(2, 20));
        terminal.feed(b"ab");
        assert_eq!(terminal.cursor(), Some((0, 2)));
        terminal.feed(b"\x1b[?25l");
        assert_eq!(terminal.cursor(), None);
    }
}
