//! Says who holds what, for people: the records, checked against what the kernel shows. Takes no lock.

use crate::directory::{Mode, Wanted};
use crate::error::BusyBecause;
use crate::fence::Fence;
use crate::file::{self, Head, Last};
use crate::file_name::FileName;
use crate::folder::Folder;
use crate::glance;
use crate::held::facts;
use crate::ours::{self, is_of};
use crate::process;
use crate::record::{Record, Run, Survivors, now_ms};
use crate::resource::{FileId, Kind, Resource};
use crate::scan::{self, Open};
use crate::survivors::{self, Left};
use crate::time;
use pinfold_core::holder::Holder;
use pinfold_core::identity::Identity;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// A lock that is held now, as far as it can be seen.
#[derive(Debug, Clone, PartialEq)]
pub struct LockSeen {
    /// The resource; the name of the lock file when the record is damaged.
    pub resource: String,
    /// Its kind.
    pub kind: Kind,
    /// The fence of the grant.
    pub fence: Option<Fence>,
    /// Since when, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// What it is held for.
    pub reason: Option<String>,
    /// The session it is held for.
    pub session: Option<String>,
    /// The run it is held for.
    pub run: Option<Run>,
    /// Who holds it.
    pub holder: HolderSeen,
    /// Processes that have it beside, or instead of, the one the record names.
    pub others: Vec<ProcessSeen>,
    /// Its file was removed while it was held.
    pub removed: bool,
}

/// The holder of a lock: what the record says, or the process found when the record names a dead one.
#[derive(Debug, Clone, PartialEq)]
pub struct HolderSeen {
    /// Which process.
    pub identity: Option<Identity>,
    /// On which machine.
    pub host: String,
    /// What it runs.
    pub command: String,
    /// Whether it lives.
    pub verdict: Holder,
}

/// A process that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSeen {
    /// Its pid.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

impl Folder {
    /// Every lock of this folder that is held now.
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
        for one in open.iter().filter(|one| one.locked == Some(Mode::Exclusive) && one.name.is_lock()) {
            if !files.iter().any(|(id, _, _)| *id == one.file) {
                files.push((one.file, one.name, one.removed));
            }
        }
        let mut seen = Vec::new();
        for (id, name, removed) in files {
            let holders: Vec<&Open> =
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

    /// A lock whose flock is free but whose last run is not over: the next acquirer will wait for it.
    pub(crate) fn survived(&self, name: &FileName) -> Result<Option<LockSeen>, Errno> {
        let Ok(file) = self.open_existing(name, OFlags::RDONLY) else { return Ok(None) };
        let head = Head::read(&file)?;
        let Last::Unreleased(record) = file::left(&file, &head)? else { return Ok(None) };
        if record.survivors == Survivors::Ignore {
            return Ok(None);
        }
        Ok(survivors::find(&record)?.map(|left| left_of(&record, &left)))
    }

    /// Who holds a resource now, if anybody.
    pub fn holder_of(&self, resource: &Resource) -> Result<Option<LockSeen>, crate::AcquireError> {
        Ok(self.holder_of_files(&crate::acquire::Target::open(resource)?.wanted))
    }

    /// Who holds one of the exclusive files now.
    pub(crate) fn holder_of_files(&self, wanted: &[Wanted]) -> Option<LockSeen> {
        let exclusive = wanted.iter().filter(|want| want.mode == Mode::Exclusive);
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

    fn holder_among_all(&self, wanted: &[Wanted]) -> Option<LockSeen> {
        let open = scan::open_files(self.device()).unwrap_or_default();
        for want in wanted.iter().filter(|want| want.mode == Mode::Exclusive) {
            let mut here: Vec<&Open> =
                open.iter().filter(|one| one.name == want.name && one.locked.is_some()).collect();
            here.retain(|one| one.locked == Some(Mode::Exclusive) && is_of(self, one));
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

/// What the record of a file says, checked against who has it.
fn from_file_of(
    folder: &Folder,
    first: &Open,
    name: &FileName,
    holders: &[&Open],
    removed: bool,
) -> LockSeen {
    let Some(record) = ours::record(folder, first) else { return from_processes(name, holders, removed) };
    let has_it = holders.iter().any(|open| open.pid == record.holder.pid);
    match process::verdict(Some(&record.holder)) {
        // It lives and has let go: whoever has the lock has not written down yet who it is.
        Holder::Alive(_) if !has_it => {
            LockSeen { resource: record.resource, ..from_processes(name, holders, removed) }
        }
        Holder::Alive(_) | Holder::Dead(_) | Holder::Unknown(_) => from_record(&record, holders, removed),
    }
}

pub(crate) fn from_record(record: &Record, holders: &[&Open], removed: bool) -> LockSeen {
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

/// The agent while it lives, else the recorded holder, else whoever really has the descriptor.
///
/// An agent for whom another process held the lock has lost it with that one's end, unless its run goes on.
fn main_holder(record: &Record, holders: &[&Open]) -> HolderSeen {
    let keeps_it = !record.is_lone() || process::may_live(&record.holder);
    let recorded = |identity: Identity, verdict| HolderSeen {
        identity: Some(identity),
        host: record.host.to_string(),
        command: record.command.to_string(),
        verdict,
    };
    for identity in record.agent.filter(|_| keeps_it).into_iter().chain([record.holder]) {
        let verdict = process::verdict(Some(&identity));
        match verdict {
            Holder::Alive(_) | Holder::Unknown(_) => return recorded(identity, verdict),
            Holder::Dead(_) => {}
        }
    }
    match holders.first() {
        Some(open) => from_pid(open.pid),
        None => recorded(record.holder, process::verdict(Some(&record.holder))),
    }
}

fn from_pid(pid: u32) -> HolderSeen {
    let identity = process::identify(pid).ok();
    let verdict = process::verdict(identity.as_ref());
    HolderSeen { identity, host: crate::record::host().to_owned(), command: scan::command(pid), verdict }
}

fn process_seen(pid: u32) -> ProcessSeen {
    ProcessSeen { pid, command: scan::command(pid) }
}

/// A lock whose record is damaged: only the kernel says who has it.
fn from_processes(name: &FileName, holders: &[&Open], removed: bool) -> LockSeen {
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
        holder: holder.unwrap_or_else(|| HolderSeen {
            identity: None,
            host: String::new(),
            command: String::new(),
            verdict: process::verdict(None),
        }),
        others: pids.into_iter().skip(1).map(process_seen).collect(),
        removed,
    }
}

fn kind_of(resource: &str) -> Kind {
    Resource::parse(resource.as_ref()).map_or(Kind::Directory, |resource| resource.kind())
}

/// The lock behind a file that refused: its own, or that of a directory below which shares it.
///
/// `directory` is the file of the wanted directory, as records of those below name it.
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
    let here: Vec<&Open> = open.iter().filter(|one| one.file == id && one.locked.is_some()).collect();
    let Some(first) = here.first() else { return from_file(file) };
    if because == BusyBecause::Awaited {
        let mut seen = from_processes(name, &here, false);
        seen.resource = String::new();
        return Some(seen);
    }
    if first.locked == Some(Mode::Exclusive) {
        return Some(from_file_of(folder, first, name, &here, first.removed));
    }
    let pids: Vec<u32> = here.iter().map(|one| one.pid).collect();
    let below =
        exclusive_records(folder, &open, &pids).into_iter().find(|(record, _)| is_below(record, name));
    Some(match below {
        Some((record, file)) => {
            let holders: Vec<&Open> =
                open.iter().filter(|one| one.file == file && one.locked.is_some()).collect();
            from_record(&record, &holders, false)
        }
        None => from_processes(name, &here, false),
    })
}

fn is_below(record: &Record, name: &FileName) -> bool {
    let by_path =
        || Path::new(&record.resource).ancestors().skip(1).any(|path| FileName::of_path(path) == *name);
    record.above.iter().any(|above| above == name.as_str()) || by_path()
}

fn exclusive_records(folder: &Folder, open: &[Open], pids: &[u32]) -> Vec<(Record, FileId)> {
    let mut found: Vec<(Record, FileId)> = Vec::new();
    for one in open.iter().filter(|one| pids.contains(&one.pid) && one.locked == Some(Mode::Exclusive)) {
        if !found.iter().any(|(_, file)| *file == one.file)
            && let Some(record) = ours::record(folder, one)
        {
            found.push((record, one.file));
        }
    }
    found
}

/// Nobody is seen with the file: another namespace, or already gone. The record is all there is.
fn from_file(file: &OwnedFd) -> Option<LockSeen> {
    let head = Head::read(file).ok()?;
    match file::last(file, &head).ok()? {
        Last::Unreleased(record) => Some(from_record(&record, &[], false)),
        Last::Nothing | Last::Released => None,
    }
}

/// The run that a file says holds it.
pub(crate) fn recorded_run(file: &OwnedFd) -> Option<Run> {
    let head = Head::read(file).ok()?;
    match file::last(file, &head).ok()? {
        Last::Unreleased(record) => record.run,
        Last::Nothing | Last::Released => None,
    }
}

/// The runs that hold a file, exclusively or through something below it.
pub(crate) fn runs_on(folder: &Folder, name: &FileName, file: &OwnedFd) -> Vec<Run> {
    let Ok(facts) = facts(file) else { return Vec::new() };
    let mut open = scan::open_files(folder.device()).unwrap_or_default();
    open.retain(|one| is_of(folder, one));
    let here = open.iter().filter(|one| one.file == facts.id && one.locked.is_some());
    let pids: Vec<u32> = here.map(|one| one.pid).collect();
    let records = exclusive_records(folder, &open, &pids).into_iter();
    let relevant = records.filter(|(record, file)| *file == facts.id || is_below(record, name));
    relevant.filter_map(|(record, _)| record.run).collect()
}

pub(crate) fn left_of(record: &Record, left: &Left) -> LockSeen {
    let mut seen = from_record(record, &[], false);
    let mut pids = left.processes.iter().map(|survivor| survivor.pid);
    if let Some(first) = pids.next() {
        seen.holder = from_pid(first);
        seen.others = pids.map(process_seen).collect();
    }
    seen
}

/// The lock files of this folder that were removed while somebody holds them.
pub(crate) fn removed_holders(folder: &Folder) -> Result<Vec<Open>, Errno> {
    let mut open = scan::open_files(folder.device())?;
    open.retain(|one| one.removed && one.locked.is_some() && is_of(folder, one));
    Ok(open)
}

/// A removed file of this name that somebody holds, open.
pub(crate) fn removed_holder(folder: &Folder, name: &FileName) -> Result<Option<OwnedFd>, Errno> {
    for one in removed_holders(folder)?.iter().filter(|one| one.name == *name) {
        match ours::reopen(folder, one) {
            Ok(file) => return Ok(Some(file)),
            // It has gone meanwhile.
            Err(Errno::NOENT | Errno::SRCH) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(None)
}

impl LockSeen {
    /// Who, since when: `pid 4711 (make, since 14:02:10 UTC, 3 min)`; what is not known is left out.
    #[must_use]
    pub fn holder_text(&self) -> String {
        let who = match self.holder.identity {
            Some(identity) => format!("pid {}", identity.pid),
            None => "somebody who left no name".to_owned(),
        };
        let mut facts = Vec::new();
        if !self.holder.command.is_empty() {
            facts.push(shorten(&self.holder.command));
        }
        if let Some(session) = &self.session {
            facts.push(format!("session {session}"));
        }
        if let Some(since) = self.since_ms {
            facts.push(format!("since {} UTC", time::of_day(since)));
            facts.push(time::age(Duration::from_millis(now_ms().saturating_sub(since))));
        }
        if facts.is_empty() { who } else { format!("{who} ({})", facts.join(", ")) }
    }
}

/// A command line in a line of text is for recognising, not for reading: one line, no control characters.
#[must_use]
pub fn shorten(command: &str) -> String {
    const MOST: usize = 60;
    let mut plain = command.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = plain.by_ref().take(MOST).collect();
    if plain.next().is_some() {
        short.push('…');
    }
    short
}
