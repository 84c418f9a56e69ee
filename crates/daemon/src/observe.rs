//! What a daemon that starts finds of one session: its shim, its exit records, its lock.

use crate::home::Home;
use crate::locks::{Folders, Lost};
use crate::shims::{Found, ShimUp, find};
use pinfold_core::event::{Machine, ShimSeen};
use pinfold_core::{Ended, RunNumber, World};
use pinfold_shim::Keeping;
use pinfold_store::SessionId;
use std::time::{Duration, Instant};

/// A shim that lives listens within this when its daemon has gone, or counts as mute for now.
const LISTENS: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(2);

/// What was found.
pub(crate) struct Seen {
    pub(crate) world: World,
    pub(crate) shim: Option<ShimUp>,
}

impl Seen {
    /// Nothing was learned.
    pub(crate) fn nothing(machine: Machine) -> Seen {
        Seen { world: World { machine, shim: ShimSeen::Mute, exits: Vec::new() }, shim: None }
    }
}

/// What is to be looked at.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) id: SessionId,
    pub(crate) lost: Lost,
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
    let exits = exits(home, subject.id);
    match seek(folders, generation, subject) {
        Found::Shim(up) => {
            let shim = match up.welcome.keeping {
                Keeping::Standing => ShimSeen::Standing,
                Keeping::Running { run, process, .. } => ShimSeen::Keeping { run, process },
                // Whether exec succeeds is not known yet: ask again in a moment.
                Keeping::Starting { .. } => ShimSeen::Mute,
            };
            let shim_up = if shim == ShimSeen::Mute { None } else { Some(*up) };
            Seen { world: World { machine, shim, exits }, shim: shim_up }
        }
        Found::Mute => Seen { world: World { machine, shim: ShimSeen::Mute, exits }, shim: None },
        Found::Nobody => {
            let exits = crate::observe::exits(home, subject.id);
            Seen { world: World { machine, shim: ShimSeen::Nobody, exits }, shim: None }
        }
    }
}

/// Looks for a shim until there is one, or none for certain. One that has just lost its daemon is about to listen.
fn seek(folders: &Folders, generation: u64, subject: &Subject) -> Found {
    let until = Instant::now() + LISTENS;
    loop {
        match find(&subject.lost.listen, generation) {
            Found::Nobody if !subject.may_live || folders.prove_absent(&subject.lost).is_ok() => {
                return Found::Nobody;
            }
            Found::Nobody if Instant::now() < until => std::thread::sleep(AGAIN),
            Found::Nobody => return Found::Mute,
            found @ (Found::Mute | Found::Shim(_)) => return found,
        }
    }
}

fn exits(home: &Home, id: SessionId) -> Vec<(RunNumber, Ended)> {
    let records = pinfold_shim::record::read(&home.records(id)).unwrap_or_default();
    records.into_iter().map(|exited| (exited.run, exited.ended)).collect()
}
