//! Ends the holder of a lock with its whole tree, and verifies that the lock is free.

use crate::folder::Folder;
use crate::lookup::{LockSeen, ProcessSeen};
use crate::process;
use crate::resource::Resource;
use crate::scan;
use crate::sys;
use crate::wait::{Limit, Patience};
use crate::{AcquireError, Run};
use rustix::io::Errno;
use rustix::process::Signal;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// What became of a holder that was to be ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// Nobody held the lock.
    NobodyHeld,
    /// The lock is free now; these processes were ended.
    Free {
        /// The lock as it was held.
        lock: Box<LockSeen>,
        /// Who was ended.
        processes: Vec<ProcessSeen>,
    },
    /// Something could not be ended, so the lock is still held.
    StillHeld {
        /// The lock as it is held.
        lock: Box<LockSeen>,
        /// Who was ended.
        processes: Vec<ProcessSeen>,
    },
}

/// SIGKILL ends a process in milliseconds unless it is in uninterruptible sleep.
const ENDING: Duration = Duration::from_secs(5);

impl Folder {
    /// Ends whoever holds `resource`: the processes that have its lock, its run, and all their descendants.
    ///
    /// Never frees the lock of a living process otherwise. The caller itself is spared.
    pub fn end_holder(&self, resource: &Resource) -> Result<Ended, AcquireError> {
        let mut processes: Vec<ProcessSeen> = Vec::new();
        let mut first = None;
        let until = Instant::now() + ENDING;
        loop {
            let Some(lock) = self.holder_of(resource)?.map(Box::new) else {
                return Ok(match first {
                    None => Ended::NobodyHeld,
                    Some(lock) => Ended::Free { lock, processes },
                });
            };
            let targets = targets(&lock);
            if targets.is_empty() || Instant::now() >= until {
                return Ok(Ended::StillHeld { lock, processes });
            }
            for (process, pidfd) in &targets {
                let killed = sys::signal(pidfd.as_fd(), Signal::KILL);
                if killed.is_ok() && !processes.contains(process) {
                    processes.push(process.clone());
                }
            }
            first.get_or_insert(lock);
            wait_for_all(&targets, until);
        }
    }
}

fn targets(lock: &LockSeen) -> Vec<(ProcessSeen, OwnedFd)> {
    let mut pids: Vec<u32> = lock.others.iter().map(|other| other.pid).collect();
    pids.extend(lock.holder.identity.filter(|_| lives(lock)).map(|identity| identity.pid));
    pids.extend(lock.run.iter().flat_map(|run: &Run| scan::marked(run).unwrap_or_default()));
    pids.extend(scan::descendants(&pids));
    pids.sort_unstable();
    pids.dedup();
    pids.retain(|pid| *pid != std::process::id() && *pid > 1);
    let held = pids.into_iter().filter_map(|pid| {
        let pidfd = sys::pidfd(pid).ok()?;
        Some((ProcessSeen { pid, command: scan::command(pid) }, pidfd))
    });
    held.collect()
}

fn lives(lock: &LockSeen) -> bool {
    use pinfold_core::holder::Holder;
    match process::verdict(lock.holder.identity.as_ref()) {
        Holder::Alive(_) => true,
        Holder::Dead(_) | Holder::Unknown(_) => false,
    }
}

fn wait_for_all(targets: &[(ProcessSeen, OwnedFd)], until: Instant) {
    let patience = Patience::new(Limit::At(until), None);
    for (_, pidfd) in targets {
        // Trouble shows in the next look at the lock.
        let _: Result<_, Errno> = patience.wait_for(&[pidfd]);
    }
}
