//! Output for people: aligned, coloured on a terminal, cut to its width.

use pinfold_core::visible::visible;
use std::borrow::Cow;
use std::io::IsTerminal;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The initial capacity for a line; few are longer.
const LINE: usize = 100;

/// What a cell means, which decides its colour on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shade {
    Plain,
    Good,
    Busy,
    Bad,
    Faint,
}

impl Shade {
    fn code(self) -> Option<&'static str> {
        match self {
            Shade::Plain => None,
            Shade::Good => Some("32"),
            Shade::Busy => Some("33"),
            Shade::Bad => Some("31"),
            Shade::Faint => Some("2"),
        }
    }
}

/// One cell of a table.
pub(crate) struct TableCell<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) shade: Shade,
}

impl<'a> TableCell<'a> {
    /// A row with everything a terminal would obey made visible.
    pub(super) fn visible<'b>(row: &'b [TableCell<'a>]) -> Vec<TableCell<'b>> {
        row.iter().map(|cell| TableCell { text: visible(&cell.text), shade: cell.shade }).collect()
    }
}

/// A cell without colour.
pub(crate) fn plain<'a>(text: impl Into<Cow<'a, str>>) -> TableCell<'a> {
    TableCell { text: text.into(), shade: Shade::Plain }
}

/// What a table is written to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paper {
    colour: bool,
    width: Option<usize>,
}

impl Paper {
    /// Standard output, with its width and colours.
    pub(crate) fn stdout() -> Paper {
        let terminal = std::io::stdout().is_terminal();
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let colour =
            terminal && variable("NO_COLOR").is_none() && variable("TERM").is_some_and(|term| term != "dumb");
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok();
        let width =
            size.filter(|_| terminal).map(|size| usize::from(size.ws_col)).filter(|width| *width > 20);
        Paper { colour, width }
    }

    /// Unlimited width and no colour: for output that programs often read.
    pub(crate) fn endless() -> Paper {
        Paper { colour: false, width: None }
    }

    /// Paper with these properties.
    #[cfg(test)]
    pub(crate) fn of(colour: bool, width: Option<usize>) -> Paper {
        Paper { colour, width }
    }

    /// The number of columns, if limited.
    pub(crate) fn width(self) -> Option<usize> {
        self.width
    }

    /// The table as text; the last column gets the remaining width.
    pub(crate) fn table<const N: usize>(self, heads: [&str; N], rows: &[[TableCell<'_>; N]]) -> String {
        self.lines(&heads, rows)
    }

    /// The same with any number of columns.
    pub(super) fn lines<'a, R: AsRef<[TableCell<'a>]>>(self, heads: &[&'a str], rows: &[R]) -> String {
        let heads: Vec<TableCell<'_>> =
            heads.iter().map(|head| TableCell { text: (*head).into(), shade: Shade::Faint }).collect();
        let seen: Vec<Vec<TableCell<'_>>> = std::iter::once(&heads[..])
            .chain(rows.iter().map(AsRef::as_ref))
            .map(TableCell::visible)
            .collect();
        let taken = |row: &Vec<TableCell<'_>>| row.iter().map(|cell| columns(&cell.text)).collect();
        let taken: Vec<Vec<usize>> = seen.iter().map(taken).collect();
        let widest = |column: usize| taken.iter().map(|row| row[column]).max().unwrap_or(0);
        let widths: Vec<usize> = (0..heads.len()).map(widest).collect();
        let mut text = String::with_capacity(LINE * (rows.len() + 1));
        for (row, taken) in seen.iter().zip(&taken) {
            self.write_row(row.iter().zip(taken).zip(&widths), &mut text);
        }
        text
    }

    /// Writes the cells of a row; each comes with the columns it needs and the width of its column.
    fn write_row<'a>(
        self,
        row: impl Iterator<Item = ((&'a TableCell<'a>, &'a usize), &'a usize)>,
        text: &mut String,
    ) {
        let mut used = 0;
        for ((cell, &taken), width) in row {
            let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(used));
            let (cut, taken) = match cell.text.as_ref() {
                whole if taken <= room => (whole.into(), taken),
                long => {
                    let cut = cut(long, room);
                    let taken = columns(&cut);
                    (cut, taken)
                }
            };
            let padding = (width + 2 - taken).min(room - taken);
            used += taken + padding;
            text.push_str(&self.paint(&cut, cell.shade));
            text.extend(std::iter::repeat_n(' ', padding));
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }

    /// A line that may be coloured, cut to the paper's width.
    pub(crate) fn cut_line(self, line: &str) -> String {
        self.cut_to(line, self.width.unwrap_or(usize::MAX))
    }

    /// The same, cut to this many columns if the paper's width is limited.
    pub(crate) fn cut_to(self, line: &str, width: usize) -> String {
        if self.width.is_none() || columns(&unpainted(line)) <= width {
            return line.to_owned();
        }
        let (mut kept, mut used, mut painting) = (String::new(), 1, false);
        for character in line.chars() {
            painting |= character == '\x1b';
            used += if painting { 0 } else { character.width().unwrap_or(1) };
            if used <= width {
                kept.push(character);
            }
            painting &= character != 'm';
        }
        kept + "…"
    }

    /// A text in its colour, where colours are on.
    pub(crate) fn paint(self, text: &str, shade: Shade) -> Cow<'_, str> {
        match shade.code().filter(|_| self.colour && !text.is_empty()) {
            Some(code) => format!("\x1b[{code}m{text}\x1b[0m").into(),
            None => text.into(),
        }
    }
}

/// The columns a terminal needs for a text; many characters take two, some none.
pub(crate) fn columns(text: &str) -> usize {
    // Most texts are printable ASCII. The fold looks at every byte instead of stopping early, so that it is
    // vectorised.
    let is_plain = text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    if is_plain { text.len() } else { text.width() }
}

/// A text without the colours it was given here.
fn unpainted(text: &str) -> String {
    let mut painting = false;
    let seen = text.chars().filter(|character| {
        painting |= *character == '\x1b';
        let shown = !painting;
        painting &= *character != 'm';
        shown
    });
    seen.collect()
}

/// Cuts a text to this many columns, if it needs more.
pub(crate) fn cut(text: &str, room: usize) -> Cow<'_, str> {
    let end = end_within(text, room.saturating_sub(1));
    if room == 0 { "".into() } else { format!("{}…", &text[..end]).into() }
}

/// Cuts a text at its front to this many columns, if it needs more.
pub(crate) fn cut_front(text: &str, room: usize) -> String {
    let mut used = 1;
    let kept = text.chars().rev().take_while(|character| {
        used += character.width().unwrap_or(1);
        used <= room
    });
    let kept: usize = kept.map(char::len_utf8).sum();
    if room == 0 { String::new() } else { format!("…{}", &text[text.len() - kept..]) }
}

/// Where to end a text so that it needs at most this many columns.
fn end_within(text: &str, room: usize) -> usize {
    let mut used = 0;
    let fits = |character: &char| {
        used += character.width().unwrap_or(1);
        used <= room
    };
    text.chars().take_while(fits).map(char::len_utf8).sum()
}

/// The beginning of a text, on one line of at most `most` columns.
pub(crate) fn preview(text: &str, most: usize) -> Cow<'_, str> {
    let (kept, more) =
        if columns(text) > most { (&text[..end_within(text, most)], "…") } else { (text, "") };
    if more.is_empty() && !kept.contains(char::is_control) {
        return kept.into();
    }
    format!("{}{more}", kept.replace(char::is_control, " ")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_the_last_is_cut_to_the_width() {
        let rows = [
            [
                plain("api"),
                TableCell { text: "running".into(), shade: Shade::Good },
                plain("running for 3 min"),
            ],
            [plain("a-long-name"), plain("idle"), plain("")],
        ];
        let table = |colour, width| Paper { colour, width }.table(["NAME", "STATE", "WHY"], &rows);
        assert_eq!(
            table(false, None),
            "NAME         STATE    WHY\napi          running  running for 3 min\na-long-name  idle\n"
        );
        assert_eq!(table(false, Some(30)).lines().nth(1), Some("api          running  running…"));
        assert!(table(true, None).contains("\x1b[32mrunning\x1b[0m"));
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let rows = [[plain("a-name-of-25-letters-or-so"), plain("idle"), plain("why")]];
        let table = Paper { colour: false, width: Some(21) }.table(["NAME", "STATE", "WHY"], &rows);
        assert!(table.lines().all(|line| columns(line) <= 21), "{table}");
    }

    #[test]
    fn characters_of_two_columns_and_of_none_are_aligned_too() {
        let rows = [
            [plain("会議"), plain("idle")],
            [plain("e\u{301}tude"), plain("held")],
            [plain("abc"), plain("held")],
        ];
        let table = Paper { colour: false, width: None }.table(["NAME", "STATE"], &rows);
        assert_eq!(table, "NAME   STATE\n会議   idle\ne\u{301}tude  held\nabc    held\n");
        let table = Paper { colour: false, width: Some(8) }.table(["NAME", "STATE"], &rows);
        assert!(table.lines().all(|line| columns(line) <= 8), "{table}");
    }

    #[test]
    fn a_path_is_cut_at_its_front() {
        assert_eq!(cut_front("/home/u/src/api", 8), "…src/api");
        assert_eq!(cut_front("/会議/会議", 6), "…/会議");
        assert_eq!(cut_front("/会議/会議", 5), "…会議");
        assert_eq!((cut_front("/a", 1), cut_front("/a", 0)), ("…".to_owned(), String::new()));
    }

    #[test]
    fn a_preview_is_one_line_and_says_when_there_is_more() {
        assert_eq!(preview("two\nlines", 24), "two lines");
        assert_eq!(preview("éééé", 4), "éééé");
        assert_eq!(preview("éé\té\u{1b}", 4), "éé é…");
    }
}
