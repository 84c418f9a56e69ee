//! The output of agents, as lines: of a pipe as they came, of a terminal as its screen showed them.

use crate::output::lines::OutputLines;
use pinfold_api::object::LogLine;
use pinfold_core::{RunNumber, Wall};
use pinfold_shim::Size;
use pinfold_shim::log::{LogEntry, Stream};
use pinfold_terminal::Transcript;

/// The line for followers of a full-screen program, sent once.
const FULL_SCREEN: &str = "[a full-screen program has the terminal: `pinfold attach` shows it]";

/// How a terminal's output is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sequences {
    /// As the screen showed it: no sequence is left.
    Obeyed,
    /// As it was printed.
    Kept,
}

/// Assembles lines from the pieces in which agents print them.
pub(crate) struct PrintedOutput {
    pub(crate) lines: OutputLines,
    sequences: Sequences,
    /// The size for records that do not have one: logs of the previous version.
    usual: Option<Size>,
    screen: Option<Screen>,
}

/// The terminal of a run.
struct Screen {
    run: RunNumber,
    at: Wall,
    transcript: Transcript,
    full_screen_said: bool,
}

impl PrintedOutput {
    /// `pty` says whether the session has a terminal of its own.
    pub(crate) fn new(lines: OutputLines, sequences: Sequences, pty: bool) -> PrintedOutput {
        PrintedOutput { lines, sequences, usual: pty.then(Size::default), screen: None }
    }

    /// Whether a piece is shown as on a screen: then everything before it matters.
    pub(crate) fn is_screen(&self, entry: &LogEntry) -> bool {
        self.size(entry).is_some()
    }

    fn size(&self, entry: &LogEntry) -> Option<Size> {
        match (self.sequences, entry.stream) {
            (Sequences::Obeyed, Stream::Out) => entry.terminal.or(self.usual),
            (Sequences::Obeyed | Sequences::Kept, _) => None,
        }
    }

    /// Takes one piece and returns the lines that it completes.
    pub(crate) fn push(&mut self, entry: &LogEntry) -> Vec<LogLine> {
        let mut lines = Vec::new();
        if !self.lines.shows(entry.run) {
            return lines;
        }
        if self.screen.as_ref().is_some_and(|screen| screen.run != entry.run) {
            lines.extend(self.leave());
        }
        let Some(size) = self.size(entry) else {
            lines.extend(self.lines.push(entry));
            return lines;
        };
        lines.extend(self.lines.missing(entry));
        let (run, at) = (entry.run, entry.at);
        let fresh = || Screen { run, at, transcript: Transcript::new(size), full_screen_said: false };
        let screen = self.screen.get_or_insert_with(fresh);
        screen.at = at;
        let mut texts = screen.transcript.resize(size);
        texts.extend(screen.transcript.feed(&entry.bytes));
        lines.extend(texts.iter().map(|text| self.lines.line(run, Stream::Out, at, text)));
        lines
    }

    /// Looks at the screen; returns what has settled on it, and whether more may come without a new piece.
    pub(crate) fn settle(&mut self) -> (Vec<LogLine>, bool) {
        let Some(screen) = &mut self.screen else { return (Vec::new(), true) };
        let settled = screen.transcript.settle();
        let line = |text: &String| self.lines.line(screen.run, Stream::Out, screen.at, text);
        let mut lines: Vec<LogLine> = settled.lines.iter().map(line).collect();
        let alternate = screen.transcript.is_alternate();
        if alternate && !screen.full_screen_said {
            lines.push(self.lines.line(screen.run, Stream::Lost, screen.at, FULL_SCREEN));
        }
        screen.full_screen_said = alternate;
        (lines, settled.calm)
    }

    /// Returns the unfinished lines.
    pub(crate) fn finish(&mut self) -> Vec<LogLine> {
        let mut lines = self.leave();
        lines.extend(self.lines.finish());
        lines
    }

    /// Returns what is left on the screen of a run that is over.
    fn leave(&mut self) -> Vec<LogLine> {
        let Some(Screen { run, at, transcript, .. }) = self.screen.take() else { return Vec::new() };
        let texts = transcript.finish();
        texts.iter().map(|text| self.lines.line(run, Stream::Out, at, text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_shim::log::Position;
    use std::collections::BTreeMap;

    fn piece(run: u64, terminal: Option<Size>, text: &str) -> LogEntry {
        let bytes = text.as_bytes().to_vec();
        let (run, stream) = (RunNumber(run), Stream::Out);
        LogEntry { position: Position(0), at: Wall(0), run, stream, bytes, terminal, lost: 0 }
    }

    fn printed(sequences: Sequences, pty: bool) -> PrintedOutput {
        PrintedOutput::new(OutputLines::new(BTreeMap::new(), None), sequences, pty)
    }

    fn texts(lines: Vec<LogLine>) -> Vec<String> {
        lines.into_iter().map(|line| format!("{}:{}", line.stream, line.text)).collect()
    }

    #[test]
    fn a_terminal_is_read_as_a_screen_and_a_pipe_as_it_is() {
        let size = Some(Size::new(24, 80));
        let mut printed = printed(Sequences::Obeyed, false);
        assert!(texts(printed.push(&piece(1, size, "10%\r\x1b[c\x1b[31m100%\x1b[m\r\n$ "))).is_empty());
        let next = printed.push(&piece(2, None, "\x1b[31mred\x1b[m\n"));
        assert_eq!(texts(next), ["stdout:100%", "stdout:$", "stdout:\x1b[31mred\x1b[m"]);
    }

    #[test]
    fn what_is_wanted_raw_is_not_touched() {
        let mut printed = printed(Sequences::Kept, true);
        let lines = printed.push(&piece(1, Some(Size::new(24, 80)), "\x1b[31mred\r\n"));
        assert_eq!(texts(lines), ["stdout:\x1b[31mred"]);
    }

    #[test]
    fn a_log_of_before_is_read_by_what_the_session_is() {
        let mut printed = printed(Sequences::Obeyed, true);
        assert!(printed.push(&piece(1, None, "one\rtwo")).is_empty());
        assert_eq!(texts(printed.finish()), ["stdout:two"]);
    }

    #[test]
    fn a_full_screen_program_is_named_once_to_whoever_follows() {
        let mut printed = printed(Sequences::Obeyed, true);
        printed.push(&piece(1, None, "\x1b[?1049hmenu"));
        assert_eq!(texts(printed.settle().0), [format!("note:{FULL_SCREEN}")]);
        assert_eq!(texts(printed.settle().0), [""; 0]);
        assert_eq!(texts(printed.finish()), ["stdout:menu"]);
    }
}
