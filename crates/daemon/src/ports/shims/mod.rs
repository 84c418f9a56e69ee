//! Shims, as the loop knows them, and the links to real ones: commands go out at once, reports come in
//! through a task; the loop never waits.

mod beside;
pub(crate) mod birth;
mod cradle;
pub(crate) mod observe;
pub(crate) mod order;
pub(crate) mod outbox;
mod processes;
mod spool;
pub(crate) mod strangers;

pub(crate) use processes::ShimProcesses;

use crate::define::home::Home;
use crate::ports::Then;
use crate::ports::locks::RunLocks;
use crate::ports::shims::observe::{SessionLook, SessionSeen};
use crate::ports::shims::strangers::There;
use birth::NotGreeted;
use outbox::{Outlet, Way};
use pinfold_core::RunNumber;
use pinfold_core::life::StartRefused;
use pinfold_core::unended::Survivor;
use pinfold_shim::client::{Opening, ReceiveError, ShimConnection};
use pinfold_shim::log::LogEntry;
use pinfold_shim::turn::Turn;
use pinfold_shim::{Can, Command, Decoder, Exited, Report, Start, Welcome};
use pinfold_store::SessionId;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;
use tracing::warn;

/// A live shim answers a new daemon within this time, or counts as mute for now.
const ANSWER: Duration = Duration::from_secs(2);

/// The number of a link: the last reports of an old link are not taken for those of a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkNumber(pub(crate) u64);

/// Starts shims, finds them, and reads what they leave on disk.
pub(crate) trait Shims {
    /// Starts a shim under locks, which then belong to it, and tells it to start a run.
    fn open(&self, birth: Birth, held: Box<dyn RunLocks>, then: Then<Result<Box<ShimUp>, StartRefused>>);

    /// Looks for what exists of a session: its shim, its exit records, its lock.
    fn observe(&self, look: SessionLook, then: Then<SessionSeen>);

    /// Looks for survivors below a shim that does not name them itself.
    fn survivors(&self, shim: u32, then: Then<Vec<Survivor>>);

    /// Ends what a lost shim left behind, before the next shim is started. Does not block.
    fn end_orphans(&self) {}

    /// Looks for the first existing socket of a session's shim.
    fn find_socket(&self, id: SessionId, sockets: Vec<PathBuf>, then: Then<Option<PathBuf>>);

    /// Looks for shims and folders of a home, except those of these sessions.
    fn strangers(&self, home: Home, kept: BTreeSet<String>, then: Then<There>);

    /// Ends the run of a shim that the store does not know, by the id of its session, and lets the shim go.
    fn end_stranger(&self, id: String, socket: PathBuf, generation: u64, then: Then<()>);

    // The following read synchronously. The files have a fixed size (records, turn), are read from their end
    // (log) or up to a length (spool), and were just written, so they are in memory; and an exit has to be
    // judged before anything else.

    /// The exits that a session's shims recorded and that were not acknowledged.
    fn records(&self, home: &Home, id: SessionId) -> Vec<Exited>;

    /// The latest turn that a session's shim recorded.
    fn latest_turn(&self, home: &Home, id: SessionId) -> Option<Turn>;

    /// The last lines of a run.
    fn tail(&self, home: &Home, id: SessionId, run: RunNumber, lines: usize) -> Vec<LogEntry>;

    /// What a hook of a session's terminal program told last; empty if there is nothing.
    fn spool(&self, home: &Home, id: SessionId) -> Vec<u8>;

    /// The processes of a run beside its agent: their pids and command lines.
    fn beside(&self, shim: u32, agent: u32) -> Vec<(u32, String)>;

    /// The CPU time a shim has used, in nanoseconds, if the kernel counts it.
    fn ran(&self, shim: u32) -> Option<u64>;
}

/// A shim that is to be started.
pub(crate) struct Birth {
    pub(crate) opening: Opening,
    pub(crate) generation: u64,
    /// The exits up to this run are stored.
    pub(crate) settled: RunNumber,
    pub(crate) start: Box<Start>,
}

/// A shim that has just said welcome.
pub(crate) struct ShimUp {
    /// Where it was told to listen, or was found.
    pub(crate) socket: PathBuf,
    pub(crate) connection: Box<dyn Connection>,
    pub(crate) welcome: Box<Welcome>,
}

/// Receives every report of a shim; `None` when its link has ended.
pub(crate) type Hear = Box<dyn Fn(Option<Report>) + Send>;

/// The connection to a shim that has just said welcome.
pub(crate) trait Connection: Send {
    /// Passes every report on from now on; for a shim that has to be reaped, returns the task that does it.
    fn follow(self: Box<Self>, hear: Hear) -> io::Result<(Outlet, Option<JoinHandle<()>>)>;
}

/// The connection to a shim that is a process.
pub(crate) struct Greeted {
    pub(crate) socket: PathBuf,
    pub(crate) link: ShimConnection,
    pub(crate) welcome: Box<Welcome>,
    pub(crate) child: Option<Child>,
}

impl Greeted {
    pub(crate) fn up(self) -> ShimUp {
        let connection = Box::new(SocketConnection { link: self.link, child: self.child });
        ShimUp { socket: self.socket, connection, welcome: self.welcome }
    }

    /// Whether its agent is between fork and exec.
    fn is_starting(&self) -> bool {
        matches!(self.welcome.keeping, pinfold_shim::Keeping::Starting { .. })
    }
}

struct SocketConnection {
    link: ShimConnection,
    child: Option<Child>,
}

impl Connection for SocketConnection {
    fn follow(self: Box<Self>, hear: Hear) -> io::Result<(Outlet, Option<JoinHandle<()>>)> {
        let (stream, mut decoder, ready) = self.link.into_parts();
        decoder.shrink();
        stream.set_nonblocking(true)?;
        let stream = Arc::new(crate::ports::async_fd::watch(stream.into())?);
        let out = Outlet::new(Way::new(Arc::clone(&stream)));
        let reports = read_reports(stream, decoder, ready, hear);
        let reaper = match self.child {
            Some(child) => Some(tokio::spawn(async move {
                reports.await;
                reap(child).await;
            })),
            None => {
                tokio::spawn(reports);
                None
            }
        };
        Ok((out, reaper))
    }
}

/// An open link to a shim.
pub(crate) struct ShimLink {
    pub(crate) number: LinkNumber,
    pub(crate) pid: u32,
    /// What it can do beyond what every shim can.
    pub(crate) can: Can,
    /// It was told to release the locks and leave.
    pub(crate) leaving: bool,
    socket: PathBuf,
    out: Outlet,
}

impl ShimLink {
    /// Sends a command; a shim that has gone is noticed by the end of its reports.
    pub(crate) fn send(&self, command: &Command) {
        let mut bytes = Vec::new();
        command.encode(&mut bytes);
        self.out.send(&bytes);
    }

    /// Hands it more locks for a run; the caller keeps its own until the shim confirms them.
    pub(crate) fn hold(&self, run: RunNumber, held: &dyn RunLocks) -> io::Result<()> {
        let (locks, descriptors) = pinfold_shim::client::lend(&held.lend())?;
        let descriptors: io::Result<Vec<_>> =
            descriptors.into_iter().map(|descriptor| descriptor.try_clone_to_owned()).collect();
        let mut bytes = Vec::new();
        Command::Hold { run, locks }.encode(&mut bytes);
        self.out.send_with(&bytes, descriptors?);
        Ok(())
    }

    /// The way to the shim, for use outside the loop.
    pub(crate) fn outlet(&self) -> Outlet {
        self.out.clone()
    }

    /// Where it may listen, in the order to try.
    pub(crate) fn sockets(&self, home: &Home, id: SessionId) -> Vec<PathBuf> {
        std::iter::once(self.socket.clone()).chain(home.shim_sockets(id)).collect()
    }

    /// Tells it to release the locks and leave.
    pub(crate) fn dismiss(&mut self) {
        self.leaving = true;
        self.send(&Command::Release);
    }

    /// Takes over a connection: from now on every report of the shim is heard.
    pub(crate) fn attach(
        up: ShimUp,
        number: LinkNumber,
        hear: impl Fn(Option<Report>) + Send + 'static,
    ) -> io::Result<(ShimLink, Option<JoinHandle<()>>)> {
        let (pid, can) = (up.welcome.shim, up.welcome.can);
        let (out, reaper) = up.connection.follow(Box::new(hear))?;
        let link = ShimLink { number, pid, can, leaving: false, socket: up.socket, out };
        // Output is read from the log when a client wants it.
        link.send(&Command::Follow { on: false });
        Ok((link, reaper))
    }
}

async fn read_reports(
    read: Arc<AsyncFd<OwnedFd>>,
    mut decoder: Decoder,
    mut ready: VecDeque<Report>,
    hear_report: Hear,
) {
    loop {
        while let Some(report) = ready.pop_front() {
            hear_report(Some(report));
        }
        match hear(&read, &mut decoder).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        // A shim that no longer speaks our protocol is treated as gone.
        if understand(&mut decoder, &mut ready).is_err() {
            break;
        }
    }
    hear_report(None);
}

/// Waits, and reads once. The buffer is on the stack: otherwise a thousand connections would each keep one.
async fn hear(read: &AsyncFd<OwnedFd>, decoder: &mut Decoder) -> io::Result<usize> {
    loop {
        let mut ready = read.readable().await?;
        let mut bytes = [0; 4096];
        match ready.try_io(|socket| Ok(rustix::io::read(socket, &mut bytes)?)) {
            Ok(Ok(count)) => {
                if count < bytes.len() {
                    // That was all: what comes from now on is reported again.
                    ready.clear_ready();
                }
                decoder.feed(&bytes[..count]);
                return Ok(count);
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => return Err(error),
            Err(_would_block) => {}
        }
    }
}

fn understand(decoder: &mut Decoder, ready: &mut VecDeque<Report>) -> Result<(), pinfold_shim::FrameError> {
    while let Some(frame) = decoder.frame()? {
        ready.extend(Report::decode(&frame)?);
    }
    Ok(())
}

/// Reaps a shim that is our child and has closed its link, woken by its pidfd.
async fn reap(mut child: Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pidfd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
    if let Some(fd) = pidfd.and_then(|fd| crate::ports::async_fd::watch(fd).ok()) {
        _ = fd.readable().await;
    }
    _ = tokio::task::spawn_blocking(move || note_end(&mut child)).await;
}

/// Reaps a shim, and logs it if it did not end in order.
fn note_end(child: &mut Child) {
    if let Ok(status) = child.wait()
        && !status.success()
    {
        warn!(shim = child.id(), "the shim did not end in order: {status}");
    }
}

/// Why there is no shim, with its errno.
fn refusal(error: &(dyn std::error::Error + 'static)) -> StartRefused {
    let text = format!("no shim: {}", crate::error_chain::chain(error));
    StartRefused { errno: crate::ports::locks::shortage_in(error), text }
}

/// What was found at a shim's socket.
pub(crate) enum FoundShim {
    /// No process listens, or the one that did has left; only the session's lock proves that no shim is alive.
    Nobody,
    /// A process listens and does not answer.
    Mute,
    /// A shim that answered.
    Shim(Box<Greeted>),
}

/// Looks for the shim of an earlier daemon. Blocks.
pub(crate) fn find(socket: &Path, generation: u64) -> FoundShim {
    let Ok(mut link) = ShimConnection::connect(socket) else { return FoundShim::Nobody };
    match greet(&mut link, generation, Instant::now() + ANSWER) {
        Ok(welcome) => {
            FoundShim::Shim(Box::new(Greeted { socket: socket.to_owned(), link, welcome, child: None }))
        }
        Err(NotGreeted::Closed) => FoundShim::Nobody,
        Err(NotGreeted::TimeUp | NotGreeted::Other(_)) => FoundShim::Mute,
    }
}

/// Sockets of a session's shims in any folder, of our user: an earlier daemon may have had another runtime
/// folder.
pub(crate) fn anywhere(id: SessionId) -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let own = rustix::process::geteuid().as_raw();
    let all = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let ours = |path: &Path| std::fs::metadata(path).is_ok_and(|file| file.uid() == own);
    listening_at(&all, &format!("/shims/{id}.sock")).map(PathBuf::from).filter(|path| ours(path)).collect()
}

/// The paths in the kernel's list that have this ending, of listening sockets.
fn listening_at<'a>(list: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    /// `__SO_ACCEPTCON`.
    const LISTENS: &str = "00010000";
    list.lines().filter_map(move |line| {
        let fields: Vec<&str> = line.splitn(8, ' ').collect();
        let path = line.get(line.find('/')?..)?;
        (fields.get(3) == Some(&LISTENS) && path.ends_with(end)).then_some(path)
    })
}

fn greet(link: &mut ShimConnection, generation: u64, until: Instant) -> Result<Box<Welcome>, NotGreeted> {
    link.send(&Command::Hello { generation }).map_err(|_| NotGreeted::Closed)?;
    hear_welcome(link, until)
}

fn hear_welcome(link: &mut ShimConnection, until: Instant) -> Result<Box<Welcome>, NotGreeted> {
    match link.receive(Some(until)) {
        Ok(Some(Report::Welcome(welcome))) => Ok(welcome),
        Ok(Some(Report::Refused { generation })) => {
            let text = format!("the shim obeys a newer daemon ({generation})");
            Err(NotGreeted::Other(StartRefused { errno: None, text }))
        }
        Ok(Some(Report::CannotKeep { errno, text })) => {
            let errno = crate::ports::locks::passing(errno);
            Err(NotGreeted::Other(StartRefused { errno, text: format!("the shim cannot begin: {text}") }))
        }
        Ok(_) => Err(NotGreeted::Closed),
        Err(ReceiveError::TimeUp) => Err(NotGreeted::TimeUp),
        // It left without reading the hello.
        Err(ReceiveError::Kernel(error)) if error.kind() == std::io::ErrorKind::ConnectionReset => {
            Err(NotGreeted::Closed)
        }
        Err(error) => Err(NotGreeted::Other(refusal(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_that_leaves_before_it_answers_is_not_a_silent_one() {
        let temp = tempfile::tempdir().unwrap();
        for reads in [false, true] {
            let socket = temp.path().join(format!("{reads}.sock"));
            let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
            let leaves = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut hello = [0; 1024];
                // Bytes that nothing has read reset the connection.
                let mut waiting = [rustix::event::PollFd::new(&stream, rustix::event::PollFlags::IN)];
                rustix::event::poll(&mut waiting, None).unwrap();
                if reads {
                    assert_ne!(std::io::Read::read(&mut stream, &mut hello).unwrap(), 0);
                }
            });
            assert!(matches!(find(&socket, 1), FoundShim::Nobody), "reads: {reads}");
            leaves.join().unwrap();
        }
    }

    #[test]
    fn a_shim_is_found_by_the_end_of_its_path_where_it_listens() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    ffff0001: 00000002 00000000 00010000 0001 01 14 /run/a b/shims/X.sock\n\
                    ffff0002: 00000003 00000000 00000000 0001 03 15 /run/a b/shims/X.sock\n\
                    ffff0003: 00000002 00000000 00010000 0001 01 16 /run/shims/Y.sock\n\
                    ffff0004: 00000002 00000000 00010000 0001 01 17\n";
        assert_eq!(listening_at(list, "/shims/X.sock").collect::<Vec<_>>(), ["/run/a b/shims/X.sock"]);
    }
}
