//! Turns: which message the agent has taken, and the line by which it says that it is done with it.
//!
//! Only a line that begins in the turn counts, and only on standard output. The shim reads it because the shim
//! is always there: what is printed while no daemon is connected counts as well.

use crate::log::{Position, Stream};
use crate::report::Report;
use crate::turn::{Done, LONGEST_ANSWER, Turn};
use pinfold_core::ids::{MessageId, RunNumber};
use std::path::{Path, PathBuf};

/// What the last line of a turn begins with.
const MARK: &[u8] = b"PINFOLD_DONE";

/// The turn under way, or the last one.
#[derive(Debug)]
pub(super) struct Turns {
    records: PathBuf,
    /// The delivery whose turn ends with a line.
    expected: Option<(MessageId, u32)>,
    latest: Option<Turn>,
    line: Line,
}

/// How far the present line was read.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// So much of the mark was there so far.
    Begins(usize),
    /// It is not the last one of a turn.
    Other,
    /// It is; this much of the answer was there so far, and whether that is all of it.
    Answer(Vec<u8>, bool),
}

impl Turns {
    pub(super) fn new(records: &Path) -> Self {
        Self { records: records.to_owned(), expected: None, latest: None, line: Line::Begins(0) }
    }

    /// The turn of this delivery will end with a line.
    pub(super) fn expect(&mut self, message: MessageId, attempt: u32) {
        self.expected = Some((message, attempt));
    }

    /// The agent has taken a delivery; what is reported again was taken before.
    pub(super) fn taken(&mut self, run: RunNumber, message: MessageId, attempt: u32, from: Position) {
        if self.latest.as_ref().is_some_and(|turn| turn.is(run, message, attempt)) {
            return;
        }
        let turn = Turn { run, message, attempt, from, done: None };
        // A disk that fails costs what nobody may need; the daemon is told as well.
        let _ = turn.store(&self.records);
        self.latest = Some(turn);
    }

    /// Where the log stood when this delivery was taken.
    pub(super) fn begin_of(&self, run: RunNumber, message: MessageId, attempt: u32) -> Position {
        let turn = self.latest.as_ref().filter(|turn| turn.is(run, message, attempt));
        turn.map_or(Position(0), |turn| turn.from)
    }

    /// What is said of a turn that has ended.
    pub(super) fn ended(&self, run: RunNumber, message: MessageId, attempt: u32) -> Option<Report> {
        let turn =
            self.latest.as_ref().filter(|turn| turn.is(run, message, attempt) && turn.done.is_some())?;
        Some(Report::TurnDone(Box::new(turn.clone())))
    }

    /// Reads what was printed; says where the turn under way ends in it, if it does.
    pub(super) fn hear(&mut self, stream: Stream, bytes: &[u8]) -> Option<(usize, Vec<u8>, bool)> {
        match stream {
            Stream::Out => {}
            Stream::Error | Stream::Lost => return None,
        }
        if self.is_awaited() {
            return self.line.read(bytes);
        }
        self.line.pass(bytes);
        None
    }

    /// Notes the end of the turn under way, and gives what is to be reported.
    pub(super) fn done(&mut self, to: Position, answer: Vec<u8>, whole: bool) -> Option<Report> {
        let turn = self.latest.as_mut()?;
        turn.done = Some(Done { to, answer, whole });
        let _ = turn.store(&self.records);
        self.expected = None;
        Some(Report::TurnDone(Box::new(turn.clone())))
    }

    fn is_awaited(&self) -> bool {
        let turn = self.latest.as_ref().filter(|turn| turn.done.is_none());
        turn.is_some_and(|turn| self.expected == Some((turn.message, turn.attempt)))
    }
}

impl Line {
    /// Goes on to where the last of these bytes leave the line, which no turn is interested in.
    fn pass(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            *self = if *last == b'\n' { Line::Begins(0) } else { Line::Other };
        }
    }

    /// Reads up to the end of a line that has the mark: where it ends, its answer, and whether that is whole.
    fn read(&mut self, bytes: &[u8]) -> Option<(usize, Vec<u8>, bool)> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self {
                Line::Begins(matched) => {
                    let wanted = &MARK[*matched..];
                    let both = wanted.len().min(rest.len());
                    if rest[..both] == wanted[..both] {
                        *matched += both;
                        at += both;
                        if *matched == MARK.len() {
                            *self = Line::Answer(Vec::new(), true);
                        }
                    } else {
                        *self = Line::Other;
                    }
                }
                Line::Other => {
                    at += end_of_line(rest)? + 1;
                    *self = Line::Begins(0);
                }
                Line::Answer(answer, whole) => {
                    let end = end_of_line(rest);
                    *whole &= keep(answer, &rest[..end.unwrap_or(rest.len())]);
                    let end = end?;
                    let (answer, whole) = (std::mem::take(answer), *whole);
                    *self = Line::Begins(0);
                    let behind = at + end + 1;
                    self.pass(&bytes[behind..]);
                    return Some((behind, answer, whole));
                }
            }
        }
        None
    }
}

fn end_of_line(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

/// Adds as much as an answer may have; says whether that was all.
fn keep(answer: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let room = LONGEST_ANSWER - answer.len();
    answer.extend_from_slice(&bytes[..bytes.len().min(room)]);
    bytes.len() <= room
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunNumber = RunNumber(1);
    const MESSAGE: MessageId = MessageId(5);

    fn turns(folder: &tempfile::TempDir) -> Turns {
        let mut turns = Turns::new(&folder.path().join("exits"));
        turns.expect(MESSAGE, 1);
        turns
    }

    fn take(turns: &mut Turns) {
        turns.taken(RUN, MESSAGE, 1, Position(0));
    }

    /// Everything that was heard as an answer when these pieces are printed.
    fn answers(turns: &mut Turns, pieces: &[&[u8]]) -> Vec<(usize, String)> {
        let mut heard = Vec::new();
        for piece in pieces {
            if let Some((end, answer, _)) = turns.hear(Stream::Out, piece) {
                turns.done(Position(0), answer.clone(), true);
                heard.push((end, String::from_utf8_lossy(&answer).into_owned()));
            }
        }
        heard
    }

    #[test]
    fn the_line_is_found_however_it_is_cut_into_pieces() {
        let text = b"noise\nPINFOLD_DON\n PINFOLD_DONE no\nPINFOLD_DONE yes it is\nmore\nPINFOLD_DONE late\n";
        let end = text.windows(9).position(|part| part == b"yes it is").unwrap() + 10;
        for cut in 0..text.len() {
            for second in cut..text.len().min(cut + 20) {
                let folder = tempfile::tempdir().unwrap();
                let mut turns = turns(&folder);
                take(&mut turns);
                let pieces: [&[u8]; 3] = [&text[..cut], &text[cut..second], &text[second..]];
                let heard = answers(&mut turns, &pieces);
                let before: usize = [0, cut, second].into_iter().filter(|start| *start < end).max().unwrap();
                assert_eq!(heard, [(end - before, " yes it is".to_owned())], "cut at {cut} and {second}");
            }
        }
    }

    #[test]
    fn what_is_printed_outside_of_a_turn_ends_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut turns = turns(&folder);
        assert!(answers(&mut turns, &[b"PINFOLD_DONE early\n"]).is_empty());
        assert!(answers(&mut turns, &[b"PINFOLD_"]).is_empty());
        take(&mut turns);
        // A line that began before the turn is none of the turn's.
        assert!(answers(&mut turns, &[b"DONE half\n"]).is_empty());
        assert!(turns.hear(Stream::Error, b"PINFOLD_DONE on stderr\n").is_none());
        assert_eq!(answers(&mut turns, &[b"PINFOLD_DONE\n"]), [(13, String::new())]);
        assert!(answers(&mut turns, &[b"PINFOLD_DONE again\n"]).is_empty());
    }

    #[test]
    fn long_lines_and_any_bytes_pass_and_an_answer_has_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let mut turns = turns(&folder);
        take(&mut turns);
        let flood: Vec<u8> =
            (0..3 << 20).map(|n: u32| if n % 251 == 10 { 0 } else { (n % 251) as u8 }).collect();
        assert!(turns.hear(Stream::Out, &flood).is_none());
        assert!(turns.hear(Stream::Out, b"\nPINFOLD_DONE").is_none());
        let long = vec![b'a'; LONGEST_ANSWER + 1];
        assert!(turns.hear(Stream::Out, &long).is_none());
        let (end, answer, whole) = turns.hear(Stream::Out, b"b\nrest").unwrap();
        assert_eq!((end, answer.len(), whole), (2, LONGEST_ANSWER, false));
    }

    #[test]
    fn a_turn_that_ended_is_told_again_to_whoever_delivers_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut turns = turns(&folder);
        take(&mut turns);
        assert_eq!(turns.ended(RUN, MESSAGE, 1), None);
        answers(&mut turns, &[b"PINFOLD_DONE x\n"]);
        turns.taken(RUN, MESSAGE, 1, Position(99));
        assert!(turns.ended(RUN, MESSAGE, 1).is_some());
        assert_eq!(turns.ended(RUN, MESSAGE, 2), None);
        assert_eq!(Turn::latest(&folder.path().join("exits")).unwrap().done.unwrap().answer, b" x");
    }
}
