//! A connection whose daemon is pinged, on a second one, whenever nothing has come for a while.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// A living daemon answers a ping within this time.
pub(crate) const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// The time after which a missing answer is first followed by a ping: nearly all come sooner, and cost no second request.
const FIRST: Duration = Duration::from_millis(500);
/// How often to ping after that. With the time for the answer this makes less than 10 s.
const EVERY: Duration = Duration::from_secs(4);
/// A daemon whose socket is gone creates another within 2 s; after this many failures in a row no daemon
/// listens at all.
const NOBODY: u32 = 3;

/// A daemon that holds its home's lock, so is alive, but does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the daemon{} lives and has not answered for {} s", named(*pid), ANSWERS_WITHIN.as_secs())]
pub struct Mute {
    /// Its pid, if it can be seen from here.
    pub pid: Option<u32>,
    /// Where it was asked.
    pub socket: PathBuf,
}

fn named(pid: Option<u32>) -> String {
    pid.map_or_else(|| " (of another pid namespace)".to_owned(), |pid| format!(" (pid {pid})"))
}

/// The result of asking a daemon for a sign of life.
pub(crate) enum Sign {
    /// It answered.
    Life,
    /// It is alive but does not answer.
    Mute(Mute),
    /// No process listens there.
    Nobody,
}

/// Pings a daemon on a separate connection.
pub(crate) trait AskAfter: std::fmt::Debug + Send {
    /// Asks for a sign of life.
    fn sign(&self) -> Sign;
    /// Returns what to report about a daemon that does not answer.
    fn mute(&self) -> Mute;
}

/// A connection to a daemon that is watched.
#[derive(Debug)]
pub(crate) struct WatchedConnection {
    stream: UnixStream,
    client: Box<dyn AskAfter>,
    /// How often in a row no process listened where the daemon was asked.
    nobody: u32,
}

impl WatchedConnection {
    pub(crate) fn new(stream: UnixStream, client: Box<dyn AskAfter>) -> io::Result<WatchedConnection> {
        stream.set_read_timeout(Some(FIRST))?;
        stream.set_write_timeout(Some(FIRST))?;
        Ok(WatchedConnection { stream, client, nobody: 0 })
    }

    /// Waits for as long as the connection is open, without pings.
    pub(crate) fn be_patient(&mut self) -> io::Result<()> {
        self.stream.set_read_timeout(None)
    }

    /// Returns the same connection, for a caller that may end it.
    pub(crate) fn hold(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    /// Nothing has come for a while: fails if the daemon does not run.
    fn ask_after(&mut self) -> io::Result<()> {
        match self.client.sign() {
            Sign::Life => self.nobody = 0,
            Sign::Mute(mute) => return Err(io::Error::other(mute)),
            // It is going, or will listen elsewhere in a moment. While this connection is open there is a daemon.
            Sign::Nobody => {
                self.nobody += 1;
                if self.nobody >= NOBODY {
                    return Err(io::Error::other(self.client.mute()));
                }
            }
        }
        self.stream.set_read_timeout(Some(EVERY))?;
        self.stream.set_write_timeout(Some(EVERY))
    }

    fn insist<T>(&mut self, mut what: impl FnMut(&mut UnixStream) -> io::Result<T>) -> io::Result<T> {
        loop {
            match what(&mut self.stream) {
                Err(error) if timed_out(&error) => self.ask_after()?,
                done => return done,
            }
        }
    }
}

/// Whether the time-out of a socket has passed.
pub(crate) fn timed_out(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl Read for WatchedConnection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.insist(|stream| stream.read(into))
    }
}

impl Write for WatchedConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.insist(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
