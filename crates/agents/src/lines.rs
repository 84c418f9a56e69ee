//! Puts the lines of one stream together from entries that may end anywhere.
//!
//! An unfinished line is only in memory; what is stored is where it began, and a resumed fold reads it again
//! from there. A line over the limit is skipped, and only the fact that it is being skipped is stored.

use serde::{Deserialize, Serialize};

/// Longer lines of output are skipped, and their turn fails.
pub const LONGEST_LINE: usize = 32 << 20;

/// A buffer that grew beyond this is freed after its line.
const KEPT_CAPACITY: usize = 64 << 10;

/// The lines of one stream.
#[derive(Debug)]
pub(crate) struct LineReader {
    longest: usize,
    progress: LineProgress,
    /// The unfinished line, as far as it was read.
    buffer: Vec<u8>,
}

/// How far the current line was read; this is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LineProgress {
    /// No line has begun.
    #[default]
    Between,
    /// A line has begun and is not finished.
    Within(Begun),
    /// The rest of this line is ignored.
    Skipping,
}

/// An unfinished line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// Position of the entry in which it begins.
    pub(crate) position: u64,
    /// Offset in that entry.
    pub(crate) offset: usize,
    /// How many bytes of it were read.
    pub(crate) length: usize,
}

/// A finding in the bytes of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LinePiece<'a> {
    /// A line, without its newline.
    Line {
        bytes: &'a [u8],
        /// Position of the entry in which it began.
        began: u64,
    },
    /// A line over the limit; reported once, as soon as it exceeds the limit.
    TooLong,
    /// The part of the unfinished line that was read is no longer on the tape.
    Lost,
}

impl LineReader {
    pub(crate) fn new(longest: usize) -> LineReader {
        LineReader { longest, progress: LineProgress::Between, buffer: Vec::new() }
    }

    /// Continues from a cursor; an unfinished line is then read [again](Lines::again).
    pub(crate) fn resume(longest: usize, progress: LineProgress) -> LineReader {
        LineReader { longest, progress, buffer: Vec::new() }
    }

    pub(crate) fn progress(&self) -> LineProgress {
        self.progress
    }

    /// Returns the position from which the tape is still needed, if a line is unfinished.
    pub(crate) fn needed_from(&self) -> Option<u64> {
        match self.progress {
            LineProgress::Within(begun) => Some(begun.position),
            LineProgress::Between | LineProgress::Skipping => None,
        }
    }

    /// Returns how many bytes of the unfinished line are in memory.
    pub(crate) fn holding(&self) -> usize {
        self.buffer.len()
    }

    /// Reads an entry a second time: only what belongs to the unfinished line counts.
    pub(crate) fn again(&mut self, position: u64, bytes: &[u8]) {
        let LineProgress::Within(begun) = self.progress else { return };
        // The unfinished line is complete already, or the entry precedes it.
        if self.buffer.len() >= begun.length || position < begun.position {
            return;
        }
        let from = if position == begun.position { begun.offset.min(bytes.len()) } else { 0 };
        self.buffer.extend_from_slice(&bytes[from..]);
    }

    /// Reads an entry, and reports each piece in it.
    pub(crate) fn read(&mut self, position: u64, bytes: &[u8], mut tell: impl FnMut(LinePiece<'_>)) {
        self.check(&mut tell);
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.finish(position, &rest[..end], &mut tell);
            rest = &rest[end + 1..];
        }
        if !rest.is_empty() {
            self.go_on(Begun { position, offset: bytes.len() - rest.len(), length: 0 }, rest, &mut tell);
        }
    }

    /// Ends the output, and with it the last line.
    pub(crate) fn end(&mut self, mut tell: impl FnMut(LinePiece<'_>)) {
        self.check(&mut tell);
        match self.progress {
            LineProgress::Within(_) => self.finish(0, &[], &mut tell),
            LineProgress::Between => {}
            LineProgress::Skipping => self.progress = LineProgress::Between,
        }
    }

    /// Output is missing here: everything up to the next newline belongs to a line with an unknown beginning.
    pub(crate) fn interrupted(&mut self) {
        self.skip();
    }

    /// An unfinished line must be in memory as far as it was read, or it could be mixed up with another one.
    fn check(&mut self, tell: &mut impl FnMut(LinePiece<'_>)) {
        if let LineProgress::Within(begun) = self.progress
            && begun.length != self.buffer.len()
        {
            self.skip();
            tell(LinePiece::Lost);
        }
    }

    /// Ends the line with these bytes.
    fn finish(&mut self, position: u64, bytes: &[u8], tell: &mut impl FnMut(LinePiece<'_>)) {
        match std::mem::take(&mut self.progress) {
            LineProgress::Between if bytes.len() > self.longest => tell(LinePiece::TooLong),
            LineProgress::Between => tell(LinePiece::Line { bytes, began: position }),
            LineProgress::Within(_) if self.buffer.len() + bytes.len() > self.longest => {
                self.clear();
                tell(LinePiece::TooLong);
            }
            LineProgress::Within(begun) => {
                self.buffer.extend_from_slice(bytes);
                tell(LinePiece::Line { bytes: &self.buffer, began: begun.position });
                self.clear();
            }
            LineProgress::Skipping => {}
        }
    }

    /// Adds these bytes to the line, which goes on.
    fn go_on(&mut self, begun: Begun, bytes: &[u8], tell: &mut impl FnMut(LinePiece<'_>)) {
        let begun = match self.progress {
            LineProgress::Between => begun,
            LineProgress::Within(begun) => begun,
            LineProgress::Skipping => return,
        };
        if self.buffer.len() + bytes.len() > self.longest {
            self.skip();
            tell(LinePiece::TooLong);
            return;
        }
        self.buffer.extend_from_slice(bytes);
        self.progress = LineProgress::Within(Begun { length: self.buffer.len(), ..begun });
    }

    fn skip(&mut self) {
        self.progress = LineProgress::Skipping;
        self.clear();
    }

    fn clear(&mut self) {
        if self.buffer.capacity() > KEPT_CAPACITY {
            self.buffer = Vec::new();
        } else {
            self.buffer.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is reported when these entries are read in order.
    fn told(lines: &mut LineReader, entries: &[&[u8]]) -> Vec<String> {
        let mut told = Vec::new();
        let mut position = 0;
        for entry in entries {
            lines.read(position, entry, |piece| told.push(text(&piece)));
            position += 40 + entry.len() as u64;
        }
        told
    }

    fn text(piece: &LinePiece<'_>) -> String {
        match piece {
            LinePiece::Line { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
            LinePiece::TooLong => "TOO LONG".into(),
            LinePiece::Lost => "LOST".into(),
        }
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let output = b"one\n\ntwo and more than ten\nthree\nrest";
        let expected = ["one", "", "TOO LONG", "three"];
        for cut in 0..=output.len() {
            for second in cut..=output.len() {
                let mut lines = LineReader::new(10);
                let pieces: [&[u8]; 3] = [&output[..cut], &output[cut..second], &output[second..]];
                assert_eq!(told(&mut lines, &pieces), expected, "cut at {cut} and {second}");
                assert_eq!(lines.holding(), 4);
            }
        }
        let single: Vec<&[u8]> = output.chunks(1).collect();
        assert_eq!(told(&mut LineReader::new(10), &single), expected);
    }

    #[test]
    fn a_line_at_the_bound_is_whole_and_one_byte_more_is_too_long() {
        for (output, expected) in [("0123456789\n", "0123456789"), ("0123456789A\n", "TOO LONG")] {
            assert_eq!(told(&mut LineReader::new(10), &[output.as_bytes()]), [expected]);
            let single: Vec<&[u8]> = output.as_bytes().chunks(1).collect();
            assert_eq!(told(&mut LineReader::new(10), &single), [expected]);
        }
    }

    #[test]
    fn a_line_over_the_bound_is_told_before_it_ends_and_is_not_kept() {
        let mut lines = LineReader::new(10);
        assert_eq!(told(&mut lines, &[b"0123456789", b"A"]), ["TOO LONG"]);
        assert_eq!((lines.progress(), lines.holding()), (LineProgress::Skipping, 0));
        assert_eq!(told(&mut lines, &[b"more", b" of it\nnext\n"]), ["next"]);
    }

    #[test]
    fn an_unfinished_line_is_read_again_from_where_it_began() {
        let entries: [&[u8]; 4] = [b"one\ntw", b"o an", b"d th", b"ree\nfour\n"];
        for stop in 0..entries.len() {
            let mut first = LineReader::new(100);
            let mut before = told(&mut first, &entries[..stop]);
            let mut second = LineReader::resume(100, first.progress());
            let mut position = 0;
            for (index, entry) in entries.iter().enumerate() {
                if index < stop {
                    second.again(position, entry);
                } else {
                    second.read(position, entry, |piece| before.push(text(&piece)));
                }
                position += 40 + entry.len() as u64;
            }
            assert_eq!(before, ["one", "two and three", "four"], "stopped before entry {stop}");
        }
    }

    #[test]
    fn a_line_whose_beginning_is_no_longer_there_does_not_count() {
        let mut first = LineReader::new(100);
        told(&mut first, &[b"one\ntw"]);
        let mut second = LineReader::resume(100, first.progress());
        assert_eq!(told(&mut second, &[b"o\nthree\n"]), ["LOST", "three"]);
        let mut third = LineReader::resume(100, first.progress());
        let mut ends = Vec::new();
        third.end(|piece| ends.push(text(&piece)));
        assert_eq!((ends, third.progress()), (vec!["LOST".to_owned()], LineProgress::Between));
    }

    #[test]
    fn what_follows_missing_output_counts_from_the_next_line_on() {
        let mut lines = LineReader::new(100);
        told(&mut lines, &[b"begi"]);
        lines.interrupted();
        assert_eq!(told(&mut lines, &[b"nning\nnext\n"]), ["next"]);
        lines.interrupted();
        assert_eq!(told(&mut lines, &[b"maybe half\nnext\n"]), ["next"]);
    }

    #[test]
    fn the_end_of_the_output_ends_a_line() {
        for (output, expected) in [("last", vec!["last"]), ("last\n", vec![]), ("far too long", vec![])] {
            let mut lines = LineReader::new(8);
            told(&mut lines, &[output.as_bytes()]);
            let mut ends = Vec::new();
            lines.end(|piece| ends.push(text(&piece)));
            assert_eq!(ends, expected, "{output}");
            lines.end(|piece| ends.push(text(&piece)));
            assert_eq!(ends, expected, "once");
        }
    }

    #[test]
    fn the_memory_of_a_long_line_is_given_back() {
        let mut lines = LineReader::new(1 << 20);
        told(&mut lines, &[&vec![b'x'; 1 << 20], b"\n"]);
        assert!(lines.buffer.capacity() <= KEPT_CAPACITY);
    }
}
