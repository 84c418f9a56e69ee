//! Reads a tape: from a position on, over its segments, while it is written and afterwards. Disturbs no writer.

use super::buffer::Buffer;
use super::format::{Entry, Head, SEGMENT_HEAD, what};
use super::{Position, segments};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Reads entry after entry. At the end of the tape it says `None`, and can be asked again when there is more.
///
/// It gives nothing but what was written: every entry has a checksum over all of it. An entry that does not check ends
/// its segment. In the last one that is the end of the tape, for now; where a later one exists, the reader goes on
/// there, and the next entry says how many bytes are missing before it.
#[derive(Debug)]
pub struct Reader {
    folder: PathBuf,
    position: Position,
    segment: Option<Segment>,
    buffer: Buffer,
    /// Bytes that were passed over since the last entry.
    lost: u64,
}

#[derive(Debug)]
struct Segment {
    fd: OwnedFd,
    base: u64,
}

impl Reader {
    /// Reads from a position on, at which an entry begins or began: where a reader stood, or an entry's own. From the
    /// oldest entry that is left when that is gone.
    #[must_use]
    pub fn from(folder: &Path, position: Position) -> Self {
        Self { folder: folder.to_owned(), position, segment: None, buffer: Buffer::default(), lost: 0 }
    }

    /// Reads from the entry on that a position lies in, which may be in the midst of what was printed. It walks through
    /// one segment to find it.
    ///
    /// # Errors
    /// What the kernel said.
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

    /// Where the next entry will be, as far as that is known: to be kept, and read on from.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// The next entry, or nothing when there is none yet.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn entry(&mut self) -> Result<Option<Entry<'_>>, Errno> {
        self.entry_before(Position(u64::MAX))
    }

    /// The next entry, if it begins before `end`: the end that a shim has told costs no look at the disk.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn entry_before(&mut self, end: Position) -> Result<Option<Entry<'_>>, Errno> {
        let Some(head) = self.known(end)? else { return Ok(None) };
        let Some(Segment { base, .. }) = &self.segment else { return Ok(None) };
        let position = self.position;
        let next = Position(position.0 + head.whole());
        let bytes = self.buffer.content(position.0 - base, &head);
        let Some(what) = what(&head, bytes) else { return Ok(None) };
        let lost = std::mem::take(&mut self.lost);
        self.position = next;
        Ok(Some(Entry { position, next, at: head.at, run: head.run, what, lost }))
    }

    /// The head of the next entry that this version understands; the others are passed over.
    fn known(&mut self, end: Position) -> Result<Option<Head>, Errno> {
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

    /// The head of the next entry, which is whole in the buffer then.
    fn head(&mut self, end: Position) -> Result<Option<Head>, Errno> {
        while self.position < end {
            if self.segment.is_none() {
                if !self.find()? {
                    return Ok(None);
                }
                // Its first entry may be behind the end that was asked for.
                continue;
            }
            if let Some(head) = self.here()? {
                return Ok(Some(head));
            }
            let Some(later) = self.later()? else { return Ok(None) };
            // Only now is it sure that nothing more comes here: what came meanwhile is read first.
            if let Some(head) = self.here()? {
                return Ok(Some(head));
            }
            self.enter(later);
        }
        Ok(None)
    }

    /// The whole entry at the position, in the segment that is open.
    fn here(&mut self) -> Result<Option<Head>, Errno> {
        let Some(Segment { fd, base }) = &self.segment else { return Ok(None) };
        self.buffer.entry(fd, self.position.0 - base)
    }

    /// Opens the segment that the position lies in, else the first one behind it.
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

    /// The first position of the segment that the position lies in, if there is one.
    fn base_below(&self) -> Result<Option<u64>, Errno> {
        let bases = segments::list(&self.folder)?;
        for base in bases.into_iter().rev().filter(|base| *base <= self.position.0) {
            if self.open(base)?.is_some() {
                return Ok(Some(base));
            }
        }
        Ok(None)
    }

    /// The segment that follows the one that is open.
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

    /// The first segment that begins above a position.
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

    /// Goes on in a segment: behind its head at least.
    fn enter(&mut self, segment: Segment) {
        self.lost += segment.base.saturating_sub(self.position.0);
        self.position = Position(self.position.0.max(segment.base + SEGMENT_HEAD as u64));
        self.buffer.clear();
        self.segment = Some(segment);
    }
}
