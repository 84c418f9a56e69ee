//! Ends the holder of a lock with its whole process tree: the holder that was seen, never one that was
//! granted the lock since.

use crate::end::members::{self, HeldProcess};
use crate::files::folder::Folder;
use crate::files::record::LockRecord;
use crate::look::scan;
use crate::patience::{AcquirePatience, WaitLimit};
use crate::process::ProcessSeen;
use crate::resource::Resource;
use crate::seen::LockSeen;
use crate::want::directory::{LockMode, WantedFile};
use crate::want::target::Target;
use crate::{AcquireError, RunName};
use pinfold_kernel::{proc, sys};
use rustix::io::Errno;
use rustix::process::Signal;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// What became of a holder that was to be ended.
#[derive(Debug, Clone, PartialEq)]
pub enum EndOutcome {
    /// The lock was not held.
    NobodyHeld,
    /// The lock is free now; these processes were ended.
    Free {
        /// The lock as it was held.
        lock: Box<LockSeen>,
        /// The processes that were ended.
        processes: Vec<ProcessSeen>,
    },
    /// The holder was ended, and the lock has been granted to another since.
    PassedOn {
        /// The lock as it was held.
        lock: Box<LockSeen>,
        /// The processes that were ended.
        processes: Vec<ProcessSeen>,
        /// The lock as it is held now.
        now: Box<LockSeen>,
    },
    /// Some process could not be ended, so the lock is still held.
    StillHeld {
        /// The lock as it is held.
        lock: Box<LockSeen>,
        /// The processes that were ended.
        processes: Vec<ProcessSeen>,
    },
}

/// The holder of a lock as it was seen at one moment, with every process that holds it or belongs to its run.
/// No later process can be mistaken for one of them.
#[derive(Debug)]
pub struct Holders {
    folder: Folder,
    wanted: Vec<WantedFile>,
    lock: Box<LockSeen>,
    record: Option<Box<LockRecord>>,
    members: Vec<HeldProcess>,
    /// Whether a process waits for the lock.
    awaited: bool,
}

/// SIGKILL ends a process in milliseconds unless it is in uninterruptible sleep.
const ENDING: Duration = Duration::from_secs(5);
/// How long the rest of a tree waits for its keeper to end.
const KEEPER: Duration = Duration::from_millis(500);
/// A new holder writes its record within microseconds; on an overloaded machine, within this.
const WRITTEN: Duration = Duration::from_secs(1);
/// A process that only passes a lock on has done so within this.
const PASSING: Duration = Duration::from_millis(250);
const AGAIN: Duration = Duration::from_millis(2);

impl Folder {
    /// Ends the present holder of `resource`: the processes that have its lock, its run, and all their descendants.
    ///
    /// A living process loses its lock in no other way. The caller itself is spared, and so are processes of
    /// other users and processes that only a record names.
    pub fn end_holder(&self, resource: &Resource) -> Result<EndOutcome, AcquireError> {
        match self.holders_of(resource)? {
            None => Ok(EndOutcome::NobodyHeld),
            Some(holders) => Ok(holders.end()),
        }
    }

    /// Returns the present holders of `resource`, held so that they can be ended.
    pub fn holders_of(&self, resource: &Resource) -> Result<Option<Holders>, AcquireError> {
        let wanted = Target::open(resource)?.wanted;
        let until = Instant::now() + WRITTEN;
        loop {
            let Some(lock) = self.holder_of_files(&wanted).map(Box::new) else { return Ok(None) };
            let record = self.record_behind(&wanted, &lock);
            // The process that takes a session's locks gives them to the shim it is about to start; it is not
            // their holder.
            let being_started = record.as_ref().is_some_and(|record| is_reserved(record));
            if being_started && Instant::now() < until {
                std::thread::sleep(AGAIN);
                continue;
            }
            let members = match being_started {
                true => Vec::new(),
                false => members::behind(self, &wanted, &lock, record.as_deref()),
            };
            let awaited = self.is_awaited(&wanted);
            return Ok(Some(Holders { folder: self.clone(), wanted, lock, record, members, awaited }));
        }
    }

    fn is_awaited(&self, wanted: &[WantedFile]) -> bool {
        let Ok(awaited) = proc::locks::awaited() else { return false };
        let files = wanted.iter().filter(|want| want.mode == LockMode::Exclusive);
        files.filter_map(|want| self.id_at(&want.name).ok()).any(|id| awaited.contains(&id.inode))
    }

    fn record_behind(&self, wanted: &[WantedFile], lock: &LockSeen) -> Option<Box<LockRecord>> {
        let files = wanted.iter().filter(|want| want.mode == LockMode::Exclusive);
        let mut records = files.filter_map(|want| self.unreleased(&want.name).ok().flatten());
        records.find(|record| Some(record.fence) == lock.fence)
    }
}

impl Holders {
    /// Returns the lock as it was held.
    #[must_use]
    pub fn lock(&self) -> &LockSeen {
        &self.lock
    }

    /// Returns the processes that would be ended.
    #[must_use]
    pub fn processes(&self) -> Vec<ProcessSeen> {
        self.members.iter().map(|member| member.seen.clone()).collect()
    }

    /// Whether the caller is one of them, or was started by one of them or inside their run.
    #[must_use]
    pub fn include_the_caller(&self) -> bool {
        let own = std::process::id();
        let lineage: Vec<u32> = proc::tree::lineage(own).collect();
        let marked = |run: &RunName| scan::is_marked(own, run).unwrap_or(false);
        self.members.iter().any(|member| lineage.contains(&member.seen.pid))
            || self.lock.run.as_ref().is_some_and(marked)
    }

    /// Whether the grant is still the same: a keeper may have begun another run under the lock.
    #[must_use]
    pub fn are_current(&self) -> bool {
        let now = self.wanted.iter().filter(|want| want.mode == LockMode::Exclusive);
        let mut records = now.filter_map(|want| self.folder.unreleased(&want.name).ok().flatten());
        self.record.as_ref().is_none_or(|then| records.any(|now| now.fence == then.fence))
    }

    /// Ends them and whatever they start meanwhile with SIGKILL. A holder that is granted the lock afterwards
    /// is left alone.
    #[must_use]
    pub fn end(mut self) -> EndOutcome {
        let until = Instant::now() + ENDING;
        let mut ended: Vec<ProcessSeen> = Vec::new();
        let mut members = std::mem::take(&mut self.members);
        while !members.is_empty() && Instant::now() < until {
            for (number, member) in members.iter().enumerate() {
                let killed = sys::signal(member.pidfd.as_fd(), Signal::KILL);
                // The kernel ends an agent with its keeper, and it may be reaped before its turn comes here.
                let went_along = number > 0 && killed == Err(Errno::SRCH);
                if (killed.is_ok() || went_along) && !ended.contains(&member.seen) {
                    ended.push(member.seen.clone());
                }
                if number == 0 {
                    // A keeper that saw its agent die would start the next one.
                    wait_for(member, until.min(Instant::now() + KEEPER));
                }
            }
            members.iter().for_each(|member| wait_for(member, until));
            // What the run has started meanwhile, by its own traces only: the lock may have another holder by now.
            members = members::left_of(self.record.as_deref());
        }
        self.afterwards(ended)
    }

    fn afterwards(self, processes: Vec<ProcessSeen>) -> EndOutcome {
        let Holders { folder, wanted, lock, awaited, .. } = self;
        let began = Instant::now();
        loop {
            let soon = |limit: Duration| began.elapsed() < limit;
            match folder.holder_of_files(&wanted).map(Box::new) {
                // The kernel has woken the process that waits for it.
                None if awaited && soon(WRITTEN) => {}
                None => return EndOutcome::Free { lock, processes },
                // A supervisor checks whether the lock is free and gives it to the run that waits.
                Some(now) if now.fence != lock.fence && now.run.is_none() && soon(PASSING) => {}
                Some(now) if now.fence != lock.fence => return EndOutcome::PassedOn { lock, processes, now },
                // The next holder already has the lock but has not written its record yet.
                Some(_) if soon(WRITTEN) && !processes.is_empty() => {}
                Some(now) => return EndOutcome::StillHeld { lock: now, processes },
            }
            std::thread::sleep(AGAIN);
        }
    }
}

fn is_reserved(record: &LockRecord) -> bool {
    record.session.is_some() && record.agent.is_none()
}

fn wait_for(member: &HeldProcess, until: Instant) {
    let patience = AcquirePatience::new(WaitLimit::At(until), None);
    // A failure shows in the next look at the lock.
    let _: Result<_, Errno> = patience.wait_for(&[&member.pidfd]);
}
