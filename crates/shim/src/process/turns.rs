//! Turns: which message the agent has taken, and the line by which it says that it is done.
//!
//! Only a line that begins in the turn counts, and only on standard output. The shim reads it because the
//! shim is always there: a line printed while no daemon is connected counts too.

use crate::crash;
use crate::files::log::{Position, Stream};
use crate::files::turn::{DoneLine, LONGEST_ANSWER, Turn};
use crate::protocol::report::Report;
use pinfold_core::ids::{MessageId, RunNumber};
use std::path::{Path, PathBuf};

/// The beginning of the last line of a turn.
const MARK: &[u8] = b"PINFOLD_DONE";

/// Most marks outside turns that are reported in a run: an agent may print nothing else.
const MOST_STRAYS: u8 = 16;

/// The current turn, or the last one.
#[derive(Debug)]
pub(super) struct Turns {
    records: PathBuf,
    /// Whether its turns end with a line.
    says_done: bool,
    /// The delivery whose turn ends with a line.
    expected: Option<(MessageId, u32)>,
    latest: Option<Turn>,
    line: Line,
    strays: u8,
}

/// How far the current line was read.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// This much of the mark was there so far.
    Begins(usize),
    /// It has no mark, or began before the turn.
    Other,
    /// It has the mark; the rest of it so far, and whether that is complete.
    Marked(Vec<u8>, bool),
}

/// What a line with the mark means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MarkedLine {
    /// The current turn is over, unless the line names another message.
    Answer { answer: Vec<u8>, whole: bool, named: Option<MessageId> },
    /// Nothing, because no turn is under way.
    Stray { named: Option<MessageId> },
}

impl Turns {
    pub(super) fn new(records: &Path, says_done: bool) -> Self {
        let line = Line::Begins(0);
        Self { records: records.to_owned(), says_done, expected: None, latest: None, line, strays: 0 }
    }

    /// Notes that the turn of this delivery will end with a line.
    pub(super) fn expect(&mut self, message: MessageId, attempt: u32) {
        self.says_done = true;
        self.expected = Some((message, attempt));
    }

    /// The agent has taken a delivery; a repeated report is ignored.
    pub(super) fn taken(&mut self, run: RunNumber, message: MessageId, attempt: u32, from: Position) {
        if self.latest.as_ref().is_some_and(|turn| turn.is(run, message, attempt)) {
            return;
        }
        let turn = Turn { run, message, attempt, from, done: None };
        // If the disk fails, this record is lost, but the daemon is told as well.
        let _ = turn.store(&self.records);
        self.latest = Some(turn);
        self.line.leave_behind();
    }

    /// Returns the log's position when this delivery was taken.
    pub(super) fn begin_of(&self, run: RunNumber, message: MessageId, attempt: u32) -> Position {
        let turn = self.latest.as_ref().filter(|turn| turn.is(run, message, attempt));
        turn.map_or(Position(0), |turn| turn.from)
    }

    /// Returns the report on a turn that has ended.
    pub(super) fn ended(&self, run: RunNumber, message: MessageId, attempt: u32) -> Option<Report> {
        let turn =
            self.latest.as_ref().filter(|turn| turn.is(run, message, attempt) && turn.done.is_some())?;
        Some(Report::TurnDone(Box::new(turn.clone())))
    }

    /// Reads output up to the end of the first line with the mark; returns where that is, and what it means.
    pub(super) fn hear(&mut self, stream: Stream, bytes: &[u8]) -> Option<(usize, MarkedLine)> {
        match stream {
            Stream::Out => {}
            Stream::Error | Stream::Lost => return None,
        }
        if !self.says_done {
            self.line.pass(bytes);
            return None;
        }
        let (end, text, whole) = self.line.read(bytes)?;
        Some((end, self.judge(text, whole)))
    }

    /// Ends the output, and with it the last line.
    pub(super) fn hear_end(&mut self) -> Option<MarkedLine> {
        let Line::Marked(text, whole) = std::mem::replace(&mut self.line, Line::Begins(0)) else {
            return None;
        };
        Some(self.judge(text, whole))
    }

    /// Judges the rest of a line with the mark.
    fn judge(&self, text: Vec<u8>, whole: bool) -> MarkedLine {
        let first = first_id(&text);
        match (self.awaited(), first) {
            (None, first) => MarkedLine::Stray { named: first.map(|(named, _)| named) },
            (Some(message), Some((named, end))) if named == message => {
                MarkedLine::Answer { answer: text[end..].to_vec(), whole, named: None }
            }
            (Some(_), first) => {
                MarkedLine::Answer { answer: text, whole, named: first.map(|(named, _)| named) }
            }
        }
    }

    /// Records the end of the current turn; returns what to report.
    pub(super) fn done(&mut self, done: DoneLine) -> Option<Report> {
        let turn = self.latest.as_mut()?;
        // A line that may be about another message does not end the wait for this one.
        if done.named.is_none() {
            self.expected = None;
        }
        turn.done = Some(done);
        let _ = turn.store(&self.records);
        crash::point("turn.stored");
        Some(Report::TurnDone(Box::new(turn.clone())))
    }

    /// Returns the report on a mark outside a turn, unless there were many already.
    pub(super) fn stray(&mut self, run: RunNumber, named: Option<MessageId>) -> Option<Report> {
        self.strays = self.strays.saturating_add(1);
        (self.strays <= MOST_STRAYS).then_some(Report::StrayDone { run, named })
    }

    /// Returns the message of the current turn, if a line ends that.
    fn awaited(&self) -> Option<MessageId> {
        let open = |turn: &&Turn| turn.done.as_ref().is_none_or(|done| done.named.is_some());
        let turn = self.latest.as_ref().filter(open)?;
        (self.expected == Some((turn.message, turn.attempt))).then_some(turn.message)
    }
}

impl Line {
    /// Skips these bytes; only their last one matters, for whether a line begins.
    fn pass(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            *self = if *last == b'\n' { Line::Begins(0) } else { Line::Other };
        }
    }

    /// A turn begins: a line that began before is not part of it.
    fn leave_behind(&mut self) {
        if *self != Line::Begins(0) {
            *self = Line::Other;
        }
    }

    /// Reads up to the end of a line with the mark; returns where it ends, its rest, and whether that is
    /// complete.
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
                            *self = Line::Marked(Vec::new(), true);
                        }
                    } else {
                        *self = Line::Other;
                    }
                }
                Line::Other => {
                    at += end_of_line(rest)? + 1;
                    *self = Line::Begins(0);
                }
                Line::Marked(text, whole) => {
                    let end = end_of_line(rest);
                    *whole &= keep(text, &rest[..end.unwrap_or(rest.len())]);
                    let end = end?;
                    let (text, whole) = (std::mem::take(text), *whole);
                    *self = Line::Begins(0);
                    return Some((at + end + 1, text, whole));
                }
            }
        }
        None
    }
}

/// Returns the id that a text begins with, and where it ends.
fn first_id(text: &[u8]) -> Option<(MessageId, usize)> {
    let begin = text.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let length = text[begin..].iter().position(u8::is_ascii_whitespace).unwrap_or(text.len() - begin);
    Some((MessageId::in_word(&text[begin..begin + length])?, begin + length))
}

fn end_of_line(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

/// Appends as much as an answer may have; returns whether that was everything.
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
        let mut turns = Turns::new(&folder.path().join("exits"), true);
        turns.expect(MESSAGE, 1);
        turns
    }

    fn take(turns: &mut Turns) {
        turns.taken(RUN, MESSAGE, 1, Position(0));
    }

    /// Returns everything that is taken for an answer when these pieces are printed.
    fn answers(turns: &mut Turns, pieces: &[&[u8]]) -> Vec<(usize, String)> {
        let mut heard = Vec::new();
        for piece in pieces {
            let mut at = 0;
            while let Some((end, said)) = turns.hear(Stream::Out, &piece[at..]) {
                at += end;
                if let Some(answer) = end_turn(turns, said) {
                    heard.push((at, answer));
                }
            }
        }
        heard
    }

    /// Ends the turn with what was heard, if it was an answer.
    fn end_turn(turns: &mut Turns, heard: MarkedLine) -> Option<String> {
        let MarkedLine::Answer { answer, whole, named } = heard else { return None };
        turns.done(DoneLine { to: Position(0), answer: answer.clone(), whole, named });
        let named = named.map(|named| format!("{named:?}")).unwrap_or_default();
        Some(named + &String::from_utf8_lossy(&answer))
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
        // A line that began before the turn is not part of it.
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
        let (end, heard) = turns.hear(Stream::Out, b"b\nrest").unwrap();
        let MarkedLine::Answer { answer, whole, named: None } = heard else { panic!("{heard:?}") };
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

    /// The id of these tests' message, and another one.
    const OWN: &str = "00000000000000000000000005";
    const OTHER: &str = "00000000000000000000000006";

    #[test]
    fn a_line_that_names_its_message_ends_its_turn_and_the_id_is_not_part_of_the_answer() {
        for (line, answer) in [
            (format!("PINFOLD_DONE {OWN} all done\n"), " all done"),
            (format!("PINFOLD_DONE  {OWN}\n"), ""),
            (format!("PINFOLD_DONE {OWN}\r\n"), "\r"),
            (format!("PINFOLD_DONE {OWN}x all\n"), " 00000000000000000000000005x all"),
            (format!("PINFOLD_DONE \"{OTHER}\"\n"), " \"00000000000000000000000006\""),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut turns = turns(&folder);
            take(&mut turns);
            assert_eq!(answers(&mut turns, &[line.as_bytes()]), [(line.len(), answer.to_owned())], "{line}");
            assert_eq!(turns.awaited(), None);
        }
    }

    #[test]
    fn a_line_that_names_another_message_is_told_and_the_turn_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut turns = turns(&folder);
        take(&mut turns);
        let text = format!("PINFOLD_DONE {OTHER} late\nPINFOLD_DONE {OWN} right\nPINFOLD_DONE again\n");
        let heard = answers(&mut turns, &[text.as_bytes()]);
        let expected = ["MessageId(6) 00000000000000000000000006 late", " right"];
        assert_eq!(heard.iter().map(|(_, answer)| answer.as_str()).collect::<Vec<_>>(), expected);
        let stored = Turn::latest(&folder.path().join("exits")).unwrap().done.unwrap();
        assert_eq!((stored.named, &stored.answer[..]), (None, b" right".as_slice()));
    }

    #[test]
    fn the_end_of_the_output_ends_a_line() {
        for (text, answer) in [
            ("PINFOLD_DONE all done", Some(" all done")),
            ("PINFOLD_DONE", Some("")),
            ("PINFOLD_DON", None),
            ("noise", None),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut turns = turns(&folder);
            take(&mut turns);
            assert!(turns.hear(Stream::Out, text.as_bytes()).is_none());
            let heard = turns.hear_end().and_then(|heard| end_turn(&mut turns, heard));
            assert_eq!(heard.as_deref(), answer, "{text}");
            assert_eq!(turns.hear_end(), None, "once");
        }
    }

    #[test]
    fn a_mark_outside_of_a_turn_is_told_so_often_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let mut turns = turns(&folder);
        let (_, early) = turns.hear(Stream::Out, b"PINFOLD_DONE early\n").unwrap();
        assert_eq!(early, MarkedLine::Stray { named: None });
        let named = format!("PINFOLD_DONE {OTHER}\n");
        let (_, early) = turns.hear(Stream::Out, named.as_bytes()).unwrap();
        assert_eq!(early, MarkedLine::Stray { named: Some(MessageId(6)) });
        let told = (0..100).filter(|_| turns.stray(RUN, None).is_some()).count();
        assert_eq!(told, usize::from(MOST_STRAYS));
        let mut silent = Turns::new(&folder.path().join("exits"), false);
        assert_eq!(silent.hear(Stream::Out, b"PINFOLD_DONE early\n"), None, "an agent without such turns");
    }
}
