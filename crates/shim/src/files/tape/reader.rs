//! Reads a tape: from a position on, across its segments, while it is written and afterwards. Disturbs no
//! writer.

use super::buffer::Buffer;
use super::format::{EntryHead, SEGMENT_HEAD, TapeEntry, what};
use super::{Position, segments};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Reads entry by entry. At the end of the tape it returns `None`, and can be asked again later.
///
/// It returns only what was written: every entry has a checksum over all of it. An entry whose checksum is
/// wrong ends its segment. In the last segment that is the end of the tape, for now; if there is a later one,
/// the reader goes on there, and the next entry says how many bytes are missing before it.
#[derive(Debug)]
pub struct TapeReader {
    folder: PathBuf,
    position: Position,
    segment: Option<Segment>,
    buffer: Buffer,
    /// Bytes skipped since the last entry.
    lost: u64,
}

#[derive(Debug)]
struct Segment {
    fd: OwnedFd,
    base: u64,
}

impl TapeReader {
    /// Reads from a position at which an entry begins or began: a reader's position, or an entry's own. If
    /// that is gone, reads from the oldest entry that is left.
    #[must_use]
    pub fn from(folder: &Path, position: Position) -> Self {
        Self { folder: folder.to_owned(), position, segment: None, buffer: Buffer::default(), lost: 0 }
    }

    /// Reads from the entry that contains a position, which may be in the middle of printed bytes. It walks
    /// through one segment to find it.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn containing(folder: &Path, position: Position) -> Result<Self, Errno> {
        let mut reader = Self::from(folder, position);
        let Some(base) = reader.base_below()? else { return Ok(reader) };
        reader.position = Position(base);
        while let Some(head) = reader.head(position)? {
            let next = reader.position.0 + head.whole();
            if next > position.0 {
                break;
            }
            reader.position = Position(next);
        }
        Ok(reader)
    }

    /// Returns the position of the next entry, as far as it is known; store it to continue from there.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Takes what the tape has before `end` into memory, if that needs no disk: then the entries up to there
    /// are returned without another read. `false` if it may need one, or is more than a reader holds at once.
    pub fn fetch(&mut self, end: Position) -> bool {
        let Some(Segment { fd, base }) = &self.segment else { return false };
        self.position < end && self.buffer.fetch(fd, self.position.0 - base, end.0 - base)
    }

    /// Returns the next entry, or `None` if there is none yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn entry(&mut self) -> Result<Option<TapeEntry<'_>>, Errno> {
        self.entry_before(Position(u64::MAX))
    }

    /// Returns the next entry if it begins before `end`; with the end that a shim has reported, the disk is
    /// not looked at in vain.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn entry_before(&mut self, end: Position) -> Result<Option<TapeEntry<'_>>, Errno> {
        let Some(head) = self.known(end)? else { return Ok(None) };
        let Some(Segment { base, .. }) = &self.segment else { return Ok(None) };
        let position = self.position;
        let next = Position(position.0 + head.whole());
        let bytes = self.buffer.content(position.0 - base, &head);
        let Some(what) = what(&head, bytes) else { return Ok(None) };
        let lost = std::mem::take(&mut self.lost);
        self.position = next;
        Ok(Some(TapeEntry { position, next, at: head.at, run: head.run, what, lost }))
    }

    /// Returns the head of the next entry that this version understands; others are skipped.
    fn known(&mut self, end: Position) -> Result<Option<EntryHead>, Errno> {
        while let Some(head) = self.head(end)? {
            let Some(Segment { base, .. }) = &self.segment else { break };
            let bytes = self.buffer.content(self.position.0 - base, &head);
            if what(&head, bytes).is_some() {
                return Ok(Some(head));
            }
            self.position = Position(self.position.0 + head.whole());
        }
        Ok(None)
    }

    /// Returns the head of the next entry, which is then whole in the buffer.
    fn head(&mut self, end: Position) -> Result<Option<EntryHead>, Errno> {
        while self.position < end {
            if self.segment.is_none() {
                if !self.find()? {
                    return Ok(None);
                }
                // Its first entry may be after the requested end.
                continue;
            }
            if let Some(head) = self.here(end)? {
                return Ok(Some(head));
            }
            let Some(later) = self.later()? else { return Ok(None) };
            // Only now is it certain that nothing more comes here: what came meanwhile is read first.
            if let Some(head) = self.here(end)? {
                return Ok(Some(head));
            }
            self.enter(later);
        }
        Ok(None)
    }

    /// Returns the whole entry at the position, in the open segment.
    fn here(&mut self, end: Position) -> Result<Option<EntryHead>, Errno> {
        let Some(Segment { fd, base }) = &self.segment else { return Ok(None) };
        self.buffer.entry(fd, self.position.0 - base, end.0 - base)
    }

    /// Opens the segment that contains the position, else the first one after it.
    fn find(&mut self) -> Result<bool, Errno> {
        let below = self.base_below()?;
        let Some(segment) = (match below {
            Some(base) => self.open(base)?,
            None => self.after(self.position.0)?,
        }) else {
            return Ok(false);
        };
        self.enter(segment);
        Ok(true)
    }

    /// Returns the first position of the segment that contains the position, if there is one.
    fn base_below(&self) -> Result<Option<u64>, Errno> {
        let bases = segments::list(&self.folder)?;
        for base in bases.into_iter().rev().filter(|base| *base <= self.position.0) {
            if self.open(base)?.is_some() {
                return Ok(Some(base));
            }
        }
        Ok(None)
    }

    /// Returns the segment that follows the open one.
    fn later(&self) -> Result<Option<Segment>, Errno> {
        let Some(Segment { base, .. }) = &self.segment else { return Ok(None) };
        // Nearly always it begins where this one ends.
        if self.position.0 > *base
            && let Some(next) = self.open(self.position.0)?
        {
            return Ok(Some(next));
        }
        self.after(*base)
    }

    /// Returns the first segment that begins above a position.
    fn after(&self, position: u64) -> Result<Option<Segment>, Errno> {
        for base in segments::list(&self.folder)?.into_iter().filter(|base| *base > position) {
            if let Some(segment) = self.open(base)? {
                return Ok(Some(segment));
            }
        }
        Ok(None)
    }

    fn open(&self, base: u64) -> Result<Option<Segment>, Errno> {
        Ok(segments::open(&self.folder, base)?.map(|fd| Segment { fd, base }))
    }

    /// Continues in a segment, after its head at the earliest.
    fn enter(&mut self, segment: Segment) {
        self.lost += segment.base.saturating_sub(self.position.0);
        self.position = Position(self.position.0.max(segment.base + SEGMENT_HEAD as u64));
        self.buffer.clear();
        self.segment = Some(segment);
    }
}
