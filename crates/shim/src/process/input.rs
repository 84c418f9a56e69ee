//! The agent's input: messages in order, each delivery once.

use crate::files::log::Position;
use crate::protocol::report::{InputRefused, Report};
use pinfold_core::ids::{MessageId, RunNumber};
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
        Self { run, pipe, queue: VecDeque::new(), taken: VecDeque::new(), closing: false }
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
            match rustix::io::write(pipe, &first.bytes[first.written..]) {
                Ok(count) => first.written += count,
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
