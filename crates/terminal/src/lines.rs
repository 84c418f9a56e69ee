//! The screen line by line, for callers that paint it themselves.

use crate::cell::CellPart;
use crate::looks::Looks;
use crate::terminal::Terminal;

impl Terminal {
    /// Returns each line as pieces that look alike, without trailing blanks.
    #[must_use]
    pub fn lines(&self) -> Vec<Vec<(String, Looks)>> {
        let grid = &self.screen.grid;
        let mut lines = Vec::with_capacity(grid.rows.len());
        for row in &grid.rows {
            let mut line: Vec<(String, Looks)> = Vec::new();
            for column in 0..row.length() {
                let cell = row.cell(column);
                if cell.part == CellPart::Right {
                    continue;
                }
                let look = cell.pen.looks();
                if line.last().is_none_or(|(_, last)| *last != look) {
                    line.push((String::new(), look));
                }
                if let Some((text, _)) = line.last_mut() {
                    text.push(cell.character);
                    text.push_str(row.marks(column));
                }
            }
            lines.push(line);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looks::Colour;
    use crate::size::Size;

    #[test]
    fn lines_are_pieces_that_look_alike() {
        let mut terminal = Terminal::new(Size::new(3, 20));
        terminal.feed("a\x1b[1;31mred\x1b[m 日本\r\n\x1b[48;2;1;2;3m ".as_bytes());
        let lines = terminal.lines();
        let texts: Vec<&str> = lines[0].iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["a", "red", " 日本"]);
        assert_eq!((lines[0][1].1.foreground, lines[0][1].1.bold), (Colour::Numbered(1), true));
        assert_eq!(lines[1][0].1.background, Colour::Mixed(1, 2, 3));
        assert_eq!(lines.len(), 3);
    }
}
