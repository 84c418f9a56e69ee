//! The notify socket: what an agent says about itself, in systemd's words and one of ours.

use super::run::Run;
use super::sender::{self, SenderStanding};
use crate::protocol::notice::Notice;
use crate::protocol::report::Report;
use pinfold_core::exit::ExitNotice;
use pinfold_core::ids::RunNumber;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

/// Longest message that is read, in bytes; systemd reads no more either.
const LONGEST: usize = 4096;
/// Longest status that is kept, in bytes.
const LONGEST_STATUS: usize = 1024;
/// Most messages read in one go, so that a flood cannot keep the shim from its work; the kernel queues fewer.
const AT_ONCE: usize = 1024;
/// After this many from strangers in a row, nothing is read for a while: any user of the machine can send.
const REFUSED: usize = 64;
/// How long nothing is read; processes of the tree wait meanwhile, as they do while the shim is busy.
const DEAF: Duration = Duration::from_millis(100);

/// The socket, and what is to be reported of the messages that came through it.
#[derive(Debug)]
pub(super) struct Notify {
    socket: OwnedFd,
    name: OsString,
    words: Words,
    untold: Untold,
    /// Messages from strangers since the last one from the tree.
    refused: usize,
    /// Until when nothing is read, because strangers flood the socket.
    deaf: Option<Instant>,
}

/// What the agent of the current run has said.
#[derive(Debug, Default)]
struct Words {
    ready: bool,
    stopping: bool,
    status: Option<String>,
    said: Option<ExitNotice>,
}

/// Which of its words the daemon has not heard.
#[derive(Debug, Default, Clone, Copy)]
struct Untold {
    ready: bool,
    watchdog: bool,
    stopping: bool,
    status: bool,
    said: bool,
}

impl Notify {
    /// Opens a socket under a name that the kernel makes up: it needs no file, and no path that might be too
    /// long.
    pub(super) fn open() -> Result<Self, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        pinfold_kernel::sender::name_senders(socket.as_fd())?;
        rustix::net::bind(&socket, &SocketAddrUnix::new_unnamed())?;
        let address = SocketAddrUnix::try_from(rustix::net::getsockname(&socket)?)?;
        let mut name = b"@".to_vec();
        name.extend_from_slice(address.abstract_name().ok_or(Errno::ADDRNOTAVAIL)?);
        Ok(Self {
            socket,
            name: OsString::from_vec(name),
            words: Words::default(),
            untold: Untold::default(),
            refused: 0,
            deaf: None,
        })
    }

    /// Returns the value of `NOTIFY_SOCKET`.
    pub(super) fn name(&self) -> &OsString {
        &self.name
    }

    /// Returns what the agent said about its exit.
    pub(super) fn said(&self) -> Option<ExitNotice> {
        self.words.said
    }

    /// Forgets everything, because another run begins.
    pub(super) fn begin(&mut self) {
        // What is still in the socket was said by the last run.
        self.drain(None);
        self.words = Words::default();
        self.untold = Untold::default();
    }

    /// Reads messages, until there are too many from strangers. `run` is the current one.
    pub(super) fn read(&mut self, run: Option<&Run>) {
        for _ in 0..AT_ONCE {
            if self.refused == REFUSED {
                self.refused = 0;
                self.deaf = Some(Instant::now() + DEAF);
                return;
            }
            if self.receive(run).is_err() {
                return;
            }
        }
    }

    /// Reads all messages that are there, from any sender.
    pub(super) fn drain(&mut self, run: Option<&Run>) {
        for _ in 0..AT_ONCE {
            if self.receive(run).is_err() {
                break;
            }
        }
        self.refused = 0;
    }

    /// Reads what an agent said before it ended, while its pid is still known to be its own.
    pub(super) fn last_words(&mut self, run: &mut Run) {
        if run.just_ended {
            self.drain(Some(run));
            run.just_ended = false;
        }
    }

    /// Returns until when nothing is read.
    pub(super) fn deaf(&self) -> Option<Instant> {
        self.deaf
    }

    /// Listens again when it is time.
    pub(super) fn recover(&mut self, now: Instant) {
        self.deaf = self.deaf.filter(|until| now < *until);
    }

    /// Reads one message.
    fn receive(&mut self, run: Option<&Run>) -> Result<(), Errno> {
        let mut bytes = [0; LONGEST];
        let (length, sender) = pinfold_kernel::sender::receive(self.socket.as_fd(), &mut bytes)?;
        let standing = sender.map_or(SenderStanding::Stranger, |sender| sender::judge(&sender, run));
        self.refused = if standing == SenderStanding::Stranger { self.refused + 1 } else { 0 };
        self.hear(&bytes[..length], standing);
        Ok(())
    }

    /// An unproven sender may report a status, but nothing that decides about the run.
    fn hear(&mut self, message: &[u8], standing: SenderStanding) {
        if standing == SenderStanding::Stranger {
            return;
        }
        for line in String::from_utf8_lossy(message).lines() {
            match line.split_once('=') {
                Some(("READY", "1")) => (self.words.ready, self.untold.ready) = (true, true),
                Some(("STATUS", text)) => self.status(text),
                Some((name, value)) if standing == SenderStanding::Member => self.decide(name, value),
                Some(_) | None => {}
            }
        }
    }

    fn decide(&mut self, name: &str, value: &str) {
        match (name, value) {
            ("WATCHDOG", "1") => self.untold.watchdog = true,
            ("STOPPING", "1") => (self.words.stopping, self.untold.stopping) = (true, true),
            ("X_PINFOLD_EXIT", word) => self.exit(word),
            _ => {}
        }
    }

    fn status(&mut self, text: &str) {
        let end = (0..=LONGEST_STATUS.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        self.words.status = Some(text[..end.unwrap_or(0)].to_owned());
        self.untold.status = true;
    }

    fn exit(&mut self, word: &str) {
        let said = match word {
            "drained" => ExitNotice::Drained,
            "contended" => ExitNotice::Contended,
            "hopeless" => ExitNotice::Hopeless,
            "limited" => ExitNotice::Limited,
            _ => return,
        };
        (self.words.said, self.untold.said) = (Some(said), true);
    }

    /// Makes a new daemon hear what the old one heard.
    pub(super) fn tell_again(&mut self) {
        self.untold.ready = self.words.ready;
        self.untold.stopping = self.words.stopping;
        self.untold.status = self.words.status.is_some();
        self.untold.said = self.words.said.is_some();
    }

    /// Returns what is to be reported now, and counts it as reported.
    pub(super) fn untold(&mut self, run: RunNumber) -> Vec<Report> {
        let untold = std::mem::take(&mut self.untold);
        let mut notices = Vec::new();
        notices.extend(untold.ready.then_some(Notice::Ready));
        notices.extend(untold.watchdog.then_some(Notice::Watchdog));
        notices.extend(untold.stopping.then_some(Notice::Stopping));
        notices.extend(self.words.status.clone().filter(|_| untold.status).map(Notice::Status));
        notices.extend(self.words.said.filter(|_| untold.said).map(Notice::Exit));
        notices.into_iter().map(|notice| Report::Notify { run, notice }).collect()
    }
}

impl AsFd for Notify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
