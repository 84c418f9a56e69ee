//! Watches the files in which programs on a terminal say what they do. The kernel reports changes, nothing
//! polls.
//!
//! One task and one inotify instance serve all runs: a user may have 128 instances, and more sessions than
//! that. The task is started for the first run that is watched.

use super::async_fd;
use super::memory::Watched;
use crate::define::id_files::{IdFileReading, IdFiles};
use crate::define::preset::IdFile;
use rustix::fs::inotify::{self, CreateFlags, Event, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tracing::warn;

/// Reports what the programs of runs say about themselves, until told otherwise: at once, and whenever it
/// changes.
pub(crate) trait IdFileWatch {
    /// The first report comes whatever is found, even if nothing can be watched.
    fn watch(&mut self, run: Watched, files: IdFiles, agent: u32);

    fn forget(&mut self, run: Watched);
}

/// Where reports go.
type Tell = Arc<dyn Fn(Watched, Option<IdFile>) + Send + Sync>;

/// A task that watches.
pub(crate) struct IdFileTask {
    tell: Tell,
    orders: Option<mpsc::UnboundedSender<Order>>,
}

enum Order {
    Watch(Watched, Box<IdFiles>, u32),
    Forget(Watched),
}

impl IdFileTask {
    pub(crate) fn new(tell: impl Fn(Watched, Option<IdFile>) + Send + Sync + 'static) -> IdFileTask {
        IdFileTask { tell: Arc::new(tell), orders: None }
    }
}

impl IdFileWatch for IdFileTask {
    fn watch(&mut self, run: Watched, files: IdFiles, agent: u32) {
        let orders = self.orders.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            tokio::spawn(serve(Arc::clone(&self.tell), receiver));
            sender
        });
        _ = orders.send(Order::Watch(run, Box::new(files), agent));
    }

    fn forget(&mut self, run: Watched) {
        if let Some(orders) = &self.orders {
            _ = orders.send(Order::Forget(run));
        }
    }
}

/// A run that is watched.
struct Entry {
    files: IdFiles,
    agent: u32,
    /// The kernel's number for its folder, or for the nearest existing one above it.
    folder: Option<i32>,
    /// Whether the last report came from the agent's own file.
    own: bool,
    told: Option<Option<IdFile>>,
}

struct Watcher {
    tell: Tell,
    kernel: Option<AsyncFd<OwnedFd>>,
    runs: BTreeMap<Watched, Entry>,
}

/// Where something happened: a folder, and the name of a file in it.
type Changes = BTreeSet<(i32, Option<OsString>)>;

async fn serve(tell: Tell, mut orders: mpsc::UnboundedReceiver<Order>) {
    let kernel = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
    let kernel = kernel.map_err(io::Error::from).and_then(async_fd::watch);
    let kernel = kernel.inspect_err(|error| warn!("what programs say of themselves is not watched: {error}"));
    let mut watcher = Watcher { tell, kernel: kernel.ok(), runs: BTreeMap::new() };
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                None => return,
                Some(Order::Watch(run, files, agent)) => {
                    let entry = Entry { files: *files, agent, folder: None, own: false, told: None };
                    watcher.runs.insert(run, entry);
                    watcher.look(vec![run]).await;
                }
                Some(Order::Forget(run)) => watcher.forget(run),
            },
            changes = changed(watcher.kernel.as_ref()) => {
                let affected = watcher.affected(&changes);
                watcher.look(affected).await;
            }
        }
    }
}

impl Watcher {
    fn forget(&mut self, run: Watched) {
        let folder = self.runs.remove(&run).and_then(|entry| entry.folder);
        self.leave(folder);
    }

    /// Stops watching a folder that no run needs any more.
    fn leave(&self, folder: Option<i32>) {
        let Some(folder) = folder.filter(|_| self.runs.values().all(|entry| entry.folder != folder)) else {
            return;
        };
        if let Some(kernel) = &self.kernel {
            // The kernel stops watching a removed folder by itself.
            _ = inotify::remove_watch(kernel, folder);
        }
    }

    /// The runs that a change may concern: of many in one folder only the one whose file it is.
    fn affected(&self, changes: &Changes) -> Vec<Watched> {
        let about = |entry: &Entry| {
            let own = entry.files.file_of(entry.agent).file_name().map(ToOwned::to_owned);
            changes.iter().any(|(folder, name)| {
                entry.folder == Some(*folder) && (name.is_none() || *name == own || !entry.own)
            })
        };
        self.runs.iter().filter(|(_, entry)| about(entry)).map(|(run, _)| *run).collect()
    }

    /// Reads what runs say and reports what is new. Watches first, so that a change meanwhile is noticed.
    async fn look(&mut self, runs: Vec<Watched>) {
        for run in &runs {
            self.place(*run);
        }
        let places = runs.iter().filter_map(|run| {
            let entry = self.runs.get(run)?;
            Some((*run, entry.files.clone(), entry.agent))
        });
        let places: Vec<_> = places.collect();
        let read = tokio::task::spawn_blocking(move || {
            let read = |(run, files, agent): (Watched, IdFiles, u32)| (run, files.of_agent(agent));
            places.into_iter().map(read).collect::<Vec<_>>()
        });
        for (run, reading) in read.await.unwrap_or_default() {
            self.take(run, reading);
        }
    }

    fn place(&mut self, run: Watched) {
        let (Some(kernel), Some(entry)) = (&self.kernel, self.runs.get_mut(&run)) else { return };
        let found = entry.files.folder.ancestors().find_map(|folder| add(kernel, folder));
        let before = std::mem::replace(&mut entry.folder, found);
        if before != found {
            self.leave(before);
        }
    }

    fn take(&mut self, run: Watched, reading: io::Result<(u32, IdFileReading)>) {
        let Some(entry) = self.runs.get_mut(&run) else { return };
        let (pid, reading) = reading.unwrap_or_else(|error| {
            warn!("what a program says of itself cannot be read: {error}");
            (entry.agent, IdFileReading::Absent)
        });
        let said = match reading {
            IdFileReading::Absent => None,
            IdFileReading::Said(said) => Some(said),
            // It is complete at the next change; until then the last report counts, but the first one is not
            // held back.
            IdFileReading::Torn => entry.told.clone().flatten(),
        };
        entry.own = said.is_some() && pid == entry.agent;
        if entry.told.as_ref() != Some(&said) {
            entry.told = Some(said.clone());
            (self.tell)(run, said);
        }
    }
}

/// Watches a folder, if it exists.
fn add(kernel: &AsyncFd<OwnedFd>, folder: &Path) -> Option<i32> {
    let flags = WatchFlags::CLOSE_WRITE
        | WatchFlags::CREATE
        | WatchFlags::MOVED_TO
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR;
    match inotify::add_watch(kernel, folder, flags) {
        Ok(number) => Some(number),
        Err(Errno::NOENT | Errno::NOTDIR) => None,
        Err(errno) => {
            warn!("{} cannot be watched: {errno}", folder.display());
            None
        }
    }
}

/// The next changes; several are reported together.
async fn changed(kernel: Option<&AsyncFd<OwnedFd>>) -> Changes {
    let Some(kernel) = kernel else { return std::future::pending().await };
    loop {
        let Ok(mut ready) = kernel.readable().await else { return std::future::pending().await };
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut reader = Reader::new(kernel, &mut buffer);
        let mut changes = Changes::new();
        while let Ok(event) = reader.next() {
            changes.insert(place_of(&event));
        }
        ready.clear_ready();
        if !changes.is_empty() {
            return changes;
        }
    }
}

fn place_of(event: &Event<'_>) -> (i32, Option<OsString>) {
    let name = event.file_name().map(|name| std::ffi::OsStr::from_bytes(name.to_bytes()).to_owned());
    (event.wd(), name)
}

#[cfg(test)]
mod tests;
