//! Output for people: aligned, coloured on a terminal, cut to its width.

use std::io::IsTerminal;

/// What a cell means, and so how it looks on a terminal.
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

/// How a state looks.
pub(crate) fn shade_of(state: &str) -> Shade {
    match state {
        "running" | "held" => Shade::Good,
        "starting" | "stopping" | "backoff" | "blocked" => Shade::Busy,
        "failed" => Shade::Bad,
        "idle" | "stopped" | "archived" => Shade::Faint,
        _ => Shade::Plain,
    }
}

/// One cell of a table.
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) shade: Shade,
}

/// A cell without colour.
pub(crate) fn plain(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), shade: Shade::Plain }
}

/// Where the table goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paper {
    colour: bool,
    width: Option<usize>,
}

impl Paper {
    /// Standard output, as it is.
    pub(crate) fn stdout() -> Paper {
        let terminal = std::io::stdout().is_terminal();
        let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok();
        let width =
            size.filter(|_| terminal).map(|size| usize::from(size.ws_col)).filter(|width| *width > 20);
        Paper { colour, width }
    }

    /// The table, a line each; the last column takes what is left of the width.
    pub(crate) fn table(self, heads: &[&str], rows: &[Vec<Cell>]) -> Vec<String> {
        let heads: Vec<Cell> =
            heads.iter().map(|head| Cell { text: (*head).to_owned(), shade: Shade::Faint }).collect();
        let all: Vec<&Vec<Cell>> = std::iter::once(&heads).chain(rows).collect();
        let widths: Vec<usize> = (0..heads.len())
            .map(|column| all.iter().map(|row| row[column].text.chars().count()).max().unwrap_or(0))
            .collect();
        all.iter().map(|row| self.row(row, &widths)).collect()
    }

    fn row(self, row: &[Cell], widths: &[usize]) -> String {
        let mut line = String::new();
        let mut used = 0;
        for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
            let last = at + 1 == row.len();
            let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(used));
            let text = cut(&cell.text, room);
            let padding = if last { 0 } else { (width + 2).saturating_sub(text.chars().count()) };
            used += text.chars().count() + padding;
            line.push_str(&self.paint(&text, cell.shade));
            line.push_str(&" ".repeat(padding.min(room)));
        }
        line.trim_end().to_owned()
    }

    /// A text as it looks here.
    pub(crate) fn paint(self, text: &str, shade: Shade) -> String {
        match shade.code().filter(|_| self.colour && !text.is_empty()) {
            Some(code) => format!("\x1b[{code}m{text}\x1b[0m"),
            None => text.to_owned(),
        }
    }
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    if room == 0 { kept } else { format!("{kept}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_the_last_is_cut_to_the_width() {
        let rows = vec![
            vec![
                plain("api"),
                Cell { text: "running".into(), shade: Shade::Good },
                plain("running for 3 min"),
            ],
            vec![plain("a-long-name"), plain("idle"), plain("")],
        ];
        let paper = Paper { colour: false, width: None };
        assert_eq!(
            paper.table(&["NAME", "STATE", "WHY"], &rows),
            ["NAME         STATE    WHY", "api          running  running for 3 min", "a-long-name  idle"]
        );
        let narrow = Paper { colour: false, width: Some(30) };
        assert_eq!(narrow.table(&["NAME", "STATE", "WHY"], &rows)[1], "api          running  running…");
        let colours = Paper { colour: true, width: None };
        assert!(colours.table(&["NAME", "STATE", "WHY"], &rows)[1].contains("\x1b[32mrunning\x1b[0m"));
    }
}
