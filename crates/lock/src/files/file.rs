//! Reads and writes the parts of one lock file.

use crate::files::fence::{self, Evidence, Fence, NextFence, Writes};
use crate::files::layout::{self, HEAD, RecordText, SIZE};
use crate::files::record::LockRecord;
use pinfold_kernel::sys;
use rustix::io::Errno;
use std::os::fd::AsFd;

/// The head of a lock file, and what it says about the last grant.
#[derive(Debug, Clone)]
pub(crate) struct LockFileHead {
    slots: [layout::Slot; 2],
    released: Option<Fence>,
    below: bool,
}

/// What a lock file says about its last grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LastGrant {
    /// Never granted, or torn: it says nothing.
    Nothing,
    /// Given back in order.
    Released,
    /// Not given back: held now, or its holder died.
    Unreleased(Box<LockRecord>),
}

impl LockFileHead {
    pub(crate) fn read(file: impl AsFd) -> Result<Self, Errno> {
        let mut bytes = [0; HEAD];
        sys::read_at(file, &mut bytes, layout::HEAD_AT as u64)?;
        Ok(Self::from_bytes(&bytes))
    }

    fn from_bytes(bytes: &[u8; HEAD]) -> Self {
        Self {
            slots: [layout::read_slot(bytes, 0), layout::read_slot(bytes, 1)],
            released: layout::read_mark(bytes).map(Fence),
            below: layout::read_below(bytes),
        }
    }

    pub(crate) fn slots(&self) -> [layout::Slot; 2] {
        self.slots
    }

    /// Whether nothing was ever granted through the file.
    pub(crate) fn is_blank(&self) -> bool {
        self.slots == [layout::Slot::Blank; 2]
    }

    pub(crate) fn fence(&self) -> Option<Fence> {
        fence::current(self.slots()).map(|(fence, _)| Fence(fence))
    }

    pub(crate) fn released(&self) -> Option<Fence> {
        self.released
    }

    pub(crate) fn below(&self) -> bool {
        self.below
    }

    /// Returns what is known about the last fence; `recorded` is the record's fence, if it was needed.
    pub(crate) fn evidence(&self, recorded: Option<Fence>, removed: bool) -> Evidence {
        let mentioned = self.released().max(recorded).map_or(0, |fence| fence.0);
        Evidence { slots: self.slots(), mentioned, removed }
    }

    /// Whether the last grant was given back in order; then the record need not be read.
    pub(crate) fn is_released(&self) -> bool {
        self.fence().is_some() && self.fence() == self.released()
    }
}

/// Reads what is left to do about the last grant; for a lone one that is nothing.
pub(crate) fn left(file: impl AsFd, head: &LockFileHead) -> Result<LastGrant, Errno> {
    if fence::is_lone(head.slots) { Ok(LastGrant::Released) } else { last(file, head) }
}

/// Reads what a lock file says about its last grant.
pub(crate) fn last(file: impl AsFd, head: &LockFileHead) -> Result<LastGrant, Errno> {
    if head.is_released() {
        return Ok(LastGrant::Released);
    }
    Ok(match record(file)? {
        None => LastGrant::Nothing,
        Some(record) if head.released() >= Some(record.fence) => LastGrant::Released,
        Some(record) => LastGrant::Unreleased(Box::new(record)),
    })
}

/// Returns the record of the newest grant that left a complete one.
///
/// If the newest is torn, the one before it is either older than its release mark, or its run may still live.
pub(crate) fn record(file: impl AsFd) -> Result<Option<LockRecord>, Errno> {
    let mut bytes = [0; SIZE];
    sys::read_at(file, &mut bytes, 0)?;
    let read = |which| match layout::read_record(&bytes, which) {
        RecordText::Good(text) => LockRecord::from_bytes(&text),
        RecordText::Blank | RecordText::Damaged => None,
    };
    let records = [0, 1].into_iter().filter_map(read);
    Ok(records.max_by_key(|record| record.fence))
}

/// Returns the record of the newest grant, unless that was given back; a single read, for callers that only look.
pub(crate) fn current(file: impl AsFd) -> Result<Option<LockRecord>, Errno> {
    let mut bytes = [0; SIZE];
    sys::read_at(file, &mut bytes, 0)?;
    let mut part = [0; HEAD];
    part.copy_from_slice(&bytes[layout::HEAD_AT..][..HEAD]);
    let head = LockFileHead::from_bytes(&part);
    let Some((fence, which)) = fence::current(head.slots()) else { return Ok(None) };
    if head.is_released() && !fence::is_lone(head.slots()) {
        return Ok(None);
    }
    let record = match layout::read_record(&bytes, which) {
        RecordText::Good(text) => LockRecord::from_bytes(&text),
        RecordText::Blank | RecordText::Damaged => None,
    };
    Ok(record.filter(|record| record.fence == Fence(fence)))
}

/// Fills the file, so that later writes need no new disk space.
pub(crate) fn fill(file: impl AsFd, size: u64) -> Result<(), Errno> {
    // Nothing was ever granted through a shorter file, so it contains nothing to lose.
    if size < SIZE as u64 { sys::write_at(file, &[0; SIZE], 0) } else { Ok(()) }
}

/// Writes the fence and record of a grant: one write, unless a damaged slot must be repaired too.
pub(crate) fn write_grant(file: impl AsFd, next: NextFence, record: &LockRecord) -> Result<(), Errno> {
    let text = record.to_bytes();
    let counter = layout::Counter { lone: record.is_lone(), ..next.counter };
    let write = |which: usize| {
        // A record always fits: it was shortened when it was made.
        let (at, bytes) = layout::grant(which, counter, &text).ok_or(Errno::TOOBIG)?;
        sys::write_at(file.as_fd(), &bytes, at as u64)
    };
    match next.writes {
        Writes::Slot(which) => write(which),
        Writes::Both => write(0).and_then(|()| write(1)),
    }
}

/// Marks one grant as given back. The mark names its fence, so it can never release another grant.
pub(crate) fn write_mark(file: impl AsFd, fence: Fence) -> Result<(), Errno> {
    sys::write_at(file, &layout::mark(fence.0), layout::MARK_AT as u64)
}

pub(crate) fn write_below(file: impl AsFd, below: bool) -> Result<(), Errno> {
    sys::write_at(file, &[u8::from(below)], layout::BELOW_AT as u64)
}

/// Rewrites the newest slot as if it was of another boot; for tests and benchmarks.
pub(crate) fn pretend_reboot(file: impl AsFd) -> Result<(), Errno> {
    let head = LockFileHead::read(file.as_fd())?;
    let (Some((_, which)), Some(record)) = (fence::current(head.slots()), record(file.as_fd())?) else {
        return Err(Errno::NODATA);
    };
    let layout::Slot::Good(counter) = head.slots()[which] else { return Err(Errno::NODATA) };
    let counter = layout::Counter { boot: crate::judge::identity::BootId(1), ..counter };
    let (at, bytes) = layout::grant(which, counter, &record.to_bytes()).ok_or(Errno::TOOBIG)?;
    sys::write_at(file, &bytes, at as u64)
}
