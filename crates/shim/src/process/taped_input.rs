//! The input of an agent with a tape: numbered words, in order, each of them once.

use crate::crash;
use crate::protocol::say::{Say, SayNumber, SayRefused};
use crate::protocol::tape::SaidUpTo;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A word of any length is taken if nothing waits; otherwise no more than this may wait.
const MOST_WAITING: usize = 1 << 20;

/// The standard input of a run with a tape.
#[derive(Debug)]
pub(super) struct TapedInput {
    pipe: Option<OwnedFd>,
    queue: VecDeque<Word>,
    up_to: SaidUpTo,
    closing: bool,
}

#[derive(Debug)]
struct Word {
    number: SayNumber,
    bytes: Vec<u8>,
    written: usize,
}

impl TapedInput {
    pub(super) fn new(pipe: Option<OwnedFd>) -> Self {
        Self { pipe, queue: VecDeque::new(), up_to: SaidUpTo::default(), closing: false }
    }

    /// Returns how far the words have come.
    pub(super) fn up_to(&self) -> SaidUpTo {
        self.up_to
    }

    /// Returns the pipe while something waits to be written to it.
    pub(super) fn wanting(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| !self.queue.is_empty()).map(AsFd::as_fd)
    }

    /// Returns whether this is the next word.
    pub(super) fn is_next(&self, number: SayNumber) -> bool {
        number == self.up_to.said.next()
    }

    /// Returns whether a word can be taken now.
    pub(super) fn admit(&self, say: &Say) -> Result<(), SayRefused> {
        let waiting: usize = self.queue.iter().map(|word| word.bytes.len()).sum();
        if self.pipe.is_none() || self.closing {
            return Err(SayRefused::Closed);
        }
        if waiting > 0 && waiting + say.bytes.len() > MOST_WAITING {
            return Err(SayRefused::TooMuchWaits);
        }
        Ok(())
    }

    /// Takes a word that is on the tape now, to be written.
    pub(super) fn take(&mut self, say: Say) {
        self.up_to.said = say.number;
        self.queue.push_back(Word { number: say.number, bytes: say.bytes, written: 0 });
        self.closing |= say.close;
        self.write();
    }

    /// Writes what the pipe takes; returns whether another word has been written completely.
    pub(super) fn write(&mut self) -> bool {
        let before = self.up_to;
        while let (Some(pipe), Some(first)) = (&self.pipe, self.queue.front_mut()) {
            let rest = &first.bytes[first.written..];
            match if rest.is_empty() { Ok(0) } else { rustix::io::write(pipe, rest) } {
                Ok(count) => first.written += count,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    self.shut();
                    break;
                }
            }
            if first.written < first.bytes.len() {
                crash::point("say.half");
                continue;
            }
            self.up_to.written = first.number;
            self.queue.pop_front();
            crash::point("say.written");
        }
        if self.closing && self.queue.is_empty() {
            self.pipe = None;
        }
        before != self.up_to
    }

    /// Closes the pipe once everything that waits is written.
    pub(super) fn close(&mut self) -> bool {
        self.closing = true;
        self.write()
    }

    /// The agent no longer reads: what waits is dropped, and does not count as written.
    pub(super) fn shut(&mut self) {
        self.pipe = None;
        self.queue.clear();
    }
}
