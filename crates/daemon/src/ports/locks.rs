//! Takes the locks of a run before anything is started, and waits for those that another holder has.

pub(crate) use super::cancellable_wait::CancellableWait;
use crate::crash;
use crate::define::definition::Definition;
use crate::define::home::Home;
use crate::define::id_files::Outsider;
use crate::define::others::Others;
use crate::error_chain::chain;
use crate::metrics::Metrics;
use crate::ports::Then;
use pinfold_core::life::{CannotStart, HolderSeen, StartRefused};
use pinfold_core::rules::start::{self, Prospect};
use pinfold_core::unended::Unended;
use pinfold_core::{Event, Wall};
use pinfold_kernel::proc;
use pinfold_lock::{
    AcquireError, Busy, Cancel, DirectoryError, EndOutcome, Folder, FolderError, Guard, LockSeen, Request,
    Resource, RunName, SessionName, Survivors,
};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tracing::warn;

/// The two lock folders of a daemon.
#[derive(Clone)]
pub(crate) struct Folders {
    home: Folder,
    user: Folder,
}

/// Takes the locks of runs, and waits for those that another holder has.
pub(crate) trait Locks {
    /// Takes every lock of a run, or none.
    fn reserve(&self, wanted: LocksWanted, then: Then<Result<Box<dyn RunLocks>, LocksRefused>>);

    /// Waits until another attempt makes sense.
    fn wait_for(&self, awaited: Obstacle, then: Then<()>) -> io::Result<Box<dyn CancellableWait>>;

    /// Ends what is left of a run whose shim was lost; reports whether it is proved that nothing of it is
    /// alive.
    fn prove_absent(&self, lost: Lost, then: Then<bool>);

    /// Ends the holder of a session's own lock, with its whole tree.
    fn end_holder(&self, name: String, then: Then<HolderEnded>);
}

/// The locks of a run. Dropping them releases them.
pub(crate) trait RunLocks: Send {
    /// What a shim is given, so that it has them too.
    fn lend(&self) -> Vec<(&Folder, &Guard)>;

    /// The shim has them: they are no longer ours.
    fn surrender(self: Box<Self>);
}

/// What keeps a run from being started, until it is gone.
#[derive(Debug, Clone)]
pub(crate) enum Obstacle {
    /// A lock that another holder has.
    Lock(Resource),
    /// A program that is in the vendor session and took no lock.
    Process(Box<(Others, Outsider)>),
    /// A process that has the vendor's own lock.
    Writer(u32),
}

/// A lock that was taken, with its folder.
type Reserved = (Folder, Guard);

impl RunLocks for Vec<Reserved> {
    fn lend(&self) -> Vec<(&Folder, &Guard)> {
        self.iter().map(|(folder, guard)| (folder, guard)).collect()
    }

    fn surrender(self: Box<Self>) {
        for (_, guard) in *self {
            lost_in(&guard.surrender());
        }
    }
}

impl CancellableWait for Arc<Cancel> {
    fn cancel(&self) {
        Cancel::cancel(self);
    }
}

/// The locks of this machine: pool threads do what blocks, few at a time.
pub(crate) struct MachineLocks {
    folders: Folders,
    places: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

impl MachineLocks {
    pub(crate) fn new(folders: Folders, places: Arc<Semaphore>, metrics: Arc<Metrics>) -> MachineLocks {
        MachineLocks { folders, places, metrics }
    }
}

impl Locks for MachineLocks {
    fn reserve(&self, wanted: LocksWanted, then: Then<Result<Box<dyn RunLocks>, LocksRefused>>) {
        let (folders, places) = (self.folders.clone(), Arc::clone(&self.places));
        let metrics = Arc::clone(&self.metrics);
        tokio::spawn(async move {
            let _place = places.acquire_owned().await;
            let begun = Instant::now();
            let reserve = move || {
                crash::point("reserve.before");
                let result = folders.reserve(&wanted);
                crash::point("reserve.after");
                result
            };
            let result = tokio::task::spawn_blocking(reserve).await;
            let result = result.unwrap_or_else(|error| Err(LocksRefused::system(&error)));
            metrics.of_runs.seconds.took(begun.elapsed());
            if let Err(LocksRefused::Busy { .. }) = &result {
                metrics.of_runs.busy.add();
            }
            then(result.map(|guards| Box::new(guards) as Box<dyn RunLocks>));
        });
    }

    fn wait_for(&self, awaited: Obstacle, then: Then<()>) -> io::Result<Box<dyn CancellableWait>> {
        match awaited {
            Obstacle::Lock(resource) => Ok(Box::new(self.folders.wait_for(resource, move || then(()))?)),
            Obstacle::Writer(pid) => super::outsiders::wait_for_end(pid, then),
            Obstacle::Process(process) => {
                let (others, outsider) = *process;
                super::outsiders::wait_for(others, outsider, then)
            }
        }
    }

    fn prove_absent(&self, lost: Lost, then: Then<bool>) {
        let folders = self.folders.clone();
        tokio::spawn(async move {
            let prove = move || folders.prove_absent(&lost).is_ok();
            then(tokio::task::spawn_blocking(prove).await.unwrap_or(false));
        });
    }

    fn end_holder(&self, name: String, then: Then<HolderEnded>) {
        let folders = self.folders.clone();
        tokio::spawn(async move {
            let ended = tokio::task::spawn_blocking(move || folders.end_holder(&name)).await;
            then(ended.unwrap_or(HolderEnded::Gone));
        });
    }
}

/// A session whose shim may have gone without a word.
#[derive(Debug, Clone)]
pub(crate) struct Lost {
    pub(crate) name: String,
    /// Its last run, if it may have been alive then.
    pub(crate) run: Option<String>,
    /// Where its shim listened.
    pub(crate) listen: std::path::PathBuf,
}

/// What happened to a holder that was to be ended.
pub(crate) enum HolderEnded {
    /// The lock is free.
    Gone,
    /// A holder cannot be ended.
    Still(Unended),
}

/// The holders that should be gone: a shim that has the lock, or what survived its shim.
fn undying(lock: &LockSeen) -> Unended {
    let mut pids: Vec<u32> = lock.others.iter().map(|other| other.pid).collect();
    pids.extend(lock.holder.identity.map(|identity| identity.pid));
    pids.sort_unstable();
    pids.dedup();
    Unended::Survivors { shim: None, left: pids.into_iter().filter_map(pinfold_shim::survivor).collect() }
}

/// Whether a process is a shim, by the name that shims give themselves.
fn is_shim(pid: &u32) -> bool {
    proc::name(*pid).is_some_and(|name| name.starts_with("pinfold-shim"))
}

/// Why the locks of a run were not taken.
pub(crate) enum LocksRefused {
    /// Another holder has one of them, for this run if that is known.
    Busy { resource: Resource, holder: Option<Box<HolderSeen>>, run: Option<String> },
    /// They cannot be taken at all.
    Hopeless(CannotStart),
    /// The system refused.
    System(StartRefused),
}

/// The locks that a run needs.
#[derive(Debug, Clone)]
pub(crate) struct LocksWanted {
    session: SessionName,
    /// Whether the session's own lock is wanted too.
    own: bool,
    directory: Option<std::path::PathBuf>,
    vendor: Option<Resource>,
    run: String,
    command: String,
    reason: &'static str,
}

/// The reason in the locks of a daemon's runs.
pub const BY_DAEMON: &str = "a run of the session";
/// The reason without a daemon.
const ALONE: &str = "pinfold run";

impl LocksWanted {
    pub(crate) fn new(name: &str, definition: &Definition, run: String) -> Option<LocksWanted> {
        Some(LocksWanted {
            session: SessionName::new(name).ok()?,
            own: true,
            directory: definition.dir_lock.then(|| definition.dir.clone()),
            vendor: definition.vendor_lock(),
            run,
            command: definition.command.join(" "),
            reason: BY_DAEMON,
        })
    }

    /// The session that wants them.
    #[cfg(test)]
    pub(crate) fn session_name(&self) -> &str {
        self.session.as_str()
    }

    /// The directory that it works in.
    #[cfg(test)]
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Only the lock of the vendor conversation, for a run that has the others.
    pub(crate) fn of_vendor(self) -> Option<LocksWanted> {
        self.vendor.is_some().then_some(LocksWanted { own: false, directory: None, ..self })
    }

    /// For a run without a daemon: a holder's record shows what has the locks.
    pub(crate) fn alone(self) -> LocksWanted {
        LocksWanted { reason: ALONE, ..self }
    }

    fn resources(&self) -> Vec<Resource> {
        let mut resources = Vec::new();
        resources.extend(self.own.then(|| Resource::Session(self.session.clone())));
        resources.extend(self.directory.clone().map(Resource::Directory));
        resources.extend(self.vendor.clone());
        resources
    }

    fn request(&self) -> Request {
        Request {
            reason: Some(self.reason.into()),
            session: Some(self.session.as_str().to_owned()),
            command: self.command.clone(),
            run: RunName::new(self.run.clone()).ok(),
            survivors: Survivors::End,
            ..Request::default()
        }
    }
}

impl Folders {
    pub(crate) fn open(home: &Home) -> Result<Folders, FolderError> {
        Ok(Folders { home: Folder::open(home.session_locks())?, user: Folder::open(&home.user_locks)? })
    }

    /// Records every process that a grant ends in `audit` first; `then` is called after that.
    pub(crate) fn audit_to(&self, audit: &Path, then: impl Fn() + Clone + Send + Sync + 'static) {
        for folder in [&self.home, &self.user] {
            let (path, then) = (audit.to_owned(), then.clone());
            folder.tell_of_ended(move |ended| {
                let record = crate::offline_audit::ended_by_lock(ended);
                match crate::offline_audit::append(&path, &record) {
                    Ok(()) => then(),
                    Err(error) => warn!("{record} could not be written down: {error}"),
                }
            });
        }
    }

    pub(crate) fn of(&self, resource: &Resource) -> &Folder {
        match resource {
            Resource::Session(_) => &self.home,
            Resource::Key(_) | Resource::Vendor(_) | Resource::Directory(_) => &self.user,
        }
    }

    /// Removes lock files of keys that were unused for this long; returns how many. Blocks.
    pub(crate) fn sweep(&self, unused_for: Duration, most: usize) -> Result<usize, Errno> {
        self.user.sweep(unused_for, most)
    }

    /// Every lock that is held now. Blocks for some milliseconds.
    pub(crate) fn held(&self) -> Result<Vec<LockSeen>, Errno> {
        let mut all = self.user.locks()?;
        if self.user.path() != self.home.path() {
            all.extend(self.home.locks()?);
        }
        Ok(all)
    }

    /// Takes every lock of a run, or none.
    fn reserve(&self, wanted: &LocksWanted) -> Result<Vec<Reserved>, LocksRefused> {
        let request = wanted.request();
        let mut guards = Vec::new();
        for resource in wanted.resources() {
            let folder = self.of(&resource);
            match folder.try_acquire(&resource, &request) {
                Ok(guard) => guards.push((folder.clone(), guard)),
                Err(error) => return Err(refused(resource, error)),
            }
        }
        // Looked at under its lock.
        if let Some(directory) = wanted.directory.as_ref().filter(|directory| has_link(directory)) {
            return Err(LocksRefused::Hopeless(another(directory)));
        }
        Ok(guards)
    }

    /// The holder of a resource, if there is one. Takes no lock; blocks.
    pub(crate) fn holder_of(&self, resource: &Resource) -> Option<HolderSeen> {
        self.of(resource).holder_of(resource).ok().flatten().map(|lock| seen(&lock))
    }

    /// The holder of a session's own lock that does not answer, if there is one. Takes no lock; blocks.
    pub(crate) fn silent(&self, name: &str) -> Option<Unended> {
        let resource = Resource::Session(SessionName::new(name).ok()?);
        let lock = self.of(&resource).holder_of(&resource).ok().flatten()?;
        // The record names the agent, which is a child of its shim.
        let agent = lock.holder.identity.map(|identity| identity.pid);
        let shim = agent
            .into_iter()
            .flat_map(|agent| [Some(agent), proc::stat::parent(agent)])
            .flatten()
            .find(is_shim);
        Some(if shim.is_some() { Unended::Silent { shim } } else { undying(&lock) })
    }

    /// Takes the session's own lock and releases it: then no shim is alive, and nothing of its last run. All
    /// other locks of that run are marked as free.
    pub(crate) fn prove_absent(&self, lost: &Lost) -> Result<(), Box<LocksRefused>> {
        let Ok(session) = SessionName::new(&lost.name) else { return Ok(()) };
        let resource = Resource::Session(session);
        let request = Request { reason: Some("looking for a shim".into()), ..Request::default() };
        match self.of(&resource).try_acquire(&resource, &request) {
            Ok(guard) => {
                // Under the lock, so that no holder has them. What cannot be removed now is met by the next
                // look.
                _ = pinfold_shim::client::sweep(&lost.listen);
                lost_in(&guard.release());
            }
            Err(error) => return Err(Box::new(refused(resource, error))),
        }
        if let Some(run) = lost.run.as_ref().and_then(|run| RunName::new(run.as_str()).ok())
            && let Err(errno) = self.user.mark_ended(&run)
        {
            warn!(%run, "its locks could not be marked as free: {errno}");
        }
        Ok(())
    }

    /// Ends the holder of the session's own lock, with its whole tree. Blocks.
    pub(crate) fn end_holder(&self, name: &str) -> HolderEnded {
        let Ok(session) = SessionName::new(name) else { return HolderEnded::Gone };
        let resource = Resource::Session(session);
        match self.of(&resource).end_holder(&resource) {
            Ok(EndOutcome::NobodyHeld | EndOutcome::Free { .. } | EndOutcome::PassedOn { .. }) => {
                HolderEnded::Gone
            }
            Ok(EndOutcome::StillHeld { lock, .. }) => HolderEnded::Still(undying(&lock)),
            Err(error) => {
                warn!(%resource, "its holder could not be ended: {}", chain(&error));
                HolderEnded::Still(Unended::Silent { shim: None })
            }
        }
    }

    /// Blocks on a thread of its own until the resource is free, then reports it. The kernel wakes it.
    pub(crate) fn wait_for(
        &self,
        resource: Resource,
        then: impl FnOnce() + Send + 'static,
    ) -> io::Result<Arc<Cancel>> {
        let cancel = Arc::new(Cancel::new()?);
        let (folder, token) = (self.of(&resource).clone(), Arc::clone(&cancel));
        std::thread::Builder::new().name("wait".into()).stack_size(128 << 10).spawn(move || {
            let request = Request { reason: Some("waiting for a run's turn".into()), ..Request::default() };
            if let Ok(guard) = folder.acquire_cancellable(&resource, &request, None, &token) {
                lost_in(&guard.release());
            }
            if !token.is_cancelled() {
                then();
            }
        })?;
        Ok(cancel)
    }
}

/// Whether a path that was resolved once leads through a symbolic link by now.
fn has_link(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    opened.err() == Some(Errno::LOOP)
}

/// The directory of a session is no longer the one it was given.
pub(crate) fn another(directory: &Path) -> CannotStart {
    let shown = directory.display();
    let text = format!("the directory is another one: a symbolic link in `{shown}` leads elsewhere");
    CannotStart::Refused(StartRefused { errno: Some(Errno::LOOP.raw_os_error()), text })
}

fn refused(resource: Resource, error: AcquireError) -> LocksRefused {
    match error {
        AcquireError::Busy(busy) => {
            let run = busy.lock.as_ref().and_then(|lock| lock.run.as_ref()).map(ToString::to_string);
            LocksRefused::Busy { resource, holder: Some(Box::new(holder(&busy))), run }
        }
        AcquireError::AlreadyYours { .. } => LocksRefused::Busy { resource, holder: None, run: None },
        AcquireError::Directory(DirectoryError::Missing { path }) => {
            LocksRefused::Hopeless(CannotStart::DirectoryMissing { directory: path.display().to_string() })
        }
        AcquireError::Directory(DirectoryError::NotPermitted { path, .. }) => {
            LocksRefused::Hopeless(CannotStart::DirectoryClosed { directory: path.display().to_string() })
        }
        AcquireError::Directory(error @ DirectoryError::NotADirectory { .. }) => {
            let (errno, text) = (Some(Errno::NOTDIR.raw_os_error()), error.to_string());
            LocksRefused::Hopeless(CannotStart::Refused(StartRefused { errno, text }))
        }
        AcquireError::NotAFile { .. } | AcquireError::Folder(_) => {
            LocksRefused::Hopeless(CannotStart::LocksUnusable { problem: chain(&error) })
        }
        AcquireError::Directory(_)
        | AcquireError::File { .. }
        | AcquireError::Cancelled { .. }
        | AcquireError::Restless { .. }
        | AcquireError::Identity(_) => LocksRefused::system(&error),
    }
}

/// A lock is released whatever fails; a failure is logged.
pub(crate) fn lost_in(receipt: &pinfold_lock::Receipt) {
    if let Some(trouble) = &receipt.trouble {
        warn!(resource = %receipt.resource, "it was given back, but {}", chain(trouble));
    }
}

/// The errno behind an error of our own, if it is one that passes. A fault in our own files is for a person
/// to fix, and no session has to be started by hand after that.
pub(crate) fn shortage_in(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let errno = |error: &(dyn std::error::Error + 'static)| {
        let own = error.downcast_ref::<Errno>().map(|errno| errno.raw_os_error());
        own.or_else(|| error.downcast_ref::<io::Error>()?.raw_os_error())
    };
    passing(chain.filter_map(errno).last())
}

/// The errno, if its cause may go away.
pub(crate) fn passing(errno: Option<i32>) -> Option<i32> {
    match start::prospect(errno) {
        Prospect::Better => errno,
        Prospect::Never => None,
    }
}

fn holder(busy: &Busy) -> HolderSeen {
    busy.lock.as_ref().map_or_else(
        || HolderSeen {
            resource: busy.resource.clone(),
            pid: None,
            command: None,
            session: None,
            since: None,
        },
        seen,
    )
}

fn seen(lock: &LockSeen) -> HolderSeen {
    let command = match (lock.reason.as_deref(), &lock.session) {
        (Some(ALONE), Some(session)) => format!("pinfold run {session} -- {}", lock.holder.command),
        (_, _) => lock.holder.command.clone(),
    };
    HolderSeen {
        resource: lock.resource.clone(),
        pid: lock.holder.identity.map(|identity| identity.pid),
        command: Some(command).filter(|command| !command.is_empty()),
        session: lock.session.clone(),
        since: lock.since_ms.and_then(|ms| i64::try_from(ms).ok()).map(Wall),
    }
}

impl LocksRefused {
    /// The system's error while the locks were being taken.
    pub(crate) fn system(error: &(dyn std::error::Error + 'static)) -> LocksRefused {
        let text = format!("its locks could not be taken: {}", chain(error));
        LocksRefused::System(StartRefused { errno: shortage_in(error), text })
    }

    /// The event for the core.
    pub(crate) fn event(&self) -> pinfold_core::RunEvent {
        use pinfold_core::RunEvent;
        use pinfold_core::event::StartFailure;
        match self {
            LocksRefused::Busy { holder, .. } => RunEvent::LockBusy { holder: holder.clone() },
            LocksRefused::Hopeless(cause) => RunEvent::StartFailed(StartFailure::Hopeless(cause.clone())),
            LocksRefused::System(refused) => RunEvent::StartFailed(StartFailure::Refused(refused.clone())),
        }
    }
}

/// The event that wakes a session that waited.
pub(crate) const HOLDER_GONE: Event = Event::HolderGone;
