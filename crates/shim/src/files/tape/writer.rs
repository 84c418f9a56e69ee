//! Writes a tape. A failed write is an error here: the shim decides whether to make the agent wait or to
//! count the loss.

use super::format::{EntryHead, HEAD, SEGMENT_HEAD, TapeContent, segment_head};
use super::{Position, segments};
use crate::crash;
use crate::protocol::say::SayNumber;
use pinfold_core::ids::RunNumber;
use pinfold_core::time::Wall;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Most printed bytes in one entry: one read of a pipe.
pub const MOST_OUTPUT: usize = 64 << 10;
/// Positions count bytes that were written one by one; none comes near this.
const HIGHEST: u64 = 1 << 62;

/// The limits of a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentLimits {
    /// A segment of this size gets a successor.
    pub segment_bytes: u64,
    /// How many heard bytes are kept, in whole segments, for looking back.
    pub kept_bytes: u64,
}

impl Default for SegmentLimits {
    fn default() -> Self {
        Self { segment_bytes: 4 << 20, kept_bytes: 16 << 20 }
    }
}

/// The tape of a session, open for its one writer: the holder of the session's lock.
#[derive(Debug)]
pub struct Tape {
    folder: PathBuf,
    limits: SegmentLimits,
    /// All segments, in order; the last one is being written.
    segments: VecDeque<Segment>,
    file: OwnedFd,
    heard: Position,
    printed: Position,
    /// Bytes that could not be written since the last entry, and their run.
    lost: Option<(RunNumber, u64)>,
    /// Everything below this is on disk.
    synced: Position,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    base: u64,
    length: u64,
}

impl Segment {
    fn end(self) -> u64 {
        self.base + self.length
    }
}

impl Tape {
    /// Opens the tape after its last whole entry, and cuts off what a killed writer left of the next. Creates
    /// the folder and a first segment if there is none. Nothing counts as heard.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open(folder: &Path, limits: SegmentLimits) -> Result<Self, Errno> {
        match rustix::fs::mkdir(folder, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let mut segments = VecDeque::new();
        for base in segments::list(folder)? {
            let facts = rustix::fs::stat(segments::path(folder, base))?;
            segments.push_back(Segment { base, length: facts.st_size.unsigned_abs() });
        }
        let first = segments.front().map_or(0, |segment| segment.base);
        let file = go_on(folder, &mut segments)?;
        let end = segments.back().map_or(0, |segment| segment.end());
        let (heard, printed, synced) = (Position(first), Position(end), Position(first));
        Ok(Self { folder: folder.to_owned(), limits, segments, file, heard, printed, lost: None, synced })
    }

    /// Changes the limits, from the next entry on.
    pub fn limit(&mut self, limits: SegmentLimits) {
        self.limits = limits;
    }

    /// Continues at `floor` if the tape is not that far yet: positions that a daemon has stored are not
    /// reused.
    ///
    /// # Errors
    /// The kernel's error; `INVAL` for a position that no tape has.
    pub fn go_on_from(&mut self, floor: Position) -> Result<(), Errno> {
        match floor {
            floor if floor <= self.end() => Ok(()),
            floor if floor.0 > HIGHEST => Err(Errno::INVAL),
            floor => self.begin(floor.0),
        }
    }

    /// Returns the first position that is still there.
    #[must_use]
    pub fn first(&self) -> Position {
        Position(self.segments.front().map_or(0, |segment| segment.base))
    }

    /// Returns the position at which the tape continues.
    #[must_use]
    pub fn end(&self) -> Position {
        Position(self.segments.back().map_or(0, |segment| segment.end()))
    }

    /// Returns the position up to which the tape was heard.
    #[must_use]
    pub fn heard_to(&self) -> Position {
        self.heard
    }

    /// Returns how many bytes were not heard yet.
    #[must_use]
    pub fn unheard(&self) -> u64 {
        self.end().0 - self.heard.0
    }

    /// Returns where the agent's last output ends.
    #[must_use]
    pub fn printed(&self) -> Position {
        self.printed
    }

    /// Returns how many bytes could not be written since the last entry.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.map_or(0, |(_, lost)| lost)
    }

    /// Marks everything below `to` as heard: its segments are removed, except for the latest ones.
    pub fn heard(&mut self, to: Position) {
        self.heard = self.heard.max(to.min(self.end()));
        self.drop_heard();
    }

    /// Appends an entry, after a note of anything that could not be written before it.
    ///
    /// # Errors
    /// The kernel's error; nothing of the entry was written then.
    pub fn append(&mut self, at: Wall, run: RunNumber, what: TapeContent<'_>) -> Result<(), Errno> {
        self.tell_lost(at)?;
        self.write(at, run, what)
    }

    /// Counts output that cannot be written; the tape says so as soon as it can.
    pub fn lose(&mut self, run: RunNumber, bytes: u64) {
        self.lost = Some((run, self.lost() + bytes));
    }

    /// Writes a note of what could not be written, if anything.
    ///
    /// # Errors
    /// The kernel's error; the note is still due then.
    pub fn tell_lost(&mut self, at: Wall) -> Result<(), Errno> {
        if let Some((run, lost)) = self.lost {
            self.write(at, run, TapeContent::Gap(lost))?;
            self.lost = None;
        }
        Ok(())
    }

    /// Puts everything on disk that is not there yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn sync(&mut self) -> Result<(), Errno> {
        let (synced, end) = (self.synced, self.end());
        if synced == end {
            return Ok(());
        }
        let last = self.segments.len() - 1;
        for segment in self.segments.iter().take(last).filter(|segment| segment.end() > synced.0) {
            if let Some(file) = segments::open(&self.folder, segment.base)? {
                rustix::fs::fdatasync(file)?;
            }
        }
        rustix::fs::fdatasync(&self.file)?;
        for folder in [Some(self.folder.as_path()), self.folder.parent()].into_iter().flatten() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::fsync(rustix::fs::open(folder, flags, Mode::empty())?)?;
        }
        self.synced = end;
        crash::point("tape.synced");
        Ok(())
    }

    fn write(&mut self, at: Wall, run: RunNumber, what: TapeContent<'_>) -> Result<(), Errno> {
        let count;
        let zero: &[u8] = &[0];
        let (number, pieces) = match what {
            TapeContent::Out(bytes) | TapeContent::Error(bytes) => (SayNumber(0), [bytes, &[], &[]]),
            TapeContent::Said { number, label, bytes } => (number, [label.as_bytes(), zero, bytes]),
            TapeContent::Gap(lost) => {
                count = lost.to_le_bytes();
                (SayNumber(0), [count.as_slice(), &[], &[]])
            }
            TapeContent::End => (SayNumber(0), [&[][..], &[], &[]]),
        };
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        debug_assert!(length <= super::format::MOST, "frames and reads bound it");
        self.make_room((HEAD + length) as u64)?;
        let head = EntryHead { length: length as u32, kind: what.kind(), at, run, number };
        let [first, second, third] = pieces;
        let head = head.to_bytes(pieces);
        let Some(segment) = self.segments.back_mut() else { return Err(Errno::BADF) };
        segments::write(&self.file, segment.length, [&head, first, second, third])?;
        segment.length += (HEAD + length) as u64;
        if let TapeContent::Out(_) | TapeContent::Error(_) | TapeContent::Gap(_) = what {
            self.printed = self.end();
        }
        Ok(())
    }

    fn make_room(&mut self, more: u64) -> Result<(), Errno> {
        match self.segments.back() {
            // Even with a limit below one entry, every segment gets one.
            Some(last) if last.length <= SEGMENT_HEAD as u64 => Ok(()),
            Some(last) if last.length + more <= self.limits.segment_bytes => Ok(()),
            Some(last) => self.begin(last.end()),
            None => Err(Errno::BADF),
        }
    }

    /// Begins a segment at a position.
    fn begin(&mut self, base: u64) -> Result<(), Errno> {
        self.file = create(&self.folder, base)?;
        self.segments.push_back(Segment { base, length: SEGMENT_HEAD as u64 });
        self.drop_heard();
        Ok(())
    }

    /// Removes the oldest segments that were heard, beyond what is kept of them.
    fn drop_heard(&mut self) {
        let written = self.segments.len().saturating_sub(1);
        let heard = self.segments.iter().take(written).filter(|segment| segment.end() <= self.heard.0);
        let mut kept: u64 = heard.map(|segment| segment.length).sum();
        while kept > self.limits.kept_bytes
            && let Some(oldest) = self.segments.front().copied()
        {
            match rustix::fs::unlink(segments::path(&self.folder, oldest.base)) {
                Ok(()) | Err(Errno::NOENT) => {}
                // It is tried again with the next segment.
                Err(_) => return,
            }
            kept -= oldest.length;
            self.segments.pop_front();
        }
    }
}

/// Opens the last segment to continue it; creates one if there is none, or none that can be read.
fn go_on(folder: &Path, segments: &mut VecDeque<Segment>) -> Result<OwnedFd, Errno> {
    if let Some(last) = segments.back_mut() {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(segments::path(folder, last.base), flags, Mode::empty())?;
        if segments::has_head(&file, last.base)? {
            last.length = whole(&file)?;
            rustix::fs::ftruncate(&file, last.length)?;
            return Ok(file);
        }
    }
    let base = match segments.back().copied() {
        // A segment that was just begun when its writer was killed is empty.
        Some(last) if last.length <= SEGMENT_HEAD as u64 => segments.pop_back().map_or(0, |last| last.base),
        // A segment without a head is never read; its positions are not reused.
        Some(last) => last.end(),
        None => 0,
    };
    let file = create(folder, base)?;
    segments.push_back(Segment { base, length: SEGMENT_HEAD as u64 });
    Ok(file)
}

fn create(folder: &Path, base: u64) -> Result<OwnedFd, Errno> {
    let path = segments::path(folder, base);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
    match segments::write(&file, 0, [&segment_head(base), &[], &[], &[]]) {
        Ok(()) => Ok(file),
        Err(errno) => {
            let _ = rustix::fs::unlink(&path);
            Err(errno)
        }
    }
}

/// Returns how far the entries of a segment are whole.
fn whole(file: &OwnedFd) -> Result<u64, Errno> {
    let mut buffer = super::buffer::Buffer::default();
    let mut at = SEGMENT_HEAD as u64;
    while let Some(head) = buffer.entry(file, at, u64::MAX)? {
        at += head.whole();
    }
    Ok(at)
}
