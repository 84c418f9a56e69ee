//! The notify socket: what an agent says about itself, in systemd's words and one of ours.

use super::tree;
use crate::report::{Notice, Report};
use pinfold_core::exit::Said;
use pinfold_core::ids::RunNumber;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags,
    SocketType,
};
use std::ffi::OsString;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

/// The longest message that is read; systemd reads no more either.
const LONGEST: usize = 4096;
/// The longest status that is kept.
const LONGEST_STATUS: usize = 1024;
/// No more are read in one go, so that a flood cannot keep the shim from its work; the kernel queues fewer.
const AT_ONCE: usize = 1024;

/// The socket, and what is to be told of what came through it.
#[derive(Debug)]
pub(super) struct Notify {
    socket: OwnedFd,
    name: OsString,
    words: Words,
    untold: Untold,
}

/// What the agent of the present run has said.
#[derive(Debug, Default)]
struct Words {
    ready: bool,
    stopping: bool,
    status: Option<String>,
    said: Option<Said>,
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
    /// Opens a socket under a name that the kernel makes up: it needs no file and no path that might be long.
    pub(super) fn open() -> Result<Self, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        set_socket_passcred(&socket, true)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new_unnamed())?;
        let address = SocketAddrUnix::try_from(rustix::net::getsockname(&socket)?)?;
        let mut name = b"@".to_vec();
        name.extend_from_slice(address.abstract_name().ok_or(Errno::ADDRNOTAVAIL)?);
        Ok(Self {
            socket,
            name: OsString::from_vec(name),
            words: Words::default(),
            untold: Untold::default(),
        })
    }

    /// The value of `NOTIFY_SOCKET`.
    pub(super) fn name(&self) -> &OsString {
        &self.name
    }

    /// What the agent said about its exit.
    pub(super) fn said(&self) -> Option<Said> {
        self.words.said
    }

    /// Forgets everything: another run begins.
    pub(super) fn begin(&mut self) {
        // What is still in the socket was said by the last run.
        self.read();
        self.words = Words::default();
        self.untold = Untold::default();
    }

    /// Reads what came.
    pub(super) fn read(&mut self) {
        let mut bytes = [0; LONGEST];
        for _ in 0..AT_ONCE {
            match self.receive(&mut bytes) {
                Ok(Some(length)) => self.hear(&bytes[..length]),
                Ok(None) => {}
                Err(_) => break,
            }
        }
    }

    /// One message; nothing when its sender is not of our tree.
    fn receive(&self, bytes: &mut [u8]) -> Result<Option<usize>, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1), ScmRights(16))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received =
            rustix::net::recvmsg(&self.socket, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
        let mut ours = false;
        for message in control.drain() {
            match message {
                RecvAncillaryMessage::ScmCredentials(sender) => {
                    let pid = sender.pid.as_raw_nonzero().get().unsigned_abs();
                    ours = sender.uid == rustix::process::geteuid() && is_member(pid);
                }
                // Closed at once: a sender that asks for a barrier waits for that.
                RecvAncillaryMessage::ScmRights(descriptors) => descriptors.for_each(drop),
                _ => {}
            }
        }
        Ok(ours.then_some(received.bytes))
    }

    fn hear(&mut self, message: &[u8]) {
        for line in String::from_utf8_lossy(message).lines() {
            match line.split_once('=') {
                Some(("READY", "1")) => (self.words.ready, self.untold.ready) = (true, true),
                Some(("WATCHDOG", "1")) => self.untold.watchdog = true,
                Some(("STOPPING", "1")) => (self.words.stopping, self.untold.stopping) = (true, true),
                Some(("STATUS", text)) => self.status(text),
                Some(("X_PINFOLD_EXIT", word)) => self.exit(word),
                _ => {}
            }
        }
    }

    fn status(&mut self, text: &str) {
        let end = (0..=LONGEST_STATUS.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        self.words.status = Some(text[..end.unwrap_or(0)].to_owned());
        self.untold.status = true;
    }

    fn exit(&mut self, word: &str) {
        let said = match word {
            "drained" => Said::Drained,
            "contended" => Said::Contended,
            "hopeless" => Said::Hopeless,
            "limited" => Said::Limited,
            _ => return,
        };
        (self.words.said, self.untold.said) = (Some(said), true);
    }

    /// A new daemon has to be told what the old one heard.
    pub(super) fn tell_again(&mut self) {
        self.untold.ready = self.words.ready;
        self.untold.stopping = self.words.stopping;
        self.untold.status = self.words.status.is_some();
        self.untold.said = self.words.said.is_some();
    }

    /// What is to be told now; it counts as told.
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

/// Whether a sender is of our tree. One that has already ended cannot be asked; it knew the name of the
/// socket, which only the tree is told.
fn is_member(pid: u32) -> bool {
    tree::is_below(pid, std::process::id()) || !tree::exists(pid)
}

impl AsFd for Notify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
