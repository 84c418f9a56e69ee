//! Judges who sent a word about a run: a process of its tree, or a stranger that found out the name of the socket.
//!
//! One that lives is placed by its parents: a shim is the reaper of its tree, so nobody gets away from below it. One that
//! was reaped already is known as the agent itself by its pidfd, or as one of the tree by the control group in which it
//! ended. Where the kernel tells neither, nothing is proved about it.

use super::run::Run;
use super::tree;
use pinfold_kernel::pidfd;
use pinfold_kernel::proc::tree::is_below;
use pinfold_kernel::sender::DatagramSender;
use std::os::fd::{AsFd, OwnedFd};

/// What a sender is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is of the tree.
    Member,
    /// It has ended, and nothing is known about it but its user.
    Unproved,
    Stranger,
}

/// Judges a sender; `run` is the present one.
pub(super) fn judge(sender: &DatagramSender, run: Option<&Run>) -> Standing {
    let Some(pid) = sender.pid.filter(|_| sender.user == rustix::process::geteuid().as_raw()) else {
        return Standing::Stranger;
    };
    let (below, exists) = (is_below(pid, std::process::id()), tree::exists(pid));
    // Asked last: the number was its own when /proc was read.
    let reaped = sender.pidfd.as_ref().map_or(!exists, |pidfd| pidfd::is_reaped(pidfd.as_fd()));
    match (reaped, below) {
        (false, true) if is_guests(pid, run) => Standing::Stranger,
        (false, true) => Standing::Member,
        (false, false) => Standing::Stranger,
        (true, _) => judge_reaped(pid, sender.pidfd.as_ref(), run),
    }
}

/// Whether it is of the guest: what that says is nothing about the run.
fn is_guests(pid: u32, run: Option<&Run>) -> bool {
    let guest = run.and_then(|run| run.visit.as_ref()?.here());
    guest.is_some_and(|guest| is_below(pid, guest.usher_pid()))
}

fn judge_reaped(pid: u32, pidfd: Option<&OwnedFd>, run: Option<&Run>) -> Standing {
    let Some(run) = run else { return Standing::Unproved };
    let Some(pidfd) = pidfd else {
        // The number cannot be another's within the moment between its end and this.
        let said_last = run.just_ended && run.process.pid == pid;
        return if said_last { Standing::Member } else { Standing::Unproved };
    };
    if pidfd::inode(pidfd).is_some() && pidfd::inode(pidfd) == pidfd::inode(&run.pidfd) {
        return Standing::Member;
    }
    match (pidfd::last_group(pidfd.as_fd()), &run.group) {
        (Some(group), Some(own)) if own.has(group) => Standing::Member,
        (Some(_), Some(_)) => Standing::Stranger,
        (None, _) | (_, None) => Standing::Unproved,
    }
}
