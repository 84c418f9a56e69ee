//! Runs a command while holding a lock; passes signals on to it and its exit code back.
//!
//! This process only waits. Stdin, stdout, stderr and the terminal belong to the command.
#![expect(unsafe_code, reason = "what a child does before its exec has no safe form; this is the only place")]

use crate::output::{Failure, Kind};
use pinfold_kernel::signals::{self, Mask};
use pinfold_lock::Guard;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Whether the command gets the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Giving {
    /// Yes: the lock is held while the command lives, or any process it passed the lock to.
    Given,
    /// No: the lock ends with this process.
    Kept,
}

/// The signals passed on to the command, and the one that announces its end. All others keep their effect on
/// this process.
const AWAITED: [libc::c_int; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2, libc::SIGCHLD];

/// Runs the command to its end and returns its exit code; for a signal, 128 plus its number.
pub(crate) fn run(mut command: Command, mut guard: Guard, giving: Giving) -> Result<u8, Failure> {
    if giving == Giving::Given {
        guard.hand_over(&mut command);
        // Orphans of the command become children of this process, so their end can be seen.
        let own = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(own))
            .map_err(|errno| Failure::from_error(Kind::Failed, &errno))?;
    }
    let mask = Mask::block(&AWAITED);
    // SAFETY: sets the signal mask by one system call; nothing is allocated or locked.
    unsafe {
        command.pre_exec(move || Ok(mask.restore()?));
    }
    let program = command.get_program().to_owned();
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            // Nothing ran, so nothing can have survived.
            let _ = guard.mark_released();
            drop(guard);
            return Err(not_started(&program, &error));
        }
    };
    let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let status = child.and_then(wait_passing_signals);
    give_back(guard, giving);
    Ok(code(status))
}

fn not_started(program: &std::ffi::OsStr, error: &std::io::Error) -> Failure {
    let message = format!("`{}` could not be started: {error}", program.to_string_lossy());
    if error.kind() == std::io::ErrorKind::NotFound {
        return Failure::new(Kind::BadConfig, message).hint("is it installed and on the PATH?");
    }
    if error.kind() == std::io::ErrorKind::PermissionDenied {
        return Failure::new(Kind::BadConfig, message).hint("is it a program, and may you run it?");
    }
    Failure::new(Kind::Failed, message)
}

/// Releases the lock. Whatever still lives of the command's tree keeps it.
fn give_back(mut guard: Guard, giving: Giving) {
    let empty = match giving {
        Giving::Kept => true,
        Giving::Given => tree_is_empty(),
    };
    // The command's exit code is the answer; a lock not marked as released only costs the next holder a search.
    let _ = if empty {
        let _ = guard.mark_released();
        guard.release()
    } else {
        guard.surrender()
    };
}

/// Whether the command has no descendants left. For a subreaper, no children means none.
fn tree_is_empty() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Err(rustix::io::Errno::CHILD) => return true,
            Err(rustix::io::Errno::INTR) | Ok(Some(_)) => {}
            Ok(None) | Err(_) => return false,
        }
    }
}

fn code(status: Option<WaitStatus>) -> u8 {
    let code =
        status.and_then(|status| status.exit_status().or_else(|| Some(128 + status.terminating_signal()?)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn wait_passing_signals(child: Pid) -> Option<WaitStatus> {
    loop {
        match next_signal() {
            Arrived::Child => {
                if let Some(status) = reap(child) {
                    return Some(status);
                }
            }
            Arrived::PassOn(signal) => {
                // It is our child and not reaped yet, so the pid is still its own.
                let _ = rustix::process::kill_process(child, signal);
            }
            Arrived::Nothing => {}
        }
    }
}

/// Reaps all children that have ended: several ends may have raised one signal.
fn reap(child: Pid) -> Option<WaitStatus> {
    let mut found = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == child {
            found = Some(status);
        }
    }
    found
}

enum Arrived {
    Child,
    PassOn(Signal),
    Nothing,
}

fn next_signal() -> Arrived {
    match signals::wait(&AWAITED) {
        Ok(arrived) if arrived.number == libc::SIGCHLD => Arrived::Child,
        // The terminal sends its signals to the whole foreground group, so the command has it already.
        Err(_) | Ok(signals::Arrived { by_kernel: true, .. }) => Arrived::Nothing,
        Ok(arrived) => Signal::from_named_raw(arrived.number).map_or(Arrived::Nothing, Arrived::PassOn),
    }
}
