//! Judges the sender of a notification: a process of the run's tree, or a stranger that found out the
//! socket's name.
//!
//! A living sender is placed by its parents: a shim is the reaper of its tree, so no process escapes from
//! below it. A sender that was reaped already is recognised as the agent by its pidfd, or as one of the tree
//! by the control group in which it ended. If the kernel offers neither, nothing is proved about it.

use super::run::Run;
use super::tree;
use pinfold_kernel::pidfd;
use pinfold_kernel::proc::tree::is_below;
use pinfold_kernel::sender::DatagramSender;
use std::os::fd::{AsFd, OwnedFd};

/// What a sender is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SenderStanding {
    /// A process of the tree.
    Member,
    /// An ended process of which only the user is known.
    Unproved,
    Stranger,
}

/// Judges a sender; `run` is the current one.
pub(super) fn judge(sender: &DatagramSender, run: Option<&Run>) -> SenderStanding {
    let Some(pid) = sender.pid.filter(|_| sender.user == rustix::process::geteuid().as_raw()) else {
        return SenderStanding::Stranger;
    };
    let (below, exists) = (is_below(pid, std::process::id()), tree::exists(pid));
    // Checked last: the pid was its own when /proc was read.
    let reaped = sender.pidfd.as_ref().map_or(!exists, |pidfd| pidfd::is_reaped(pidfd.as_fd()));
    match (reaped, below) {
        (false, true) if is_guests(pid, run) => SenderStanding::Stranger,
        (false, true) => SenderStanding::Member,
        (false, false) => SenderStanding::Stranger,
        (true, _) => judge_reaped(pid, sender.pidfd.as_ref(), run),
    }
}

/// Returns whether it belongs to the guest, whose words say nothing about the run.
fn is_guests(pid: u32, run: Option<&Run>) -> bool {
    let guest = run.and_then(|run| run.visit.as_ref()?.here());
    guest.is_some_and(|guest| is_below(pid, guest.usher_pid()))
}

fn judge_reaped(pid: u32, pidfd: Option<&OwnedFd>, run: Option<&Run>) -> SenderStanding {
    let Some(run) = run else { return SenderStanding::Unproved };
    let Some(pidfd) = pidfd else {
        // The pid cannot be reused in the moment between its end and this.
        let said_last = run.just_ended && run.process.pid == pid;
        return if said_last { SenderStanding::Member } else { SenderStanding::Unproved };
    };
    if pidfd::inode(pidfd).is_some() && pidfd::inode(pidfd) == pidfd::inode(&run.pidfd) {
        return SenderStanding::Member;
    }
    match (pidfd::last_group(pidfd.as_fd()), &run.group) {
        (Some(group), Some(own)) if own.has(group) => SenderStanding::Member,
        (Some(_), Some(_)) => SenderStanding::Stranger,
        (None, _) | (_, None) => SenderStanding::Unproved,
    }
}
