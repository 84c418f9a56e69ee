//! Finds holders by looking at the processes that the records name, instead of at every process of the machine.
//!
//! A record is believed if the kernel agrees: the flock is held, the record is that of the newest grant, and
//! the process it names is alive. If any of these does not hold, the caller searches all of `/proc`.

use crate::files::facts::facts;
use crate::files::fence;
use crate::files::file;
use crate::files::folder::Folder;
use crate::files::layout::SIZE;
use crate::files::ledger::FileHistory;
use crate::files::name::FileName;
use crate::files::record::LockRecord;
use crate::judge::holder::HolderVerdict;
use crate::look::describe;
use crate::look::scan::{self, OpenFile};
use crate::process;
use crate::resource::ResourceKind;
use crate::seen::LockSeen;
use crate::want::directory::LockMode;
use pinfold_kernel::proc::locks::Flocked;
use pinfold_kernel::{proc, sys};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::{BTreeSet, HashSet};
use std::os::fd::OwnedFd;

/// The inode of the initial pid namespace, fixed in the kernel. In any other one `/proc/locks` leaves out
/// flocks whose taker has died.
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Returns the lock of a file, if the process named in its record has it.
pub(crate) fn at(folder: &Folder, file: &OwnedFd) -> Option<LockSeen> {
    let record = current(file)?;
    let id = facts(file).ok()?.id;
    let mut holders = scan::open_files_of(record.holder.pid, folder.device()).ok()?;
    holders.retain(|open| open.file == id && open.locked == Some(LockMode::Exclusive));
    if holders.is_empty() || !process::may_live(&record.holder) {
        return None;
    }
    holders.extend(beside(folder, &record, |open| open.file == id));
    let holders: Vec<&OpenFile> = holders.iter().collect();
    Some(describe::from_record(&record, &holders, false))
}

/// Returns a lock of a directory below the one with this file, if the process named in its record has it.
pub(crate) fn below(folder: &Folder, name: &FileName) -> Option<LockSeen> {
    let quoted = format!("\"{}\"", name.as_str());
    let mut inodes = folder.names().ok()?.into_iter().filter(FileName::is_inode);
    inodes.find_map(|other| {
        let file = folder.open_existing(&other, OFlags::RDONLY).ok()?;
        let mut bytes = [0; SIZE];
        sys::read_at(&file, &mut bytes, 0).ok()?;
        // Most of thousands lie elsewhere, which can be seen without parsing their records.
        bytes.windows(quoted.len()).any(|part| part == quoted.as_bytes()).then_some(())?;
        let record = current(&file)?;
        record.above.iter().any(|above| above == name.as_str()).then_some(())?;
        at(folder, &file)
    })
}

/// Whether the kernel says that none of these files is locked; then no process need be examined.
pub(crate) fn nobody_has(folder: &Folder, names: &[FileName]) -> bool {
    let first = process::vantage().is_ok_and(|here| here.pid_namespace == FIRST_PID_NAMESPACE);
    let Some(flocked) = first.then(|| proc::locks::flocked().ok()).flatten() else { return false };
    names.iter().all(|name| {
        let file = folder.open_existing(name, OFlags::RDONLY).and_then(|file| facts(&file));
        match file {
            // An empty file may have taken the place of one that was removed under its holder.
            Ok(facts) => facts.size > 0 && !flocked.contains_key(&facts.id.inode),
            Err(Errno::NOENT) => folder.ledger().made(name).is_ok_and(|made| made != FileHistory::Before),
            Err(_) => false,
        }
    })
}

/// Returns every lock of a folder that is held now; `None` if only a look at every process can tell.
pub(crate) fn all(folder: &Folder) -> Result<Option<Vec<LockSeen>>, Errno> {
    if process::vantage()?.pid_namespace != FIRST_PID_NAMESPACE {
        return Ok(None);
    }
    let entries = folder.entries()?;
    let Ok(flocked) = proc::locks::flocked() else { return Ok(None) };
    // The holder of a removed file has no name here.
    if !folder.ledger().knows_no_other(entries.iter().map(|(name, _)| name))? {
        return Ok(None);
    }
    let parts: Vec<_> = entries.chunks(entries.len().div_ceil(workers(entries.len())).max(1)).collect();
    let looks: Vec<Result<Option<Vec<LockSeen>>, Errno>> = match parts.as_slice() {
        [] => Vec::new(),
        [one] => vec![part(folder, one, &flocked)],
        several => std::thread::scope(|scope| {
            let flocked = &flocked;
            let look = |entries| scope.spawn(move || part(folder, entries, flocked));
            let threads: Vec<_> = several.iter().map(|entries| look(*entries)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(None))).collect()
        }),
    };
    let mut seen = Seen::default();
    for look in looks {
        let Some(locks) = look? else { return Ok(None) };
        locks.into_iter().for_each(|lock| seen.add(lock));
    }
    Ok(Some(seen.locks))
}

/// Returns how many threads to use: the time goes into system calls, a handful for each lock.
fn workers(locks: usize) -> usize {
    const WORTH_A_THREAD: usize = 250;
    const MOST: usize = 4;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (locks / WORTH_A_THREAD).clamp(1, processors.min(MOST))
}

/// Returns the locks of some files; `None` if only a look at every process can tell.
fn part(
    folder: &Folder,
    entries: &[(FileName, u64)],
    flocked: &Flocked,
) -> Result<Option<Vec<LockSeen>>, Errno> {
    let mut seen = Vec::new();
    for (name, inode) in entries {
        if let Some(takers) = flocked.get(inode) {
            let Some(lock) = held(folder, name, takers) else { return Ok(None) };
            seen.push(lock);
        } else if stands_for_another(folder, name)? {
            return Ok(None);
        } else {
            seen.extend(folder.survived(name)?);
        }
    }
    Ok(Some(seen))
}

/// Whether a file is empty although it had a grant: it was created in place of one that was removed.
fn stands_for_another(folder: &Folder, name: &FileName) -> Result<bool, Errno> {
    let size =
        folder.open_existing(name, OFlags::RDONLY).and_then(|file| facts(&file)).map(|facts| facts.size);
    Ok(size == Ok(0) && folder.ledger().made(name)? == FileHistory::Before)
}

/// The locks listed so far, each once: a directory has two files.
#[derive(Default)]
struct Seen {
    locks: Vec<LockSeen>,
    directories: HashSet<(String, Option<fence::Fence>)>,
}

impl Seen {
    fn add(&mut self, lock: LockSeen) {
        if lock.kind != ResourceKind::Directory
            || self.directories.insert((lock.resource.clone(), lock.fence))
        {
            self.locks.push(lock);
        }
    }
}

/// Returns the lock of a file that is held, according to the kernel.
///
/// A process that may read a file can take its flock without being able to write to it: the record may be an
/// older holder's.
fn held(folder: &Folder, name: &FileName, takers: &[u32]) -> Option<LockSeen> {
    let file = folder.open_existing(name, OFlags::RDONLY).ok()?;
    let record = current(&file)?;
    let id = facts(&file).ok()?.id;
    let has_it = || {
        let open = scan::open_files_of(record.holder.pid, folder.device()).unwrap_or_default();
        open.iter().any(|open| open.file == id && open.locked == Some(LockMode::Exclusive))
    };
    (takers.contains(&record.holder.pid) || has_it()).then_some(())?;
    let others = beside(folder, &record, |open| open.file == id);
    let lock = describe::from_record(&record, &others.iter().collect::<Vec<_>>(), false);
    let named = [Some(record.holder), record.agent].into_iter().flatten();
    // If both processes it names are dead, another process has the lock.
    let is_named = named.into_iter().any(|one| lock.holder.identity == Some(one));
    match lock.holder.verdict {
        HolderVerdict::Alive(_) | HolderVerdict::Unknown(_) if is_named => Some(lock),
        HolderVerdict::Alive(_) | HolderVerdict::Unknown(_) | HolderVerdict::Dead(_) => None,
    }
}

/// Returns other processes that have the lock: a command is given it, the agent of a session is not.
fn beside(folder: &Folder, record: &LockRecord, is_it: impl Fn(&OpenFile) -> bool) -> Vec<OpenFile> {
    if record.session.is_some() {
        return Vec::new();
    }
    let below: BTreeSet<u32> = proc::tree::descendants(record.holder.pid).into_iter().collect();
    let open = below.into_iter().filter_map(|pid| scan::open_files_of(pid, folder.device()).ok()).flatten();
    open.filter(|open| open.locked.is_some() && is_it(open)).collect()
}

fn current(file: &OwnedFd) -> Option<LockRecord> {
    file::current(file).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{self, Fault, FaultReach};
    use crate::{Request, Resource};

    /// Returns how often files in `/proc` of other processes were read during `look`.
    fn descriptors_read(look: impl FnOnce()) -> usize {
        let armed = fault::arm(usize::MAX, Fault::Short, FaultReach::Once);
        look();
        armed.operations().iter().filter(|operation| **operation == "readlink").count()
    }

    #[test]
    fn a_look_at_locks_takes_no_look_at_every_process() {
        if process::vantage().unwrap().pid_namespace != FIRST_PID_NAMESPACE {
            return assert!(
                all(&folder().1).unwrap().is_none(),
                "elsewhere the kernel does not tell everything"
            );
        }
        let (_temp, folder) = folder();
        let guards: Vec<_> = (0..20).map(|n| take(&folder, &format!("k{n}"))).collect();
        let few = descriptors_read(|| assert_eq!(folder.locks().unwrap().len(), 20));
        let everybody = descriptors_read(|| {
            scan::open_files(folder.device()).unwrap();
        });
        assert!(few < 20 && few < everybody, "{few} descriptors were looked at, {everybody} there are");
        drop(guards);
        assert_eq!(folder.locks().unwrap(), []);
    }

    #[test]
    fn a_lock_whose_file_was_removed_is_still_listed() {
        let (_temp, folder) = folder();
        let _guard = take(&folder, "k");
        let name = folder.names().unwrap()[0];
        std::fs::remove_file(folder.file_path(&name)).unwrap();
        let seen = folder.locks().unwrap();
        assert_eq!((seen.len(), seen[0].removed), (1, true));
    }

    fn folder() -> (tempfile::TempDir, Folder) {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::open(temp.path().join("locks")).unwrap();
        (temp, folder)
    }

    fn take(folder: &Folder, key: &str) -> crate::Guard {
        folder.try_acquire(&Resource::Key(key.into()), &Request::default()).unwrap()
    }
}
