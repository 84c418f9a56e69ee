//! Turns flocks into a grant: the files are in place, nothing of the last run is left, and the fence has grown.

use crate::error::FileStep;
use crate::files::facts::facts;
use crate::files::fence::{self, Fence, NextFence};
use crate::files::file::{self, LastGrant, LockFileHead};
use crate::files::folder::Folder;
use crate::files::ledger::FileHistory;
use crate::files::name::FileName;
use crate::files::record::{Below, LockRecord, RunName};
use crate::judge::holder::HolderVerdict;
use crate::judge::identity::BootId;
use crate::look::removed::removed_holder;
use crate::look::survivors::Leftovers;
use crate::patience::AcquirePatience;
use crate::process;
use crate::resource::{FileId, ResourceKind};
use crate::take::clear::{self, Cleared};
use crate::take::held::HeldFile;
use crate::want::directory::LockMode;
use pinfold_kernel::sys;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Why flocks did not become a grant.
#[derive(Debug)]
pub(crate) enum Denied {
    /// Another file is at the name now; everything has to be taken again.
    Replaced(FileName),
    /// The file was removed under a holder that is still alive; the removed file is open here.
    Removed(FileName, Arc<OwnedFd>),
    /// Something of the last run is left.
    Survived(Box<LockRecord>, Leftovers),
    Cancelled,
    NotAFile(FileName),
    Failed(FileName, FileStep, Errno),
}

/// One exclusively held file, ready to be written.
#[derive(Debug)]
pub(crate) struct GrantWriter {
    pub(crate) name: FileName,
    pub(crate) file: Arc<OwnedFd>,
    head: LockFileHead,
    recorded: Option<Fence>,
    size: u64,
    /// An earlier file of this name was removed, and its counter with it. If the sweep did that, the counter
    /// was no larger than this.
    floor: Option<u64>,
}

/// The files of a grant: the writers of the exclusive ones, and the identity of each file.
#[derive(Debug)]
pub(crate) struct SettledFiles {
    pub(crate) writers: Vec<GrantWriter>,
    pub(crate) files: Vec<FileId>,
}

/// Checks every file and clears away what is left of earlier runs. `own` is the run that the files are for:
/// it is not its own survivor.
pub(crate) fn settle(
    folder: &Folder,
    held: &[HeldFile],
    own: Option<&RunName>,
    patience: &AcquirePatience<'_>,
) -> Result<SettledFiles, Denied> {
    let shared = held.iter().filter(|one| one.mode == LockMode::Shared);
    let above: Vec<FileName> = shared.map(|one| one.name).collect();
    let mut settled = SettledFiles { writers: Vec::with_capacity(2), files: Vec::with_capacity(held.len()) };
    for one in held {
        let id = match one.mode {
            LockMode::Exclusive => {
                let (id, writer) = settle_exclusive(folder, one, own, &above, patience)?;
                settled.writers.push(writer);
                id
            }
            LockMode::Shared => settle_shared(folder, one, patience)?,
        };
        settled.files.push(id);
    }
    Ok(settled)
}

fn settle_exclusive(
    folder: &Folder,
    held: &HeldFile,
    own: Option<&RunName>,
    above: &[FileName],
    patience: &AcquirePatience<'_>,
) -> Result<(FileId, GrantWriter), Denied> {
    let failed = |step| move |errno| Denied::Failed(held.name, step, errno);
    let locked = facts(&held.lock).map_err(failed(FileStep::Examine))?;
    if !locked.regular {
        return Err(Denied::NotAFile(held.name));
    }
    // Checked after the flock: a file that was replaced in between has no name any more.
    if locked.removed {
        return Err(Denied::Replaced(held.name));
    }
    let file = writer(folder, &held.name, locked.id)?;
    let head = LockFileHead::read(&file).map_err(failed(FileStep::Read))?;
    let floor = match fence::current(head.slots()) {
        Some(_) => None,
        // The process that filled it may have died before it wrote the first grant: then it is as good as new.
        None if head.is_blank() => settle_new(folder, &held.name)?,
        None => Some(folder.ledger().floor().map_err(failed(FileStep::Read))?),
    };
    let last = file::left(&file, &head).map_err(failed(FileStep::Read))?;
    let recorded = match &last {
        LastGrant::Unreleased(record) => Some(record.fence),
        LastGrant::Nothing | LastGrant::Released => None,
    };
    // A process that took it for a living run may have died before the handover: that run is not a survivor.
    if let LastGrant::Unreleased(record) = last
        && (own.is_none() || record.run.as_ref() != own)
    {
        clear(folder, &held.name, *record, patience)?;
    }
    // Runs below name their ancestors by inode, so the directory's path file needs no second search.
    if head.below() && held.name.is_inode() {
        clear_below(folder, held, above, patience)?;
        file::write_below(&file, false).map_err(failed(FileStep::Write))?;
    }
    Ok((locked.id, GrantWriter { name: held.name, file, head, recorded, size: locked.size, floor }))
}

/// Settles a shared file, which is an ancestor's: its exclusive holder must be gone with all its run, and a
/// later exclusive acquirer must know that something below was locked.
fn settle_shared(folder: &Folder, held: &HeldFile, patience: &AcquirePatience<'_>) -> Result<FileId, Denied> {
    let failed = |step| move |errno| Denied::Failed(held.name, step, errno);
    let locked = facts(&held.lock).map_err(failed(FileStep::Examine))?;
    if !locked.regular {
        return Err(Denied::NotAFile(held.name));
    }
    if locked.removed {
        return Err(Denied::Replaced(held.name));
    }
    if locked.size == 0 {
        settle_new(folder, &held.name)?;
    }
    let head = LockFileHead::read(&held.lock).map_err(failed(FileStep::Read))?;
    if head.fence().is_some()
        && let LastGrant::Unreleased(record) =
            file::left(&held.lock, &head).map_err(failed(FileStep::Read))?
    {
        let fence = record.fence;
        clear(folder, &held.name, *record, patience)?;
        // Under a shared flock the file cannot be granted, so every writer writes the same bytes.
        let file = writer(folder, &held.name, locked.id)?;
        file::write_mark(&file, fence).map_err(failed(FileStep::Write))?;
    }
    if !head.below() {
        let file = writer(folder, &held.name, locked.id)?;
        file::write_below(&file, true).map_err(failed(FileStep::Write))?;
    }
    Ok(locked.id)
}

/// Returns a description to write through: the one kept from the last grant, or a new one on the same file.
fn writer(folder: &Folder, name: &FileName, id: FileId) -> Result<Arc<OwnedFd>, Denied> {
    if let Some(file) = folder.kept_writer(id) {
        return Ok(file);
    }
    let file = open_writer(folder, name)?;
    let facts = facts(&file).map_err(|errno| Denied::Failed(*name, FileStep::Examine, errno))?;
    if facts.id != id {
        return Err(Denied::Replaced(*name));
    }
    Ok(folder.keep_writer(id, file))
}

fn open_writer(folder: &Folder, name: &FileName) -> Result<OwnedFd, Denied> {
    folder.open_existing(name, OFlags::RDWR).map_err(|errno| match errno {
        Errno::NOENT => Denied::Replaced(*name),
        Errno::LOOP | Errno::ISDIR => Denied::NotAFile(*name),
        other => Denied::Failed(*name, FileStep::Open, other),
    })
}

/// Settles an empty file: if the ledger knows its name, an earlier file was removed, and its holder may be alive.
///
/// Returns the fence that no earlier file had exceeded when it was swept, if there was an earlier file.
fn settle_new(folder: &Folder, name: &FileName) -> Result<Option<u64>, Denied> {
    let failed = |step| move |errno| Denied::Failed(*name, step, errno);
    let made = folder.ledger().made(name).map_err(failed(FileStep::Read))?;
    if made == FileHistory::Before
        && let Some(file) = removed_holder(folder, name).map_err(failed(FileStep::Search))?
    {
        return Err(Denied::Removed(*name, Arc::new(file)));
    }
    let floor = match made {
        FileHistory::Never => None,
        FileHistory::Swept | FileHistory::Before => {
            Some(folder.ledger().floor().map_err(failed(FileStep::Read))?)
        }
    };
    folder.ledger().note_made(name).map_err(failed(FileStep::Write))?;
    Ok(floor)
}

fn clear(
    folder: &Folder,
    name: &FileName,
    record: LockRecord,
    patience: &AcquirePatience<'_>,
) -> Result<(), Denied> {
    match clear::clear(&record, patience, &|pids| folder.tell_ended(&record, pids)) {
        Ok(Cleared::Clear) => Ok(()),
        Ok(Cleared::Persists(left)) => Err(Denied::Survived(Box::new(record), left)),
        Ok(Cleared::Cancelled) => Err(Denied::Cancelled),
        Err(errno) => Err(Denied::Failed(*name, FileStep::Search, errno)),
    }
}

/// Clears what was locked below since the last grant: none of those runs may be left.
fn clear_below(
    folder: &Folder,
    held: &HeldFile,
    above: &[FileName],
    patience: &AcquirePatience<'_>,
) -> Result<(), Denied> {
    let failed = |step| move |errno| Denied::Failed(held.name, step, errno);
    let mut names = folder.names().map_err(failed(FileStep::Read))?;
    // The directory's own two files are judged separately.
    names.retain(|name| *name != held.name && name.kind() == ResourceKind::Directory);
    for name in names {
        let record = folder.unreleased(&name).map_err(failed(FileStep::Read))?;
        let is_in_the_way = |record: &LockRecord| match record.is_below(&held.name, above) {
            Below::Certainly => true,
            // A living holder below would have kept us away, so this one is beside us and does not concern us.
            Below::Perhaps => matches!(process::verdict(Some(&record.holder)), HolderVerdict::Dead(_)),
            Below::No => false,
        };
        if let Some(record) = record.filter(|record| is_in_the_way(record)) {
            clear(folder, &name, *record, patience)?;
        }
    }
    Ok(())
}

/// Writes fence and record of a grant into every exclusive file; returns the fence.
pub(crate) fn write(
    writers: &[GrantWriter],
    record: &mut LockRecord,
    boot: BootId,
    floor: Fence,
) -> Result<Fence, Denied> {
    let seconds = record.since_ms / 1000;
    let next = |writer: &GrantWriter| {
        let evidence = writer.head.evidence(writer.recorded, writer.floor.is_some());
        fence::next(evidence, boot, seconds, floor.0.max(writer.floor.unwrap_or(0)))
    };
    let fence = writers.iter().map(|writer| next(writer).counter.fence).max().unwrap_or(0);
    record.fence = Fence(fence);
    for writer in writers {
        write_one(writer, next(writer).raised_to(fence), record)?;
    }
    Ok(Fence(fence))
}

fn write_one(writer: &GrantWriter, next: NextFence, record: &LockRecord) -> Result<(), Denied> {
    let failed = |step| move |errno| Denied::Failed(writer.name, step, errno);
    file::fill(&writer.file, writer.size).map_err(failed(FileStep::Write))?;
    file::write_grant(&writer.file, next, record).map_err(failed(FileStep::Write))?;
    if next.sync {
        sys::sync(&writer.file).map_err(failed(FileStep::Sync))?;
    }
    Ok(())
}

impl GrantWriter {
    /// Creates a writer for a file that is already held.
    pub(crate) fn reopen(name: FileName, file: OwnedFd) -> Result<Self, Errno> {
        let head = LockFileHead::read(&file)?;
        let recorded = file::record(&file)?.map(|record| record.fence);
        let size = facts(&file)?.size;
        Ok(Self { name, file: Arc::new(file), head, recorded, size, floor: None })
    }

    /// Rereads what the file says, before another fence is chosen.
    pub(crate) fn refresh(&mut self) -> Result<(), Errno> {
        self.head = LockFileHead::read(&self.file)?;
        self.recorded = file::record(&self.file)?.map(|record| record.fence);
        self.size = facts(&self.file)?.size;
        Ok(())
    }
}
