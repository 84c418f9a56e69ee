//! The bridge: connects an agent that listens on a socket to the standard streams that a shim keeps.
//!
//! Codex serves several clients only on a socket, where it speaks JSON in WebSocket messages; a shim keeps
//! lines. So such a run is two processes. The one that the shim started becomes the agent itself: its pid is
//! the run's. Its child is the bridge, which connects to the socket and passes lines on, whatever they say.
//!
//! Neither outlives the other. When the agent ends, so does the run, and the shim ends the bridge with the
//! rest of the tree. When the bridge ends, the kernel kills the agent: the agent's standard input is a pipe
//! to the bridge that signals its owner on hangup. When the shim closes its input, the bridge asks the agent
//! to leave, and stays until it has.

mod web_socket;

use pinfold_kernel::{signals, socket};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{Errno, FdFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use web_socket::{FrameSender, Receiver};

/// The word that makes a shim's program an agent with its bridge; the socket and the agent's words follow.
pub const BRIDGE: &str = "--bridge";
/// The word that starts the bridge itself; the agent's pid and the socket follow.
const SPAN: &str = "--span";
/// The process name in process lists.
const NAME: &str = "pinfold-bridge";
/// The agent creates its socket within about 0.2 s; nothing announces it.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The agent's first request to leave waits for the current turn, the next one does not. Two at once would
/// count as one.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// An agent that has hung up takes about 0.1 s to end.
const LEAVES_WITHIN: Duration = Duration::from_secs(3);
/// The most that is read from the shim at once; it becomes one frame.
const PIECE: usize = 64 << 10;

/// Does what the program's words ask for, if they are one of the two. A shim's name is its last word,
/// whatever it is.
pub(crate) fn asked(words: &[OsString]) -> Option<ExitCode> {
    let at = words.iter().take(3).position(|word| word == BRIDGE || word == SPAN)?;
    let ended = match &words[at + 1..] {
        [socket, program, rest @ ..] if words[at] == BRIDGE => {
            Err(become_agent(Path::new(socket), program, rest).unwrap_or_else(|error| error))
        }
        [agent, socket] if words[at] == SPAN => span(agent, Path::new(socket)),
        _ => return None,
    };
    let Err(error) = ended else { return Some(ExitCode::SUCCESS) };
    eprintln!("error: the bridge to the agent's socket: {error}");
    // The code a shell uses for a program that it cannot start.
    Some(ExitCode::from(127))
}

/// Starts the bridge, and becomes the agent; returns only if that fails, with the reason.
fn become_agent(socket: &Path, program: &OsString, words: &[OsString]) -> io::Result<io::Error> {
    // A killed agent leaves its socket behind; the session's lock shows that nothing listens there.
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let (hangs_up, tie) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    signals::at_hang_up(hangs_up.as_fd(), Signal::KILL)?;
    rustix::io::fcntl_setfd(&tie, FdFlags::empty())?;
    let me = rustix::process::getpid().as_raw_nonzero().to_string();
    let mut bridge = Command::new("/proc/self/exe");
    // The same words that made this program a shim are passed on.
    bridge.args(std::env::args_os().skip(1).take_while(|word| word != BRIDGE));
    bridge.arg0(NAME).args([OsString::from(SPAN), me.into(), socket.into()]);
    bridge.spawn()?;
    drop(tie);
    let errors = io::stderr().as_fd().try_clone_to_owned()?;
    // Only what comes through the socket is the agent's output.
    Ok(Command::new(program).args(words).stdin(hangs_up).stdout(errors).exec())
}

/// Passes lines on until one side has ended.
fn span(agent: &OsString, socket: &Path) -> io::Result<()> {
    let agent = agent.to_str().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
    let agent = agent.ok_or(Errno::INVAL)?;
    // A stop is meant for the agent: the bridge stays to pass on the agent's reaction.
    let _kept = signals::SignalFd::take(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])?;
    _ = rustix::thread::set_name(&CString::new(NAME)?);
    let connection = connect(agent, socket)?;
    let (receiver, sender) = web_socket::open(connection)?;
    let sender = Arc::new(Mutex::new(sender));
    let says = Arc::clone(&sender);
    // The thread ends with the process; it may be waiting for words that come too late.
    std::thread::spawn(move || match say(&says) {
        Ok(()) => ask_to_leave(agent),
        // The agent no longer listens, so it is of no use.
        Err(_) => locked(&says).hang_up(),
    });
    hear(receiver, &sender)?;
    // The agent hangs up before it ends. What it does in between is its own business, unless it takes too
    // long.
    await_end(agent)
}

fn await_end(agent: Pid) -> io::Result<()> {
    let ends = rustix::process::pidfd_open(agent, PidfdFlags::empty())?;
    let within = Timespec::try_from(LEAVES_WITHIN).map_err(|_| Errno::INVAL)?;
    let mut polled = [PollFd::new(&ends, PollFlags::IN)];
    rustix::io::retry_on_intr(|| rustix::event::poll(&mut polled, Some(&within)))?;
    Ok(())
}

/// Connects as soon as the agent listens.
fn connect(agent: Pid, path: &Path) -> io::Result<UnixStream> {
    loop {
        match socket::connect(path, None) {
            Ok(connected) => return Ok(connected.into()),
            Err(Errno::NOENT | Errno::CONNREFUSED) if lives(agent) => std::thread::sleep(LOOK_AGAIN),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Returns whether the agent is still the parent of this process.
fn lives(agent: Pid) -> bool {
    rustix::process::getppid() == Some(agent)
}

/// Passes on what the shim says, until its end.
fn say(sender: &Mutex<FrameSender>) -> io::Result<()> {
    let mut words = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut bytes = vec![0; PIECE];
    loop {
        let count = match words.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        for piece in bytes[..count].split_inclusive(|byte| *byte == b'\n') {
            locked(sender).line(piece)?;
        }
    }
}

/// Passes on what the agent says, until its end.
fn hear(mut receiver: Receiver, sender: &Mutex<FrameSender>) -> io::Result<()> {
    let out: OwnedFd = io::stdout().as_fd().try_clone_to_owned()?;
    let mut out = File::from(out);
    while receiver.pass_on(&mut out, |asked| locked(sender).pong(asked))? {}
    out.flush()
}

fn locked(sender: &Mutex<FrameSender>) -> std::sync::MutexGuard<'_, FrameSender> {
    sender.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Asks the agent to leave until it has; then this process ends too.
fn ask_to_leave(agent: Pid) {
    while lives(agent) {
        _ = rustix::process::kill_process(agent, Signal::TERM);
        std::thread::sleep(ASK_AGAIN);
    }
}
