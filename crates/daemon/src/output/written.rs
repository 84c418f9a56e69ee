//! Where the output of a session's agents is: in its log, or on the tape if they have a protocol.

use pinfold_core::RunNumber;
use pinfold_shim::log::{self, LogEntry, Position, Stream};
use pinfold_shim::tape::{self, TapeContent};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Where output was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Written {
    /// To a file, by shims that do not interpret it.
    Log(PathBuf),
    /// To the segments in a folder.
    Tape(PathBuf),
}

/// Reads output piece by piece.
pub(crate) enum Pieces {
    Log(log::LogReader),
    Tape(tape::TapeReader),
}

impl Written {
    /// Reads from a position on.
    pub(crate) fn from(&self, position: Position) -> Pieces {
        match self {
            Written::Log(path) => Pieces::Log(log::LogReader::from(path, position)),
            Written::Tape(folder) => Pieces::Tape(tape::TapeReader::from(folder, position)),
        }
    }

    /// The last pieces, with at least this many lines in them if there are as many.
    pub(crate) fn tail(&self, lines: usize, only: Option<RunNumber>) -> Result<Vec<LogEntry>, Errno> {
        match self {
            Written::Log(path) => log::tail(path, lines, only),
            Written::Tape(_) => self.tail_of_tape(lines, only),
        }
    }

    /// A file in the folder that is written to when more comes.
    pub(crate) fn watched(&self) -> PathBuf {
        match self {
            Written::Log(path) => path.clone(),
            Written::Tape(folder) => {
                // Otherwise a follower of a session before its first run would wait for the folder in vain.
                _ = std::fs::DirBuilder::new().mode(0o700).create(folder);
                folder.join("any")
            }
        }
    }

    /// A tape is read forwards: it is short, because what was heard of it is dropped.
    fn tail_of_tape(&self, lines: usize, only: Option<RunNumber>) -> Result<Vec<LogEntry>, Errno> {
        let mut pieces = self.from(Position(0));
        let (mut last, mut ends) = (VecDeque::<LogEntry>::new(), 0);
        while let Some(entry) = pieces.entry()? {
            if only.is_some_and(|only| only != entry.run) {
                continue;
            }
            ends += line_ends(&entry);
            last.push_back(entry);
            while last.front().is_some_and(|first| ends - line_ends(first) >= lines) {
                ends -= last.pop_front().as_ref().map_or(0, line_ends);
            }
        }
        Ok(last.into())
    }
}

fn line_ends(entry: &LogEntry) -> usize {
    entry.bytes.iter().filter(|byte| **byte == b'\n').count()
}

impl Pieces {
    /// The next piece, or `None` if there is none yet.
    pub(crate) fn entry(&mut self) -> Result<Option<LogEntry>, Errno> {
        match self {
            Pieces::Log(reader) => reader.entry(),
            Pieces::Tape(reader) => loop {
                match reader.entry()? {
                    None => return Ok(None),
                    Some(entry) => {
                        if let Some(piece) = piece(&entry) {
                            return Ok(Some(piece));
                        }
                    }
                }
            },
        }
    }

    /// Where the next piece will be.
    pub(crate) fn position(&self) -> Position {
        match self {
            Pieces::Log(reader) => reader.position(),
            Pieces::Tape(reader) => reader.position(),
        }
    }
}

/// What the agent printed, from an entry of a tape; what it was told is in its inbox.
fn piece(entry: &tape::TapeEntry<'_>) -> Option<LogEntry> {
    let (stream, bytes, lost) = match entry.what {
        TapeContent::Out(bytes) => (Stream::Out, bytes.to_vec(), entry.lost),
        TapeContent::Error(bytes) => (Stream::Error, bytes.to_vec(), entry.lost),
        TapeContent::Gap(lost) => (Stream::Lost, Vec::new(), entry.lost + lost),
        TapeContent::Said { .. } | TapeContent::End => return None,
    };
    let (position, at, run) = (entry.position, entry.at, entry.run);
    Some(LogEntry { position, at, run, stream, bytes, terminal: None, lost })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_core::Wall;
    use pinfold_shim::SayNumber;
    use pinfold_shim::tape::{SegmentLimits, Tape};

    #[test]
    fn what_an_agent_printed_is_read_from_its_tape_and_what_was_said_to_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tape");
        let mut tape = Tape::open(&path, SegmentLimits::default()).unwrap();
        let said = TapeContent::Said { number: SayNumber(1), label: "close", bytes: b"secret\n" };
        let rows = [
            (1, TapeContent::Out(b"one\n")),
            (1, said),
            (1, TapeContent::Error(b"two\n")),
            (1, TapeContent::End),
        ];
        for (run, what) in rows.into_iter().chain([(2, TapeContent::Out(b"three\nfour\n"))]) {
            tape.append(Wall(1), RunNumber(run), what).unwrap();
        }
        let written = Written::Tape(path);
        let texts = |lines, only: Option<u64>| {
            let entries = written.tail(lines, only.map(RunNumber)).unwrap();
            entries.iter().map(|entry| String::from_utf8_lossy(&entry.bytes).into_owned()).collect::<String>()
        };
        assert_eq!(texts(10, None), "one\ntwo\nthree\nfour\n");
        assert_eq!((texts(10, Some(1)), texts(2, None)), ("one\ntwo\n".into(), "three\nfour\n".into()));
        assert_eq!(texts(1, Some(1)), "two\n");
        let mut pieces = written.from(Position(0));
        let first = pieces.entry().unwrap().unwrap();
        let mut again = written.from(first.position);
        assert_eq!(again.entry().unwrap().unwrap(), first);
        assert_eq!(again.position(), pieces.position());
    }
}
