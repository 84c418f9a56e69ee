//! Finds what is left of a run whose flock is free, and ends it or waits for it.
//!
//! A process is named by three traces: the run's control group, its first process, the marker in the
//! environment. A group counts only if its name says that it was this very holder's: a path that other runs had
//! too proves nothing. Every process is held by a pidfd and recognised again before it is signalled.

use crate::judge::grant::{Grant, Payload, Remains, Trace, decide, remains_by_identity};
use crate::process;
use crate::record::{Record, Survivors};
use crate::scan;
use crate::wait::{Limit, Patience, Waited};
use pinfold_kernel::{cgroup, pidfd, sys};
use rustix::io::Errno;
use rustix::process::Signal;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// One process that provably belongs to the last run.
#[derive(Debug)]
pub(crate) struct Survivor {
    pub(crate) pid: u32,
    pub(crate) pidfd: OwnedFd,
}

/// What is left of a run.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) trace: Trace,
    pub(crate) processes: Vec<Survivor>,
}

/// How the search for survivors ended.
#[derive(Debug)]
pub(crate) enum Cleared {
    /// Nothing is left.
    Clear,
    /// Something is left that was not, or could not be, ended.
    Persists(Left),
    Cancelled,
}

/// SIGKILL ends a process in milliseconds unless it is in uninterruptible sleep.
const ENDING: Duration = Duration::from_secs(2);

/// Ends or waits for what is left of the run that `record` names; `told` hears of whom it ends, before it does.
pub(crate) fn clear(
    record: &Record,
    patience: &Patience<'_>,
    told: &dyn Fn(&[u32]),
) -> Result<Cleared, Errno> {
    let cleared = clear_processes(record, patience, told)?;
    if let (Cleared::Clear, Some(group)) = (&cleared, own_group(record)) {
        // Its holder was killed and could not. One in which something lives stays.
        let _ = sys::remove_dir(group);
    }
    Ok(cleared)
}

fn clear_processes(
    record: &Record,
    patience: &Patience<'_>,
    told: &dyn Fn(&[u32]),
) -> Result<Cleared, Errno> {
    let ending = Patience::new(Limit::At(Instant::now() + ENDING), patience.cancel);
    let patience = match record.survivors {
        Survivors::Ignore => return Ok(Cleared::Clear),
        Survivors::Wait => patience,
        Survivors::End => &ending,
    };
    let mut unseen = 0;
    let mut known: Vec<u32> = Vec::new();
    loop {
        let Some(left) = find(record)? else { return Ok(Cleared::Clear) };
        // Proved and yet not to be seen: it ended this moment, or it cannot be reached from here.
        if left.processes.is_empty() {
            unseen += 1;
            if unseen > 1 {
                return Ok(Cleared::Persists(left));
            }
            continue;
        }
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

/// What is left of a run, if anything can be proved.
pub(crate) fn find(record: &Record) -> Result<Option<Left>, Errno> {
    // A run of another boot cannot have survived; one of another namespace cannot be recognised.
    let here = process::vantage()?;
    if record.holder.boot != here.boot || record.holder.pid_namespace != here.pid_namespace {
        return Ok(None);
    }
    if let Some(group) = own_group(record)
        && let Some(left) = in_cgroup(group)?
    {
        return Ok(Some(left));
    }
    let mut processes = Vec::new();
    let agent =
        record.agent.filter(|agent| remains_by_identity(process::verdict(Some(agent))) != Remains::None);
    if let Some(agent) = agent {
        // One that is not proved is waited for, and never signalled.
        let is_agent = || Ok(process::is_proved(&agent));
        processes.extend(hold(agent.pid, is_agent)?);
    }
    processes.extend(marked(record, agent.map(|agent| agent.pid))?);
    Ok(match (agent, processes.is_empty()) {
        (Some(_), _) => Some(Left { trace: Trace::Identity, processes }),
        (None, false) => Some(Left { trace: Trace::Marker, processes }),
        (None, true) => None,
    })
}

/// The group of the run, when its name says that the holder made it. The path alone is no proof: a group of the
/// same name may be another run's by now.
fn own_group(record: &Record) -> Option<&Path> {
    let group = record.cgroup.as_deref()?;
    let name = group.file_name()?.to_str()?;
    name.strip_suffix(process::word(&record.holder).as_str())?.ends_with('-').then_some(group)
}

fn marked(record: &Record, except: Option<u32>) -> Result<Vec<Survivor>, Errno> {
    let Some(run) = &record.run else { return Ok(Vec::new()) };
    let mut processes = Vec::new();
    for pid in scan::marked(run)?.into_iter().filter(|pid| Some(*pid) != except) {
        processes.extend(hold(pid, || scan::is_marked(pid, run))?);
    }
    Ok(processes)
}

fn in_cgroup(group: &Path) -> Result<Option<Left>, Errno> {
    if !cgroup::is_populated(group)? {
        return Ok(None);
    }
    let mut processes = Vec::new();
    for pid in members(group)? {
        processes.extend(hold(pid, || Ok(members(group)?.contains(&pid)))?);
    }
    // Populated by processes that cannot be seen from here still means populated.
    Ok(cgroup::is_populated(group)?.then_some(Left { trace: Trace::Cgroup, processes }))
}

/// Those in a group that can be survivors: 0 is a process of another namespace, and the caller is not its own.
fn members(group: &Path) -> Result<Vec<u32>, Errno> {
    let mut pids = cgroup::members(group)?;
    pids.retain(|pid| *pid != 0 && *pid != std::process::id());
    Ok(pids)
}

/// Holds a process by a pidfd and recognises it again, so that no later process can be taken for it.
fn hold(pid: u32, recognised: impl Fn() -> Result<bool, Errno>) -> Result<Option<Survivor>, Errno> {
    let pidfd = match sys::pidfd(pid) {
        Ok(pidfd) => pidfd,
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    Ok((recognised()? && !pidfd::has_ended(&pidfd)?).then_some(Survivor { pid, pidfd }))
}

fn end(record: &Record, left: &Left) {
    if let (Trace::Cgroup, Some(group)) = (left.trace, own_group(record)) {
        // Kills what is forked meanwhile too. A kernel without it leaves the processes to the signals below.
        cgroup::kill(group);
    }
    for survivor in &left.processes {
        // A failure shows as a process that persists.
        let _ = sys::signal(survivor.pidfd.as_fd(), Signal::KILL);
    }
}
