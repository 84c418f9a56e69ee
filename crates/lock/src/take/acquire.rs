//! Acquires: tries all files, waits for the one that refused, tries again.
//!
//! Nothing is held while waiting except the gates of an exclusive directory. Those are taken in a fixed
//! order, and an acquirer that waits at a gate holds none: so no two can wait for each other.

use crate::cancel::Cancel;
use crate::error::{AcquireError, Busy, BusyBecause, FileStep};
use crate::files::facts::facts;
use crate::files::fence::Fence;
use crate::files::folder::Folder;
use crate::files::name::FileName;
use crate::files::record::{self, LockRecord, RunName};
use crate::look::describe::left_of;
use crate::look::{lookup, runs};
use crate::patience::{AcquirePatience, WaitLimit, Waited};
use crate::process;
use crate::resource::{Resource, ResourceKind};
use crate::seen::LockSeen;
use crate::take::grant::{self, Denied};
use crate::take::guard::Guard;
use crate::take::held::{self, Gates, HeldFile, NotTaken, RefusedAt, RefusedFile};
use crate::take::holdings;
use crate::take::wait;
use crate::want::directory::{DirectoryError, LockMode, OpenDirectory};
use crate::want::request::Request;
use crate::want::target::Target;
use rustix::io::Errno;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A directory that moves more often than this while it is being locked is given up.
const MOVES: usize = 3;
/// A lock file that is replaced more often than this is being tampered with.
const REPLACEMENTS: usize = 16;

impl Folder {
    /// Acquires without waiting; "busy" is reported only after 20 ms, which gives a spawning sibling time to let go.
    pub fn try_acquire(&self, resource: &Resource, request: &Request) -> Result<Guard, AcquireError> {
        acquire(self, resource, request, WaitLimit::Spawning, None)
    }

    /// Acquires, however long it takes.
    pub fn acquire(&self, resource: &Resource, request: &Request) -> Result<Guard, AcquireError> {
        acquire(self, resource, request, WaitLimit::Never, None)
    }

    /// Acquires, or reports the holder when `deadline` has passed.
    pub fn acquire_until(
        &self,
        resource: &Resource,
        request: &Request,
        deadline: Instant,
    ) -> Result<Guard, AcquireError> {
        acquire(self, resource, request, WaitLimit::SpawningAnd(deadline), None)
    }

    /// Acquires until `deadline` (`None`: forever) or until cancelled.
    pub fn acquire_cancellable(
        &self,
        resource: &Resource,
        request: &Request,
        deadline: Option<Instant>,
        cancel: &Cancel,
    ) -> Result<Guard, AcquireError> {
        acquire(
            self,
            resource,
            request,
            deadline.map_or(WaitLimit::Never, WaitLimit::SpawningAnd),
            Some(cancel),
        )
    }
}

fn acquire(
    folder: &Folder,
    resource: &Resource,
    request: &Request,
    limit: WaitLimit,
    cancel: Option<&Cancel>,
) -> Result<Guard, AcquireError> {
    let patience = AcquirePatience::new(limit, cancel);
    let mut moves = 0;
    loop {
        let target = Target::open(resource)?;
        let acquiring = Acquiring { folder, target: &target, request, patience: &patience };
        let files = acquiring.take()?;
        match target.place.as_ref().map_or(Ok(()), OpenDirectory::check) {
            Ok(()) => return acquiring.grant(files, target.place.as_ref()),
            // It has other names now: everything is closed and taken again.
            Err(DirectoryError::Moved { .. }) if moves < MOVES => moves += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

struct Files {
    held: Vec<HeldFile>,
    settled: grant::SettledFiles,
}

struct Acquiring<'a> {
    folder: &'a Folder,
    target: &'a Target,
    request: &'a Request,
    patience: &'a AcquirePatience<'a>,
}

impl Acquiring<'_> {
    /// Takes and settles the files.
    fn take(&self) -> Result<Files, AcquireError> {
        let mut wait = Wait { ready: None, gates: Vec::new() };
        for _ in 0..REPLACEMENTS {
            let held = self.take_flocks(&mut wait)?;
            match grant::settle(self.folder, &held, self.request.run.as_ref(), self.patience) {
                Ok(settled) if self.patience.is_cancelled() => {
                    drop(settled);
                    return Err(self.cancelled());
                }
                Ok(settled) => return Ok(Files { held, settled }),
                Err(Denied::Replaced(_)) => {}
                Err(Denied::Removed(name, file)) => {
                    // The new file is let go: its rightful holder has the removed one.
                    drop(held);
                    self.wait_for_removed(name, file)?;
                }
                Err(denied) => return Err(self.denied(denied)),
            }
        }
        let name = &self.target.wanted[self.target.wanted.len() - 1].name;
        Err(AcquireError::Restless { path: self.folder.file_path(name) })
    }

    fn take_flocks(&self, wait: &mut Wait) -> Result<Vec<HeldFile>, AcquireError> {
        loop {
            if self.patience.is_cancelled() {
                return Err(self.cancelled());
            }
            match held::take(self.folder, &self.target.wanted, wait.ready.take(), &wait.gates) {
                Ok(held) => return Ok(held),
                Err(NotTaken::NotAFile(name)) => return Err(self.denied(Denied::NotAFile(name))),
                Err(NotTaken::Failed(name, step, errno)) => return Err(self.failed(&name, step, errno)),
                Err(NotTaken::Refused(refused)) => self.wait(refused, wait)?,
            }
        }
    }

    fn wait(&self, refused: RefusedFile, wait: &mut Wait) -> Result<(), AcquireError> {
        if self.is_own(&refused) {
            return Err(AcquireError::AlreadyYours { resource: self.target.resource.clone() });
        }
        match (refused.at, refused.mode, self.target.kind) {
            // An acquirer that waits at a gate holds none, so gates are never waited for in a circle.
            (RefusedAt::Gate, _, _) => wait.gates.clear(),
            (RefusedAt::File, LockMode::Exclusive, ResourceKind::Directory) => self.close_gates(wait)?,
            (RefusedAt::File, _, _) => {}
        }
        let waited = wait::lock(&refused.file, refused.mode, self.patience);
        self.waited(waited, &refused)?;
        wait.ready = match refused.at {
            RefusedAt::Gate => None,
            RefusedAt::File => Some(HeldFile { name: refused.name, mode: refused.mode, lock: refused.file }),
        };
        Ok(())
    }

    /// Holds the gates of the directory's two names: shared newcomers wait from now on.
    fn close_gates(&self, wait: &mut Wait) -> Result<(), AcquireError> {
        if !wait.gates.is_empty() {
            return Ok(());
        }
        for want in self.target.wanted.iter().filter(|want| want.mode == LockMode::Exclusive) {
            let name = want.name.gate();
            let file = held::open(self.folder, &name).map_err(|not| match not {
                NotTaken::Failed(name, step, errno) => self.failed(&name, step, errno),
                NotTaken::NotAFile(name) => self.denied(Denied::NotAFile(name)),
                NotTaken::Refused(_) => self.cancelled(),
            })?;
            let refused = RefusedFile {
                name: want.name,
                mode: LockMode::Exclusive,
                file: Arc::new(file),
                at: RefusedAt::Gate,
            };
            let waited = wait::lock(&refused.file, LockMode::Exclusive, self.patience);
            self.waited(waited, &refused)?;
            wait.gates.push((want.name, refused.file));
        }
        Ok(())
    }

    fn wait_for_removed(&self, name: FileName, file: Arc<std::os::fd::OwnedFd>) -> Result<(), AcquireError> {
        let refused = RefusedFile { name, mode: LockMode::Exclusive, file, at: RefusedAt::File };
        let waited = wait::lock(&refused.file, LockMode::Exclusive, self.patience);
        match waited {
            Ok(Waited::TimeUp) => Err(self.busy(BusyBecause::Removed, &refused)),
            other => self.waited(other, &refused),
        }
    }

    fn waited(&self, waited: Result<Waited, Errno>, refused: &RefusedFile) -> Result<(), AcquireError> {
        match waited {
            Ok(Waited::Done) => Ok(()),
            Ok(Waited::Cancelled) => Err(self.cancelled()),
            Ok(Waited::TimeUp) => Err(self.busy(
                match refused.at {
                    RefusedAt::File => BusyBecause::Held,
                    RefusedAt::Gate => BusyBecause::Awaited,
                },
                refused,
            )),
            Err(errno) => Err(self.failed(&refused.name, FileStep::Lock, errno)),
        }
    }

    fn is_own(&self, refused: &RefusedFile) -> bool {
        if refused.at == RefusedAt::Gate {
            return false;
        }
        let run = self.request.run.as_ref();
        if facts(&refused.file).is_ok_and(|facts| holdings::holds(facts.id, run)) {
            return true;
        }
        if self.request.inside.is_empty() && run.is_none() {
            return false;
        }
        let own = |other: &RunName| self.request.inside.contains(other) || run == Some(other);
        // A run that shares a directory from below left no record in it; only a search through /proc finds
        // it. A run that asks for the first time, inside no other, has nothing below.
        match (self.target.kind, runs::recorded_run(&refused.file)) {
            (_, Some(recorded)) if own(&recorded) => true,
            (ResourceKind::Directory, _) if !self.request.inside.is_empty() => {
                runs::runs_on(self.folder, &refused.name, &refused.file).iter().any(own)
            }
            (
                ResourceKind::Key | ResourceKind::Session | ResourceKind::Vendor | ResourceKind::Directory,
                _,
            ) => false,
        }
    }

    fn grant(&self, files: Files, place: Option<&OpenDirectory>) -> Result<Guard, AcquireError> {
        let own = process::own()?;
        let mut record = self.record(own, place);
        match grant::write(&files.settled.writers, &mut record, own.boot, Fence(0)) {
            Ok(_) => {}
            Err(denied) => {
                // What was written claims a grant that was not made.
                for writer in &files.settled.writers {
                    let _ = crate::files::file::write_mark(&writer.file, record.fence);
                }
                return Err(self.denied(denied));
            }
        }
        let entry = holdings::enter(&files.settled.files, own.pid, self.request.run.as_ref());
        let directory = place.map(|place| place.fd.try_clone()).transpose();
        let directory = match directory {
            Ok(directory) => directory,
            Err(error) => {
                let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
                drop(Guard::new(self.folder.clone(), files.held, files.settled.writers, record, entry, None));
                return Err(self.failed(&self.target.wanted[0].name, FileStep::Open, errno));
            }
        };
        Ok(Guard::new(self.folder.clone(), files.held, files.settled.writers, record, entry, directory))
    }

    fn record(&self, own: crate::judge::identity::Identity, place: Option<&OpenDirectory>) -> LockRecord {
        let request = self.request;
        let (above, above_cut) = place.map(OpenDirectory::above).unwrap_or_default();
        LockRecord {
            fence: Fence(0),
            resource: self.target.resource.clone(),
            since_ms: pinfold_kernel::clock::wall_ms(),
            holder: own,
            host: record::host().into(),
            command: if request.command.is_empty() {
                own_command().into()
            } else {
                request.command.clone().into()
            },
            reason: request.reason.clone(),
            session: request.session.clone(),
            run: request.run.clone(),
            agent: request.agent,
            cgroup: request.cgroup.clone(),
            survivors: request.survivors,
            above,
            above_cut,
        }
    }

    fn busy(&self, because: BusyBecause, refused: &RefusedFile) -> AcquireError {
        // Measured here, because finding the holder takes time, too.
        let waited = self.patience.waited();
        // The holder of a gate is waiting as well: report what both wait for instead, if it can be seen.
        if because == BusyBecause::Awaited
            && let Some(lock) = self.folder.holder_of_files(&self.target.wanted)
        {
            return self.busy_with(BusyBecause::Held, Some(lock), waited);
        }
        let directory =
            self.target.wanted.iter().find(|want| want.mode == LockMode::Exclusive && want.name.is_inode());
        let directory = directory.map(|want| &want.name);
        let lock = lookup::behind(self.folder, &refused.name, directory, &refused.file, because);
        self.busy_with(because, lock.map(|lock| self.named(lock, &refused.name)), waited)
    }

    /// A new holder has not written its resource yet, and the name of its file would mean nothing to people.
    fn named(&self, lock: LockSeen, name: &FileName) -> LockSeen {
        let resource = match lock.fence {
            None if !lock.resource.is_empty() => self.target.name_of(name),
            None | Some(_) => lock.resource,
        };
        LockSeen { resource, ..lock }
    }

    fn busy_with(&self, because: BusyBecause, lock: Option<LockSeen>, waited: Duration) -> AcquireError {
        let resource = self.target.resource.clone();
        AcquireError::Busy(Box::new(Busy { resource, because, lock, waited }))
    }

    fn cancelled(&self) -> AcquireError {
        AcquireError::Cancelled { resource: self.target.resource.clone() }
    }

    fn failed(&self, name: &FileName, step: FileStep, source: Errno) -> AcquireError {
        AcquireError::File { path: self.folder.file_path(name), step, source }
    }

    fn denied(&self, denied: Denied) -> AcquireError {
        match denied {
            Denied::Survived(record, left) => {
                let run = record.run.as_ref();
                if run.is_some_and(|run| self.request.inside.contains(run)) {
                    return AcquireError::AlreadyYours { resource: self.target.resource.clone() };
                }
                let because = BusyBecause::Survivor(left.trace);
                self.busy_with(because, Some(left_of(&record, &left)), self.patience.waited())
            }
            Denied::Cancelled => self.cancelled(),
            Denied::NotAFile(name) => AcquireError::NotAFile { path: self.folder.file_path(&name) },
            Denied::Failed(name, step, errno) => self.failed(&name, step, errno),
            Denied::Replaced(name) | Denied::Removed(name, _) => {
                AcquireError::Restless { path: self.folder.file_path(&name) }
            }
        }
    }
}

/// What is kept from one try to the next.
struct Wait {
    ready: Option<HeldFile>,
    gates: Gates,
}

fn own_command() -> &'static str {
    static COMMAND: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    COMMAND.get_or_init(|| pinfold_kernel::proc::command(std::process::id()))
}
