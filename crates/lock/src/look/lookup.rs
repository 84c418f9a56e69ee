//! Finds who holds what, for people: from the records, checked against what the kernel shows. Takes no lock.

use super::describe::{from_file, from_file_of, from_processes, from_record, left_of};
use super::glance;
use super::ours::is_of;
use super::runs::{exclusive_records, is_below};
use super::scan::{self, OpenFile};
use super::survivors;
use crate::error::BusyBecause;
use crate::files::facts::facts;
use crate::files::file::{self, LastGrant, LockFileHead};
use crate::files::folder::Folder;
use crate::files::name::FileName;
use crate::files::record::Survivors;
use crate::resource::{FileId, Resource};
use crate::seen::LockSeen;
use crate::want::directory::{LockMode, WantedFile};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

impl Folder {
    /// Returns every lock of this folder that is held now.
    pub fn locks(&self) -> Result<Vec<LockSeen>, Errno> {
        let mut seen = match glance::all(self)? {
            Some(seen) => seen,
            None => self.locks_of_all_processes()?,
        };
        seen.sort_by(|a, b| a.resource.cmp(&b.resource));
        Ok(seen)
    }

    fn locks_of_all_processes(&self) -> Result<Vec<LockSeen>, Errno> {
        let mut open = scan::open_files(self.device())?;
        open.retain(|one| is_of(self, one));
        let mut files: Vec<(FileId, FileName, bool)> = Vec::new();
        for one in open.iter().filter(|one| one.locked == Some(LockMode::Exclusive) && one.name.is_lock()) {
            if !files.iter().any(|(id, _, _)| *id == one.file) {
                files.push((one.file, one.name, one.removed));
            }
        }
        let mut seen = Vec::new();
        for (id, name, removed) in files {
            let holders: Vec<&OpenFile> =
                open.iter().filter(|one| one.file == id && one.locked.is_some()).collect();
            let Some(first) = holders.first() else { continue };
            let lock = from_file_of(self, first, &name, &holders, removed);
            // A directory has two names; one line is enough.
            if !seen.iter().any(|other| same_lock(other, &lock)) {
                seen.push(lock);
            }
        }
        for name in self.names()? {
            if !open.iter().any(|one| one.name == name && one.locked.is_some())
                && let Some(lock) = self.survived(&name)?
                && !seen.iter().any(|other| same_lock(other, &lock))
            {
                seen.push(lock);
            }
        }
        Ok(seen)
    }

    /// Returns a lock whose flock is free but whose last run is not over: the next acquirer will wait for it.
    pub(crate) fn survived(&self, name: &FileName) -> Result<Option<LockSeen>, Errno> {
        let Ok(file) = self.open_existing(name, OFlags::RDONLY) else { return Ok(None) };
        let head = LockFileHead::read(&file)?;
        let LastGrant::Unreleased(record) = file::left(&file, &head)? else { return Ok(None) };
        if record.survivors == Survivors::Ignore {
            return Ok(None);
        }
        Ok(survivors::find(&record)?.map(|left| left_of(&record, &left)))
    }

    /// Returns the present holder of a resource, if there is one.
    pub fn holder_of(&self, resource: &Resource) -> Result<Option<LockSeen>, crate::AcquireError> {
        Ok(self.holder_of_files(&crate::want::target::Target::open(resource)?.wanted))
    }

    /// Returns the present holder of one of the exclusive files.
    pub(crate) fn holder_of_files(&self, wanted: &[WantedFile]) -> Option<LockSeen> {
        let exclusive = wanted.iter().filter(|want| want.mode == LockMode::Exclusive);
        let names: Vec<FileName> = exclusive.map(|want| want.name).collect();
        let mut files = names.iter().filter_map(|name| self.open_existing(name, OFlags::RDONLY).ok());
        if let Some(lock) = files.find_map(|file| glance::at(self, &file)) {
            return Some(lock);
        }
        if glance::nobody_has(self, &names) {
            return names.iter().find_map(|name| self.survived(name).ok().flatten());
        }
        self.holder_among_all(wanted)
    }

    fn holder_among_all(&self, wanted: &[WantedFile]) -> Option<LockSeen> {
        let open = scan::open_files(self.device()).unwrap_or_default();
        for want in wanted.iter().filter(|want| want.mode == LockMode::Exclusive) {
            let mut here: Vec<&OpenFile> =
                open.iter().filter(|one| one.name == want.name && one.locked.is_some()).collect();
            here.retain(|one| one.locked == Some(LockMode::Exclusive) && is_of(self, one));
            if let Some(first) = here.first() {
                return Some(from_file_of(self, first, &want.name, &here, first.removed));
            }
            if let Ok(Some(lock)) = self.survived(&want.name) {
                return Some(lock);
            }
        }
        None
    }
}

fn same_lock(one: &LockSeen, other: &LockSeen) -> bool {
    let same_holder = one.holder.identity.map(|i| i.pid) == other.holder.identity.map(|i| i.pid);
    one.kind == other.kind
        && same_holder
        && (one.resource == other.resource && one.fence == other.fence || one.fence.is_none())
}

/// Returns the lock because of which a file refused: its own, or that of a directory below that shares it.
///
/// `directory` is the file of the wanted directory, by which the records of those below name it.
pub(crate) fn behind(
    folder: &Folder,
    name: &FileName,
    directory: Option<&FileName>,
    file: &OwnedFd,
    because: BusyBecause,
) -> Option<LockSeen> {
    let below = || directory.and_then(|directory| glance::below(folder, directory));
    if because == BusyBecause::Held
        && let Some(lock) = glance::at(folder, file).or_else(below)
    {
        return Some(lock);
    }
    let id = facts(file).ok()?.id;
    let mut open = scan::open_files(folder.device()).unwrap_or_default();
    open.retain(|one| is_of(folder, one));
    let here: Vec<&OpenFile> = open.iter().filter(|one| one.file == id && one.locked.is_some()).collect();
    let Some(first) = here.first() else { return from_file(file) };
    if because == BusyBecause::Awaited {
        let mut seen = from_processes(name, &here, false);
        seen.resource = String::new();
        return Some(seen);
    }
    if first.locked == Some(LockMode::Exclusive) {
        return Some(from_file_of(folder, first, name, &here, first.removed));
    }
    let pids: Vec<u32> = here.iter().map(|one| one.pid).collect();
    let below =
        exclusive_records(folder, &open, &pids).into_iter().find(|(record, _)| is_below(record, name));
    Some(match below {
        Some((record, file)) => {
            let holders: Vec<&OpenFile> =
                open.iter().filter(|one| one.file == file && one.locked.is_some()).collect();
            from_record(&record, &holders, false)
        }
        None => from_processes(name, &here, false),
    })
}
