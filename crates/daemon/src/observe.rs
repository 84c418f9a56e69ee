//! What a daemon that starts finds of one session: its shim, its exit records, its lock.

use crate::home::Home;
use crate::locks::Folders;
use crate::shims::{Found, ShimUp, find};
use pinfold_core::event::{Machine, ShimSeen};
use pinfold_core::{Ended, RunNumber, World};
use pinfold_shim::{Exited, Keeping, StartFailure};
use pinfold_store::SessionId;
use std::time::{Duration, Instant};

/// A shim that lives listens within this when its daemon has gone, or counts as mute for now.
const LISTENS: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(2);

/// What was found.
pub(crate) struct Seen {
    pub(crate) world: World,
    /// Starts that were refused, by the records.
    pub(crate) failures: Vec<(RunNumber, StartFailure)>,
    pub(crate) shim: Option<ShimUp>,
}

impl Seen {
    fn of(machine: Machine, shim: ShimSeen, records: Vec<Exited>) -> Seen {
        let failures = records.iter().filter_map(|exited| Some((exited.run, exited.failure?))).collect();
        let exits = records.into_iter().map(|exited| (exited.run, ended(exited))).collect();
        Seen { world: World::new(machine, shim, exits), failures, shim: None }
    }

    /// Nothing was learned.
    pub(crate) fn nothing(machine: Machine) -> Seen {
        Seen::of(machine, ShimSeen::Mute, Vec::new())
    }
}

/// What is to be looked at.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) id: SessionId,
    pub(crate) name: String,
    /// Whether its record says that something of it may live.
    pub(crate) may_live: bool,
}

/// Looks. Blocks, and may end what is left of a run whose shim was lost.
pub(crate) fn observe(
    home: &Home,
    folders: &Folders,
    generation: u64,
    machine: Machine,
    subject: &Subject,
) -> Seen {
    let records = || pinfold_shim::record::read(&home.records(subject.id)).unwrap_or_default();
    let before = records();
    match seek(home, folders, generation, subject) {
        Found::Shim(up) => {
            let shim = match up.welcome.keeping {
                Keeping::Standing => ShimSeen::Standing,
                Keeping::Running { run, process, .. } => ShimSeen::Keeping { run, process },
                // Whether exec succeeds is not known yet: ask again in a moment.
                Keeping::Starting { .. } => ShimSeen::Mute,
            };
            let shim_up = if shim == ShimSeen::Mute { None } else { Some(*up) };
            Seen { shim: shim_up, ..Seen::of(machine, shim, before) }
        }
        Found::Mute => Seen::of(machine, ShimSeen::Mute, before),
        Found::Nobody => Seen::of(machine, ShimSeen::Nobody, records()),
    }
}

/// Looks for a shim until there is one, or none for certain. One that has just lost its daemon is about to listen.
fn seek(home: &Home, folders: &Folders, generation: u64, subject: &Subject) -> Found {
    let until = Instant::now() + LISTENS;
    loop {
        match find(&home.shim_socket(subject.id), generation) {
            Found::Nobody if !subject.may_live || folders.prove_absent(&subject.name).is_ok() => {
                return Found::Nobody;
            }
            Found::Nobody if Instant::now() < until => std::thread::sleep(AGAIN),
            Found::Nobody => return Found::Mute,
            found @ (Found::Mute | Found::Shim(_)) => return found,
        }
    }
}

fn ended(exited: Exited) -> Ended {
    Ended { at: Some(exited.at), ..exited.ended }
}
