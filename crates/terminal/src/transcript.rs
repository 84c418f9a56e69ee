//! What a terminal showed, as lines of text, for clients that read it later or follow it from afar.
//!
//! A line is given out when it has scrolled away, when it has come to rest on the screen
//! ([`Transcript::settle`]), or at the end. A line that changes afterwards is given out again. The alternate
//! screen, on which full-screen programs paint, is given out only at the end; once the program leaves it, its
//! content is gone, as on any terminal.

use crate::grid::Grid;
use crate::row::{LineHistory, ScreenRow};
use crate::size::Size;
use crate::terminal::Terminal;

/// Turns what a program printed on its terminal into lines of text.
///
/// ```
/// use pinfold_terminal::{Size, Transcript};
/// let mut transcript = Transcript::new(Size::new(2, 80));
/// assert_eq!(transcript.feed(b"\x1b[32mone\x1b[m\r\ntwo\r\nwait.."), ["one"]);
/// assert_eq!(transcript.feed(b"\r\x1b[Kdone\x1b[c"), [""; 0]);
/// assert_eq!(transcript.finish(), ["two", "done"]);
/// ```
#[derive(Debug)]
pub struct Transcript {
    terminal: Terminal,
}

/// Lines that came to rest, and whether the whole screen has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledLines {
    /// The lines that came to rest since the last look.
    pub lines: Vec<String>,
    /// Nothing has changed since the last look; another look finds nothing until more is fed.
    pub calm: bool,
}

impl Transcript {
    /// Creates the transcript of a fresh terminal.
    #[must_use]
    pub fn new(size: Size) -> Transcript {
        let mut terminal = Terminal::new(size);
        terminal.screen.scrolled = Some(Vec::new());
        Transcript { terminal }
    }

    /// Processes printed bytes, which may end anywhere; returns the lines that scrolled away.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        self.terminal.feed(bytes);
        // Only a real terminal answers questions.
        drop(self.terminal.answers());
        self.scrolled()
    }

    /// Changes the size; returns the lines that no longer fit.
    pub fn resize(&mut self, size: Size) -> Vec<String> {
        if size != self.terminal.size() {
            self.terminal.resize(size);
        }
        self.scrolled()
    }

    /// Returns whether a full-screen program has the terminal.
    #[must_use]
    pub fn is_alternate(&self) -> bool {
        self.terminal.screen.main.is_some()
    }

    /// Returns the lines that have not changed since the last look and were not given out yet. The cursor's
    /// line does not count: it is still being written.
    pub fn settle(&mut self) -> SettledLines {
        if self.is_alternate() {
            return SettledLines { lines: Vec::new(), calm: true };
        }
        let grid = &mut self.terminal.screen.grid;
        let (cursor, used) = (usize::from(grid.cursor.row), used(grid));
        let mut settled = SettledLines { lines: Vec::new(), calm: true };
        for row in grid.rows.iter_mut().take(used).enumerate().filter(|(at, _)| *at != cursor) {
            let text = row.1.text();
            let told = row.1.told.get_or_insert_default();
            if told.seen != text {
                told.seen = text;
                settled.calm = false;
            } else if is_new(told, &text) {
                told.given = Some(text.clone());
                settled.lines.push(text);
            }
        }
        settled
    }

    /// Ends the transcript; returns everything on the screen that was not given out yet.
    #[must_use]
    pub fn finish(self) -> Vec<String> {
        let screen = &self.terminal.screen;
        screen.main.iter().map(|main| &**main).chain([&screen.grid]).flat_map(rest).collect()
    }

    fn scrolled(&mut self) -> Vec<String> {
        let rows = self.terminal.screen.scrolled.as_mut().map(std::mem::take).unwrap_or_default();
        rows.iter().filter_map(not_given).collect()
    }
}

/// Returns the number of lines down to the cursor or the last line that is not empty.
fn used(grid: &Grid) -> usize {
    grid.written().max(usize::from(grid.cursor.row))
}

fn rest(grid: &Grid) -> Vec<String> {
    grid.rows.iter().take(grid.written()).filter_map(not_given).collect()
}

fn not_given(row: &ScreenRow) -> Option<String> {
    let text = row.text();
    row.told.as_deref().is_none_or(|told| is_new(told, &text)).then_some(text)
}

/// Returns whether a line has something new to say; one that was erased after it was given out has not.
fn is_new(told: &LineHistory, text: &str) -> bool {
    told.given.as_deref().is_none_or(|given| given != text && !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript() -> Transcript {
        Transcript::new(Size::new(4, 20))
    }

    fn given(transcript: &mut Transcript) -> Vec<String> {
        let first = transcript.settle();
        let mut second = transcript.settle();
        second.lines.splice(0..0, first.lines);
        second.lines
    }

    #[test]
    fn lines_are_given_once_in_order_whether_they_rest_or_scroll_away() {
        let mut all = Vec::new();
        let mut transcript = transcript();
        for number in 0..10 {
            all.extend(transcript.feed(format!("line {number}\r\n").as_bytes()));
            if number % 3 == 0 {
                all.extend(given(&mut transcript));
            }
        }
        all.extend(transcript.finish());
        assert_eq!(all, (0..10).map(|number| format!("line {number}")).collect::<Vec<_>>());
    }

    #[test]
    fn a_line_is_given_when_it_rests_and_again_when_it_changed() {
        let mut transcript = transcript();
        transcript.feed(b"10%\r\nprompt> ");
        assert!(!transcript.settle().calm);
        transcript.feed(b"\x1b[1;1H50%\x1b[2;9H");
        assert_eq!(transcript.settle(), SettledLines { lines: vec![], calm: false });
        assert_eq!(transcript.settle(), SettledLines { lines: vec!["50%".into()], calm: true });
        assert_eq!(transcript.settle(), SettledLines { lines: vec![], calm: true });
        transcript.feed(b"\x1b[1;1H\x1b[2K50%\x1b[2;9H");
        assert_eq!(given(&mut transcript), [""; 0], "painted again, but the same");
        transcript.feed(b"\x1b[1;1H100%\x1b[2;9H");
        assert_eq!(given(&mut transcript), ["100%"]);
        assert_eq!(transcript.finish(), ["prompt>"]);
    }

    #[test]
    fn the_alternate_screen_is_given_at_the_end_and_forgotten_when_it_is_left() {
        let mut transcript = transcript();
        transcript.feed(b"before\r\n\x1b[?1049h\x1b[Hfull\r\nscreen");
        assert!(transcript.is_alternate());
        assert_eq!(given(&mut transcript), [""; 0]);
        assert_eq!(transcript.finish(), ["before", "full", "screen"]);
        let mut transcript = self::transcript();
        transcript.feed(b"before\r\n\x1b[?1049hfull\x1b[?1049lafter");
        assert_eq!(transcript.finish(), ["before", "after"]);
    }

    #[test]
    fn lines_that_find_no_room_after_a_resize_are_given() {
        let mut transcript = transcript();
        assert_eq!(transcript.feed(b"a\r\nb\r\nc\r\nd"), [""; 0]);
        assert_eq!(transcript.resize(Size::new(2, 20)), ["a", "b"]);
        assert_eq!(transcript.finish(), ["c", "d"]);
    }

    #[test]
    fn nothing_that_is_moved_away_is_not_a_line() {
        let mut transcript = transcript();
        assert_eq!(transcript.feed(b"a\r\nb\x1b[999S\x1b[999S\x1b[999S"), ["a", "b"]);
        assert_eq!(transcript.finish(), [""; 0]);
    }

    #[test]
    fn only_what_leaves_a_region_at_the_top_has_scrolled_away() {
        let mut transcript = transcript();
        transcript.feed(b"a\r\nb\r\nc\r\nfoot\x1b[1;3r\x1b[3;1H");
        assert_eq!(transcript.feed(b"\n"), ["a"], "the region begins at the top");
        transcript.feed(b"\x1b[2;3r\x1b[3;1H");
        assert_eq!(transcript.feed(b"\n"), [""; 0], "this one does not");
    }
}
