//! A held lock. Dropping it gives it back, whatever happens; [`Guard::release`] also reports how that went.

use crate::error::FileStep;
use crate::files::fence::Fence;
use crate::files::file;
use crate::files::folder::Folder;
use crate::files::record::LockRecord;
use crate::process;
use crate::take::grant::{self, Denied, GrantWriter};
use crate::take::held::HeldFile;
use crate::take::holdings;
use crate::take::watch::{FileWatch, ForeignChange};
use crate::want::request::Request;
use pinfold_kernel::{clock, sys};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// A held lock: a value to pass along, never to look up. Dropping it gives it back.
#[derive(Debug)]
#[must_use = "the lock is given back when the guard is dropped"]
pub struct Guard {
    pub(crate) folder: Folder,
    pub(crate) held: Vec<HeldFile>,
    pub(crate) writers: Vec<GrantWriter>,
    pub(crate) record: LockRecord,
    pub(crate) given: GivenTo,
    pub(crate) directory: Option<Arc<OwnedFd>>,
    watched: Vec<FileWatch>,
    mark: ReleaseMark,
    entry: Option<holdings::HoldingEntry>,
}

/// Which other processes may hold the lock besides the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GivenTo {
    ToNobody,
    ToOthers,
}

/// Whether the lock file says that this grant was given back in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseMark {
    /// It says so, or need not: the next acquirer does not look for survivors.
    Released,
    /// It does not: the lock was given to other processes that may still hold it, or the mark could not be written.
    Unreleased,
}

/// What became of a lock that was given back. The flock is gone in any case.
#[derive(Debug)]
#[must_use = "a receipt may carry the first error"]
pub struct Receipt {
    /// The resource.
    pub resource: String,
    /// The fence of the grant that ended.
    pub fence: Fence,
    /// How long it was held, by the wall clock.
    pub held_for: Duration,
    /// What the lock file says now.
    pub mark: ReleaseMark,
    /// Changes that other programs made to watched files.
    pub changes: Vec<ForeignChange>,
    /// The first error, if there was one.
    pub trouble: Option<FileTrouble>,
}

/// A file operation that failed while a lock was used or given back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} could not be {step}", path = path.display())]
pub struct FileTrouble {
    /// The file.
    pub path: std::path::PathBuf,
    /// What was being done to it.
    pub step: FileStep,
    /// What the kernel said.
    #[source]
    pub source: Errno,
}

impl Guard {
    pub(crate) fn new(
        folder: Folder,
        held: Vec<HeldFile>,
        writers: Vec<GrantWriter>,
        record: LockRecord,
        entry: holdings::HoldingEntry,
        directory: Option<OwnedFd>,
    ) -> Self {
        Self {
            folder,
            held,
            writers,
            record,
            given: GivenTo::ToNobody,
            directory: directory.map(Arc::new),
            watched: Vec::new(),
            mark: ReleaseMark::Unreleased,
            entry: Some(entry),
        }
    }

    /// Returns the fence of this grant.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.record.fence
    }

    /// Returns the resource as its record names it: for a directory, its real path.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.record.resource
    }

    /// Returns what the lock file says about this grant.
    #[must_use]
    pub fn record(&self) -> &LockRecord {
        &self.record
    }

    /// Returns the locked directory, to be entered with `fchdir`: its path may lead elsewhere by now.
    #[must_use]
    pub fn directory(&self) -> Option<BorrowedFd<'_>> {
        self.directory.as_deref().map(AsFd::as_fd)
    }

    /// Begins another run under the same lock: a larger fence, and what `request` says about the run.
    ///
    /// After an error the lock is still held, under the old fence or the new one; [`Guard::fence`] tells which.
    pub fn new_fence(&mut self, request: &Request) -> Result<Fence, FileTrouble> {
        let fence = self.record.fence;
        self.new_fence_above(fence, request)
    }

    /// Does the same as [`Guard::new_fence`], above a fence known from elsewhere.
    pub fn new_fence_above(&mut self, floor: Fence, request: &Request) -> Result<Fence, FileTrouble> {
        for at in 0..self.writers.len() {
            let refreshed = self.writers[at].refresh();
            refreshed.map_err(|errno| self.trouble(&self.writers[at], FileStep::Read, errno))?;
        }
        let holder =
            process::own().map_err(|_| self.trouble(&self.writers[0], FileStep::Search, Errno::IO))?;
        let mut record = LockRecord {
            since_ms: clock::wall_ms(),
            holder,
            reason: request.reason.clone().or_else(|| self.record.reason.clone()),
            session: request.session.clone().or_else(|| self.record.session.clone()),
            run: request.run.clone(),
            agent: request.agent,
            cgroup: request.cgroup.clone(),
            survivors: request.survivors,
            command: if request.command.is_empty() {
                self.record.command.clone()
            } else {
                request.command.clone().into()
            },
            ..self.record.clone()
        };
        match grant::write(&self.writers, &mut record, holder.boot, floor.max(self.record.fence)) {
            Ok(fence) => {
                self.record = record;
                self.mark = ReleaseMark::Unreleased;
                self.entry_for_run();
                Ok(fence)
            }
            Err(denied) => {
                // The slots may have grown already; the old record still names what runs.
                Err(self.denied_trouble(&denied))
            }
        }
    }

    fn entry_for_run(&mut self) {
        let facts = self.held.iter().filter_map(|held| crate::files::facts::facts(&held.lock).ok());
        let files: Vec<_> = facts.map(|facts| facts.id).collect();
        self.entry = None;
        self.entry = Some(holdings::enter(&files, self.record.holder.pid, self.record.run.as_ref()));
    }

    /// Marks the grant as given back in order, so that the next acquirer need not look for survivors.
    ///
    /// Call it only after everything that was started under the lock has ended. The lock stays held.
    pub fn mark_released(&mut self) -> Result<(), FileTrouble> {
        // Nothing ever asks whether a lone grant was marked.
        let asked = if self.record.is_lone() { &[] } else { &self.writers[..] };
        let mut first = None;
        for writer in asked {
            if let Err(errno) = file::write_mark(&writer.file, self.record.fence) {
                first.get_or_insert_with(|| self.trouble(writer, FileStep::Write, errno));
            }
        }
        match first {
            None => {
                self.mark = ReleaseMark::Released;
                Ok(())
            }
            Some(trouble) => Err(trouble),
        }
    }

    pub(crate) fn watch(&mut self, watch: FileWatch) {
        self.watched.push(watch);
    }

    /// Gives the lock back and reports how that went. The flock goes whatever fails; the first error is kept.
    ///
    /// A lock that was handed to a child is not marked as released, because the child may live on: a caller
    /// that has seen the whole tree end calls [`Guard::mark_released`] first.
    pub fn release(mut self) -> Receipt {
        self.finish()
    }

    /// Closes the caller's copies without a mark: another process holds the lock now.
    pub fn surrender(mut self) -> Receipt {
        self.given = GivenTo::ToOthers;
        self.finish()
    }

    fn finish(&mut self) -> Receipt {
        let mut trouble = None;
        if self.given == GivenTo::ToNobody && self.mark == ReleaseMark::Unreleased {
            trouble = self.mark_released().err();
        }
        let changes = self.watched.drain(..).filter_map(FileWatch::look).collect();
        // Before the flock goes, so that nothing of this grant writes any more when the next one begins.
        self.writers.clear();
        self.entry = None;
        // Leaf first: an ancestor must not become free while a descendant is still held.
        while let Some(held) = self.held.pop() {
            let closed = Arc::try_unwrap(held.lock).map_or(Ok(()), sys::close);
            if let Err(errno) = closed {
                let path = self.folder.file_path(&held.name);
                trouble.get_or_insert(FileTrouble { path, step: FileStep::Close, source: errno });
            }
        }
        let held_for = Duration::from_millis(clock::wall_ms().saturating_sub(self.record.since_ms));
        let resource = std::mem::take(&mut self.record.resource);
        Receipt { resource, fence: self.record.fence, held_for, mark: self.mark, changes, trouble }
    }

    fn trouble(&self, writer: &GrantWriter, step: FileStep, source: Errno) -> FileTrouble {
        FileTrouble { path: self.folder.file_path(&writer.name), step, source }
    }

    fn denied_trouble(&self, denied: &Denied) -> FileTrouble {
        let (name, step, source) = match denied {
            Denied::Failed(name, step, errno) => (name, *step, *errno),
            Denied::Replaced(name) | Denied::Removed(name, _) | Denied::NotAFile(name) => {
                (name, FileStep::Examine, Errno::STALE)
            }
            Denied::Survived(..) | Denied::Cancelled => {
                (&self.writers[0].name, FileStep::Search, Errno::BUSY)
            }
        };
        FileTrouble { path: self.folder.file_path(name), step, source }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.held.is_empty() {
            // A drop cannot report anything; a caller that wants to know calls `release`.
            drop(self.finish());
        }
    }
}
