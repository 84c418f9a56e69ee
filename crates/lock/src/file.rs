//! Reads and writes the parts of one lock file.

use crate::fence::{self, Evidence, Fence, Next, Writes};
use crate::page::{self, HEAD, PAGE, Text};
use crate::record::Record;
use crate::sys;
use rustix::io::Errno;
use std::os::fd::AsFd;

/// The head of a lock file, and what it says about the last grant.
#[derive(Debug, Clone)]
pub(crate) struct Head([u8; HEAD]);

/// What a lock file says about its last grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Last {
    /// Never granted, or torn: nothing is said.
    Nothing,
    /// Given back in order.
    Released,
    /// Not given back: held now, or its holder died.
    Unreleased(Box<Record>),
}

impl Head {
    pub(crate) fn read(file: impl AsFd) -> Result<Self, Errno> {
        let mut bytes = [0; HEAD];
        sys::read_at(file, &mut bytes, 0)?;
        Ok(Self(bytes))
    }

    pub(crate) fn slots(&self) -> [page::Slot; 2] {
        [page::read_slot(&self.0, 0), page::read_slot(&self.0, 1)]
    }

    pub(crate) fn fence(&self) -> Option<Fence> {
        fence::current(self.slots()).map(Fence)
    }

    pub(crate) fn released(&self) -> Option<Fence> {
        page::read_mark(&self.0).map(Fence)
    }

    pub(crate) fn below(&self) -> bool {
        page::read_below(&self.0)
    }

    /// What is known about the last fence, when the record (if it was needed) says `recorded`.
    pub(crate) fn evidence(&self, recorded: Option<Fence>, removed: bool) -> Evidence {
        let mentioned = self.released().max(recorded).map_or(0, |fence| fence.0);
        Evidence { slots: self.slots(), mentioned, removed }
    }

    /// Whether the last grant was given back in order; the record need not be read then.
    pub(crate) fn is_released(&self) -> bool {
        self.fence().is_some() && self.fence() == self.released()
    }
}

/// Reads what a lock file says about its last grant.
pub(crate) fn last(file: impl AsFd, head: &Head) -> Result<Last, Errno> {
    if head.is_released() {
        return Ok(Last::Released);
    }
    Ok(match record(file)? {
        None => Last::Nothing,
        Some(record) if head.released() == Some(record.fence) => Last::Released,
        Some(record) => Last::Unreleased(Box::new(record)),
    })
}

/// The record, when it is whole.
pub(crate) fn record(file: impl AsFd) -> Result<Option<Record>, Errno> {
    let mut bytes = [0; PAGE];
    let length = sys::read_at(file, &mut bytes, 0)?;
    Ok(match page::read_record(&bytes[..length]) {
        Text::Good(text) => Record::from_bytes(&text),
        Text::Blank | Text::Damaged => None,
    })
}

/// Fills the page, so that later writes need no new space on the disk.
pub(crate) fn fill(file: impl AsFd, size: u64) -> Result<(), Errno> {
    match usize::try_from(size) {
        Ok(size) if size < PAGE => sys::write_at(file, &[0; PAGE][size..], size as u64),
        _ => Ok(()),
    }
}

pub(crate) fn write_fence(file: impl AsFd, next: Next) -> Result<(), Errno> {
    let slot = page::slot(next.counter);
    let write = |which: usize| sys::write_at(file.as_fd(), &slot, page::SLOT_AT[which] as u64);
    match next.writes {
        Writes::Slot(which) => write(which),
        Writes::Both => write(0).and_then(|()| write(1)),
    }
}

pub(crate) fn write_record(file: impl AsFd, record: &Record) -> Result<(), Errno> {
    // A record always fits: it was cut when it was made.
    let bytes = page::record(&record.to_bytes()).ok_or(Errno::TOOBIG)?;
    sys::write_at(file, &bytes, page::RECORD_AT as u64)
}

/// Marks one grant as given back. The mark names its fence, so it can never release another one.
pub(crate) fn write_mark(file: impl AsFd, fence: Fence) -> Result<(), Errno> {
    sys::write_at(file, &page::mark(fence.0), page::MARK_AT as u64)
}

pub(crate) fn write_below(file: impl AsFd, below: bool) -> Result<(), Errno> {
    sys::write_at(file, &[u8::from(below)], page::BELOW_AT as u64)
}
