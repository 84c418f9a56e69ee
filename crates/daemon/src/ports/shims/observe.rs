//! What a starting daemon finds of one session: its shim, its exit records, its lock.

use crate::define::home::Home;
use crate::ports::locks::{Folders, Lost};
use crate::ports::shims::{FoundShim, ShimUp, anywhere, find};
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
pub(crate) struct SessionSeen {
    pub(crate) world: World,
    /// Starts that were refused, by the records.
    pub(crate) failures: Vec<(RunNumber, StartFailure)>,
    pub(crate) shim: Option<ShimUp>,
    /// The holder of the lock, if it does not answer.
    pub(crate) silent: Option<Unended>,
}

impl SessionSeen {
    pub(crate) fn of(machine: Machine, shim: ShimSeen, records: Vec<Exited>) -> SessionSeen {
        let failures = records.iter().filter_map(|exited| Some((exited.run, exited.failure?))).collect();
        let exits = records.into_iter().map(|exited| (exited.run, ended(exited))).collect();
        SessionSeen { world: World::new(machine, shim, exits), failures, shim: None, silent: None }
    }

    /// Nothing was learned.
    pub(crate) fn nothing(machine: Machine) -> SessionSeen {
        SessionSeen::of(machine, ShimSeen::Mute, Vec::new())
    }
}

/// The session to look at.
#[derive(Clone)]
pub(crate) struct LookSubject {
    pub(crate) id: SessionId,
    pub(crate) lost: Lost,
    /// Whether its record says that something of it may be alive.
    pub(crate) may_live: bool,
}

/// A look at what exists of a session.
pub(crate) struct SessionLook {
    pub(crate) home: Home,
    pub(crate) generation: u64,
    pub(crate) machine: Machine,
    pub(crate) subject: LookSubject,
    /// How long to wait first.
    pub(crate) after: Duration,
}

/// Looks. Blocks, and may end what is left of a run whose shim was lost.
pub(crate) fn observe(folders: &Folders, look: &SessionLook) -> SessionSeen {
    let SessionLook { home, generation, machine, subject, .. } = look;
    let (generation, machine) = (*generation, *machine);
    let records = || pinfold_shim::record::read(&home.records(subject.id)).unwrap_or_default();
    let before = records();
    match seek(home, folders, generation, subject) {
        FoundShim::Shim(up) => {
            let shim = match up.welcome.keeping {
                Keeping::Standing => ShimSeen::Standing,
                Keeping::Running { run, process, .. } => ShimSeen::Keeping { run, process },
                // During the look it was not known yet whether exec succeeds: ask again later.
                Keeping::Starting { .. } => ShimSeen::Mute,
            };
            let guest = up.welcome.guest.map(guest_seen);
            let shim_up = if shim == ShimSeen::Mute { None } else { Some(up.up()) };
            let seen = SessionSeen::of(machine, shim, before);
            SessionSeen { shim: shim_up, world: World { guest, ..seen.world }, ..seen }
        }
        FoundShim::Mute => {
            let silent = folders.silent(&subject.lost.name);
            SessionSeen { silent, ..SessionSeen::of(machine, ShimSeen::Mute, before) }
        }
        FoundShim::Nobody => SessionSeen::of(machine, ShimSeen::Nobody, records()),
    }
}

/// Looks for a shim until there is one, or certainly none. A shim that has just lost its daemon is about to
/// listen.
fn seek(home: &Home, folders: &Folders, generation: u64, subject: &LookSubject) -> FoundShim {
    let begun = Instant::now();
    let mut elsewhere = begun;
    loop {
        match first_at(&home.shim_sockets(subject.id), generation) {
            FoundShim::Nobody if !subject.may_live || folders.prove_absent(&subject.lost).is_ok() => {
                return FoundShim::Nobody;
            }
            FoundShim::Nobody => {}
            // Whether exec succeeds is known in a moment; requests to the session wait that long.
            FoundShim::Shim(up) if up.is_starting() && begun.elapsed() < LISTENS => {
                drop(up);
                std::thread::sleep(AGAIN);
                continue;
            }
            found @ (FoundShim::Mute | FoundShim::Shim(_)) => return found,
        }
        if Instant::now() >= elsewhere {
            if let found @ (FoundShim::Mute | FoundShim::Shim(_)) =
                first_at(&anywhere(subject.id), generation)
            {
                return found;
            }
            elsewhere = Instant::now() + ELSEWHERE;
        }
        if begun.elapsed() >= LISTENS {
            return FoundShim::Mute;
        }
        std::thread::sleep(AGAIN);
    }
}

/// The first one found at several sockets.
fn first_at(sockets: &[PathBuf], generation: u64) -> FoundShim {
    let found = sockets.iter().map(|socket| find(socket, generation));
    found.into_iter().find(|found| !matches!(found, FoundShim::Nobody)).unwrap_or(FoundShim::Nobody)
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
