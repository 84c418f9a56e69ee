//! The folder of the lock files: the user's own, on a file system whose locks really exclude.

use crate::files::ended_listener::{EndedListener, SurvivorsEnded};
use crate::files::ledger::{self, FolderLedger};
use crate::files::name::FileName;
use crate::files::record::LockRecord;
use crate::files::selftest::{self, Failed, NoExclusion, SelfTestOutcome};
use crate::process;
use crate::resource::FileId;
use pinfold_kernel::private::{self, NotPrivate, Wider};
use pinfold_kernel::sys;
use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A folder of lock files, open and tested. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Folder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: OwnedFd,
    path: PathBuf,
    device: u64,
    modes: FolderModes,
    ledger: FolderLedger,
    told: EndedListener,
    writers: Mutex<VecDeque<(FileId, Arc<OwnedFd>)>>,
}

/// How many lock files are kept open for writing: opening is the costliest part of a grant.
const KEPT_WRITERS: usize = 8;

/// Whether the folder's mode was as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderModes {
    /// No other user could look in.
    Private,
    /// Other users could look in; now they cannot.
    Tightened {
        /// The permission bits found.
        from: u32,
    },
}

/// Why a folder cannot be used for locks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FolderError {
    /// It belongs to another user.
    #[error("{} belongs to user {owner}, not to user {caller}", path.display())]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// The user it belongs to.
        owner: u32,
        /// The user that asked.
        caller: u32,
    },
    /// Another user could put something else in its place.
    #[error(transparent)]
    Replaceable(NotPrivate),
    /// It contains files, and none of them is a lock.
    #[error("{} is not a lock folder: there are other files in it", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// It may not be created, opened or written.
    #[error("{} may not be used", path.display())]
    NotPermitted {
        /// The folder.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: Errno,
    },
    /// Locks on its file system do not exclude.
    #[error("{} cannot have locks: {why}", path.display())]
    NoExclusion {
        /// The folder.
        path: PathBuf,
        /// How the test failed.
        why: NoExclusion,
    },
    /// The kernel's facts by which a holder is recognized later cannot be read.
    #[error("locks need /proc/sys/kernel/random/boot_id and /proc/self/ns/pid, which cannot be read")]
    Unplaced {
        /// What the kernel said.
        #[source]
        source: Errno,
    },
    /// Something else is in its place.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The kernel failed in another way.
    #[error("{} cannot be used", path.display())]
    Failed {
        /// The folder.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: Errno,
    },
}

impl FolderError {
    pub(crate) fn new(path: &Path, errno: Errno) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::NotPermitted { path, source: errno },
            Errno::NOTDIR => Self::NotADirectory { path },
            source => Self::Failed { path, source },
        }
    }

    fn not_private(path: &Path, error: NotPrivate) -> Self {
        let path = path.to_owned();
        match error {
            NotPrivate::NotOurs { owner, caller, .. } => Self::NotOurs { path, owner, caller },
            NotPrivate::NotADirectory { .. } => Self::NotADirectory { path },
            NotPrivate::System { source, .. } => Self::new(&path, source),
            NotPrivate::Open { .. } => Self::Foreign { path },
            NotPrivate::Above { .. } | NotPrivate::Writable { .. } => Self::Replaceable(error),
        }
    }
}

impl Folder {
    /// Opens a folder, creates it if it is missing, and tests it. Also returns whether its ledger is trusted:
    /// a ledger without that mark is new, and the folder may have been removed under living holders.
    pub(crate) fn open_and_try(path: &Path) -> Result<(Self, bool), FolderError> {
        let failed = |errno| FolderError::new(path, errno);
        let real = private::way(path).map_err(|error| FolderError::not_private(path, error))?;
        let dir = match private::open_dir(&real) {
            Err(Errno::NOENT) => private::make(&real).and_then(|()| private::open_dir(&real)),
            other => other,
        }
        .map_err(failed)?;
        let stat = sys::fstat(&dir).map_err(failed)?;
        let modes = own(&dir, &stat, path)?;
        let kind = sys::fstatfs(&dir).map_err(failed)?.f_type;
        if let Some(name) = selftest::network(kind as u64) {
            return Err(FolderError::NoExclusion {
                path: path.to_owned(),
                why: NoExclusion::Network { name },
            });
        }
        let ledger = FolderLedger::open(dir.as_fd()).map_err(failed)?;
        let path = std::path::absolute(path).map_err(|_| FolderError::new(path, Errno::INVAL))?;
        let folder = Self(Arc::new(Inner {
            dir,
            path,
            device: stat.st_dev,
            modes,
            ledger,
            told: EndedListener::default(),
            writers: Mutex::default(),
        }));
        let trusted = folder.try_out()?;
        Ok((folder, trusted))
    }

    /// Marks its ledger as trusted from now on.
    pub(crate) fn trust(&self) -> Result<(), FolderError> {
        self.0.ledger.set_trusted().map_err(|errno| FolderError::new(self.path(), errno))
    }

    /// Whether the folder at a path was used since this machine started, and so by a process here. Creates nothing.
    #[must_use]
    pub fn was_used_in_this_boot(path: impl AsRef<Path>) -> bool {
        let then = FolderLedger::boot_of(path.as_ref());
        then.is_some_and(|then| process::vantage().is_ok_and(|now| now.boot == then))
    }

    /// Tests whether its locks exclude, once per boot; returns whether its ledger is trusted.
    fn try_out(&self) -> Result<bool, FolderError> {
        let failed = |errno| FolderError::new(self.path(), errno);
        let boot = process::vantage().map_err(|source| FolderError::Unplaced { source })?.boot;
        let stamp = ledger::Stamp { boot, device: self.0.device };
        let ledger = &self.0.ledger;
        let state = ledger.state().map_err(failed)?;
        if state.stamp != Some(stamp) {
            match selftest::run(self.dir()) {
                Ok(SelfTestOutcome::Excludes) => ledger.set_stamp(stamp).map_err(failed)?,
                Ok(SelfTestOutcome::BeingTested) => {}
                Err(Failed::No(why)) => {
                    return Err(FolderError::NoExclusion { path: self.path().to_owned(), why });
                }
                Err(Failed::Kernel(errno)) => return Err(failed(errno)),
            }
        }
        Ok(state.trusted)
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns whether its mode had to be tightened when it was opened.
    #[must_use]
    pub fn modes(&self) -> FolderModes {
        self.0.modes
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.0.dir.as_fd()
    }

    pub(crate) fn device(&self) -> u64 {
        self.0.device
    }

    /// Returns the mount that it was opened through.
    pub(crate) fn mount(&self) -> Option<u64> {
        let own = format!("/proc/self/fdinfo/{}", rustix::fd::AsRawFd::as_raw_fd(&self.dir()));
        pinfold_kernel::proc::fdinfo::mount(&sys::read_file(Path::new(&own)).ok()?)
    }

    pub(crate) fn ledger(&self) -> &FolderLedger {
        &self.0.ledger
    }

    /// Makes `listener` hear of the processes that grants of this folder end, each time before they are ended.
    ///
    /// The first listener stays; it is called on whichever thread acquires.
    pub fn tell_of_ended(&self, listener: impl Fn(&SurvivorsEnded) + Send + Sync + 'static) {
        self.0.told.set(Box::new(listener));
    }

    pub(crate) fn tell_ended(&self, record: &LockRecord, pids: &[u32]) {
        self.0.told.tell(record, pids);
    }

    pub(crate) fn file_path(&self, name: &FileName) -> PathBuf {
        self.0.path.join(name.as_path())
    }

    /// Opens a lock file in order to lock it, and creates it if it is missing.
    pub(crate) fn open_lock(&self, name: &FileName) -> Result<OwnedFd, Errno> {
        match self.open_existing(name, OFlags::RDONLY) {
            Err(Errno::NOENT) => {
                let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::NOFOLLOW;
                sys::open_at(self.dir(), name.as_path(), flags, Mode::RUSR | Mode::WUSR)
            }
            other => other,
        }
    }

    pub(crate) fn open_existing(&self, name: &FileName, flags: OFlags) -> Result<OwnedFd, Errno> {
        // The folder and its files are ours, so their access times may be left alone; that way a read causes no write.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOATIME;
        sys::open_at(self.dir(), name.as_path(), flags, Mode::empty())
    }

    /// Returns a description for writing that was kept from an earlier grant. It never has the flock.
    pub(crate) fn kept_writer(&self, id: FileId) -> Option<Arc<OwnedFd>> {
        let kept = self.0.writers.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(of, _)| *of == id).map(|(_, file)| file.clone())
    }

    pub(crate) fn keep_writer(&self, id: FileId, file: OwnedFd) -> Arc<OwnedFd> {
        let file = Arc::new(file);
        let mut kept = self.0.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_WRITERS {
            kept.pop_front();
        }
        kept.push_back((id, file.clone()));
        file
    }

    /// Returns the file that is at a name now.
    pub(crate) fn id_at(&self, name: &FileName) -> Result<FileId, Errno> {
        let stat = sys::stat_at(self.dir(), name.as_path(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileId::from(&stat))
    }

    /// Returns the names of all files that may carry a record.
    pub(crate) fn names(&self) -> Result<Vec<FileName>, Errno> {
        Ok(self.entries()?.into_iter().map(|(name, _)| name).collect())
    }

    /// Returns all files that may carry a record, with their inodes.
    pub(crate) fn entries(&self) -> Result<Vec<(FileName, u64)>, Errno> {
        let own = PathBuf::from(format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&self.dir())));
        let entries = sys::list_with_inodes(&own).or_else(|_| sys::list_with_inodes(self.path()))?;
        let named = entries.into_iter().filter_map(|(name, inode)| {
            let name = FileName::read(name.to_str()?)?;
            name.is_lock().then_some((name, inode))
        });
        Ok(named.collect())
    }
}

fn own(dir: &OwnedFd, stat: &Stat, path: &Path) -> Result<FolderModes, FolderError> {
    let known = is_ours(dir).map_err(|errno| FolderError::new(path, errno))?;
    let wider = if known { Wider::Tighten } else { Wider::Refuse };
    let bits =
        private::check(dir, stat, path, wider).map_err(|error| FolderError::not_private(path, error))?;
    if !known {
        return Err(FolderError::Foreign { path: path.to_owned() });
    }
    Ok(if bits & 0o077 == 0 { FolderModes::Private } else { FolderModes::Tightened { from: bits } })
}

/// Whether it is a lock folder, or empty and so can become one.
fn is_ours(dir: &OwnedFd) -> Result<bool, Errno> {
    if FolderLedger::is_in(dir.as_fd()) {
        return Ok(true);
    }
    let through = format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(dir));
    let names = match sys::list(Path::new(&through)) {
        // It belongs to another user, which is reported elsewhere.
        Err(Errno::ACCESS | Errno::PERM) => return Ok(true),
        names => names?,
    };
    let is_lock =
        |name: &std::ffi::OsString| name.to_str().is_some_and(|name| FileName::read(name).is_some());
    // Another process may have made it a lock folder since the first look.
    Ok(names.is_empty() || names.iter().any(is_lock) || FolderLedger::is_in(dir.as_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_folder_that_several_make_at_once_is_a_lock_folder_for_all_of_them() {
        for _ in 0..200 {
            let temp = tempfile::tempdir().unwrap();
            let path = temp.path().join("locks");
            let begin = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                let open = || {
                    begin.wait();
                    Folder::open(&path).map(drop)
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
                threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), Ok(())));
            });
        }
    }

    #[test]
    fn a_missing_folder_is_made_private_with_its_parents() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b/locks");
        let folder = Folder::open(&path).unwrap();
        assert_eq!(folder.modes(), FolderModes::Private);
        assert_eq!((mode(&path), mode(&temp.path().join("a"))), (0o700, 0o700));
    }

    #[test]
    fn wider_modes_are_tightened_and_said_so() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("locks");
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(Folder::open(&path).unwrap().modes(), FolderModes::Tightened { from: 0o755 });
        assert_eq!(mode(&path), 0o700);
        assert_eq!(Folder::open(&path).unwrap().modes(), FolderModes::Private);
    }

    #[test]
    fn a_folder_with_other_files_in_it_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("notes");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("x"), "").unwrap();
        for bits in [0o755, 0o700] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(bits)).unwrap();
            assert_eq!(Folder::open(&path).unwrap_err(), FolderError::Foreign { path: path.clone() });
            assert_eq!((mode(&path), std::fs::read_dir(&path).unwrap().count()), (bits, 1));
        }
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("locks");
        std::fs::write(&path, "").unwrap();
        assert_eq!(Folder::open(&path).unwrap_err(), FolderError::NotADirectory { path });
    }

    #[test]
    fn the_folder_of_another_user_is_refused() {
        crate::rights::needs!(OtherUser);
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("locks");
        std::fs::create_dir(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        let error = Folder::open(&path).unwrap_err();
        assert_eq!(error, FolderError::NotOurs { path, owner: 12345, caller: 0 });
    }

    #[test]
    fn the_folder_is_tried_out_once_in_a_boot() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("locks");
        Folder::open(&path).unwrap();
        let armed = crate::fault::arm(usize::MAX, crate::fault::Fault::Short, crate::fault::FaultReach::Once);
        Folder::open(&path).unwrap();
        assert!(!armed.operations().contains(&"flock"), "{:?}", armed.operations());
    }
}
