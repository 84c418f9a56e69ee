//! Connections to daemons. Only one counts; sending to it never makes the shim wait.

use super::frame_socket::FrameSocket;
use super::viewer::{Newcomer, refuse};
use crate::caller::place;
use crate::files::log::{Position, Stream};
use crate::protocol::attach::{Join, ViewerInput};
use crate::protocol::command::Command;
use crate::protocol::frame::{Decoder, FrameError};
use crate::protocol::keep::Keep;
use crate::protocol::report::{Report, encode_output};
use crate::protocol::start::JoinRights;
use crate::protocol::tape::TapeReport;
use crate::socket::Listener;
use pinfold_core::ids::RunNumber;
use pinfold_kernel::caller::{FileId, Peer, file_id};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Output beyond this is not sent: the daemon reads it from the log.
const OUTPUT_QUEUED: usize = 256 << 10;
/// A daemon that does not read its reports is not listened to.
const REPORTS_QUEUED: usize = 1 << 20;
/// Most descriptors that may wait for the rest of their command: those of many locks.
const MOST_DESCRIPTORS: usize = 1024;
/// Most connections that have not said hello; beyond that, the oldest is dropped.
const MOST_PENDING: usize = 8;
/// How long newcomers wait if there are no descriptors for them.
const DEAF: Duration = Duration::from_millis(100);
/// A daemon's generation is one above the last; one made up to keep others out is far above.
const FARTHEST: u64 = 1 << 32;
/// A session's records are in its folder, which is in the folder of all sessions, in the home.
const HOME_ABOVE: usize = 3;
/// Without a daemon, the path for the next one is checked at this interval.
const LOOK: Duration = Duration::from_secs(2);

/// One connection.
#[derive(Debug)]
pub(super) struct DaemonLink {
    wire: FrameSocket,
    follow: bool,
    behind: bool,
    /// Descriptors that came with commands not yet obeyed.
    descriptors: Vec<OwnedFd>,
    grown: Grown,
    origin: Origin,
    /// The peer that came through the listening socket, until it is judged.
    peer: Option<Peer>,
}

/// What was reported of the tape's growth.
#[derive(Debug, Clone, Copy, Default)]
struct Grown {
    /// Where the tape ends now.
    now: Option<(RunNumber, Position)>,
    told: Option<(RunNumber, Position)>,
    /// Whether a report on it is already queued; then there is no second one.
    waits: bool,
}

/// Where a connection came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The process that started this shim.
    Parent,
    /// The listening socket.
    Later,
}

impl DaemonLink {
    pub(super) fn new(socket: OwnedFd, decoder: Decoder, origin: Origin) -> Self {
        let (wire, descriptors, grown) = (FrameSocket::new(socket, decoder), Vec::new(), Grown::default());
        Self { wire, follow: true, behind: false, descriptors, grown, origin, peer: None }
    }

    /// Creates the link of a peer that came through the listening socket.
    fn later(socket: OwnedFd, peer: Peer) -> Self {
        Self { peer: Some(peer), ..Self::new(socket, Decoder::default(), Origin::Later) }
    }

    /// Returns whether the peer may see the terminal and type: nothing in a sandbox, and no agent, types into
    /// another's terminal.
    fn may_join(&self, joins: JoinRights) -> bool {
        let Some(Ok(standing)) = self.peer.as_ref().map(|peer| place(peer, None)) else { return false };
        (joins.confined || !standing.is_confined()) && (joins.runs || standing.shims.is_empty())
    }

    /// Returns whether the connection is of no more use.
    pub(super) fn is_closed(&self) -> bool {
        self.wire.is_closed()
    }

    /// Returns whether something waits to be sent.
    pub(super) fn has_queued(&self) -> bool {
        self.wire.queued() > 0
    }

    /// Returns whether commands are read from it now.
    pub(super) fn is_heard(&self) -> bool {
        self.wire.queued() < REPORTS_QUEUED
    }

    /// Frees the memory kept for later input.
    pub(super) fn shrink(&mut self) {
        self.wire.decoder.shrink();
    }

    /// Queues a report.
    pub(super) fn report(&mut self, report: &Report) {
        report.encode(&mut self.wire.queue);
    }

    pub(super) fn follow(&mut self, on: bool) {
        self.follow = on;
        self.behind = false;
    }

    /// Queues output, unless the daemon cannot keep up.
    pub(super) fn output(
        &mut self,
        run: RunNumber,
        stream: Stream,
        place: (Position, Position),
        bytes: &[u8],
    ) {
        if !self.follow {
            return;
        }
        if self.behind || self.wire.queued() + bytes.len() > OUTPUT_QUEUED {
            self.behind = true;
        } else {
            encode_output(&mut self.wire.queue, run, stream, place.0, place.1, bytes);
        }
    }

    /// Notes that the tape of a run now ends here. The next flush reports it, unless that is known or already
    /// queued.
    pub(super) fn grown(&mut self, run: RunNumber, end: Position) {
        self.grown.now = Some((run, end));
    }

    /// Notes that the daemon knows this end.
    pub(super) fn knows_end(&mut self, run: RunNumber, end: Position) {
        self.grown.told = Some((run, end));
    }

    fn queue_grown(&mut self) {
        let Grown { now, told, waits } = self.grown;
        if let Some((run, end)) = now.filter(|_| !waits && now != told) {
            self.grown = Grown { now, told: now, waits: true };
            self.report(&Report::Tape(TapeReport::Grown { run, end }));
        }
    }

    /// Sends what the socket takes. A daemon that has caught up is told how far the log has grown.
    pub(super) fn flush(&mut self, log: Position) {
        loop {
            self.queue_grown();
            self.wire.send();
            self.grown.waits &= self.wire.queued() > 0;
            if self.grown.waits || self.grown.now == self.grown.told || self.grown.now.is_none() {
                break;
            }
        }
        if self.behind && self.wire.queued() == 0 {
            self.behind = false;
            self.report(&Report::LogGrown { to: log });
            self.wire.send();
        }
    }

    /// Reads once; commands are then taken with [`DaemonLink::command`].
    pub(super) fn read(&mut self) {
        self.wire.read_with(&mut self.descriptors);
        // No command has this many.
        if self.descriptors.len() > MOST_DESCRIPTORS {
            self.wire.close();
        }
    }

    /// Takes the first `count` descriptors that came, or fewer if there are fewer.
    pub(super) fn take_descriptors(&mut self, count: usize) -> Vec<OwnedFd> {
        self.descriptors.drain(..count.min(self.descriptors.len())).collect()
    }

    /// Closes descriptors that came with commands that did not want them.
    pub(super) fn drop_descriptors(&mut self) {
        if self.wire.decoder.is_empty() {
            self.descriptors = Vec::new();
        }
    }

    /// Returns the next whole command.
    pub(super) fn command(&mut self) -> Option<Command> {
        loop {
            match self.try_command() {
                Ok(Some(Some(command))) => return Some(command),
                Ok(Some(None)) => {}
                Ok(None) => return None,
                Err(_) => {
                    self.wire.close();
                    return None;
                }
            }
        }
    }

    /// Reads a newcomer's first word, which says who it is.
    fn first(&mut self) -> Option<First> {
        loop {
            let frame = match self.wire.decoder.frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return None,
                Err(_) => return Some(First::Stranger),
            };
            match (ViewerInput::decode(&frame), Command::decode(&frame)) {
                (Ok(Some(ViewerInput::Join(join))), _) => return Some(First::Viewer(join)),
                (_, Ok(Some(Command::Hello { generation }))) => return Some(First::Daemon { generation }),
                (Ok(None), Ok(None)) => {}
                _ => return Some(First::Stranger),
            }
        }
    }

    fn try_command(&mut self) -> Result<Option<Option<Command>>, FrameError> {
        match self.wire.decoder.frame()? {
            Some(frame) => Command::decode(&frame).map(Some),
            None => Ok(None),
        }
    }
}

/// What a newcomer is.
enum First {
    Daemon {
        generation: u64,
    },
    Viewer(Join),
    /// Says something else first.
    Stranger,
}

impl AsFd for DaemonLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

/// All connections: the daemon's, and those that have not said hello.
#[derive(Debug)]
pub(super) struct Links {
    /// Where newcomers connect; `None` while the shim does not listen.
    pub(super) listener: Option<Listener>,
    pub(super) daemon: Option<DaemonLink>,
    pub(super) pending: Vec<DaemonLink>,
    generation: Option<u64>,
    deaf: Option<Instant>,
    /// When to check again that the next daemon can connect.
    look: Option<Instant>,
    /// The lock that makes a process the daemon of this home.
    daemon_lock: Option<FileId>,
    /// Who besides people may join the terminal.
    pub(super) joins: JoinRights,
}

/// Returns the daemon lock of the home that contains a session's records.
fn daemon_lock(records: &Path) -> Option<FileId> {
    let above = records.ancestors().skip(1).take(HOME_ABOVE);
    above.into_iter().find_map(|folder| file_id(&folder.join(crate::DAEMON_LOCK)))
}

impl Links {
    pub(super) fn new(first: DaemonLink) -> Self {
        Self {
            listener: None,
            daemon: None,
            pending: vec![first],
            generation: None,
            deaf: None,
            look: None,
            daemon_lock: None,
            joins: JoinRights::default(),
        }
    }

    /// Listens for newcomers, if it does not yet or if its path was removed.
    pub(super) fn listen(&mut self, keep: &Keep) -> Result<(), Errno> {
        if !self.listener.as_ref().is_some_and(Listener::is_there) {
            // A folder for sockets may vanish for good, as that of a login does at logout. The records'
            // folder does not.
            let beside = keep.records.with_file_name(crate::BESIDE_RECORDS);
            self.listener = Some(Listener::open(&[&keep.listen, &beside])?);
        }
        Ok(())
    }

    /// Listens once the daemon is gone, and checks now and then that it can still be found.
    pub(super) fn listen_if_lost(&mut self, keep: &Keep, now: Instant) {
        let lost = self.daemon.is_none() && self.generation.is_some();
        if !lost {
            self.look = None;
        } else if self.look.is_none_or(|at| now >= at) {
            let pause = if self.listen(keep).is_ok() { LOOK } else { DEAF };
            self.look = Some(now + pause);
        }
    }

    /// Returns when to check again that the next daemon can connect.
    pub(super) fn look(&self) -> Option<Instant> {
        self.look
    }

    /// Accepts new connections of our own user.
    pub(super) fn accept(&mut self) {
        let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
        while let Some(listener) = &self.listener {
            match rustix::net::accept_with(listener, flags) {
                Ok(socket) => self.take(socket),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return,
                // Out of descriptors or memory: waiting connections would wake us again and again at once.
                Err(_) => {
                    self.deaf = Some(Instant::now() + DEAF);
                    return;
                }
            }
        }
    }

    fn take(&mut self, socket: OwnedFd) {
        let ours = rustix::process::geteuid().as_raw();
        let Ok(peer) = Peer::of(socket.as_fd()) else { return };
        if peer.user == ours {
            if self.pending.len() >= MOST_PENDING {
                self.pending.remove(0);
            }
            self.pending.push(DaemonLink::later(socket, peer));
        }
    }

    /// Returns until when no newcomers are accepted.
    pub(super) fn deaf(&self) -> Option<Instant> {
        self.deaf
    }

    /// Accepts newcomers again when it is time.
    pub(super) fn recover(&mut self, now: Instant) {
        self.deaf = self.deaf.filter(|until| now < *until);
    }

    /// Reads what newcomers say; returns whether one of them is now the daemon, and which want to view the
    /// terminal.
    pub(super) fn greet(&mut self, records: &Path) -> (bool, Vec<Newcomer>) {
        let (mut greeted, mut viewers) = (false, Vec::new());
        for mut link in std::mem::take(&mut self.pending) {
            link.read();
            match link.first() {
                Some(First::Daemon { generation }) => greeted |= self.hello(link, generation, records),
                Some(First::Viewer(join)) if link.may_join(self.joins) => {
                    let pid = link.peer.as_ref().and_then(|peer| peer.pid).unwrap_or(0);
                    let (socket, decoder) = link.wire.into_parts();
                    viewers.push((socket, decoder, join, pid));
                }
                Some(First::Viewer(_)) => refuse(&link),
                Some(First::Stranger) => {}
                None if link.is_closed() => {}
                None => self.pending.push(link),
            }
        }
        (greeted, viewers)
    }

    fn hello(&mut self, mut link: DaemonLink, generation: u64, records: &Path) -> bool {
        let last = self.generation.unwrap_or(0);
        if generation < last {
            link.report(&Report::Refused { generation: last });
            link.wire.send();
            return false;
        }
        match link.peer.take() {
            None => self.daemon_lock = daemon_lock(records),
            Some(peer) if generation - last < FARTHEST && self.is_daemon(&peer, records) => {}
            Some(_) => return false,
        }
        link.drop_descriptors();
        // The older connection is dropped with everything unread in it.
        self.daemon = Some(link);
        self.generation = Some(generation);
        true
    }

    /// Returns whether the peer is the daemon of this home: it has the home's lock, nothing confines it more
    /// than us, and it is not part of a run.
    fn is_daemon(&self, peer: &Peer, records: &Path) -> bool {
        // The lock of our first daemon, and the current one: the home may have been moved, or the file
        // recreated.
        let locks: Vec<FileId> = self.daemon_lock.into_iter().chain(daemon_lock(records)).collect();
        peer.holds(&locks) && place(peer, None).is_ok_and(|standing| standing.is_person())
    }

    /// Returns the generation that was last accepted.
    pub(super) fn generation(&self) -> u64 {
        self.generation.unwrap_or(0)
    }

    /// Queues a report for the daemon, if there is one.
    pub(super) fn report(&mut self, report: &Report) {
        if let Some(daemon) = &mut self.daemon {
            daemon.report(report);
        }
    }

    /// Returns whether the process that started this shim is still connected.
    pub(super) fn has_parent(&self) -> bool {
        self.daemon.iter().chain(&self.pending).any(|link| link.origin == Origin::Parent)
    }

    /// Returns whether a daemon is connected.
    pub(super) fn has_daemon(&self) -> bool {
        self.daemon.is_some()
    }
}
