//! Writes text to a buffer: makes visible what a terminal would obey, and cuts what does not fit.

use super::theme::{Role, Theme};
use crate::output::{columns, cut, wrapped};
use pinfold_core::visible::visible_line;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// A line of pieces, each with its role.
pub(crate) type Pieces = Vec<(String, Role)>;

/// A buffer to paint on, with a theme.
pub(super) struct Canvas<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) theme: Theme,
}

impl Canvas<'_> {
    /// Writes a text into at most `room` columns; returns how many it took.
    pub(super) fn text(&mut self, x: u16, y: u16, room: u16, text: &str, role: Role) -> u16 {
        let style = self.theme.style(role);
        self.styled(x, y, room, text, style)
    }

    /// The same with any style.
    pub(super) fn styled(&mut self, x: u16, y: u16, room: u16, text: &str, style: Style) -> u16 {
        let area = self.buffer.area;
        if room == 0 || y >= area.height || x >= area.width {
            return 0;
        }
        let room = room.min(area.width - x);
        let text = shown(text);
        let whole = columns(&text) <= usize::from(room);
        let text = if whole { text } else { cut(&text, usize::from(room)).into_owned() };
        let (end, _) = self.buffer.set_stringn(x, y, &text, usize::from(room), style);
        end - x
    }

    /// Writes pieces one after the other.
    pub(super) fn pieces(&mut self, x: u16, y: u16, room: u16, pieces: &[(String, Role)]) {
        let mut used = 0;
        for (text, role) in pieces {
            used += self.text(x + used, y, room.saturating_sub(used), text, *role);
        }
    }

    /// Writes lines, beginning with the one at `top`.
    pub(super) fn lines(&mut self, area: Rect, top: usize, lines: &[Pieces]) {
        let most = lines.len().saturating_sub(usize::from(area.height));
        for (y, line) in (area.y..area.bottom()).zip(lines.iter().skip(top.min(most))) {
            self.pieces(area.x, y, area.width, line);
        }
    }

    /// Gives a whole area the style of a role.
    pub(super) fn ground(&mut self, area: Rect, role: Role) {
        let style = self.theme.style(role);
        self.buffer.set_style(area.intersection(self.buffer.area), style);
    }

    /// Clears an area.
    pub(super) fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for y in area.y..area.bottom() {
            for x in area.x..area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
    }
}

/// A text that is safe to show: tabs become four blanks.
pub(super) fn shown(text: &str) -> String {
    visible_line(text).replace('\t', "    ")
}

/// Breaks text into lines of at most `width` columns. Its own line breaks stay, and a word that is too long is split.
pub(crate) fn folded(text: &str, width: usize, role: Role) -> Vec<Pieces> {
    let width = width.max(8);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        for line in wrapped(&shown(paragraph.trim_end_matches('\r')), width) {
            let mut rest = line.as_str();
            while columns(rest) > width {
                let end = fits(rest, width);
                lines.push(vec![(rest[..end].to_owned(), role)]);
                rest = &rest[end..];
            }
            lines.push(vec![(rest.to_owned(), role)]);
        }
    }
    lines
}

/// Where to end a text so that it takes at most `width` columns; at least after one character.
fn fits(text: &str, width: usize) -> usize {
    let mut end = 0;
    for (at, character) in text.char_indices() {
        let next = at + character.len_utf8();
        if columns(&text[..next]) > width && end > 0 {
            break;
        }
        end = next;
    }
    end
}
