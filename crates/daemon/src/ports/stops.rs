//! Stops that were carried out while nothing could be recorded. They are in a file whose space is already
//! allocated, so that a full disk does not lose them if the daemon ends before there is room.
//!
//! Each session has one line of fixed length with a checksum: a torn one counts as empty. A line applies to
//! the run that was the last one then, and to earlier ones: it does not stop what was started since.

use pinfold_core::RunNumber;
use pinfold_kernel::checksum::checksum;
use pinfold_store::SessionId;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The length of a line: an id, a letter, a number, a checksum.
const LINE: usize = 64;
/// More sessions than anyone stops one by one.
const LINES: usize = 1024;

/// What a session was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopWish {
    /// A person stopped it.
    Stop,
    /// The daemon went down.
    Down,
}

/// One stop that may not be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotedStop {
    pub(crate) session: SessionId,
    pub(crate) wish: StopWish,
    /// The last run decided at the time.
    pub(crate) run: RunNumber,
}

/// The file, and its content.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    path: PathBuf,
    lines: Vec<Option<NotedStop>>,
}

impl Stops {
    /// Reads what an earlier daemon left, and makes the file if there is none.
    pub(crate) fn open(path: PathBuf) -> io::Result<Stops> {
        let mut bytes = vec![0; LINE * LINES];
        match File::open(&path).and_then(|file| file.read_exact_at(&mut bytes, 0)) {
            Ok(()) => {}
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::UnexpectedEof].contains(&error.kind()) => {
                make(&path)?;
            }
            Err(error) => return Err(error),
        }
        Ok(Stops { path, lines: bytes.chunks_exact(LINE).map(read).collect() })
    }

    /// The stops that are not settled yet.
    pub(crate) fn all(&self) -> Vec<NotedStop> {
        self.lines.iter().flatten().copied().collect()
    }

    /// Notes a stop; a person's is on disk when this returns.
    pub(crate) fn note(&mut self, noted: NotedStop) -> io::Result<()> {
        let of = |line: &Option<NotedStop>| line.is_none_or(|line| line.session == noted.session);
        // Its own line, if it has one; else the first that is free.
        let own = self.lines.iter().position(|line| line.is_some_and(|line| line.session == noted.session));
        let Some(at) = own.or_else(|| self.lines.iter().position(of)) else {
            return Err(io::Error::other("too many stops wait to be recorded"));
        };
        let file = self.write(at, &written(&noted))?;
        self.lines[at] = Some(noted);
        match noted.wish {
            StopWish::Stop => file.sync_data(),
            StopWish::Down => Ok(()),
        }
    }

    /// The stop noted of a session is now recorded, or no longer counts.
    pub(crate) fn settle(&mut self, session: SessionId) -> io::Result<()> {
        let of = |line: &Option<NotedStop>| line.is_some_and(|line| line.session == session);
        let Some(at) = self.lines.iter().position(of) else { return Ok(()) };
        self.lines[at] = None;
        self.write(at, &[0; LINE]).map(drop)
    }

    fn write(&self, at: usize, line: &[u8; LINE]) -> io::Result<File> {
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&self.path)?;
        file.write_all_at(line, (at * LINE) as u64)?;
        Ok(file)
    }
}

/// Makes the file and allocates its blocks.
fn make(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.write_all_at(&vec![0; LINE * LINES], 0)
}

fn written(noted: &NotedStop) -> [u8; LINE] {
    let wish = match noted.wish {
        StopWish::Stop => 's',
        StopWish::Down => 'd',
    };
    let text = format!("{} {wish} {:>16} ", noted.session, noted.run.0);
    let text = format!("{text}{:016x}\n", checksum(text.as_bytes()));
    let mut line = [b' '; LINE];
    line.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
    line
}

fn read(line: &[u8]) -> Option<NotedStop> {
    let text = std::str::from_utf8(line).ok()?;
    let (said, sum_of) = text.trim_end().rsplit_once(' ')?;
    let said = format!("{said} ");
    let mut words = said.split_ascii_whitespace();
    let session = words.next()?.parse().ok()?;
    let wish = match words.next()? {
        "s" => StopWish::Stop,
        "d" => StopWish::Down,
        _ => return None,
    };
    let run = RunNumber(words.next()?.parse().ok()?);
    (u64::from_str_radix(sum_of, 16).ok()? == checksum(said.as_bytes())).then_some(NotedStop {
        session,
        wish,
        run,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_store::Ulid;

    fn noted(session: u64, run: u64) -> NotedStop {
        let session = SessionId(Ulid::new(1_700_000_000_000, u128::from(session)));
        NotedStop { session, wish: StopWish::Stop, run: RunNumber(run) }
    }

    #[test]
    fn a_stop_is_read_back_until_it_is_settled_and_takes_no_more_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stops");
        let mut stops = Stops::open(path.clone()).unwrap();
        let length = std::fs::metadata(&path).unwrap().len();
        for line in [noted(1, 4), noted(2, u64::MAX / 2_000), noted(1, 5)] {
            stops.note(line).unwrap();
        }
        let mut again = Stops::open(path.clone()).unwrap();
        assert_eq!(again.all(), [noted(1, 5), noted(2, u64::MAX / 2_000)]);
        again.settle(noted(1, 0).session).unwrap();
        again.note(NotedStop { wish: StopWish::Down, ..noted(3, 1) }).unwrap();
        let last = Stops::open(path.clone()).unwrap().all();
        assert_eq!(last, [NotedStop { wish: StopWish::Down, ..noted(3, 1) }, noted(2, u64::MAX / 2_000)]);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), length);
    }

    #[test]
    fn a_torn_line_says_nothing_and_a_full_file_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stops");
        let mut stops = Stops::open(path.clone()).unwrap();
        stops.note(noted(1, 4)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for byte in 0..LINE - 2 {
            let mut torn = whole.clone();
            torn[byte] ^= 1;
            std::fs::write(&path, &torn).unwrap();
            assert_eq!(Stops::open(path.clone()).unwrap().all(), [], "byte {byte}");
        }
        for session in 2..=LINES as u64 {
            stops.note(NotedStop { wish: StopWish::Down, ..noted(session, 1) }).unwrap();
        }
        stops.note(noted(LINES as u64 + 1, 1)).unwrap_err();
    }
}
