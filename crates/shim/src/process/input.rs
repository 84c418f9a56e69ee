//! The agent's input: messages in order, each delivery once.

use crate::files::log::Position;
use crate::protocol::report::{InputRefused, Report};
use pinfold_core::ids::{MessageId, RunNumber};
use pinfold_core::inbox::Read;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A message of any length is taken if nothing waits; otherwise no more than this may wait.
const MOST_WAITING: usize = 1 << 20;
/// How many deliveries are remembered: one turn runs at a time, so repeats come soon after.
const REMEMBERED: usize = 64;

/// The standard input of one run.
#[derive(Debug)]
pub(super) struct AgentInput {
    run: RunNumber,
    pipe: Option<OwnedFd>,
    queue: VecDeque<Waiting>,
    taken: VecDeque<Delivery>,
    closing: bool,
    /// How many bytes were written in all.
    written: u64,
    /// How many had been written before the latest message.
    before: u64,
}

#[derive(Debug)]
struct Waiting {
    delivery: Delivery,
    bytes: Vec<u8>,
    written: usize,
}

type Delivery = (MessageId, u32);

impl AgentInput {
    pub(super) fn new(run: RunNumber, pipe: Option<OwnedFd>) -> Self {
        let (queue, taken) = (VecDeque::new(), VecDeque::new());
        Self { run, pipe, queue, taken, closing: false, written: 0, before: 0 }
    }

    /// Hands the pipe over to another writer; afterwards there is no input here.
    pub(super) fn give_pipe(&mut self) -> Option<OwnedFd> {
        self.pipe.take()
    }

    /// Returns the pipe while something waits to be written to it.
    pub(super) fn wanting(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| !self.queue.is_empty()).map(AsFd::as_fd)
    }

    /// Queues a delivery for writing; returns what to report at once.
    pub(super) fn deliver(&mut self, message: MessageId, attempt: u32, bytes: Vec<u8>) -> Vec<Report> {
        let delivery = (message, attempt);
        if self.taken.contains(&delivery) {
            return vec![self.taken_report(delivery)];
        }
        if self.queue.iter().any(|waiting| waiting.delivery == delivery) {
            return Vec::new();
        }
        if self.pipe.is_none() || self.closing {
            return vec![self.refused(delivery, InputRefused::Closed)];
        }
        let waiting: usize = self.queue.iter().map(|waiting| waiting.bytes.len()).sum();
        if waiting > 0 && waiting + bytes.len() > MOST_WAITING {
            return vec![self.refused(delivery, InputRefused::Full)];
        }
        self.queue.push_back(Waiting { delivery, bytes, written: 0 });
        self.write()
    }

    /// Writes what the pipe takes; returns what to report.
    pub(super) fn write(&mut self) -> Vec<Report> {
        let mut reports = Vec::new();
        while let (Some(pipe), Some(first)) = (&self.pipe, self.queue.front_mut()) {
            if first.written == 0 {
                self.before = self.written;
            }
            match rustix::io::write(pipe, &first.bytes[first.written..]) {
                Ok(count) => {
                    first.written += count;
                    self.written += count as u64;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    reports.extend(self.shut());
                    break;
                }
            }
            if first.written == first.bytes.len() {
                let delivery = first.delivery;
                self.queue.pop_front();
                self.remember(delivery);
                reports.push(self.taken_report(delivery));
            }
        }
        if self.closing && self.queue.is_empty() {
            self.pipe = None;
        }
        reports
    }

    /// Closes the pipe once everything that waits is written.
    pub(super) fn close(&mut self) -> Vec<Report> {
        self.closing = true;
        self.write()
    }

    /// The agent no longer reads: everything that waits is refused.
    pub(super) fn shut(&mut self) -> Vec<Report> {
        self.pipe = None;
        let waiting: Vec<_> = self.queue.drain(..).map(|waiting| waiting.delivery).collect();
        waiting.into_iter().map(|delivery| self.refused(delivery, InputRefused::Closed)).collect()
    }

    /// Returns whether the agent may have read the latest message, once nothing of its tree is alive: what is
    /// still in the pipe was not read.
    pub(super) fn read(&self) -> Read {
        if self.written == self.before {
            return Read::Never;
        }
        let unread = self.pipe.as_ref().and_then(unread);
        match unread.map(|unread| self.written.saturating_sub(unread) <= self.before) {
            Some(true) => Read::Never,
            Some(false) | None => Read::Maybe,
        }
    }

    fn remember(&mut self, delivery: Delivery) {
        if self.taken.len() == REMEMBERED {
            self.taken.pop_front();
        }
        self.taken.push_back(delivery);
    }

    fn taken_report(&self, (message, attempt): Delivery) -> Report {
        Report::InputTaken { run: self.run, message, attempt, from: Position(0) }
    }

    fn refused(&self, (message, attempt): Delivery, why: InputRefused) -> Report {
        Report::InputRefused { run: self.run, message, attempt, why }
    }
}

/// Returns how many bytes are in a pipe; a terminal does not tell.
fn unread(pipe: &OwnedFd) -> Option<u64> {
    let facts = rustix::fs::fstat(pipe).ok()?;
    let is_pipe = FileType::from_raw_mode(facts.st_mode) == FileType::Fifo;
    if is_pipe { rustix::io::ioctl_fionread(pipe).ok() } else { None }
}
