//! Runs a command under a held lock: signals are passed on, its code is passed back.
//!
//! This process only waits. Standard input, output, error and the terminal belong to the command.
#![expect(unsafe_code, reason = "blocking and awaiting signals has no safe form; this is the only place")]

use crate::output::{Failure, Kind};
use pinfold_lock::Guard;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Whether the command is given the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Giving {
    /// It is: the lock is held while it, or anything it passed it to, lives.
    Given,
    /// It is not: the lock ends with this process.
    Kept,
}

/// Signals that are passed on to the command. The others keep their effect on this process.
const PASSED_ON: [libc::c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];

/// Runs the command to its end and returns its code; a signal counts as 128 and its number.
pub(crate) fn run(mut command: Command, mut guard: Guard, giving: Giving) -> Result<u8, Failure> {
    if giving == Giving::Given {
        guard.hand_over(&mut command);
        // Orphans of the command become children of this process, so their end can be seen.
        let own = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(own))
            .map_err(|errno| Failure::from_error(Kind::Failed, &errno))?;
    }
    let mask = block();
    // SAFETY: sets the signal mask by one system call; nothing is allocated or locked.
    unsafe {
        command.pre_exec(move || restore(&mask));
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

/// Gives the lock back. What of the command's tree is still alive keeps it.
fn give_back(mut guard: Guard, giving: Giving) {
    let empty = match giving {
        Giving::Kept => true,
        Giving::Given => tree_is_empty(),
    };
    // The command's code is the answer; a lock without its mark costs the next one a look, nothing else.
    let _ = if empty {
        let _ = guard.mark_released();
        guard.release()
    } else {
        guard.surrender()
    };
}

/// As sub-reaper, no child left means no descendant left.
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
                // It is a child of ours that was not reaped yet, so the pid is its own.
                let _ = rustix::process::kill_process(child, signal);
            }
            Arrived::Nothing => {}
        }
    }
}

/// Reaps whatever has ended; several ends may have raised one signal.
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

fn awaited() -> libc::sigset_t {
    // SAFETY: `sigemptyset` initialises the set before it is used; the signal numbers are valid.
    unsafe {
        let mut set = MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        for signal in PASSED_ON.into_iter().chain([libc::SIGCHLD]) {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Blocks the awaited signals and returns the mask that was in force.
fn block() -> libc::sigset_t {
    let set = awaited();
    let mut old = MaybeUninit::uninit();
    // SAFETY: both sets live through the call, which initialises `old`.
    unsafe {
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, old.as_mut_ptr());
        old.assume_init()
    }
}

fn restore(mask: &libc::sigset_t) -> std::io::Result<()> {
    // SAFETY: the mask was filled by `sigprocmask`.
    match unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn next_signal() -> Arrived {
    let set = awaited();
    let mut info: MaybeUninit<libc::siginfo_t> = MaybeUninit::zeroed();
    // SAFETY: both live through the call; all zeroes is a valid siginfo.
    let (signal, info) = unsafe {
        let signal = libc::sigwaitinfo(&raw const set, info.as_mut_ptr());
        (signal, info.assume_init())
    };
    match signal {
        libc::SIGCHLD => Arrived::Child,
        // The terminal sends its signals to the whole foreground group: the command has it already.
        _ if signal <= 0 || info.si_code > 0 => Arrived::Nothing,
        other => Signal::from_named_raw(other).map_or(Arrived::Nothing, Arrived::PassOn),
    }
}
