//! Assembles lines from the pieces in which agents print them.

use crate::clock::time;
use pinfold_api::object::LogLine;
use pinfold_api::word;
use pinfold_core::{RunNumber, Wall};
use pinfold_shim::log::{LogEntry, Stream};
use std::collections::BTreeMap;

/// A line without an end is shown once it is this long.
const LONGEST: usize = 64 << 10;

/// Lines that are not complete yet, for each run and stream.
#[derive(Default)]
pub(crate) struct OutputLines {
    partial: BTreeMap<(RunNumber, u8), (Wall, Vec<u8>)>,
    runs: BTreeMap<RunNumber, String>,
    only: Option<RunNumber>,
}

impl OutputLines {
    pub(crate) fn new(runs: BTreeMap<RunNumber, String>, only: Option<RunNumber>) -> OutputLines {
        OutputLines { partial: BTreeMap::new(), runs, only }
    }

    /// Sets the id of a run.
    pub(crate) fn name(&mut self, run: RunNumber, name: String) {
        self.runs.entry(run).or_insert(name);
    }

    /// Whether the output of a run is wanted.
    pub(crate) fn shows(&self, run: RunNumber) -> bool {
        self.only.is_none_or(|only| only == run)
    }

    /// The line that reports missing bytes before a piece.
    pub(crate) fn missing(&self, entry: &LogEntry) -> Option<LogLine> {
        let text = || format!("[{} bytes of output are missing here]", entry.lost);
        (entry.lost > 0).then(|| self.line(entry.run, Stream::Lost, entry.at, &text()))
    }

    /// Takes one piece and returns the lines that it completes.
    pub(crate) fn push(&mut self, entry: &LogEntry) -> Vec<LogLine> {
        if !self.shows(entry.run) {
            return Vec::new();
        }
        let mut lines: Vec<LogLine> = self.missing(entry).into_iter().collect();
        let key = (entry.run, order(entry.stream));
        let (mut at, mut partial) = self.partial.remove(&key).unwrap_or((entry.at, Vec::new()));
        for piece in entry.bytes.split_inclusive(|byte| *byte == b'\n') {
            partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") || partial.len() >= LONGEST {
                lines.push(self.line(entry.run, entry.stream, at, &text_of(&partial)));
                partial.clear();
                at = entry.at;
            }
        }
        if !partial.is_empty() {
            self.partial.insert(key, (at, partial));
        }
        lines
    }

    /// Returns the unfinished lines.
    pub(crate) fn finish(&mut self) -> Vec<LogLine> {
        let partial = std::mem::take(&mut self.partial);
        let line = |((run, stream), (at, bytes)): ((RunNumber, u8), (Wall, Vec<u8>))| {
            let stream = if stream == 0 { Stream::Out } else { Stream::Error };
            self.line(run, stream, at, &text_of(&bytes))
        };
        partial.into_iter().map(line).collect()
    }

    /// One line of a run.
    pub(crate) fn line(&self, run: RunNumber, stream: Stream, at: Wall, text: &str) -> LogLine {
        let stream = match stream {
            Stream::Out => word::Stream::Stdout,
            Stream::Error => word::Stream::Stderr,
            Stream::Lost => word::Stream::Note,
        };
        let run = self.runs.get(&run).cloned().unwrap_or_default();
        LogLine { at: time(at), run, stream, text: text.to_owned() }
    }
}

fn text_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.strip_suffix('\n').map_or(&*text, |line| line.strip_suffix('\r').unwrap_or(line)).to_owned()
}

fn order(stream: Stream) -> u8 {
    match stream {
        Stream::Out => 0,
        Stream::Error => 1,
        Stream::Lost => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_shim::log::Position;

    fn piece(stream: Stream, text: &str) -> LogEntry {
        let bytes = text.as_bytes().to_vec();
        LogEntry {
            position: Position(0),
            at: Wall(0),
            run: RunNumber(1),
            stream,
            bytes,
            terminal: None,
            lost: 0,
        }
    }

    fn texts(lines: Vec<LogLine>) -> Vec<String> {
        lines.into_iter().map(|line| format!("{}:{}", line.stream, line.text)).collect()
    }

    #[test]
    fn lines_are_put_together_from_pieces_for_each_stream() {
        let mut lines = OutputLines::new(BTreeMap::new(), None);
        assert!(lines.push(&piece(Stream::Out, "hel")).is_empty());
        assert!(lines.push(&piece(Stream::Error, "oops")).is_empty());
        assert_eq!(texts(lines.push(&piece(Stream::Out, "lo\r\nwor"))), ["stdout:hello"]);
        assert_eq!(texts(lines.push(&piece(Stream::Out, "ld\n\n"))), ["stdout:world", "stdout:"]);
        assert_eq!(texts(lines.finish()), ["stderr:oops"]);
        assert!(lines.finish().is_empty());
    }

    #[test]
    fn other_runs_are_left_out_and_gaps_are_said() {
        let mut lines = OutputLines::new(BTreeMap::new(), Some(RunNumber(2)));
        assert!(lines.push(&piece(Stream::Out, "x\n")).is_empty());
        let mut lines = OutputLines::new(BTreeMap::new(), None);
        let gap = LogEntry { lost: 7, ..piece(Stream::Out, "x\n") };
        assert_eq!(texts(lines.push(&gap)), ["note:[7 bytes of output are missing here]", "stdout:x"]);
    }
}
