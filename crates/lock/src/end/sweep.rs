//! Removes the files of keys that have not been used for long: otherwise every name ever locked would stay a
//! file forever. `docs/design/010-sweep.md` argues why this loses no lock and takes no fence back.

use crate::files::facts::facts;
use crate::files::fence::{self, LEAP};
use crate::files::file::{self, LastGrant, LockFileHead};
use crate::files::folder::Folder;
use crate::files::layout::Slot;
use crate::files::ledger::FileHistory;
use crate::files::name::FileName;
use crate::look::removed::removed_holders;
use crate::process;
use crate::resource::ResourceKind;
use pinfold_kernel::{clock, sys};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A file that may go, and the last fence that was granted through it.
struct Idle {
    name: FileName,
    fence: u64,
}

impl Folder {
    /// Removes at most `most` files of keys that were not used for `unused_for`; returns how many.
    ///
    /// Only one process sweeps at a time; another one finds nothing to do.
    pub fn sweep(&self, unused_for: Duration, most: usize) -> Result<usize, Errno> {
        let Some(_alone) = self.ledger().sweeping(self.dir())? else { return Ok(0) };
        self.know_what_is_there()?;
        let before = seconds().saturating_sub(unused_for.as_secs());
        let names = self.names()?.into_iter().filter(|name| name.kind() == ResourceKind::Key);
        let idle: Vec<Idle> = names.filter_map(|name| self.idle(name, before)).take(most).collect();
        if idle.is_empty() {
            return Ok(0);
        }
        // One leap is what a power loss may have taken back; another one leaves room for grants until the
        // file is removed.
        let floor = idle.iter().map(|idle| idle.fence).max().unwrap_or(0).saturating_add(2 * LEAP);
        let floor = self.ledger().raise_floor(floor)?;
        let mut removed = Vec::new();
        for idle in idle {
            if self.remove_idle(&idle.name, before, floor)? {
                removed.push(idle.name);
            }
        }
        self.forget(&removed)?;
        Ok(removed.len())
    }

    /// Marks the removed files as swept, so that no acquirer searches for their holders. The holder of a file
    /// that was removed by hand is found through the ledger's entry for its name, or for another name with
    /// the same hash: while there is such a holder, nothing is forgotten.
    fn forget(&self, removed: &[FileName]) -> Result<(), Errno> {
        if removed.is_empty() || !removed_holders(self)?.is_empty() {
            return Ok(());
        }
        for name in removed {
            self.ledger().note_swept(name)?;
        }
        self.know_what_is_there()
    }

    /// Notes every existing file as made. Two names may share a place in the ledger, and a sweep may have
    /// been cut short.
    fn know_what_is_there(&self) -> Result<(), Errno> {
        for name in self.names()? {
            if self.ledger().made(&name)? == FileHistory::Swept {
                self.ledger().note_made(&name)?;
            }
        }
        Ok(())
    }

    fn idle(&self, name: FileName, before: u64) -> Option<Idle> {
        let file = self.open_existing(&name, OFlags::RDONLY).ok()?;
        Some(Idle { name, fence: last_fence(&file, before)? })
    }

    /// Removes a file under its flock, if it is still the one at its name and still idle.
    fn remove_idle(&self, name: &FileName, before: u64, floor: u64) -> Result<bool, Errno> {
        let file = match self.open_existing(name, OFlags::RDONLY) {
            Err(Errno::NOENT) => return Ok(false),
            other => other?,
        };
        match sys::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(errno) => return Err(errno),
        }
        let facts = facts(&file)?;
        let there = facts.regular && !facts.removed && self.id_at(name) == Ok(facts.id);
        let covered = |fence: u64| fence.saturating_add(LEAP) <= floor;
        if !there || !last_fence(&file, before).is_some_and(covered) {
            return Ok(false);
        }
        sys::remove_file_at(self.dir(), name.as_path())?;
        Ok(true)
    }
}

/// Returns the last fence of a file through which nothing was granted since `before`, and whose last grant
/// can have left nothing.
fn last_fence(file: &OwnedFd, before: u64) -> Option<u64> {
    let written = u64::try_from(sys::fstat(file).ok()?.st_mtime).ok()?;
    let head = LockFileHead::read(file).ok()?;
    if written > before || head.slots().contains(&Slot::Damaged) {
        return None;
    }
    match file::left(file, &head).ok()? {
        LastGrant::Nothing | LastGrant::Released => {}
        // Nothing survives a restart of the machine.
        LastGrant::Unreleased(record) if record.holder.boot != process::vantage().ok()?.boot => {}
        LastGrant::Unreleased(_) => return None,
    }
    let recorded = file::record(file).ok()?.map(|record| record.fence);
    let counted = fence::current(head.slots()).map_or(0, |(fence, _)| fence);
    Some(counted.max(head.evidence(recorded, false).mentioned))
}

fn seconds() -> u64 {
    clock::wall().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, Resource, RunName, Survivors};

    fn folder() -> (tempfile::TempDir, Folder) {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::open(temp.path().join("locks")).unwrap();
        (temp, folder)
    }

    fn key(name: &str) -> Resource {
        Resource::Key(name.into())
    }

    fn take(folder: &Folder, name: &str) -> crate::Guard {
        folder.try_acquire(&key(name), &Request::default()).unwrap()
    }

    #[test]
    fn a_file_that_nobody_uses_goes_and_its_fence_grows_on() {
        let (_temp, folder) = folder();
        let before = take(&folder, "k").release().fence;
        assert_eq!(folder.sweep(Duration::ZERO, 10), Ok(1));
        assert_eq!(folder.names().unwrap(), []);
        for _ in 0..3 {
            let fence = take(&folder, "k").fence();
            assert!(fence > before, "{fence} after {before}");
        }
    }

    #[test]
    fn a_fence_grows_also_behind_a_first_grant_that_was_cut_short() {
        let (_temp, folder) = folder();
        let before = take(&folder, "k").release().fence;
        folder.sweep(Duration::ZERO, 10).unwrap();
        std::fs::write(folder.file_path(&FileName::of_key("k")), [0; crate::files::layout::SIZE]).unwrap();
        assert!(take(&folder, "k").fence() > before);
    }

    #[test]
    fn a_fence_grows_also_where_the_clock_was_set_back() {
        let (_temp, folder) = folder();
        folder.ledger().raise_floor(1 << 60).unwrap();
        let _receipt = take(&folder, "k").release();
        assert_eq!(folder.sweep(Duration::ZERO, 10), Ok(1));
        assert!(take(&folder, "k").fence().0 > 1 << 60);
    }

    #[test]
    fn what_is_held_young_unreleased_or_no_key_stays() {
        let (temp, folder) = folder();
        let _held = take(&folder, "held");
        assert_eq!(folder.sweep(Duration::ZERO, 10), Ok(0));
        let _receipt = take(&folder, "young").release();
        assert_eq!(folder.sweep(Duration::from_secs(3600), 10), Ok(0));
        let run = Some(RunName::new("r").unwrap());
        let request = Request { run, survivors: Survivors::Wait, ..Request::default() };
        let _unreleased = folder.try_acquire(&key("unreleased"), &request).unwrap().surrender();
        let directory = Resource::Directory(temp.path().into());
        let _receipt = folder.try_acquire(&directory, &Request::default()).unwrap().release();
        assert_eq!(folder.sweep(Duration::ZERO, 10), Ok(1), "the young one");
        let left: Vec<ResourceKind> = folder.names().unwrap().iter().map(FileName::kind).collect();
        assert_eq!(left.iter().filter(|kind| **kind == ResourceKind::Key).count(), 2);
        assert!(left.contains(&ResourceKind::Directory));
    }

    #[test]
    fn a_sweep_removes_no_more_than_it_may() {
        let (_temp, folder) = folder();
        for number in 0..5 {
            let _receipt = take(&folder, &number.to_string()).release();
        }
        assert_eq!(folder.sweep(Duration::ZERO, 2), Ok(2));
        assert_eq!(folder.names().unwrap().len(), 3);
    }

    #[test]
    fn a_key_whose_file_was_swept_is_taken_without_a_look_at_every_process() {
        let (_temp, folder) = folder();
        let _receipt = take(&folder, "k").release();
        folder.sweep(Duration::ZERO, 10).unwrap();
        let armed = crate::fault::arm(usize::MAX, crate::fault::Fault::Short, crate::fault::FaultReach::Once);
        let guard = take(&folder, "k");
        assert!(!armed.operations().contains(&"readlink"), "{:?}", armed.operations());
        drop(armed);
        // From then on the name counts as made: if its file is removed now, that is noticed.
        std::fs::remove_file(folder.file_path(&FileName::of_key("k"))).unwrap();
        let request = Request { run: Some(RunName::new("other").unwrap()), ..Request::default() };
        assert!(matches!(folder.try_acquire(&key("k"), &request), Err(crate::AcquireError::Busy(_))));
        drop(guard);
    }

    #[test]
    fn nothing_is_forgotten_while_a_file_that_was_removed_is_held() {
        let (_temp, folder) = folder();
        let _receipt = take(&folder, "idle").release();
        let _guard = take(&folder, "k");
        std::fs::remove_file(folder.file_path(&FileName::of_key("k"))).unwrap();
        assert_eq!(folder.sweep(Duration::ZERO, 10), Ok(1));
        assert_eq!(folder.ledger().made(&FileName::of_key("idle")), Ok(FileHistory::Before));
    }

    #[test]
    fn a_file_that_is_made_again_while_it_is_swept_counts_as_made() {
        let (_temp, folder) = folder();
        let _guard = take(&folder, "k");
        folder.ledger().note_swept(&FileName::of_key("k")).unwrap();
        folder.sweep(Duration::ZERO, 10).unwrap();
        assert_eq!(folder.ledger().made(&FileName::of_key("k")), Ok(FileHistory::Before));
    }
}
