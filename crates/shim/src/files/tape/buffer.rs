//! A part of a segment in memory, so that one read serves many short entries.

use super::format::{EntryHead, HEAD};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;

/// Most bytes of one read, unless an entry is longer.
const READ: usize = 64 << 10;

/// Bytes of one file.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// Their offset in the file.
    from: u64,
    bytes: Vec<u8>,
}

impl Buffer {
    /// Drops the bytes and frees the memory: most readers wait for more most of the time.
    pub(super) fn clear(&mut self) {
        self.bytes = Vec::new();
    }

    /// Returns the content of the entry at an offset, which must be whole in the buffer.
    pub(super) fn content(&self, offset: u64, head: &EntryHead) -> &[u8] {
        let from = (offset - self.from) as usize + HEAD;
        &self.bytes[from..from + head.length as usize]
    }

    /// Returns the entry at an offset, if it is whole in the file; reads the file if it is not in the buffer,
    /// no further than the offset `end` if the entry ends before it.
    pub(super) fn entry(&mut self, fd: &OwnedFd, offset: u64, end: u64) -> Result<Option<EntryHead>, Errno> {
        if let Some(head) = EntryHead::checked(self.rest(offset)) {
            return Ok(Some(head));
        }
        // The buffer may hold only half an entry, as it was when it was read.
        self.read(fd, offset, up_to(offset, end))?;
        let claimed = self.rest(offset).first_chunk().and_then(EntryHead::claimed);
        if let Some(head) = claimed.filter(|head| head.whole() > self.bytes.len() as u64) {
            self.read(fd, offset, head.whole() as usize)?;
        }
        let whole = EntryHead::checked(self.rest(offset));
        if whole.is_none() {
            self.clear();
        }
        Ok(whole)
    }

    /// Replaces the buffer with the bytes between two offsets, if there are not too many and the kernel has
    /// them all in memory; never waits for a disk.
    pub(super) fn fetch(&mut self, fd: &OwnedFd, offset: u64, end: u64) -> bool {
        let most = up_to(offset, end);
        self.bytes.clear();
        self.bytes.shrink_to(READ);
        self.bytes.resize(most, 0);
        self.from = offset;
        let mut pieces = [IoSliceMut::new(&mut self.bytes)];
        let read = rustix::io::preadv2(fd, &mut pieces, offset, ReadWriteFlags::NOWAIT);
        let is_whole = read == Ok(most) && offset + most as u64 == end;
        if !is_whole {
            self.clear();
        }
        is_whole
    }

    fn rest(&self, offset: u64) -> &[u8] {
        let at = offset.checked_sub(self.from).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.bytes.get(at..)).unwrap_or_default()
    }

    /// Reads up to `most` bytes from an offset on, replacing the buffer.
    fn read(&mut self, fd: &OwnedFd, offset: u64, most: usize) -> Result<(), Errno> {
        self.bytes.clear();
        self.bytes.shrink_to(READ);
        self.bytes.reserve_exact(most);
        self.from = offset;
        while self.bytes.len() < most {
            let next = offset + self.bytes.len() as u64;
            match rustix::io::pread(fd, rustix::buffer::spare_capacity(&mut self.bytes), next) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => {
                    self.clear();
                    return Err(errno);
                }
            }
        }
        Ok(())
    }
}

/// How many bytes to read from an offset on if nothing after `end` is wanted: a head at least.
fn up_to(offset: u64, end: u64) -> usize {
    usize::try_from(end.saturating_sub(offset)).unwrap_or(READ).clamp(HEAD, READ)
}
