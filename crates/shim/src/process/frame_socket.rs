//! One connection: outgoing bytes wait in a queue, incoming ones wait to be decoded. It never makes the shim
//! wait.

use crate::protocol::frame::Decoder;
use pinfold_kernel::socket;
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Memory kept for later input, in bytes.
const KEPT: usize = 4 << 10;
/// Sent bytes are removed from the queue once there are this many.
const LONG: usize = 128 << 10;
/// Bytes of a first read with descriptors: most frames are short, and this memory is zeroed before.
const SHORT: usize = 4 << 10;

/// A stream socket with both its directions.
#[derive(Debug)]
pub(super) struct FrameSocket {
    socket: OwnedFd,
    pub(super) decoder: Decoder,
    pub(super) queue: Vec<u8>,
    sent: usize,
    closed: bool,
    /// Whether the last read filled its buffer.
    more: bool,
}

impl FrameSocket {
    pub(super) fn new(socket: OwnedFd, decoder: Decoder) -> Self {
        Self { socket, decoder, queue: Vec::new(), sent: 0, closed: false, more: false }
    }

    /// Returns the socket, and what was read from it but not decoded yet.
    pub(super) fn into_parts(self) -> (OwnedFd, Decoder) {
        (self.socket, self.decoder)
    }

    /// Returns whether it is of no more use.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Returns how many bytes wait to be sent.
    pub(super) fn queued(&self) -> usize {
        if self.closed { 0 } else { self.queue.len() - self.sent }
    }

    /// Sends what the socket takes.
    pub(super) fn send(&mut self) {
        while self.sent < self.queue.len() && !self.closed {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(&self.socket, &self.queue[self.sent..], flags) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.closed = true,
            }
        }
        if self.sent == self.queue.len() {
            self.queue.clear();
            self.queue.shrink_to(KEPT);
            self.sent = 0;
        } else if self.sent > LONG {
            self.queue.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Reads once, for the decoder.
    pub(super) fn read(&mut self) {
        let room = self.decoder.room();
        match rustix::io::read(&self.socket, rustix::buffer::spare_capacity(room)) {
            Ok(0) => self.closed = true,
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.closed = true,
        }
    }

    /// Reads once, for the decoder, and takes the descriptors that come along.
    pub(super) fn read_with(&mut self, descriptors: &mut Vec<OwnedFd>) {
        let room = self.decoder.room();
        let (begin, end) = (room.len(), room.capacity());
        room.resize(if self.more { end } else { end.min(begin + SHORT) }, 0);
        let came = socket::receive_with(&self.socket, &mut room[begin..], descriptors);
        self.more = came == Ok(room.len() - begin);
        room.truncate(begin + came.unwrap_or(0));
        match came {
            Ok(0) => self.closed = true,
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(_) => self.closed = true,
        }
    }
}

impl AsFd for FrameSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
