//! The standard streams of agents in the foreground.
//!
//! They are the caller's own, so nothing is copied, cut or reordered. Only a terminal's input passes through
//! this process: agents live in a session of their own, where the kernel would let them read from under the
//! caller's shell while the caller is in the background.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The longest line that a terminal delivers.
const LINE: usize = 4096;

/// The streams for agents, and the task that passes on what is typed, if one is needed.
pub(super) fn streams() -> io::Result<([OwnedFd; 3], Option<impl Future<Output = ()> + use<>>)> {
    let stdout = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let stderr = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?;
    let own = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    if !io::stdin().is_terminal() {
        return Ok(([own, stdout, stderr], None));
    }
    let (theirs, ours) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    let typed = Typed { terminal: own, resumed: signal(SignalKind::from_raw(libc_cont()))? };
    let sender = pipe::Sender::from_owned_fd(ours)?;
    Ok(([theirs, stdout, stderr], Some(pass_on(typed, sender))))
}

fn libc_cont() -> i32 {
    rustix::process::Signal::CONT.as_raw()
}

/// What is typed while this process is in the foreground of its terminal.
struct Typed {
    terminal: OwnedFd,
    resumed: Signal,
}

/// Passes on what is typed until the end of input.
async fn pass_on(mut typed: Typed, mut agent: pipe::Sender) {
    let Ok(terminal) = typed.terminal.try_clone().and_then(crate::ports::async_fd::watch) else { return };
    let mut line = [0; LINE];
    loop {
        let input = look(&typed.terminal);
        if input == Input::Gone {
            return;
        }
        // Reading in the background would stop this process: it is the shell's turn. Not every shell tells
        // when that is over, so whatever is typed next is a reason to look again.
        if input == Input::Nothing || !in_foreground(&typed.terminal) {
            tokio::select! {
                ready = terminal.readable() => match ready {
                    Ok(mut ready) => ready.clear_ready(),
                    Err(_) => return,
                },
                _ = typed.resumed.recv() => {}
            }
            continue;
        }
        match rustix::io::read(&typed.terminal, &mut line) {
            Ok(0) => return,
            Ok(count) => {
                if agent.write_all(&line[..count]).await.is_err() {
                    return;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}

/// What a terminal has to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Nothing,
    Typed,
    /// It was hung up.
    Gone,
}

/// The descriptor is shared with the shell, so it is not made non-blocking: it is polled before each read.
fn look(terminal: &OwnedFd) -> Input {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut asked = [PollFd::new(terminal, PollFlags::IN)];
    let ready = rustix::event::poll(&mut asked, Some(&now));
    match asked[0].revents() {
        seen if seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => Input::Gone,
        _ if ready == Ok(1) => Input::Typed,
        _ => Input::Nothing,
    }
}

fn in_foreground(terminal: &OwnedFd) -> bool {
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}
