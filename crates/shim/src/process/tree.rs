//! The tree of processes below a shim: which ones are in it, and how they are signalled.
//!
//! A shim is the reaper of all its descendants: none of them can escape from below it. A direct child keeps
//! its pid until the shim reaps it; any other process is signalled only through a pidfd that was seen to be
//! below the shim after it was opened.

use pinfold_kernel::proc::stat;
use pinfold_kernel::proc::tree::{children, descendants, is_below, with_descendants};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, waitid};
use std::collections::BTreeSet;

/// Whether a process was met for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    New,
    Known,
}

/// Kills the children of this process once; returns whether one of them was met for the first time. A process
/// whose parent ends becomes a child of this one.
pub(super) fn kill_children(met: &mut BTreeSet<u32>) -> Met {
    let mut all = Met::Known;
    // The kernel lists them in order of arrival: the last ones are alive, where thousands before them have
    // ended.
    for child in children(std::process::id()).into_iter().rev().filter(|child| met.insert(*child)) {
        all = Met::New;
        if let Some(pid) = pid(child) {
            // An ended child is a zombie until it is reaped, so the pid is still its own.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    all
}

/// Sends a signal to everything below this process, except to one that got it before; returns the processes.
pub(super) fn signal_below(signal: Signal, except: Option<Pid>) -> Vec<u32> {
    let own = std::process::id();
    let below = living();
    for process in below.iter().copied() {
        let Some(pid) = pid(process).filter(|pid| Some(*pid) != except) else { continue };
        let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if is_below(process, own) {
            let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
        }
    }
    below
}

/// Sends a signal to everything below a process of this tree, except to one that got it before.
pub(super) fn signal_below_of(root: u32, signal: Signal, except: Option<Pid>) {
    for process in descendants(root) {
        let Some(pid) = pid(process).filter(|pid| Some(*pid) != except) else { continue };
        let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if is_below(process, root) {
            let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
        }
    }
}

/// Returns whether such a process exists at all.
pub(super) fn exists(process: u32) -> bool {
    stat::parent(process).is_some()
}

/// Returns everything below this process except ended children: looking below thousands of those takes
/// seconds.
fn living() -> Vec<u32> {
    let ended = |child: u32| {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        pid(child).is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), options), Ok(Some(_))))
    };
    with_descendants(children(std::process::id()).into_iter().filter(|child| !ended(*child)).collect())
}

fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}
