//! A process from which shims are forked: it pays the cost of exec and start-up once, for all shims.

use super::spawn::{Opening, ShimConnection, SpawnError, command, hand_over};
use crate::protocol::NURSERY;
use pinfold_kernel::socket;
use pinfold_lock::{Folder, Guard};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};

/// Room on its command line for the names of sessions.
const ROOM: usize = 128;

/// A nursery. Its process is started when the first shim is wanted, and again if it was lost.
#[derive(Debug)]
pub struct Nursery {
    program: PathBuf,
    arguments: Vec<OsString>,
    crash_at: Option<OsString>,
    process: Mutex<Option<Process>>,
}

/// The process that was asked for a shim: if it does not answer, it is ended, and not its successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NurseryId(u32);

#[derive(Debug)]
struct Process {
    child: Child,
    socket: UnixStream,
}

impl Nursery {
    /// Creates a nursery, with the program and the words before a session's name as in an [`Opening`].
    #[must_use]
    pub fn new(program: PathBuf, arguments: Vec<OsString>, crash_at: Option<OsString>) -> Self {
        Self { program, arguments, crash_at, process: Mutex::new(None) }
    }

    /// Like [`crate::client::spawn()`], but the caller does not have to reap the shim. The shim exists once
    /// it has answered a hello: a process that does not run forks none.
    ///
    /// # Errors
    /// The program cannot be started, or the locks cannot be sent; no shim is left behind then.
    pub fn spawn(
        &self,
        opening: &Opening,
        guards: &[(&Folder, &Guard)],
    ) -> Result<(NurseryId, ShimConnection), SpawnError> {
        let (ours, theirs) = UnixStream::pair().map_err(SpawnError::HandOver)?;
        let asked = self.ask(&theirs.into())?;
        // A shim that is given nothing to keep leaves.
        hand_over(&ours, opening, guards).map_err(SpawnError::HandOver)?;
        Ok((asked, ShimConnection::new(ours)))
    }

    /// Ends what killed shims of this nursery's process have left behind, before it forks the next one: a process
    /// whose shim has gone becomes a child of the nursery, even if it left its session, its environment and its
    /// control group. Does not wait for the nursery.
    pub fn end_orphans(&self) {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*process {
            // If it has gone, it has no children; if its socket is full, it has been told already.
            let _ = rustix::net::send(&known.socket, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }

    /// Makes the next shim come from a new process, because the one that was asked does not answer. The old
    /// one is ended with everything it was asked and has not done: the connection of such a shim ends.
    pub fn renew(&self, asked: NurseryId) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if process.as_ref().is_some_and(|known| known.asked() == asked) {
            *process = None;
        }
    }

    fn ask(&self, theirs: &OwnedFd) -> Result<NurseryId, SpawnError> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*process {
            match socket::send_with(&known.socket, &[0], &[theirs.as_fd()]) {
                Ok(_) => return Ok(known.asked()),
                Err(Errno::PIPE | Errno::CONNRESET) => *process = None,
                Err(errno) => return Err(SpawnError::HandOver(errno.into())),
            }
        }
        let new = process.insert(self.start()?);
        let sent = socket::send_with(&new.socket, &[0], &[theirs.as_fd()]);
        sent.map(|_| new.asked()).map_err(|errno| SpawnError::HandOver(errno.into()))
    }

    fn start(&self) -> Result<Process, SpawnError> {
        let (socket, theirs) = UnixStream::pair().map_err(SpawnError::HandOver)?;
        let mut command = command(&self.program, &self.arguments, self.crash_at.as_ref());
        command.arg(NURSERY).arg(" ".repeat(ROOM)).stdin(Stdio::from(OwnedFd::from(theirs)));
        let program = || self.program.clone();
        let child = command.spawn().map_err(|source| SpawnError::Program { program: program(), source })?;
        Ok(Process { child, socket })
    }
}

impl Process {
    /// It is our child until it is dropped, so no other process has its pid.
    fn asked(&self) -> NurseryId {
        NurseryId(self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It keeps nothing: its shims go on without it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
