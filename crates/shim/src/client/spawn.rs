//! How a daemon starts a shim, or finds a running one.
//!
//! ```no_run
//! # fn show(folder: pinfold_lock::Folder, guard: pinfold_lock::Guard) -> Result<(), Box<dyn std::error::Error>> {
//! use pinfold_shim::client::{Opening, spawn};
//! use pinfold_shim::{Command, Listens, Report, Start, Tie};
//!
//! let opening = Opening {
//!     program: "/usr/bin/pinfold-shim".into(),
//!     arguments: Vec::new(),
//!     session: "api".into(),
//!     listen: "/run/user/1000/pinfold/api.sock".into(),
//!     listens: Listens::Late,
//!     records: "/home/me/.local/state/pinfold/sessions/api/exits".into(),
//!     log: "/home/me/.local/state/pinfold/sessions/api/log".into(),
//!     tape: None,
//!     tie: Tie::Free,
//!     foreground: None,
//!     crash_at: None,
//! };
//! let (_child, mut link) = spawn(&opening, &[(&folder, &guard)])?;
//! link.send(&Command::Hello { generation: 1 })?;
//! let Some(Report::Welcome(_)) = link.receive(None)? else { return Ok(()) };
//! // The shim has the locks: the daemon's own copies go. The run was stored before.
//! let _receipt = guard.surrender();
//! link.send(&Command::Go)?;
//! link.send(&Command::Start(Box::new(Start::default())))?;
//! # Ok(())
//! # }
//! ```

use crate::crash;
use crate::protocol::command::Command;
use crate::protocol::frame::{Decoder, FrameError};
use crate::protocol::keep::{Keep, LentLock, Listens, Streams, Tie};
use crate::protocol::report::Report;
use pinfold_core::ids::RunNumber;
use pinfold_kernel::socket;
use pinfold_lock::{Folder, Guard};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Instant;

/// What a shim is started with. All paths are absolute.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The shim's program.
    pub program: PathBuf,
    /// Arguments before the session's name, for a program that is a shim only when told so.
    pub arguments: Vec<OsString>,
    /// The session's name.
    pub session: String,
    /// Where the shim listens for later daemons.
    pub listen: PathBuf,
    /// When it begins to listen there.
    pub listens: Listens,
    /// The file of exit records.
    pub records: PathBuf,
    /// The log's path.
    pub log: PathBuf,
    /// The folder of the tape, if runs are to have one.
    pub tape: Option<PathBuf>,
    /// Whether its runs outlive the caller.
    pub tie: Tie,
    /// What agents in the foreground get from the caller.
    pub foreground: Option<Foreground>,
    /// The crash point at which it aborts, in builds that have them; for recovery tests.
    pub crash_at: Option<OsString>,
}

/// What agents in the foreground get from the process that started their shim.
#[derive(Debug, Clone)]
pub struct Foreground {
    /// Standard input, output and error of every agent.
    pub streams: Arc<[OwnedFd; 3]>,
    /// The folder of everything that the shim writes. The caller removes it, or the shim if the caller was
    /// killed.
    pub scratch: PathBuf,
}

/// Why a shim could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// Its program could not be started.
    #[error("{} could not be started", program.display())]
    Program {
        /// The program's path.
        program: PathBuf,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The locks could not be handed over.
    #[error("the locks could not be handed to a shim")]
    HandOver(#[source] io::Error),
}

/// Why nothing was received from a shim.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The deadline has passed.
    #[error("the shim did not answer in time")]
    TimeUp,
    /// The bytes are not a shim's report.
    #[error("the shim speaks another protocol")]
    Frame(#[from] FrameError),
    /// The kernel failed.
    #[error("nothing could be received from the shim")]
    Kernel(#[from] io::Error),
}

/// Starts a shim and hands it copies of the locks, each with its folder, the session's own first.
///
/// The shim holds them once it has answered a hello; until then the caller keeps its guards, afterwards it
/// calls [`Guard::surrender`]. If the caller dies before it sends [`Command::Go`], the shim leaves. The
/// caller has to reap the child.
///
/// # Errors
/// The program cannot be started, or the locks cannot be sent; no shim is left behind then.
pub fn spawn(opening: &Opening, guards: &[(&Folder, &Guard)]) -> Result<(Child, ShimConnection), SpawnError> {
    let (ours, theirs) = UnixStream::pair().map_err(SpawnError::HandOver)?;
    let mut command = command(&opening.program, &opening.arguments, opening.crash_at.as_ref());
    command.arg(&opening.session).stdin(Stdio::from(OwnedFd::from(theirs)));
    let program = || opening.program.clone();
    let mut child = command.spawn().map_err(|source| SpawnError::Program { program: program(), source })?;
    drop(command);
    match hand_over(&ours, opening, guards) {
        Ok(()) => Ok((child, ShimConnection::new(ours))),
        Err(error) => {
            // It has nothing to keep yet.
            let _ = child.kill();
            let _ = child.wait();
            Err(SpawnError::HandOver(error))
        }
    }
}

/// Returns the command that starts a shim's program.
pub(crate) fn command(
    program: &Path,
    arguments: &[OsString],
    crash_at: Option<&OsString>,
) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.args(arguments);
    // The daemon's environment may contain secrets, and the marker of a run in which the daemon itself was
    // started.
    command.env_clear();
    // A shim allocates little and seldom: freed memory need not be kept for reuse, nor the pages around it.
    command.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");
    if let Some(point) = crash_at {
        command.env(crash::VARIABLE, point);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Removes the empty control groups that a killed shim of a session left behind; `listen` is where it
/// listened.
///
/// Only for the holder of the session's lock. The session's next start does it too.
///
/// # Errors
/// `ResourceBusy` if something still lives in one, or the kernel's error.
pub fn sweep(listen: &Path) -> io::Result<()> {
    Ok(crate::groups::group::sweep(listen)?)
}

pub(crate) fn hand_over(
    stream: &UnixStream,
    opening: &Opening,
    guards: &[(&Folder, &Guard)],
) -> io::Result<()> {
    let (locks, mut descriptors) = lend(guards)?;
    if let Some(foreground) = &opening.foreground {
        descriptors.extend(foreground.streams.iter().map(AsFd::as_fd));
    }
    let keep = Keep {
        session: opening.session.clone(),
        listen: opening.listen.clone(),
        listens: opening.listens,
        records: opening.records.clone(),
        log: opening.log.clone(),
        locks,
        tie: opening.tie,
        streams: if opening.foreground.is_some() { Streams::Given } else { Streams::Kept },
        scratch: opening.foreground.as_ref().map(|foreground| foreground.scratch.clone()),
        tape: opening.tape.clone(),
    };
    let mut bytes = Vec::new();
    Command::Keep(Box::new(keep)).encode(&mut bytes);
    send_all(stream, &bytes, &descriptors)
}

/// Describes locks, and lends their descriptors for [`Command::Hold`], in this order, each with its folder.
///
/// # Errors
/// A lock cannot be described.
pub fn lend<'a>(guards: &[(&Folder, &'a Guard)]) -> io::Result<(Vec<LentLock>, Vec<BorrowedFd<'a>>)> {
    let (mut locks, mut descriptors) = (Vec::new(), Vec::new());
    for (folder, guard) in guards {
        let (description, lent) = guard.lend()?;
        locks.push(LentLock {
            folder: folder.path().to_owned(),
            description: serde_json::to_vec(&description)?,
            descriptors: lent.len(),
        });
        descriptors.extend(lent);
    }
    Ok((locks, descriptors))
}

/// Sends one byte with each batch of descriptors, and the rest with the last.
fn send_all(stream: &UnixStream, mut bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    for lot in descriptors.chunks(socket::MOST_DESCRIPTORS) {
        let sent = socket::send_with(stream, &bytes[..1.min(bytes.len())], lot)?;
        bytes = &bytes[sent..];
    }
    while !bytes.is_empty() {
        let sent = socket::send_with(stream, bytes, &[])?;
        bytes = &bytes[sent..];
    }
    Ok(())
}

/// A connection to a shim. It blocks; a caller with its own loop takes it apart.
#[derive(Debug)]
pub struct ShimConnection {
    stream: UnixStream,
    decoder: Decoder,
    ready: VecDeque<Report>,
}

impl ShimConnection {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream, decoder: Decoder::default(), ready: VecDeque::new() }
    }

    /// Connects to the shim that listens at `path`.
    ///
    /// # Errors
    /// `NotFound` or `ConnectionRefused` if nothing listens there; only the session's lock proves that no
    /// shim lives.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self::new(UnixStream::from(crate::socket::connect(path)?)))
    }

    /// Sends a command.
    ///
    /// # Errors
    /// The shim is gone, or has dropped this connection for a newer one.
    pub fn send(&mut self, command: &Command) -> io::Result<()> {
        let mut bytes = Vec::new();
        command.encode(&mut bytes);
        send_all(&self.stream, &bytes, &[])
    }

    /// Hands copies of more locks to a shim that keeps a run. The caller keeps its guards until
    /// [`Report::Held`] names them, and then calls [`Guard::surrender`].
    ///
    /// # Errors
    /// The shim is gone, or has dropped this connection for a newer one.
    pub fn hold(&mut self, run: RunNumber, guards: &[(&Folder, &Guard)]) -> io::Result<()> {
        let (locks, descriptors) = lend(guards)?;
        let mut bytes = Vec::new();
        Command::Hold { run, locks }.encode(&mut bytes);
        send_all(&self.stream, &bytes, &descriptors)
    }

    /// Waits for the next report; `None` if the shim has closed the connection.
    ///
    /// # Errors
    /// `until` has passed, or the bytes are not a report.
    pub fn receive(&mut self, until: Option<Instant>) -> Result<Option<Report>, ReceiveError> {
        loop {
            if let Some(report) = self.ready.pop_front() {
                return Ok(Some(report));
            }
            while let Some(frame) = self.decoder.frame()? {
                self.ready.extend(Report::decode(&frame)?);
            }
            if !self.ready.is_empty() {
                continue;
            }
            wait(&self.stream, until)?;
            let room = self.decoder.room();
            match rustix::io::read(&self.stream, rustix::buffer::spare_capacity(room)) {
                Ok(0) | Err(Errno::CONNRESET) => return Ok(None),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(ReceiveError::Kernel(errno.into())),
            }
        }
    }

    /// Returns the socket, and what was read from it but not decoded yet: for a caller with its own loop,
    /// which feeds a [`Decoder`] and writes what [`Command::encode`] gives.
    #[must_use]
    pub fn into_parts(self) -> (UnixStream, Decoder, VecDeque<Report>) {
        (self.stream, self.decoder, self.ready)
    }
}

impl AsFd for ShimConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn wait(stream: &UnixStream, until: Option<Instant>) -> Result<(), ReceiveError> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.map(pinfold_kernel::clock::timespec);
        match rustix::event::poll(&mut [PollFd::new(stream, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => return Err(ReceiveError::TimeUp),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(ReceiveError::Kernel(errno.into())),
        }
    }
}
