//! The guest of a run: a second process with its own terminal and its own end. Its end ends nothing else.

use super::output::Outputs;
use super::pty::Pty;
use super::raw::Forked;
use super::{child, tree, usher};
use crate::protocol::exited::StartFailure;
use crate::protocol::guest::{GuestStanding, Presence};
use pinfold_core::exit::Exit;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Survivors of a SIGKILL are killed again at this interval.
const AGAIN: Duration = Duration::from_millis(100);

/// The latest guest of a run.
#[derive(Debug)]
pub(super) enum Visit {
    Here(Box<LiveGuest>),
    Gone { number: u64, exit: Exit },
}

/// A guest, from the fork until its whole tree is gone.
#[derive(Debug)]
pub(super) struct LiveGuest {
    pub(super) number: u64,
    /// The guest's parent, and the reaper of its tree.
    pub(super) usher: Forked,
    pub(super) pid: u32,
    /// The pipe on which the usher speaks.
    pub(super) says: OwnedFd,
    /// Open until the guest has become its program, or said why it cannot.
    pub(super) starting: Option<OwnedFd>,
    pub(super) failure: Option<StartFailure>,
    pub(super) output: Outputs,
    pub(super) pty: Box<Pty>,
    /// When the rest of its tree is killed next.
    pub(super) killing: Option<Instant>,
    pub(super) announced: bool,
    /// Whether its usher was reaped, so that nothing of its tree is left.
    pub(super) gone: bool,
}

impl Visit {
    pub(super) fn standing(&self) -> GuestStanding {
        match self {
            Visit::Here(guest) => GuestStanding { guest: guest.number, presence: Presence::Here(guest.pid) },
            Visit::Gone { number, exit } => GuestStanding { guest: *number, presence: Presence::Gone(*exit) },
        }
    }

    pub(super) fn here(&self) -> Option<&LiveGuest> {
        match self {
            Visit::Here(guest) => Some(guest),
            Visit::Gone { .. } => None,
        }
    }

    pub(super) fn here_mut(&mut self) -> Option<&mut LiveGuest> {
        match self {
            Visit::Here(guest) => Some(guest),
            Visit::Gone { .. } => None,
        }
    }
}

impl LiveGuest {
    /// Returns the pid of its usher.
    pub(super) fn usher_pid(&self) -> u32 {
        self.usher.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Checks whether it has become its program.
    pub(super) fn confirm(&mut self) {
        let Some(pipe) = &self.starting else { return };
        let mut saying = [0; child::SAYING];
        match rustix::io::read(pipe, &mut saying) {
            Err(Errno::INTR | Errno::AGAIN) => return,
            Ok(0) | Err(_) => {}
            Ok(length) => self.failure = Some(child::failure(&saying[..length])),
        }
        self.starting = None;
    }

    /// Returns whether it runs and that was not reported yet.
    pub(super) fn is_news(&self) -> bool {
        self.starting.is_none() && self.failure.is_none() && !self.announced
    }

    /// Asks its tree to end, the guest itself first. If asked again, the earlier deadline counts.
    pub(super) fn stop(&mut self, grace: Duration, now: Instant) {
        let until = now.checked_add(grace).unwrap_or(now + Duration::from_secs(1 << 30));
        if let Some(at) = &mut self.killing {
            *at = (*at).min(until);
            return;
        }
        self.killing = Some(until);
        self.signal(Signal::TERM);
        self.hang_up();
        tree::signal_below_of(self.usher_pid(), Signal::TERM, self.own());
    }

    /// Hangs up: interactive shells ignore SIGTERM, and end when their terminal goes.
    pub(super) fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// Kills its tree when its time is up. Its usher stays, to report how the guest ended and to reap the
    /// rest.
    pub(super) fn force(&mut self, now: Instant) {
        if self.killing.is_some_and(|at| now >= at) {
            tree::signal_below_of(self.usher_pid(), Signal::KILL, None);
            self.killing = Some(now + AGAIN);
        }
    }

    /// Returns how it ended, once its tree is gone.
    pub(super) fn exit(&self) -> Exit {
        if self.failure.is_some() { Exit::NeverStarted } else { usher::hear_end(&self.says) }
    }

    fn own(&self) -> Option<Pid> {
        i32::try_from(self.pid).ok().and_then(Pid::from_raw)
    }

    /// Its pid is valid while it is below its usher, which alone reaps it.
    fn signal(&self, signal: Signal) {
        let Some(pid) = self.own() else { return };
        let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
        if pinfold_kernel::proc::tree::is_below(self.pid, self.usher_pid()) {
            let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
        }
    }
}
