//! Lines of output for people: whose they are, when they came, and where another run begins.

use crate::output::{Paper, Shade, Words, moment, output, print};
use pinfold_api::object::LogLine;
use pinfold_api::word::Stream;
use pinfold_core::visible::visible_line;
use std::io::IsTerminal;

/// How the lines of one session are printed.
pub(crate) struct Printed {
    words: Words,
    /// What stands before each line: the session, where there are several.
    before: Option<String>,
    times: bool,
    /// Whether somebody looks on.
    people: bool,
    run: Option<String>,
}

impl Printed {
    pub(crate) fn new(words: Words, before: Option<String>, times: bool) -> Printed {
        Printed { words, before, times, people: std::io::stdout().is_terminal(), run: None }
    }

    /// Prints one line; on a terminal a mark stands between two runs.
    pub(crate) fn print(&mut self, line: &LogLine) {
        let paper = Paper::stdout();
        let another = self.run.as_ref().is_some_and(|run| *run != line.run);
        if another && self.people && self.words == Words::Plain {
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
        // What went to standard error is told from the rest by its look alone: it may be moved and counted like any line.
        if line.stream == Stream::Stderr && self.people && self.words == Words::Plain {
            let plain = pinfold_terminal::plain(line.text.trim_end_matches('\r'));
            print(&format!("{}\n", paper.paint(&visible_line(&plain), Shade::Busy)));
            return;
        }
        output(&line.text, self.words);
    }
}
