//! Turns a frame into bytes for the terminal: only what changed since the last frame, in the colours the
//! terminal has.

use super::view::UiFrame;
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::{Color, Modifier};
use std::io::Write;

/// How many colours a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    None,
    Sixteen,
    Indexed,
    True,
}

/// Paints frames, remembering what is on the screen.
#[derive(Debug)]
pub(crate) struct Painter {
    depth: Depth,
    before: Option<Buffer>,
    cursor: Option<(u16, u16)>,
}

impl Painter {
    pub(crate) fn new(depth: Depth) -> Painter {
        Painter { depth, before: None, cursor: None }
    }

    /// Forgets what is on the screen, so that the next frame is painted in full.
    pub(crate) fn forget(&mut self) {
        self.before = None;
    }

    /// The bytes to write to show a frame; empty if it is already shown.
    pub(crate) fn paint(&mut self, frame: UiFrame) -> Vec<u8> {
        let UiFrame { buffer, cursor } = frame;
        let mut out = Vec::new();
        let same = |before: &Buffer| before.area == buffer.area;
        let fresh = !self.before.as_ref().is_some_and(same);
        let before = self.before.take().filter(same).unwrap_or_else(|| Buffer::empty(buffer.area));
        if fresh {
            out.extend_from_slice(b"\x1b[0m\x1b[2J");
        }
        let (mut place, mut look) = (None, None);
        for (x, y, cell) in before.diff_iter(&buffer) {
            if place != Some((x, y)) {
                _ = write!(out, "\x1b[{};{}H", y + 1, x + 1);
            }
            let own = (cell.fg, cell.bg, cell.modifier);
            if look != Some(own) {
                self.look(cell, &mut out);
                look = Some(own);
            }
            out.extend_from_slice(cell.symbol().as_bytes());
            // After a wide character the cursor's position is not relied on: terminals differ.
            place = cell.symbol().is_ascii().then_some((x + 1, y));
        }
        if out.is_empty() && cursor == self.cursor {
            self.before = Some(buffer);
            return out;
        }
        out.extend_from_slice(b"\x1b[0m");
        match cursor {
            Some((x, y)) => _ = write!(out, "\x1b[{};{}H\x1b[?25h", y + 1, x + 1),
            None => out.extend_from_slice(b"\x1b[?25l"),
        }
        self.before = Some(buffer);
        self.cursor = cursor;
        // Terminals that support synchronized output show the frame at once; others ignore these sequences.
        [b"\x1b[?2026h\x1b[?25l".as_slice(), &out, b"\x1b[?2026l"].concat()
    }

    fn look(&self, cell: &Cell, out: &mut Vec<u8>) {
        const SWITCHES: [(Modifier, u8); 7] = [
            (Modifier::BOLD, 1),
            (Modifier::DIM, 2),
            (Modifier::ITALIC, 3),
            (Modifier::UNDERLINED, 4),
            (Modifier::REVERSED, 7),
            (Modifier::HIDDEN, 8),
            (Modifier::CROSSED_OUT, 9),
        ];
        out.extend_from_slice(b"\x1b[0");
        for (modifier, number) in SWITCHES {
            if cell.modifier.contains(modifier) {
                _ = write!(out, ";{number}");
            }
        }
        colour(reduced(cell.fg, self.depth), 30, out);
        colour(reduced(cell.bg, self.depth), 40, out);
        out.push(b'm');
    }
}

/// The nearest colour that the terminal has.
fn reduced(color: Color, depth: Depth) -> Color {
    match (depth, color) {
        (Depth::None, _) => Color::Reset,
        (Depth::Sixteen, Color::Indexed(number @ 16..)) => nearest_of_sixteen(mixed(number)),
        (Depth::Sixteen, Color::Rgb(red, green, blue)) => nearest_of_sixteen((red, green, blue)),
        (Depth::Indexed, Color::Rgb(red, green, blue)) => Color::Indexed(cube(red, green, blue)),
        (_, color) => color,
    }
}

/// The nearest colour in the 256-colour cube.
fn cube(red: u8, green: u8, blue: u8) -> u8 {
    let step = |part: u8| if part < 48 { 0 } else { (u16::from(part).saturating_sub(35) / 40) as u8 };
    16 + 36 * step(red) + 6 * step(green) + step(blue)
}

/// Red, green and blue of one of the 256 colours, beyond the first 16.
fn mixed(number: u8) -> (u8, u8, u8) {
    if number >= 232 {
        let grey = 8 + 10 * (number - 232);
        return (grey, grey, grey);
    }
    let part = |part: u8| if part == 0 { 0 } else { 55 + 40 * part };
    let number = number - 16;
    (part(number / 36), part(number / 6 % 6), part(number % 6))
}

/// The nearest of 16 colours: which of the three parts are strong, and whether it is bright.
fn nearest_of_sixteen((red, green, blue): (u8, u8, u8)) -> Color {
    let most = red.max(green).max(blue);
    if most < 48 {
        return Color::Indexed(0);
    }
    let strong = |part: u8, bit: u8| if u16::from(part) * 2 > u16::from(most) { bit } else { 0 };
    let number = strong(red, 1) | strong(green, 2) | strong(blue, 4);
    match (number, most) {
        // Dark greys become bright black, which is a dark grey itself.
        (7, ..96) => Color::Indexed(8),
        (_, 193..) => Color::Indexed(number + 8),
        (_, _) => Color::Indexed(number),
    }
}

/// Writes a colour; `base` is 30 for the foreground and 40 for the background.
fn colour(color: Color, base: u8, out: &mut Vec<u8>) {
    let number = match color {
        Color::Reset => return,
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
        Color::Indexed(number) => number,
        Color::Rgb(red, green, blue) => {
            _ = write!(out, ";{};2;{red};{green};{blue}", base + 8);
            return;
        }
    };
    _ = match number {
        0..8 => write!(out, ";{}", base + number),
        8..16 => write!(out, ";{}", base + 52 + number),
        _ => write!(out, ";{};5;{number}", base + 8),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::layout::Rect;
    use ratatui_core::style::Style;

    fn frame(text: &str, style: Style) -> UiFrame {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 2));
        buffer.set_string(0, 0, text, style);
        UiFrame { buffer, cursor: None }
    }

    fn painted(painter: &mut Painter, text: &str, style: Style) -> String {
        String::from_utf8(painter.paint(frame(text, style))).unwrap()
    }

    #[test]
    fn only_what_differs_is_painted_and_nothing_where_nothing_does() {
        let mut painter = Painter::new(Depth::True);
        assert!(painted(&mut painter, "abc", Style::new()).contains("\x1b[2J\x1b[1;1H\x1b[0mabc"));
        assert_eq!(painted(&mut painter, "abc", Style::new()), "");
        let second = painted(&mut painter, "axc", Style::new());
        assert!(second.contains("\x1b[1;2H\x1b[0mx\x1b[0m") && !second.contains('a'), "{second:?}");
        painter.forget();
        assert!(painted(&mut painter, "axc", Style::new()).contains("\x1b[2J"));
    }

    #[test]
    fn a_colour_is_the_nearest_that_the_terminal_has() {
        let style = Style::new().fg(Color::Rgb(250, 20, 20)).bg(Color::Indexed(236));
        let rows = [
            (Depth::True, "\x1b[0;38;2;250;20;20;48;5;236m"),
            (Depth::Indexed, "\x1b[0;38;5;196;48;5;236m"),
            (Depth::Sixteen, "\x1b[0;91;100m"),
            (Depth::None, "\x1b[0mx"),
        ];
        for (depth, expected) in rows {
            let text = painted(&mut Painter::new(depth), "x", style);
            assert!(text.contains(expected), "{depth:?}: {text:?}");
        }
    }
}
