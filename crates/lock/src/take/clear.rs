//! Ends what is left of a run whose flock is free, or waits for it.

use crate::files::record::{LockRecord, Survivors};
use crate::judge::grant::{Grant, Payload, Remains, Trace, decide};
use crate::look::survivors::{Leftovers, find, own_group};
use crate::patience::{AcquirePatience, WaitLimit, Waited};
use pinfold_kernel::{cgroup, sys};
use rustix::io::Errno;
use rustix::process::Signal;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How the search for survivors ended.
#[derive(Debug)]
pub(crate) enum Cleared {
    /// Nothing is left.
    Clear,
    /// Something is left that was not ended or could not be.
    Persists(Leftovers),
    Cancelled,
}

/// SIGKILL ends a process in milliseconds unless it is in uninterruptible sleep.
const ENDING: Duration = Duration::from_secs(2);
/// A process that ends becomes invisible a little before its group is empty, more so on a busy machine.
/// Nothing reports when it is.
const FADING: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Ends or waits for what is left of the run in `record`; `told` is called with the processes before they are ended.
pub(crate) fn clear(
    record: &LockRecord,
    patience: &AcquirePatience<'_>,
    told: &dyn Fn(&[u32]),
) -> Result<Cleared, Errno> {
    let cleared = clear_processes(record, patience, told)?;
    if let (Cleared::Clear, Some(group)) = (&cleared, own_group(record)) {
        // Its holder was killed and could not remove it. A group with a living process stays.
        let _ = sys::remove_dir(group);
    }
    Ok(cleared)
}

fn clear_processes(
    record: &LockRecord,
    patience: &AcquirePatience<'_>,
    told: &dyn Fn(&[u32]),
) -> Result<Cleared, Errno> {
    let ending = AcquirePatience::new(WaitLimit::At(Instant::now() + ENDING), patience.cancel);
    let patience = match record.survivors {
        Survivors::Ignore => return Ok(Cleared::Clear),
        Survivors::Wait => patience,
        Survivors::End => &ending,
    };
    let mut fades_until: Option<Instant> = None;
    let mut known: Vec<u32> = Vec::new();
    loop {
        let Some(left) = find(record)? else { return Ok(Cleared::Clear) };
        // Proved but not visible: it ended this moment, or it cannot be reached from here.
        if left.processes.is_empty() {
            if Instant::now() >= *fades_until.get_or_insert_with(|| Instant::now() + FADING) {
                return Ok(Cleared::Persists(left));
            }
            std::thread::sleep(LOOK_AGAIN);
            continue;
        }
        fades_until = None;
        match decide(Payload::Unreleased, Remains::Found(left.trace)) {
            Grant::Yes(_) => return Ok(Cleared::Clear),
            Grant::No(_) => return Ok(Cleared::Persists(left)),
            Grant::EndFirst(_) => {}
        }
        if record.survivors == Survivors::End {
            let pids = left.processes.iter().map(|survivor| survivor.pid);
            let new: Vec<u32> = pids.filter(|pid| !known.contains(pid)).collect();
            if !new.is_empty() {
                told(&new);
                known.extend(new);
            }
            end(record, &left);
        }
        let pidfds: Vec<_> = left.processes.iter().map(|survivor| survivor.pidfd.as_fd()).collect();
        match patience.wait_for(&pidfds)? {
            Waited::Done => {}
            Waited::TimeUp => return Ok(Cleared::Persists(left)),
            Waited::Cancelled => return Ok(Cleared::Cancelled),
        }
    }
}

fn end(record: &LockRecord, left: &Leftovers) {
    if let (Trace::Cgroup, Some(group)) = (left.trace, own_group(record)) {
        // Also kills what is being forked. On a kernel without it, the signals below have to do.
        cgroup::kill(group);
    }
    for survivor in &left.processes {
        // A failure shows as a process that persists.
        let _ = sys::signal(survivor.pidfd.as_fd(), Signal::KILL);
    }
}
