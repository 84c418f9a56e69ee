//! Reads the log: from a position on, or its last lines. Takes no lock and disturbs no writer.

use super::format::{FILE_HEAD, FileHead, HEAD, RecordHead, aged};
use super::{Position, Stream};
use pinfold_core::ids::RunNumber;
use pinfold_core::time::Wall;
use pinfold_terminal::Size;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// No writer keeps more files.
const OLDEST: u32 = 1000;

/// One record of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// The record's position.
    pub position: Position,
    /// When it was written.
    pub at: Wall,
    /// The run it belongs to.
    pub run: RunNumber,
    /// The stream it came from.
    pub stream: Stream,
    /// The printed bytes; empty for [`Stream::Lost`].
    pub bytes: Vec<u8>,
    /// The size of the terminal it was printed on, if any and if known.
    pub terminal: Option<Size>,
    /// How many bytes are missing before it: never written, or removed with an old file.
    pub lost: u64,
}

/// Reads entry by entry, across renames. At the end of the log it returns `None` and can be asked again.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    position: Position,
    file: Option<Part>,
}

#[derive(Debug)]
struct Part {
    fd: OwnedFd,
    base: u64,
}

impl LogReader {
    /// Reads from a position on, or from the oldest record if that position is gone.
    #[must_use]
    pub fn from(path: &Path, position: Position) -> Self {
        Self { path: path.to_owned(), position, file: None }
    }

    /// Returns the position of the next entry.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the next entry, or `None` if there is none yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn entry(&mut self) -> Result<Option<LogEntry>, Errno> {
        let mut skipped = 0;
        loop {
            if self.file.is_none() {
                match self.find()? {
                    Some(gap) => skipped += gap,
                    None => return Ok(None),
                }
            }
            let Some(part) = &self.file else { return Ok(None) };
            let at = self.position.0 - part.base;
            if let Some((head, bytes)) = record(&part.fd, at)? {
                let position = self.position;
                self.position = Position(position.0 + head.whole());
                return Ok(Some(entry(position, &head, bytes, skipped)));
            }
            // The end of this file is the end of the log, unless there is a later file.
            let Some(base) = self.later(part.base)? else { return Ok(None) };
            // Only now is it certain that nothing more comes here: what came meanwhile is read first.
            if record(&part.fd, at)?.is_none() {
                skipped += base.saturating_sub(self.position.0);
                self.position = Position(base + FILE_HEAD);
                self.file = None;
            }
        }
    }

    /// Opens the file with the position, else the oldest one after it; returns how many bytes are gone.
    fn find(&mut self) -> Result<Option<u64>, Errno> {
        let mut best: Option<Part> = None;
        for age in 0..OLDEST {
            let Some(part) = open(&aged(&self.path, age))? else { if age == 0 { continue } else { break } };
            let holds = part.base <= self.position.0;
            best = Some(part);
            if holds {
                break;
            }
        }
        let Some(part) = best else { return Ok(None) };
        let first = part.base + FILE_HEAD;
        let gap = part.base.saturating_sub(self.position.0);
        self.position = Position(self.position.0.max(first));
        self.file = Some(part);
        Ok(Some(gap))
    }

    /// Returns the first position of the file that follows the one at `base`.
    fn later(&self, base: u64) -> Result<Option<u64>, Errno> {
        let mut next = None;
        for age in 0..OLDEST {
            match open(&aged(&self.path, age))? {
                Some(part) if part.base > base => next = Some(part.base),
                Some(_) => break,
                None if age == 0 => {}
                None => break,
            }
        }
        Ok(next)
    }
}

fn entry(position: Position, head: &RecordHead, mut bytes: Vec<u8>, mut lost: u64) -> LogEntry {
    if head.stream == Stream::Lost {
        lost += bytes.first_chunk().map_or(0, |count| u64::from_le_bytes(*count));
        bytes.clear();
    }
    let RecordHead { at, run, stream, terminal, .. } = *head;
    LogEntry { position, at, run, stream, bytes, terminal, lost }
}

/// Returns the last entries that together have at least `lines` line ends, oldest first, of one run or of
/// all.
///
/// # Errors
/// The kernel's error.
pub fn tail(path: &Path, lines: usize, run: Option<RunNumber>) -> Result<Vec<LogEntry>, Errno> {
    let mut entries = Vec::new();
    let mut ends = 0;
    for age in 0..OLDEST {
        let Some(part) = open(&aged(path, age))? else { if age == 0 { continue } else { break } };
        let (length, last) = extent(&part.fd)?;
        let mut at = length;
        let mut before = u64::from(last);
        // One more line end than lines is needed: the last line has one too.
        while before != 0 && ends <= lines {
            at -= before;
            let Some((head, bytes)) = record(&part.fd, at)? else { break };
            before = u64::from(head.before);
            if run.is_none_or(|run| run == head.run) {
                ends += bytes.iter().filter(|byte| **byte == b'\n').count();
                entries.push(entry(Position(part.base + at), &head, bytes, 0));
            }
        }
        if ends > lines {
            break;
        }
    }
    entries.reverse();
    Ok(entries)
}

/// Returns the position at which the log continues.
pub(super) fn end(path: &Path) -> Position {
    for age in 0..OLDEST {
        match open(&aged(path, age)) {
            Ok(Some(part)) => {
                let length = extent(&part.fd).map_or(FILE_HEAD, |(length, _)| length);
                return Position(part.base + length);
            }
            Ok(None) if age == 0 => {}
            Ok(None) | Err(_) => break,
        }
    }
    Position(0)
}

/// Returns the length of a file's whole records, and that of the last one.
fn extent(fd: &OwnedFd) -> Result<(u64, u32), Errno> {
    let size = rustix::fs::fstat(fd)?.st_size.unsigned_abs();
    match file_head(fd)? {
        Some(head) if head.clean == size => Ok((size, head.last)),
        Some(_) | None => walk(fd, size),
    }
}

/// Walks through the records of a file; returns how far they are whole, and the length of the last one.
pub(super) fn walk(fd: &OwnedFd, size: u64) -> Result<(u64, u32), Errno> {
    let (mut at, mut last) = (FILE_HEAD.min(size), 0);
    loop {
        let Some(head) = head(fd, at)? else { return Ok((at, last)) };
        if at + head.whole() > size {
            return Ok((at, last));
        }
        at += head.whole();
        last = head.whole() as u32;
    }
}

fn open(path: &Path) -> Result<Option<Part>, Errno> {
    match rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(fd) => Ok(file_head(&fd)?.map(|head| Part { fd, base: head.base })),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

pub(super) fn file_head(fd: &OwnedFd) -> Result<Option<FileHead>, Errno> {
    let mut bytes = [0; FILE_HEAD as usize];
    Ok(if fill(fd, &mut bytes, 0)? { FileHead::from_bytes(&bytes) } else { None })
}

fn head(fd: &OwnedFd, at: u64) -> Result<Option<RecordHead>, Errno> {
    let mut bytes = [0; HEAD];
    Ok(if fill(fd, &mut bytes, at)? { RecordHead::from_bytes(&bytes) } else { None })
}

fn record(fd: &OwnedFd, at: u64) -> Result<Option<(RecordHead, Vec<u8>)>, Errno> {
    let Some(head) = head(fd, at)? else { return Ok(None) };
    let mut bytes = vec![0; head.length as usize];
    Ok(fill(fd, &mut bytes, at + HEAD as u64)?.then_some((head, bytes)))
}

fn fill(fd: &OwnedFd, bytes: &mut [u8], at: u64) -> Result<bool, Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pread(fd, &mut bytes[done..], at + done as u64) {
            Ok(0) => return Ok(false),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(true)
}
