//! A process from which shims are forked: it was executed and has found its way once, and none of them has to.

use crate::client::{Link, Opening, SpawnError, command, hand_over};
use crate::socket;
use pinfold_lock::{Folder, Guard};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};

/// The word that makes a shim's program a nursery.
pub(crate) const WORD: &str = "--nursery";
/// Room on its command line for the names of sessions.
const ROOM: usize = 128;

/// A nursery; its process is started when the first shim is wanted, and again when it was lost.
#[derive(Debug)]
pub struct Nursery {
    program: PathBuf,
    arguments: Vec<OsString>,
    crash_at: Option<OsString>,
    process: Mutex<Option<Process>>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    socket: UnixStream,
}

impl Nursery {
    /// The program and the words before a session's name, as in an [`Opening`].
    #[must_use]
    pub fn new(program: PathBuf, arguments: Vec<OsString>, crash_at: Option<OsString>) -> Self {
        Self { program, arguments, crash_at, process: Mutex::new(None) }
    }

    /// As [`crate::client::spawn`], with a shim that nobody has to reap.
    ///
    /// # Errors
    /// When the program cannot be started, or the locks cannot be sent; no shim is left behind then.
    pub fn spawn(&self, opening: &Opening, guards: &[(&Folder, &Guard)]) -> Result<Link, SpawnError> {
        let (ours, theirs) = UnixStream::pair().map_err(SpawnError::HandOver)?;
        self.ask(&theirs.into())?;
        // One that is given nothing to keep leaves.
        hand_over(&ours, opening, guards).map_err(SpawnError::HandOver)?;
        Ok(Link::new(ours))
    }

    /// Has the next shim come from another process: this one does not answer.
    pub fn renew(&self) {
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn ask(&self, theirs: &OwnedFd) -> Result<(), SpawnError> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*process {
            match socket::send_with(&known.socket, &[0], &[theirs.as_fd()]) {
                Ok(_) => return Ok(()),
                Err(Errno::PIPE | Errno::CONNRESET) => *process = None,
                Err(errno) => return Err(SpawnError::HandOver(errno.into())),
            }
        }
        let new = process.insert(self.start()?);
        let sent = socket::send_with(&new.socket, &[0], &[theirs.as_fd()]);
        sent.map(drop).map_err(|errno| SpawnError::HandOver(errno.into()))
    }

    fn start(&self) -> Result<Process, SpawnError> {
        let (socket, theirs) = UnixStream::pair().map_err(SpawnError::HandOver)?;
        let mut command = command(&self.program, &self.arguments, self.crash_at.as_ref());
        command.arg(WORD).arg(" ".repeat(ROOM)).stdin(Stdio::from(OwnedFd::from(theirs)));
        let program = || self.program.clone();
        let child = command.spawn().map_err(|source| SpawnError::Program { program: program(), source })?;
        Ok(Process { child, socket })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It keeps nothing: its shims go on without it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
