//! A file to which only the newest holder of a lock can append anything that counts.
//!
//! Checking the fence and writing are one critical section (a flock on the file), and every record carries
//! its fence: a writer that was paused after the check leaves at worst a record that no reader counts.

use crate::fenced::text::{FencedLine, ScanState, encode, scan};
use crate::files::facts::facts;
use crate::files::fence::Fence;
use crate::files::file::LockFileHead;
use crate::files::folder::Folder;
use crate::files::name::FileName;
use crate::patience::{AcquirePatience, WaitLimit, Waited};
use crate::resource::Resource;
use crate::take::guard::Guard;
use crate::take::wait;
use crate::take::watch::{AppendEnd, Expected, FileWatch, ForeignChange, look};
use crate::want::directory::LockMode;
use crate::want::target::Target;
use pinfold_kernel::sys;
use rustix::fs::{CWD, FlockOperation, Mode as Bits, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// An append-only file under the fence of a lock.
#[derive(Debug)]
pub struct FencedFile {
    path: PathBuf,
    folder: Folder,
    lock: FileName,
    file: Arc<OwnedFd>,
    state: ScanState,
    expected: Expected,
}

/// A record that was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a foreign change may have been noticed"]
pub struct Appended {
    /// What another writer did to the file since our last append.
    pub change: Option<ForeignChange>,
}

/// Why nothing was appended. The bytes of the file are unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// A later grant exists: this writer has lost its lock.
    #[error("fence {fence} was superseded by fence {by}; nothing was written to {}", path.display())]
    Superseded {
        /// The file.
        path: PathBuf,
        /// The writer's fence.
        fence: Fence,
        /// The later fence.
        by: Fence,
    },
    /// A file operation failed.
    #[error("nothing could be appended to {}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: Errno,
    },
}

/// One record that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencedRecord {
    /// The fence it was written under.
    pub fence: Fence,
    /// The data that was written.
    pub data: Vec<u8>,
}

/// The contents of a fenced file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    /// The records that count, in order.
    pub records: Vec<FencedRecord>,
    /// The number of records that were appended after a later fence had claimed the file.
    pub late: usize,
    /// The number of lines that are not records: torn, or written by another program.
    pub damaged: usize,
}

/// A writer is inside for microseconds; one that stays longer has been stopped, and must not block its successor.
const SECTION: Duration = Duration::from_secs(1);

impl Guard {
    /// Opens a fenced file under this lock and claims it: whatever an older fence appends from now on does
    /// not count. The guard watches the file, and its receipt reports foreign changes.
    pub fn open_fenced(&mut self, path: impl AsRef<Path>) -> Result<FencedFile, AppendError> {
        let name = self.writers[0].name;
        let mut file = FencedFile::open_at(path.as_ref(), self.folder.clone(), name)?;
        file.claim(self.fence())?;
        self.watch(FileWatch { path: file.path.clone(), expected: file.expected.clone() });
        Ok(file)
    }
}

impl FencedFile {
    /// Opens a fenced file for a writer that knows its fence but has no guard, such as a child of the holder.
    pub fn open(path: impl AsRef<Path>, folder: &Folder, resource: &Resource) -> Result<Self, AppendError> {
        let path = path.as_ref();
        let target = Target::open(resource)
            .map_err(|_| AppendError::Failed { path: path.to_owned(), source: Errno::NOENT })?;
        let name = target.wanted.iter().find(|want| want.mode == LockMode::Exclusive).map(|want| want.name);
        let name = name.ok_or(AppendError::Failed { path: path.to_owned(), source: Errno::INVAL })?;
        Self::open_at(path, folder.clone(), name)
    }

    fn open_at(path: &Path, folder: Folder, lock: FileName) -> Result<Self, AppendError> {
        let file = open_data(path).map_err(|source| AppendError::Failed { path: path.to_owned(), source })?;
        let path = path.to_owned();
        Ok(Self {
            path,
            folder,
            lock,
            file: Arc::new(file),
            state: ScanState::default(),
            expected: Expected::default(),
        })
    }

    /// Reads the records of a fenced file that count.
    pub fn read(path: impl AsRef<Path>) -> Result<Contents, Errno> {
        let bytes = sys::read_file(path.as_ref())?;
        let mut contents = Contents::default();
        scan(&bytes, &mut ScanState::default(), |line| match line {
            FencedLine::Record(fence, data) => contents.records.push(FencedRecord { fence, data }),
            FencedLine::Late => contents.late += 1,
            FencedLine::Damaged(_) => contents.damaged += 1,
            FencedLine::Claim => {}
        });
        Ok(contents)
    }

    /// Claims the file for a fence: whatever an older fence appends from now on does not count.
    pub fn claim(&mut self, fence: Fence) -> Result<(), AppendError> {
        self.write(fence, None).map(drop)
    }

    /// Appends one record under `fence`, or refuses and leaves the bytes as they are.
    pub fn append(&mut self, fence: Fence, data: &[u8]) -> Result<Appended, AppendError> {
        self.write(fence, Some(data))
    }

    fn write(&mut self, fence: Fence, data: Option<&[u8]>) -> Result<Appended, AppendError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| AppendError::Failed { path, source }
        };
        let replaced = self.follow().map_err(failed(&self.path))?;
        let section = self.enter().map_err(failed(&self.path))?;
        let (end, grown) = self.catch_up().map_err(failed(&self.path))?;
        let newest = self.lock_fence().map_err(failed(&self.path))?.max(Some(self.state.highest));
        if let Some(by) = newest.filter(|by| *by > fence) {
            return Err(AppendError::Superseded { path: self.path.clone(), fence, by });
        }
        let change = replaced.or(grown);
        let line = encode(fence, data, self.state.open_line);
        if let Err(source) = sys::append(&self.file, &line) {
            self.take_back(end);
            return Err(AppendError::Failed { path: self.path.clone(), source });
        }
        self.state.highest = self.state.highest.max(fence);
        self.state.open_line = false;
        self.state.scanned = end.size + line.len() as u64;
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(AppendEnd { id: end.id, size: self.state.scanned });
        drop(section);
        Ok(Appended { change })
    }

    /// Truncates what a failed write may have left of a line. Readers skip it anyway; this is only tidier.
    fn take_back(&self, end: AppendEnd) {
        let _ = sys::cut(&self.file, end.size);
    }

    /// Reopens the path if another file, or none, is there.
    fn follow(&mut self) -> Result<Option<ForeignChange>, Errno> {
        let change = match look(&self.path, facts(&self.file)?.id) {
            None => return Ok(None),
            Some(ForeignChange::Unreadable { source, .. }) => return Err(source),
            Some(ForeignChange::NotAFile { .. }) => return Err(Errno::ISDIR),
            Some(change) => change,
        };
        self.file = Arc::new(open_data(&self.path)?);
        self.state = ScanState::default();
        let known = self.expected.lock().unwrap_or_else(PoisonError::into_inner).take().is_some();
        Ok(known.then_some(change))
    }

    /// Enters the critical section. A writer that was stopped inside must not block its successor, whose records count.
    fn enter(&self) -> Result<Option<OwnedFd>, Errno> {
        // A separate description, so that the flock ends with it even if an error returns early.
        let section = Arc::new(open_data(&self.path)?);
        match sys::flock(&section, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Arc::into_inner(section)),
            Err(Errno::WOULDBLOCK) => {}
            Err(errno) => return Err(errno),
        }
        let patience = AcquirePatience::new(WaitLimit::At(Instant::now() + SECTION), None);
        match wait::lock(&section, LockMode::Exclusive, &patience)? {
            Waited::Done => Ok(Arc::into_inner(section)),
            Waited::TimeUp | Waited::Cancelled => Ok(None),
        }
    }

    /// Reads what was added since the last look.
    fn catch_up(&mut self) -> Result<(AppendEnd, Option<ForeignChange>), Errno> {
        let now = facts(&self.file)?;
        let mut change = None;
        if now.size < self.state.scanned {
            change =
                Some(ForeignChange::Shrunk { path: self.path.clone(), bytes: self.state.scanned - now.size });
            self.state = ScanState::default();
        }
        let added = usize::try_from(now.size - self.state.scanned).map_err(|_| Errno::FBIG)?;
        let mut bytes = vec![0; added];
        let length = sys::read_at(&self.file, &mut bytes, self.state.scanned)?;
        let first_look = self.state == ScanState::default();
        let mut foreign = 0;
        scan(&bytes[..length], &mut self.state, |line| {
            if let FencedLine::Damaged(length) = line {
                foreign += length;
            }
        });
        if foreign > 0 && !first_look {
            change.get_or_insert(ForeignChange::Grown { path: self.path.clone(), bytes: foreign });
        }
        Ok((AppendEnd { id: now.id, size: self.state.scanned }, change))
    }

    /// Returns the fence of the newest grant, according to the lock file.
    fn lock_fence(&self) -> Result<Option<Fence>, Errno> {
        let file = match self.folder.open_existing(&self.lock, OFlags::RDONLY) {
            Err(Errno::NOENT) => return Ok(None),
            other => other?,
        };
        Ok(LockFileHead::read(&file)?.fence())
    }
}

fn open_data(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
    sys::open_at(CWD, path, flags, Bits::RUSR | Bits::WUSR)
}
