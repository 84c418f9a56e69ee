//! The usher of a guest: a process between the shim and the guest that is the reaper of the guest's tree, and
//! of nothing else.
//!
//! What a guest leaves behind must end with it, but not what the agent leaves behind. A shim could not tell
//! them apart: every orphan becomes its own child, wherever it came from. Below an usher the kernel keeps
//! them apart. The usher is forked from the shim, ends with it, holds none of its descriptors, and takes no
//! orders.

use super::child::Child;
use super::tree::{self, Met};
use super::{raw, reaping};
use pinfold_core::exit::Exit;
use pinfold_kernel::signals::SignalFd;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Its process name, which is not a shim's: processes below it belong to the shim above it.
const NAME: &CStr = c"pinfold-guest";
/// Survivors of a SIGKILL are killed again, less and less often.
const FIRST_RETRY: Duration = Duration::from_millis(10);
const LAST_RETRY: Duration = Duration::from_secs(1);
/// Length of its report on an end: how, and a number.
const END: usize = 5;

/// Forks the guest and stays until its whole tree is gone; returns the exit code.
pub(super) fn live(child: &mut Child<'_>, says: &OwnedFd) -> i32 {
    i32::from(attend(child, says).is_err())
}

fn attend(child: &mut Child<'_>, says: &OwnedFd) -> Result<(), Errno> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The shim may have died before the line above, and then no signal comes.
    if rustix::process::getppid() != Some(child.shim) {
        return Err(Errno::SRCH);
    }
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own))?;
    rustix::thread::set_name(NAME)?;
    child.shim = own;
    let guest = raw::plain_fork(&mut || child.live())?.pid;
    rustix::io::write(says, &guest.as_raw_nonzero().get().to_le_bytes())?;
    // A copy of a connection would hide from its other end that the shim closed it.
    rustix::stdio::dup2_stdin(says)?;
    pinfold_kernel::own::close_from(3);
    let signals = SignalFd::take(&[libc::SIGCHLD])?;
    let exit = wait_for(guest)?;
    let (how, number) = match exit {
        Exit::Code(code) => (0, code),
        Exit::Signal(number) => (1, number),
        Exit::ShimLost | Exit::MachineLost | Exit::AfterBackup | Exit::NeverStarted => {
            return Err(Errno::INVAL);
        }
    };
    let mut end = [how; END];
    end[1..].copy_from_slice(&number.to_le_bytes());
    rustix::io::write(rustix::stdio::stdin(), &end)?;
    end_rest(&signals);
    Ok(())
}

/// Reaps orphans until the guest itself has ended.
fn wait_for(guest: Pid) -> Result<Exit, Errno> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == guest => {
                if let Some(exit) = reaping::exit(status) {
                    return Ok(exit);
                }
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Kills what the guest left behind, until nothing is left.
fn end_rest(signals: &SignalFd) {
    let mut pause = FIRST_RETRY;
    let mut met = BTreeSet::new();
    while !all_reaped() {
        let found = tree::kill_children(&mut met);
        met.extend(tree::signal_below(Signal::KILL, None));
        if found == Met::New {
            pause = FIRST_RETRY;
            continue;
        }
        let mut fds = [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
        let timeout = pinfold_kernel::clock::timespec(pause);
        if !matches!(rustix::event::poll(&mut fds, Some(&timeout)), Ok(1..)) {
            // Processes met before may have forked meanwhile, or their pids may have been reused.
            met.clear();
            pause = (pause * 2).min(LAST_RETRY);
        }
        while signals.next().is_ok() {}
    }
}

/// Reaps ended processes; returns whether nothing is left.
fn all_reaped() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// Reads the guest's pid, which an usher says first.
pub(super) fn hear_pid(says: &OwnedFd) -> Result<u32, Errno> {
    let mut pid = [0; 4];
    loop {
        match rustix::io::read(says, &mut pid) {
            Ok(4) => return Ok(u32::from_le_bytes(pid)),
            Ok(_) => return Err(Errno::CHILD),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Returns how the guest ended, from an usher that has ended; a killed usher took its guest along.
pub(super) fn hear_end(says: &OwnedFd) -> Exit {
    let mut end = [0; END];
    match (rustix::io::read(says, &mut end), end) {
        (Ok(END), [0, number @ ..]) => Exit::Code(i32::from_le_bytes(number)),
        (Ok(END), [_, number @ ..]) => Exit::Signal(i32::from_le_bytes(number)),
        (Ok(_) | Err(_), _) => Exit::Signal(libc::SIGKILL),
    }
}
