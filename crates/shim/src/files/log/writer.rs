//! Writes the log. No failure here stops an agent: what cannot be written is counted.

use super::format::{FILE_HEAD, FileHead, HEAD, MOST, RecordHead, aged};
use super::{Position, Stream};
use crate::protocol::start::LogLimits;
use pinfold_core::ids::RunNumber;
use pinfold_core::time::Wall;
use pinfold_terminal::Size;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The log of a session, open for its one writer.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    limits: LogLimits,
    state: State,
    /// Bytes that could not be written since the last record.
    lost: u64,
    /// The position at which the log continues.
    end: Position,
    /// The size of the terminal being printed on, if any.
    terminal: Option<Size>,
}

#[derive(Debug)]
enum State {
    Open(File),
    /// Opening is tried again with every write.
    Closed,
}

#[derive(Debug)]
struct File {
    fd: OwnedFd,
    base: u64,
    length: u64,
    last: u32,
}

impl Log {
    /// Opens the log for appending. If that fails, it is tried again with every write.
    #[must_use]
    pub fn open(path: &Path, limits: LogLimits) -> Self {
        let mut log = Self {
            path: path.to_owned(),
            limits,
            state: State::Closed,
            lost: 0,
            end: Position(0),
            terminal: None,
        };
        // An older file knows how far the log had come, even if the current one is damaged.
        log.end = super::reader::end(path);
        log.reopen();
        log
    }

    /// Changes the limits, from the next record on.
    pub fn limit(&mut self, limits: LogLimits) {
        self.limits = limits;
    }

    /// Records what is printed on from now on: a terminal of a size, or none.
    pub fn printed_on(&mut self, terminal: Option<Size>) {
        self.terminal = terminal;
    }

    /// Returns the position at which the log continues.
    #[must_use]
    pub fn end(&self) -> Position {
        self.end
    }

    /// Returns how many bytes could not be written since the last record.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Appends what an agent printed; returns its position, and where the log continues. The two are equal if
    /// it could not be written.
    pub fn append(&mut self, at: Wall, run: RunNumber, stream: Stream, bytes: &[u8]) -> (Position, Position) {
        let begin = self.end;
        for part in bytes.chunks(MOST) {
            if self.say_lost(at, run).and_then(|()| self.record(at, run, stream, part)).is_err() {
                self.lost += part.len() as u64;
            }
        }
        (begin, self.end)
    }

    fn say_lost(&mut self, at: Wall, run: RunNumber) -> Result<(), Errno> {
        if self.lost > 0 {
            self.record(at, run, Stream::Lost, &self.lost.to_le_bytes())?;
            self.lost = 0;
        }
        Ok(())
    }

    fn record(&mut self, at: Wall, run: RunNumber, stream: Stream, bytes: &[u8]) -> Result<(), Errno> {
        self.make_room(bytes.len())?;
        let State::Open(file) = &mut self.state else { return Err(Errno::BADF) };
        let head = RecordHead {
            length: bytes.len() as u32,
            before: file.last,
            stream,
            at,
            run,
            terminal: self.terminal,
        };
        file.append(&head.to_bytes(), bytes)?;
        file.last = head.whole() as u32;
        self.end = Position(file.base + file.length);
        Ok(())
    }

    fn make_room(&mut self, more: usize) -> Result<(), Errno> {
        if let State::Closed = self.state {
            self.reopen();
        }
        match &self.state {
            State::Closed => Err(Errno::BADF),
            State::Open(file) if file.length + (HEAD + more) as u64 <= self.limits.file_bytes => Ok(()),
            // Even with a limit below one record, every file gets one.
            State::Open(file) if file.length <= FILE_HEAD => Ok(()),
            State::Open(_) => self.rotate(),
        }
    }

    fn rotate(&mut self) -> Result<(), Errno> {
        self.settle();
        self.state = State::Closed;
        let oldest = self.limits.files.max(1) - 1;
        for age in (0..oldest).rev() {
            match rustix::fs::rename(aged(&self.path, age), aged(&self.path, age + 1)) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        if oldest == 0 {
            rustix::fs::unlink(&self.path)?;
        }
        self.state = State::Open(File::create(&self.path, self.end.0)?);
        self.end = Position(self.end.0 + FILE_HEAD);
        Ok(())
    }

    fn reopen(&mut self) {
        let opened = match File::open(&self.path) {
            Ok(Some(file)) => Ok(file),
            // Missing, empty or not a log: a new file replaces it.
            Ok(None) => File::create(&self.path, self.end.0),
            Err(errno) => Err(errno),
        };
        if let Ok(file) = opened {
            self.end = Position(file.base + file.length);
            self.state = State::Open(file);
        }
    }

    /// Records that the file ends with a whole record here, so that it need not be walked through.
    pub fn settle(&mut self) {
        if let State::Open(file) = &self.state {
            let head = FileHead { base: file.base, clean: file.length, last: file.last };
            // If this fails, the next reader or writer walks through the file.
            let _ = rustix::io::pwrite(&file.fd, &head.to_bytes(), 0);
        }
    }
}

impl File {
    fn create(path: &Path, base: u64) -> Result<Self, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = Self { fd, base, length: 0, last: 0 };
        file.append(&FileHead { base, clean: 0, last: 0 }.to_bytes(), &[])?;
        Ok(file)
    }

    /// Opens a file for appending; `None` if there is none that could be appended to.
    fn open(path: &Path) -> Result<Option<Self>, Errno> {
        let fd =
            match rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(fd) => fd,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(errno),
            };
        let size = rustix::fs::fstat(&fd)?.st_size.unsigned_abs();
        let Some(head) = super::reader::file_head(&fd)? else { return Ok(None) };
        let (length, last) = if head.clean == size && size >= FILE_HEAD {
            (size, head.last)
        } else {
            // The last writer was killed, so its last record may be torn.
            super::reader::walk(&fd, size)?
        };
        rustix::fs::ftruncate(&fd, length)?;
        Ok(Some(Self { fd, base: head.base, length, last }))
    }

    fn append(&mut self, head: &[u8], bytes: &[u8]) -> Result<(), Errno> {
        let written = write_both(&self.fd, head, bytes, self.length);
        match written {
            Ok(()) => self.length += (head.len() + bytes.len()) as u64,
            // Half a record must not stay: a reader would wait for its rest.
            Err(_) => _ = rustix::fs::ftruncate(&self.fd, self.length),
        }
        written
    }
}

fn write_both(fd: &OwnedFd, mut head: &[u8], mut bytes: &[u8], mut at: u64) -> Result<(), Errno> {
    while !head.is_empty() || !bytes.is_empty() {
        match rustix::io::pwritev(fd, &[IoSlice::new(head), IoSlice::new(bytes)], at) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(count) => {
                let of_head = count.min(head.len());
                (head, bytes) = (&head[of_head..], &bytes[count - of_head..]);
                at += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

impl Drop for Log {
    fn drop(&mut self) {
        self.settle();
    }
}
