//! The processes to be ended with the holder of a lock: only those of the lock folder's user whose tie to the
//! lock the kernel shows.
//!
//! A record is only text. It is believed about the process that took the lock if that process has the
//! descriptor, and about an agent if that holder is believed or the agent carries the run's marker.

use crate::files::folder::Folder;
use crate::files::record::{LockRecord, RunName, Survivors};
use crate::look::ours;
use crate::look::scan::{self, OpenFile};
use crate::look::survivors::{self, SurvivingProcess};
use crate::process;
use crate::process::ProcessSeen;
use crate::seen::LockSeen;
use crate::want::directory::{LockMode, WantedFile};
use pinfold_kernel::{pidfd, proc, sys};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

/// A process held by a pidfd, so that no later one can be mistaken for it.
#[derive(Debug)]
pub(crate) struct HeldProcess {
    pub(crate) seen: ProcessSeen,
    pub(crate) pidfd: OwnedFd,
}

/// What ties a process to a lock; checked again once the process is held.
enum Proof<'a> {
    /// It has a descriptor on the file, with the flock.
    Descriptor,
    /// The believed record names it, by something that no other process has.
    Named(&'a LockRecord),
    /// Its environment names the run.
    Marker(&'a RunName),
    /// It was started by one of these.
    Below(&'a [u32]),
}

/// Returns the processes that hold a lock, the holder first: that is the shim, while its agent lives.
pub(crate) fn behind(
    folder: &Folder,
    wanted: &[WantedFile],
    lock: &LockSeen,
    record: Option<&LockRecord>,
) -> Vec<HeldProcess> {
    let have = having(folder, wanted);
    let holder =
        record.filter(|record| have.contains(&record.holder.pid) && process::may_live(&record.holder));
    let spared = holder.filter(|record| holds_for_another(record)).map(|record| record.holder.pid);
    let keeper = holder.map(|record| record.holder.pid);
    let mut gathering = Gathering { folder, wanted, members: Vec::new() };
    for pid in keeper.into_iter().chain(have).filter(|pid| Some(*pid) != spared) {
        gathering.add(pid, &Proof::Descriptor);
    }
    if let Some((record, agent)) = holder.and_then(|record| Some((record, record.agent?))) {
        gathering.add(agent.pid, &Proof::Named(record));
    }
    gathering.members.extend(left_of(record));
    if let Some(run) = &lock.run {
        scan::marked(run)
            .unwrap_or_default()
            .into_iter()
            .for_each(|pid| gathering.add(pid, &Proof::Marker(run)));
    }
    let roots: Vec<u32> = gathering.members.iter().map(|member| member.seen.pid).collect();
    scan::with_descendants(roots.clone())
        .into_iter()
        .for_each(|pid| gathering.add(pid, &Proof::Below(&roots)));
    gathering.members
}

/// Returns what is left of a run, by its own traces.
pub(crate) fn left_of(record: Option<&LockRecord>) -> Vec<HeldProcess> {
    let left = record.and_then(|record| survivors::find(record).ok().flatten());
    let processes = left.into_iter().flat_map(|left| left.processes);
    processes.filter(|survivor| may_be_ended(survivor.pid)).map(HeldProcess::from).collect()
}

impl From<SurvivingProcess> for HeldProcess {
    fn from(survivor: SurvivingProcess) -> Self {
        let SurvivingProcess { pid, pidfd } = survivor;
        Self { seen: ProcessSeen { pid, command: proc::command(pid) }, pidfd }
    }
}

/// Whether a lock was taken for a process that asked for it over HTTP, and not for something the taker started.
fn holds_for_another(record: &LockRecord) -> bool {
    record.agent.is_some() && record.survivors != Survivors::End
}

/// Returns the processes that have the exclusive flock on one of the files.
fn having(folder: &Folder, wanted: &[WantedFile]) -> BTreeSet<u32> {
    let open = scan::open_files(folder.device()).unwrap_or_default();
    open.iter().filter(|one| is_wanted(folder, wanted, one)).map(|one| one.pid).collect()
}

fn is_wanted(folder: &Folder, wanted: &[WantedFile], open: &OpenFile) -> bool {
    let mut exclusive = wanted.iter().filter(|want| want.mode == LockMode::Exclusive);
    open.locked == Some(LockMode::Exclusive)
        && exclusive.any(|want| want.name == open.name)
        && ours::is_of(folder, open)
}

/// A process of another user is not ours to end, however it came by the lock.
fn may_be_ended(pid: u32) -> bool {
    pid > 1 && pid != std::process::id() && scan::user(pid) == Some(rustix::process::geteuid().as_raw())
}

struct Gathering<'a> {
    folder: &'a Folder,
    wanted: &'a [WantedFile],
    members: Vec<HeldProcess>,
}

impl Gathering<'_> {
    fn add(&mut self, pid: u32, proof: &Proof<'_>) {
        if self.members.iter().any(|member| member.seen.pid == pid) {
            return;
        }
        let Ok(pidfd) = sys::pidfd(pid) else { return };
        // Checked while it is held, so a process that had the pid before is ruled out.
        let proved = may_be_ended(pid) && self.holds(pid, proof);
        if proved && pidfd::has_ended(&pidfd) == Ok(false) {
            self.members.push(HeldProcess { seen: ProcessSeen { pid, command: proc::command(pid) }, pidfd });
        }
    }

    fn holds(&self, pid: u32, proof: &Proof<'_>) -> bool {
        match proof {
            Proof::Descriptor => {
                let open = scan::open_files_of(pid, self.folder.device()).unwrap_or_default();
                open.iter().any(|one| is_wanted(self.folder, self.wanted, one))
            }
            Proof::Named(record) => {
                record.agent.is_some_and(|agent| agent.pid == pid && process::is_proved(&agent))
            }
            Proof::Marker(run) => scan::is_marked(pid, run).unwrap_or(false),
            Proof::Below(roots) => proc::tree::lineage(pid).skip(1).any(|above| roots.contains(&above)),
        }
    }
}
