//! Shims that are processes: pool threads do what blocks, few at a time.

use super::beside::beside;
use super::birth::open;
use super::cradle::Processes;
use super::{Birth, ShimUp, Shims};
use crate::define::home::Home;
use crate::ports::Then;
use crate::ports::locks::{Folders, RunLocks};
use crate::ports::shims::observe::{SessionLook, SessionSeen, observe};
use crate::ports::shims::spool;
use crate::ports::shims::strangers::{self, There};
use pinfold_core::RunNumber;
use pinfold_core::life::StartRefused;
use pinfold_core::unended::Survivor;
use pinfold_kernel::proc::schedule::Schedule;
use pinfold_shim::Exited;
use pinfold_shim::log::LogEntry;
use pinfold_shim::nursery::Nursery;
use pinfold_shim::turn::Turn;
use pinfold_store::SessionId;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tracing::Span;

/// How many descriptors stay free: for a connection, identifying its caller, and the files that are read to
/// answer. A daemon that spent its last one on a session could neither show nor stop any.
const SPARE: usize = 12;

/// Starts real shims, and finds them.
pub(crate) struct ShimProcesses {
    folders: Folders,
    /// The process that forks shims; `None` if there is only one shim.
    nursery: Option<Arc<Nursery>>,
    /// Limits how many locks are taken and shims started at once.
    places: Arc<Semaphore>,
}

impl ShimProcesses {
    pub(crate) fn new(
        folders: Folders,
        nursery: Option<Arc<Nursery>>,
        places: Arc<Semaphore>,
    ) -> ShimProcesses {
        ShimProcesses { folders, nursery, places }
    }
}

impl Shims for ShimProcesses {
    fn open(&self, birth: Birth, held: Box<dyn RunLocks>, then: Then<Result<Box<ShimUp>, StartRefused>>) {
        let (nursery, places) = (self.nursery.clone(), Arc::clone(&self.places));
        let about = Span::current();
        tokio::spawn(async move {
            let _place = places.acquire_owned().await;
            let Birth { opening, generation, settled, start } = birth;
            let open = move || {
                let cradle = Processes::new(opening, generation, nursery.as_deref());
                about.in_scope(|| spare().and_then(|()| open(&cradle, held, settled, start)))
            };
            let opened = tokio::task::spawn_blocking(open).await;
            let failed =
                |error: tokio::task::JoinError| StartRefused { errno: None, text: error.to_string() };
            then(opened.unwrap_or_else(|error| Err(failed(error))));
        });
    }

    fn observe(&self, look: SessionLook, then: Then<SessionSeen>) {
        let (folders, places) = (self.folders.clone(), Arc::clone(&self.places));
        tokio::spawn(async move {
            tokio::time::sleep(look.after).await;
            let _place = places.acquire_owned().await;
            let machine = look.machine;
            let seen = tokio::task::spawn_blocking(move || observe(&folders, &look)).await;
            // A look that failed says nothing about what exists.
            then(seen.unwrap_or_else(|_| SessionSeen::nothing(machine)));
        });
    }

    fn survivors(&self, shim: u32, then: Then<Vec<Survivor>>) {
        tokio::task::spawn_blocking(move || {
            then(
                pinfold_kernel::proc::tree::descendants(shim)
                    .into_iter()
                    .filter_map(pinfold_shim::survivor)
                    .collect(),
            );
        });
    }

    fn end_orphans(&self) {
        if let Some(nursery) = &self.nursery {
            nursery.end_orphans();
        }
    }

    fn find_socket(&self, _id: SessionId, sockets: Vec<PathBuf>, then: Then<Option<PathBuf>>) {
        tokio::task::spawn_blocking(move || {
            then(sockets.into_iter().find(|socket| std::fs::symlink_metadata(socket).is_ok()));
        });
    }

    fn strangers(&self, home: Home, kept: BTreeSet<String>, then: Then<There>) {
        tokio::task::spawn_blocking(move || then(strangers::look(&home, &kept)));
    }

    fn end_stranger(&self, id: String, socket: PathBuf, generation: u64, then: Then<()>) {
        tokio::task::spawn_blocking(move || {
            strangers::end(&socket, generation, &id);
            then(());
        });
    }

    fn records(&self, home: &Home, id: SessionId) -> Vec<Exited> {
        pinfold_shim::record::read(&home.records(id)).unwrap_or_default()
    }

    fn latest_turn(&self, home: &Home, id: SessionId) -> Option<Turn> {
        Turn::latest(&home.records(id))
    }

    fn tail(&self, home: &Home, id: SessionId, run: RunNumber, lines: usize) -> Vec<LogEntry> {
        pinfold_shim::log::tail(&home.log(id), lines, Some(run)).unwrap_or_default()
    }

    fn spool(&self, home: &Home, id: SessionId) -> Vec<u8> {
        spool::read(&home.spool(id)).unwrap_or_default()
    }

    fn beside(&self, shim: u32, agent: u32) -> Vec<(u32, String)> {
        beside(shim, agent)
    }

    fn ran(&self, shim: u32) -> Option<u64> {
        Schedule::of_process(shim).map(|schedule| schedule.ran)
    }
}

/// Whether there is room for a shim besides what people need.
fn spare() -> Result<(), StartRefused> {
    let one = |_| rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 0);
    let room: Result<Vec<_>, _> = (0..SPARE).map(one).collect();
    room.map(drop).map_err(|errno| StartRefused {
        errno: Some(errno.raw_os_error()),
        text: format!("no shim: {}", std::io::Error::from(errno)),
    })
}
