//! Prints log lines for people: which session and when, with a mark where another run begins.

use crate::output::{OutputStyle, Paper, Shade, moment, output, print};
use pinfold_api::object::LogLine;
use pinfold_api::word::Stream;
use pinfold_core::visible::visible_line;
use std::io::IsTerminal;

/// How to print the lines of one session.
pub(crate) struct LogPrinter {
    words: OutputStyle,
    /// The session's name, printed before each line if there are several sessions.
    before: Option<String>,
    times: bool,
    /// Whether the output is a terminal.
    people: bool,
    run: Option<String>,
}

impl LogPrinter {
    pub(crate) fn new(words: OutputStyle, before: Option<String>, times: bool) -> LogPrinter {
        LogPrinter { words, before, times, people: std::io::stdout().is_terminal(), run: None }
    }

    /// Prints one line; on a terminal, with a mark between two runs.
    pub(crate) fn print(&mut self, line: &LogLine) {
        let paper = Paper::stdout();
        let another = self.run.as_ref().is_some_and(|run| *run != line.run);
        if another && self.people && self.words == OutputStyle::Plain {
            let mark = format!("── run {} from {} ──", line.run, moment(&line.at));
            print(&format!("{}\n", paper.paint(&visible_line(&mark), Shade::Faint)));
        }
        self.run = Some(line.run.clone());
        if let Some(before) = &self.before {
            print(&paper.paint(&visible_line(before), Shade::Faint));
        }
        if self.times {
            print(&format!("{} ", paper.paint(&moment(&line.at), Shade::Faint)));
        }
        // Only the colour tells stderr from the rest, so that its lines can be moved and counted like any other.
        if line.stream == Stream::Stderr && self.people && self.words == OutputStyle::Plain {
            let plain = pinfold_terminal::plain(line.text.trim_end_matches('\r'));
            print(&format!("{}\n", paper.paint(&visible_line(&plain), Shade::Busy)));
            return;
        }
        output(&line.text, self.words);
    }
}
