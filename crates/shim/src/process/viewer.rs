//! The clients attached to the terminal. None of them ever makes the agent, the shim or another client wait.

use super::frame_socket::FrameSocket;
use super::pty::Pty;
use crate::protocol::attach::{Join, Keyboard, Seat, Shown, ViewerInput, encode_output};
use crate::protocol::frame::Decoder;
use pinfold_terminal::Size;
use rustix::event::{PollFd, PollFlags};
use rustix::net::SendFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// A client that wants to see the terminal.
pub(super) type Newcomer = (OwnedFd, Decoder, Join, u32);

/// Output beyond this is not queued: the screen is repainted when there is room.
const MOST_QUEUED: usize = 256 << 10;
/// A screen is not repainted sooner: 30 times a second is more than people see.
const REPAINT: Duration = Duration::from_millis(33);
/// More than people ever attach to one terminal; bounds the memory.
const MOST: usize = 64;
/// A client that does not read gets this long for the last words.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// One connection.
#[derive(Debug)]
pub(super) struct Viewer {
    wire: FrameSocket,
    pid: u32,
    size: Size,
    seat: Seat,
    /// Output was left out, so the screen is to be repainted.
    behind: bool,
    painted: Option<Instant>,
}

/// All viewers, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Viewers {
    all: Vec<Viewer>,
    /// Index of the viewer that types.
    typist: Option<usize>,
}

impl Viewers {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether no other viewer can join.
    pub(super) fn is_full(&self) -> bool {
        self.all.len() >= MOST
    }

    /// Takes a client that has joined.
    pub(super) fn join(&mut self, (socket, decoder, join, pid): Newcomer, mut pty: Option<&mut Pty>) {
        let Join { size, seat, .. } = join;
        let wire = FrameSocket::new(socket, decoder);
        self.all.push(Viewer { wire, pid, size, seat, behind: true, painted: None });
        let index = self.all.len() - 1;
        if self.typist.is_none() || seat == Seat::Takes {
            self.choose(Some(index), pty.as_deref_mut());
        } else {
            self.tell_keyboard();
        }
        // Keys that came with the first word are here already, so poll does not report them.
        self.hear(index, pty);
    }

    /// Gives the keyboard to the wanted viewer, or to the one that has waited longest.
    fn choose(&mut self, wanted: Option<usize>, pty: Option<&mut Pty>) {
        let types = |viewer: &Viewer| viewer.seat != Seat::Watches && !viewer.wire.is_closed();
        let wanted = wanted.filter(|index| self.all.get(*index).is_some_and(types));
        self.typist = wanted.or_else(|| self.all.iter().position(types));
        self.tell_keyboard();
        self.follow_typist(pty);
    }

    fn tell_keyboard(&mut self) {
        let typist = self.typist.and_then(|index| self.all.get(index)).map_or(0, |viewer| viewer.pid);
        for (index, viewer) in self.all.iter_mut().enumerate() {
            let yours = self.typist == Some(index) || viewer.seat == Seat::Shares;
            let keyboard = if yours { Keyboard::Yours } else { Keyboard::Others(typist) };
            Shown::Keyboard(keyboard).encode(&mut viewer.wire.queue);
        }
    }

    /// Gives the terminal the size of the viewer that types.
    pub(super) fn follow_typist(&mut self, pty: Option<&mut Pty>) {
        let Some(size) = self.typist.and_then(|index| self.all.get(index)).map(|viewer| viewer.size) else {
            return;
        };
        let Some(pty) = pty.filter(|pty| pty.screen.size() != size) else { return };
        pty.resize(size);
        // All other viewers see a different screen from now on.
        for (index, viewer) in self.all.iter_mut().enumerate() {
            viewer.behind |= self.typist != Some(index);
        }
    }

    /// Shows output to the viewers that have the same size and keep up.
    pub(super) fn output(&mut self, bytes: &[u8], size: Size) {
        for viewer in &mut self.all {
            let fits = viewer.size == size && viewer.wire.queued() + bytes.len() <= MOST_QUEUED;
            if viewer.behind || !fits {
                viewer.behind = true;
            } else {
                encode_output(&mut viewer.wire.queue, bytes);
                viewer.wire.send();
            }
        }
    }

    /// Paints the screen for viewers that need it, and sends what can be sent.
    pub(super) fn serve(&mut self, pty: Option<&Pty>, now: Instant) {
        for viewer in &mut self.all {
            viewer.wire.send();
            let Some(pty) = pty.filter(|_| viewer.is_due(now)) else { continue };
            viewer.paint(pty, now);
        }
    }

    /// Returns when a screen is to be repainted next; a viewer that waits for room is woken by its socket.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let waiting = self.all.iter().filter(|viewer| viewer.behind && viewer.wire.queued() == 0);
        waiting.filter_map(|viewer| viewer.painted.map(|at| at + REPAINT)).min()
    }

    /// Returns what to wait for.
    pub(super) fn wakers(&self, listens: bool) -> impl Iterator<Item = (usize, BorrowedFd<'_>, PollFlags)> {
        self.all.iter().enumerate().map(move |(index, viewer)| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, listens);
            flags.set(PollFlags::OUT, viewer.wire.queued() > 0);
            (index, viewer.wire.as_fd(), flags)
        })
    }

    /// Handles what a viewer says.
    pub(super) fn hear(&mut self, index: usize, mut pty: Option<&mut Pty>) {
        let Some(viewer) = self.all.get_mut(index) else { return };
        viewer.wire.send();
        viewer.wire.read();
        loop {
            let Some(viewer) = self.all.get_mut(index) else { return };
            match viewer.word() {
                None => return,
                Some(ViewerInput::Typed(keys)) => {
                    let may = self.typist == Some(index) || viewer.seat == Seat::Shares;
                    if let Some(pty) = pty.as_deref_mut().filter(|_| may) {
                        pty.type_keys(&keys);
                        pty.bell.typed(Instant::now());
                    }
                }
                Some(ViewerInput::Resized(size)) => {
                    viewer.size = size;
                    viewer.behind = true;
                    if self.typist == Some(index) {
                        self.follow_typist(pty.as_deref_mut());
                    }
                }
                // It has joined already.
                Some(ViewerInput::Join(_)) => {}
            }
        }
    }

    /// Drops viewers that have left; the keyboard passes on.
    pub(super) fn drop_closed(&mut self, pty: Option<&mut Pty>) {
        if !self.all.iter().any(|viewer| viewer.wire.is_closed()) {
            return;
        }
        let typist =
            self.typist.filter(|index| self.all.get(*index).is_some_and(|viewer| !viewer.wire.is_closed()));
        let before = |index| self.all[..index].iter().filter(|viewer| viewer.wire.is_closed()).count();
        let wanted = typist.map(|index| index - before(index));
        self.all.retain(|viewer| !viewer.wire.is_closed());
        self.all.shrink_to_fit();
        if wanted.is_some() {
            self.typist = wanted;
        } else {
            self.choose(None, pty);
        }
    }

    /// Tells all viewers that the run has ended, after its last screen, and lets them go.
    pub(super) fn end(&mut self, pty: Option<&Pty>) {
        for viewer in &mut self.all {
            if let Some(pty) = pty.filter(|_| viewer.behind) {
                viewer.paint(pty, Instant::now());
            }
            Shown::Ended.encode(&mut viewer.wire.queue);
            viewer.wire.send();
        }
        let until = Instant::now() + LAST_WORDS;
        while self.all.iter().any(|viewer| viewer.wire.queued() > 0) && Instant::now() < until {
            self.await_room(until);
            self.all.iter_mut().for_each(|viewer| viewer.wire.send());
        }
        *self = Viewers::default();
    }

    fn await_room(&self, until: Instant) {
        let full = self.all.iter().filter(|viewer| viewer.wire.queued() > 0);
        let mut fds: Vec<_> = full.map(|viewer| PollFd::new(&viewer.wire, PollFlags::OUT)).collect();
        let left = until.saturating_duration_since(Instant::now());
        let timeout = pinfold_kernel::clock::timespec(left);
        let _ = rustix::event::poll(&mut fds, Some(&timeout));
    }
}

impl Viewer {
    fn is_due(&self, now: Instant) -> bool {
        self.behind && self.wire.queued() == 0 && self.painted.is_none_or(|at| now >= at + REPAINT)
    }

    fn paint(&mut self, pty: &Pty, now: Instant) {
        encode_output(&mut self.wire.queue, &pty.screen.paint(self.size));
        self.behind = false;
        self.painted = Some(now);
        self.wire.send();
    }

    fn word(&mut self) -> Option<ViewerInput> {
        loop {
            let decoded = match self.wire.decoder.frame() {
                Ok(Some(frame)) => ViewerInput::decode(&frame),
                Ok(None) => return None,
                Err(error) => Err(error),
            };
            match decoded {
                Ok(Some(said)) => return Some(said),
                Ok(None) => {}
                Err(_) => {
                    self.wire.close();
                    return None;
                }
            }
        }
    }
}

/// Tells a client that there is nothing to show.
pub(super) fn refuse(socket: impl AsFd) {
    let mut word = Vec::new();
    Shown::Ended.encode(&mut word);
    let _ = rustix::net::send(socket, &word, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}
