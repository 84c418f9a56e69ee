//! Describes a lock from its record and from the processes that have it.

use super::ours;
use super::scan::OpenFile;
use super::survivors::Leftovers;
use crate::files::file::{self, LastGrant, LockFileHead};
use crate::files::folder::Folder;
use crate::files::name::FileName;
use crate::files::record::{self, LockRecord};
use crate::judge::holder::HolderVerdict;
use crate::judge::identity::Identity;
use crate::process::{self, ProcessSeen};
use crate::resource::{Resource, ResourceKind};
use crate::seen::{LockHolder, LockSeen};
use pinfold_kernel::proc;
use std::os::fd::OwnedFd;

/// Returns what the record of a file says, checked against the processes that have it.
pub(super) fn from_file_of(
    folder: &Folder,
    first: &OpenFile,
    name: &FileName,
    holders: &[&OpenFile],
    removed: bool,
) -> LockSeen {
    let Some(record) = ours::record(folder, first) else { return from_processes(name, holders, removed) };
    let has_it = holders.iter().any(|open| open.pid == record.holder.pid);
    match process::verdict(Some(&record.holder)) {
        // The recorded holder is alive but has let go: the present one has not written its record yet.
        HolderVerdict::Alive(_) if !has_it => {
            LockSeen { resource: record.resource, ..from_processes(name, holders, removed) }
        }
        HolderVerdict::Alive(_) | HolderVerdict::Dead(_) | HolderVerdict::Unknown(_) => {
            from_record(&record, holders, removed)
        }
    }
}

pub(super) fn from_record(record: &LockRecord, holders: &[&OpenFile], removed: bool) -> LockSeen {
    let main = main_holder(record, holders);
    let named =
        |pid: u32| main.identity.is_some_and(|identity| identity.pid == pid) || pid == record.holder.pid;
    let mut others: Vec<u32> = holders
        .iter()
        .map(|open| open.pid)
        .filter(|pid| !named(*pid) && *pid != std::process::id())
        .collect();
    others.dedup();
    LockSeen {
        resource: record.resource.clone(),
        kind: kind_of(&record.resource),
        fence: Some(record.fence),
        since_ms: Some(record.since_ms),
        reason: record.reason.clone(),
        session: record.session.clone(),
        run: record.run.clone(),
        holder: main,
        others: others.into_iter().map(process_seen).collect(),
        removed,
    }
}

/// Returns the agent while it lives, otherwise the recorded holder, otherwise the process that really has the descriptor.
///
/// If another process held the lock for an agent and has ended, the agent has lost it, unless its run goes on.
fn main_holder(record: &LockRecord, holders: &[&OpenFile]) -> LockHolder {
    let keeps_it = !record.is_lone() || process::may_live(&record.holder);
    let recorded = |identity: Identity, verdict| LockHolder {
        identity: Some(identity),
        host: record.host.to_string(),
        command: record.command.to_string(),
        verdict,
    };
    for identity in record.agent.filter(|_| keeps_it).into_iter().chain([record.holder]) {
        let verdict = process::verdict(Some(&identity));
        match verdict {
            HolderVerdict::Alive(_) | HolderVerdict::Unknown(_) => return recorded(identity, verdict),
            HolderVerdict::Dead(_) => {}
        }
    }
    match holders.first() {
        Some(open) => from_pid(open.pid),
        None => recorded(record.holder, process::verdict(Some(&record.holder))),
    }
}

fn from_pid(pid: u32) -> LockHolder {
    let identity = process::identify(pid).ok();
    let verdict = process::verdict(identity.as_ref());
    LockHolder { identity, host: record::host().to_owned(), command: proc::command(pid), verdict }
}

fn process_seen(pid: u32) -> ProcessSeen {
    ProcessSeen { pid, command: proc::command(pid) }
}

/// Describes a lock whose record is damaged: only the kernel says which processes have it.
pub(super) fn from_processes(name: &FileName, holders: &[&OpenFile], removed: bool) -> LockSeen {
    let mut pids: Vec<u32> = holders.iter().map(|open| open.pid).collect();
    pids.dedup();
    let holder = pids.first().map(|pid| from_pid(*pid));
    LockSeen {
        resource: name.as_str().to_owned(),
        kind: name.kind(),
        fence: None,
        since_ms: None,
        reason: None,
        session: None,
        run: None,
        holder: holder.unwrap_or_else(|| LockHolder {
            identity: None,
            host: String::new(),
            command: String::new(),
            verdict: process::verdict(None),
        }),
        others: pids.into_iter().skip(1).map(process_seen).collect(),
        removed,
    }
}

fn kind_of(resource: &str) -> ResourceKind {
    Resource::parse(resource.as_ref()).map_or(ResourceKind::Directory, |resource| resource.kind())
}

/// Describes a lock when no process is seen with the file: it is in another namespace or already gone. The
/// record is all there is.
pub(super) fn from_file(file: &OwnedFd) -> Option<LockSeen> {
    let head = LockFileHead::read(file).ok()?;
    match file::last(file, &head).ok()? {
        LastGrant::Unreleased(record) => Some(from_record(&record, &[], false)),
        LastGrant::Nothing | LastGrant::Released => None,
    }
}

pub(crate) fn left_of(record: &LockRecord, left: &Leftovers) -> LockSeen {
    let mut seen = from_record(record, &[], false);
    let mut pids = left.processes.iter().map(|survivor| survivor.pid);
    if let Some(first) = pids.next() {
        seen.holder = from_pid(first);
        seen.others = pids.map(process_seen).collect();
    }
    seen
}
