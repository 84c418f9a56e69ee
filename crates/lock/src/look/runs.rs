//! Which runs hold a file, and which records lie below a directory.

use super::ours::{self, is_of};
use super::scan::{self, OpenFile};
use crate::files::facts::facts;
use crate::files::file::{self, LastGrant, LockFileHead};
use crate::files::folder::Folder;
use crate::files::name::FileName;
use crate::files::record::{LockRecord, RunName};
use crate::resource::FileId;
use crate::want::directory::LockMode;
use std::os::fd::OwnedFd;
use std::path::Path;

pub(super) fn is_below(record: &LockRecord, name: &FileName) -> bool {
    let by_path =
        || Path::new(&record.resource).ancestors().skip(1).any(|path| FileName::of_path(path) == *name);
    record.above.iter().any(|above| above == name.as_str()) || by_path()
}

pub(super) fn exclusive_records(
    folder: &Folder,
    open: &[OpenFile],
    pids: &[u32],
) -> Vec<(LockRecord, FileId)> {
    let mut found: Vec<(LockRecord, FileId)> = Vec::new();
    for one in open.iter().filter(|one| pids.contains(&one.pid) && one.locked == Some(LockMode::Exclusive)) {
        if !found.iter().any(|(_, file)| *file == one.file)
            && let Some(record) = ours::record(folder, one)
        {
            found.push((record, one.file));
        }
    }
    found
}

/// Returns the run that holds a file, according to the file.
pub(crate) fn recorded_run(file: &OwnedFd) -> Option<RunName> {
    let head = LockFileHead::read(file).ok()?;
    match file::last(file, &head).ok()? {
        LastGrant::Unreleased(record) => record.run,
        LastGrant::Nothing | LastGrant::Released => None,
    }
}

/// Returns the runs that hold a file, exclusively or through something below it.
pub(crate) fn runs_on(folder: &Folder, name: &FileName, file: &OwnedFd) -> Vec<RunName> {
    let Ok(facts) = facts(file) else { return Vec::new() };
    let mut open = scan::open_files(folder.device()).unwrap_or_default();
    open.retain(|one| is_of(folder, one));
    let here = open.iter().filter(|one| one.file == facts.id && one.locked.is_some());
    let pids: Vec<u32> = here.map(|one| one.pid).collect();
    let records = exclusive_records(folder, &open, &pids).into_iter();
    let relevant = records.filter(|(record, file)| *file == facts.id || is_below(record, name));
    relevant.filter_map(|(record, _)| record.run).collect()
}
