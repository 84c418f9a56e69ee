//! Reads what an agent prints: always, whether anything listens or not, and to the end.

use crate::files::log::Stream;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of one read if an agent prints much: the length of a pipe.
const READ: usize = 64 << 10;
/// Bytes of a first read: most agents print little, and the kernel must supply every page that is asked for.
const FIRST: usize = 4 << 10;
/// A terminal that gave less is likely to have no more: the answer to a key is not kept waiting to find out.
const LITTLE: usize = 1 << 10;
/// When the tree is gone, its output is in the pipes; more can only come from a stranger that it gave them
/// to.
const AFTER_THE_END: usize = 1 << 20;

/// The two pipes of one run.
#[derive(Debug)]
pub(super) struct Outputs {
    pipes: [(Stream, Option<OwnedFd>); 2],
    /// Whether the last read filled the buffer.
    more: bool,
}

impl Outputs {
    /// A terminal has one output, and an agent with the caller's streams has none.
    pub(super) fn new(out: Option<OwnedFd>, error: Option<OwnedFd>) -> Self {
        Self { pipes: [(Stream::Out, out), (Stream::Error, error)], more: false }
    }

    /// Returns the open pipes, with their numbers.
    pub(super) fn open(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let numbered = self.pipes.iter().enumerate();
        numbered.filter_map(|(number, (_, pipe))| Some((number, pipe.as_ref()?.as_fd())))
    }

    /// Returns how many bytes one pipe holds that were not read yet.
    pub(super) fn waiting(&self, number: usize) -> usize {
        let (_, pipe) = &self.pipes[number];
        let waiting = pipe.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok());
        waiting.map_or(0, |waiting| usize::try_from(waiting).unwrap_or(usize::MAX))
    }

    /// Returns whether this is standard output and has ended.
    pub(super) fn has_ended(&self, number: usize) -> bool {
        let (stream, pipe) = &self.pipes[number];
        *stream == Stream::Out && pipe.is_none()
    }

    /// Reads one pipe once into `buffer`; returns the stream if something came.
    pub(super) fn read(&mut self, number: usize, buffer: &mut Vec<u8>) -> Option<Stream> {
        buffer.clear();
        buffer.reserve(if self.more { READ } else { FIRST });
        let (stream, pipe) = &mut self.pipes[number];
        match rustix::io::read(pipe.as_ref()?, rustix::buffer::spare_capacity(buffer)) {
            Ok(0) => *pipe = None,
            Ok(_) => {
                self.more = buffer.len() == buffer.capacity();
                return Some(*stream);
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => *pipe = None,
        }
        None
    }

    /// Reads on if a terminal has more: it gives a few kibibytes at a time. What it had little of is shown first.
    pub(super) fn read_on(&mut self, number: usize, buffer: &mut Vec<u8>) {
        let (_, pipe) = &self.pipes[number];
        if buffer.len() < LITTLE {
            return;
        }
        let Some(pipe) = pipe else { return };
        buffer.reserve(READ);
        while buffer.len() < READ / 2 {
            match rustix::io::read(pipe, rustix::buffer::spare_capacity(buffer)) {
                Ok(count) if count > 0 => {}
                // An error shows again with the next read.
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Reads both pipes to their end; every piece goes to `take`.
    pub(super) fn drain(&mut self, buffer: &mut Vec<u8>, take: &mut dyn FnMut(Stream, &[u8])) {
        for number in 0..self.pipes.len() {
            let mut left = AFTER_THE_END;
            while let Some(stream) = self.read(number, buffer) {
                take(stream, buffer);
                left = left.saturating_sub(buffer.len());
                if left == 0 {
                    break;
                }
            }
        }
    }
}
