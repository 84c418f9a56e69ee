//! What a starting daemon finds of one session: its shim, its exit records, its lock.

use crate::define::home::Home;
use crate::ports::locks::{Folders, Lost};
use crate::ports::shims::{Found, ShimUp, anywhere, find};
use pinfold_core::event::{Machine, ShimSeen};
use pinfold_core::guest::{self, GuestSeen};
use pinfold_core::unended::Unended;
use pinfold_core::{Ended, RunNumber, World};
use pinfold_shim::{Exited, GuestStanding, Keeping, Presence, StartFailure};
use pinfold_store::SessionId;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A live shim listens within this time after its daemon has gone, or counts as mute for now.
const LISTENS: Duration = Duration::from_secs(2);
/// The interval between attempts, on a pool thread: a shim cannot announce that it listens except to a daemon
/// that connects.
const AGAIN: Duration = Duration::from_millis(2);
/// The list of all sockets is long: this is the shortest interval between two reads.
const ELSEWHERE: Duration = Duration::from_millis(250);

/// What was found of a session.
pub(crate) struct Seen {
    pub(crate) world: World,
    /// Starts that were refused, by the records.
    pub(crate) failures: Vec<(RunNumber, StartFailure)>,
    pub(crate) shim: Option<ShimUp>,
    /// The holder of the lock, if it does not answer.
    pub(crate) silent: Option<Unended>,
}

impl Seen {
    pub(crate) fn of(machine: Machine, shim: ShimSeen, records: Vec<Exited>) -> Seen {
        let failures = records.iter().filter_map(|exited| Some((exited.run, exited.failure?))).collect();
        let exits = records.into_iter().map(|exited| (exited.run, ended(exited))).collect();
        Seen { world: World::new(machine, shim, exits), failures, shim: None, silent: None }
    }

    /// Nothing was learned.
    pub(crate) fn nothing(machine: Machine) -> Seen {
        Seen::of(machine, ShimSeen::Mute, Vec::new())
    }
}

/// The session to look at.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) id: SessionId,
    pub(crate) lost: Lost,
    /// Whether its record says that something of it may be alive.
    pub(crate) may_live: bool,
}

/// A look at what exists of a session.
pub(crate) struct Look {
    pub(crate) home: Home,
    pub(crate) generation: u64,
    pub(crate) machine: Machine,
    pub(crate) subject: Subject,
    /// How long to wait first.
    pub(crate) after: Duration,
}

/// Looks. Blocks, and may end what is left of a run whose shim was lost.
pub(crate) fn observe(folders: &Folders, look: &Look) -> Seen {
    let Look { home, generation, machine, subject, .. } = look;
    let (generation, machine) = (*generation, *machine);
    let records = || pinfold_shim::record::read(&home.records(subject.id)).unwrap_or_default();
    let before = records();
    match seek(home, folders, generation, subject) {
        Found::Shim(up) => {
            let shim = match up.welcome.keeping {
                Keeping::Standing => ShimSeen::Standing,
                Keeping::Running { run, process, .. } => ShimSeen::Keeping { run, process },
                // During the look it was not known yet whether exec succeeds: ask again later.
                Keeping::Starting { .. } => ShimSeen::Mute,
            };
            let guest = up.welcome.guest.map(guest_seen);
            let shim_up = if shim == ShimSeen::Mute { None } else { Some(up.up()) };
            let seen = Seen::of(machine, shim, before);
            Seen { shim: shim_up, world: World { guest, ..seen.world }, ..seen }
        }
        Found::Mute => {
            let silent = folders.silent(&subject.lost.name);
            Seen { silent, ..Seen::of(machine, ShimSeen::Mute, before) }
        }
        Found::Nobody => Seen::of(machine, ShimSeen::Nobody, records()),
    }
}

/// Looks for a shim until there is one, or certainly none. A shim that has just lost its daemon is about to
/// listen.
fn seek(home: &Home, folders: &Folders, generation: u64, subject: &Subject) -> Found {
    let begun = Instant::now();
    let mut elsewhere = begun;
    loop {
        match first_at(&home.shim_sockets(subject.id), generation) {
            Found::Nobody if !subject.may_live || folders.prove_absent(&subject.lost).is_ok() => {
                return Found::Nobody;
            }
            Found::Nobody => {}
            // Whether exec succeeds is known in a moment; requests to the session wait that long.
            Found::Shim(up) if up.is_starting() && begun.elapsed() < LISTENS => {
                drop(up);
                std::thread::sleep(AGAIN);
                continue;
            }
            found @ (Found::Mute | Found::Shim(_)) => return found,
        }
        if Instant::now() >= elsewhere {
            if let found @ (Found::Mute | Found::Shim(_)) = first_at(&anywhere(subject.id), generation) {
                return found;
            }
            elsewhere = Instant::now() + ELSEWHERE;
        }
        if begun.elapsed() >= LISTENS {
            return Found::Mute;
        }
        std::thread::sleep(AGAIN);
    }
}

/// The first one found at several sockets.
fn first_at(sockets: &[PathBuf], generation: u64) -> Found {
    let found = sockets.iter().map(|socket| find(socket, generation));
    found.into_iter().find(|found| !matches!(found, Found::Nobody)).unwrap_or(Found::Nobody)
}

/// What a shim reports of its run's guest.
pub(crate) fn guest_seen(standing: GuestStanding) -> GuestSeen {
    let presence = match standing.presence {
        Presence::Here(pid) => guest::Presence::Here { pid },
        Presence::Gone(exit) => guest::Presence::Gone(exit),
    };
    GuestSeen { number: standing.guest, presence }
}

fn ended(exited: Exited) -> Ended {
    Ended { at: Some(exited.at), ..exited.ended }
}
