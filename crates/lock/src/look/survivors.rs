//! Finds what is left of a run whose flock is free.
//!
//! A process is found by three traces: the run's control group, its first process, the marker in the
//! environment. A group counts only if its name shows that it belonged to this very holder: a path that other
//! runs had too proves nothing. Every process is held by a pidfd and then recognised again, so that it can be signalled.

use crate::files::record::LockRecord;
use crate::judge::grant::{Remains, Trace, remains_by_identity};
use crate::look::scan;
use crate::process;
use pinfold_kernel::{cgroup, pidfd, sys};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;

/// One process that provably belongs to the last run.
#[derive(Debug)]
pub(crate) struct SurvivingProcess {
    pub(crate) pid: u32,
    pub(crate) pidfd: OwnedFd,
}

/// What is left of a run.
#[derive(Debug)]
pub(crate) struct Leftovers {
    pub(crate) trace: Trace,
    pub(crate) processes: Vec<SurvivingProcess>,
}

/// Returns what is left of a run, if anything can be proved.
pub(crate) fn find(record: &LockRecord) -> Result<Option<Leftovers>, Errno> {
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
        // A process without proof is waited for but never signalled.
        let is_agent = || Ok(process::is_proved(&agent));
        processes.extend(hold(agent.pid, is_agent)?);
    }
    processes.extend(marked(record, agent.map(|agent| agent.pid))?);
    Ok(match (agent, processes.is_empty()) {
        (Some(_), _) => Some(Leftovers { trace: Trace::Identity, processes }),
        (None, false) => Some(Leftovers { trace: Trace::Marker, processes }),
        (None, true) => None,
    })
}

/// Returns the group of the run, if its name shows that the holder made it. The path alone is not a proof: a
/// group of the same name may belong to another run by now.
pub(crate) fn own_group(record: &LockRecord) -> Option<&Path> {
    let group = record.cgroup.as_deref()?;
    let name = group.file_name()?.to_str()?;
    name.strip_suffix(process::word(&record.holder).as_str())?.ends_with('-').then_some(group)
}

fn marked(record: &LockRecord, except: Option<u32>) -> Result<Vec<SurvivingProcess>, Errno> {
    let Some(run) = &record.run else { return Ok(Vec::new()) };
    let mut processes = Vec::new();
    for pid in scan::marked(run)?.into_iter().filter(|pid| Some(*pid) != except) {
        processes.extend(hold(pid, || scan::is_marked(pid, run))?);
    }
    Ok(processes)
}

fn in_cgroup(group: &Path) -> Result<Option<Leftovers>, Errno> {
    if !cgroup::is_populated(group)? {
        return Ok(None);
    }
    let mut processes = Vec::new();
    for pid in members(group)? {
        processes.extend(hold(pid, || Ok(members(group)?.contains(&pid)))?);
    }
    // Populated by processes that cannot be seen from here still means populated.
    Ok(cgroup::is_populated(group)?.then_some(Leftovers { trace: Trace::Cgroup, processes }))
}

/// Returns the members of a group that can be survivors: 0 is a process of another namespace, and the caller
/// does not count.
fn members(group: &Path) -> Result<Vec<u32>, Errno> {
    let mut pids = cgroup::members(group)?;
    pids.retain(|pid| *pid != 0 && *pid != std::process::id());
    Ok(pids)
}

/// Holds a process by a pidfd and recognises it again, so that no later process can be mistaken for it.
fn hold(pid: u32, recognised: impl Fn() -> Result<bool, Errno>) -> Result<Option<SurvivingProcess>, Errno> {
    let pidfd = match sys::pidfd(pid) {
        Ok(pidfd) => pidfd,
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    Ok((recognised()? && !pidfd::has_ended(&pidfd)?).then_some(SurvivingProcess { pid, pidfd }))
}
