//! The virtual machine room: processes, shims, locks and clocks. It obeys physics, not pinfold's rules.

use pinfold_core::event::{Machine, TurnEnd};
use pinfold_core::exit::{Ended, Exit};
use pinfold_core::{Boot, Jitter, MessageId, Now, RunNumber, Wall};
use std::collections::BTreeMap;
use std::time::Duration;

/// Sessions of one case; the first two want the same directory.
pub(crate) const SESSIONS: usize = 3;
pub(crate) const DIRECTORIES: usize = 2;

pub(crate) fn directory_of(session: usize) -> usize {
    session / 2
}

/// Who holds a lock, as the kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SimulatedHolder {
    #[default]
    Nobody,
    Daemon(usize),
    Shim(usize),
    /// A process that was to become a shim.
    Unborn(usize),
    Outsider,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct MachineRoom {
    pub(crate) wall: i64,
    pub(crate) boot: u64,
    /// Stands still while the machine sleeps.
    pub(crate) awake: u64,
    pub(crate) machine_restarted: bool,
    pub(crate) session_locks: [SimulatedHolder; SESSIONS],
    pub(crate) directory_locks: [SimulatedHolder; DIRECTORIES],
    pub(crate) shims: [Option<SimulatedShim>; SESSIONS],
    /// Whether a process survives of a tree whose shim was killed; the next grant must end it first.
    pub(crate) strays: [bool; SESSIONS],
    /// Exit records on disk.
    pub(crate) records: [Vec<(RunNumber, Ended)>; SESSIONS],
    /// The shim does not answer the next daemon at once.
    pub(crate) mute: [bool; SESSIONS],
    pub(crate) broken: [Option<super::script::SpawnFault>; SESSIONS],
    pub(crate) next_pid: u32,
    pub(crate) dice: u64,
}

/// One shim: with an agent, or keeping the locks over a gap.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedShim {
    pub(crate) agent: Option<SimulatedAgent>,
    pub(crate) idle_since: u64,
    pub(crate) last_run: RunNumber,
}

#[derive(Debug, Clone)]
pub(crate) struct SimulatedAgent {
    pub(crate) run: RunNumber,
    pub(crate) pid: u32,
    pub(crate) since_awake: u64,
    pub(crate) ends_at: Option<u64>,
    /// The message it was given, and whether it took it.
    pub(crate) turn: Option<(MessageId, bool)>,
    /// How its last turn ended: its shim keeps the output, so a new daemon can read it again.
    pub(crate) said: Option<(MessageId, TurnEnd)>,
    /// The deliveries it was given, so that each arrives only once.
    pub(crate) given: BTreeMap<MessageId, u64>,
    /// The pid of its guest, which ends with it.
    pub(crate) guest: Option<u32>,
    /// The number of its last guest.
    pub(crate) guests: u64,
}

impl MachineRoom {
    pub(crate) fn now(&mut self) -> Now {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Now { wall: Wall(self.wall), boot: Boot(self.boot), jitter: Jitter((self.dice >> 48) as u16) }
    }

    pub(crate) fn pass(&mut self, millis: u64) {
        self.wall += millis as i64;
        self.boot += millis;
        self.awake += millis;
    }

    pub(crate) fn suspend(&mut self, millis: u64) {
        self.wall += millis as i64;
        self.boot += millis;
    }

    /// Everything dies; only disks remember.
    pub(crate) fn reboot(&mut self) {
        self.boot = 1_000;
        self.awake = 1_000;
        self.machine_restarted = true;
        self.session_locks = [SimulatedHolder::Nobody; SESSIONS];
        self.directory_locks = [SimulatedHolder::Nobody; DIRECTORIES];
        self.shims = [const { None }; SESSIONS];
        self.strays = [false; SESSIONS];
    }

    pub(crate) fn machine(&self) -> Machine {
        if self.machine_restarted { Machine::Restarted } else { Machine::Same }
    }

    pub(crate) fn free(&mut self, holder: SimulatedHolder) {
        self.pass_on(holder, SimulatedHolder::Nobody);
    }

    pub(crate) fn pass_on(&mut self, from: SimulatedHolder, to: SimulatedHolder) {
        for lock in self.session_locks.iter_mut().chain(&mut self.directory_locks) {
            if *lock == from {
                *lock = to;
            }
        }
    }

    /// Takes the session's locks for the daemon; getting the flock ends what is left of the last run.
    pub(crate) fn reserve(&mut self, session: usize) -> bool {
        let directory = directory_of(session);
        let free = |holder: SimulatedHolder| {
            holder == SimulatedHolder::Nobody || holder == SimulatedHolder::Daemon(session)
        };
        if !free(self.session_locks[session]) || !free(self.directory_locks[directory]) {
            return false;
        }
        self.session_locks[session] = SimulatedHolder::Daemon(session);
        self.directory_locks[directory] = SimulatedHolder::Daemon(session);
        self.strays[session] = false;
        for (other, stray) in self.strays.iter_mut().enumerate() {
            if directory_of(other) == directory {
                *stray = false;
            }
        }
        true
    }

    pub(crate) fn reserved(&self, session: usize) -> bool {
        self.session_locks[session] == SimulatedHolder::Daemon(session)
    }

    /// The daemon hands its locks to a new shim.
    pub(crate) fn new_shim(&mut self, session: usize) {
        self.pass_on(SimulatedHolder::Daemon(session), SimulatedHolder::Shim(session));
        let idle_since = self.boot;
        self.shims[session] = Some(SimulatedShim { agent: None, idle_since, last_run: RunNumber(0) });
    }

    pub(crate) fn shim_leaves(&mut self, session: usize) {
        self.shims[session] = None;
        self.free(SimulatedHolder::Shim(session));
    }

    /// A session that has an agent, if there is one.
    pub(crate) fn with_agent(&self, number: u8) -> usize {
        let has = |session: usize| self.shims[session].as_ref().is_some_and(|shim| shim.agent.is_some());
        pick(number, has).unwrap_or(0)
    }

    pub(crate) fn agent(&mut self, session: usize) -> Option<&mut SimulatedAgent> {
        self.shims[session].as_mut()?.agent.as_mut()
    }

    /// The agent ends; its shim writes the record first.
    pub(crate) fn agent_ends(
        &mut self,
        session: usize,
        end: impl FnOnce(Duration) -> Ended,
    ) -> Option<(RunNumber, Ended)> {
        let (awake, boot) = (self.awake, self.boot);
        let shim = self.shims[session].as_mut()?;
        let agent = shim.agent.take()?;
        let ended = end(Duration::from_millis(awake - agent.since_awake));
        shim.idle_since = boot;
        shim.last_run = agent.run;
        self.records[session].push((agent.run, ended.clone()));
        Some((agent.run, ended))
    }

    /// kill -9 of a shim: its child dies with it, the locks are free, no record is written.
    pub(crate) fn kill_shim(&mut self, session: usize, leaves_stray: bool) -> Option<(RunNumber, Ended)> {
        let shim = self.shims[session].take()?;
        self.free(SimulatedHolder::Shim(session));
        let agent = shim.agent?;
        self.strays[session] = leaves_stray;
        let lived = Duration::from_millis(self.awake - agent.since_awake);
        Some((agent.run, Ended::new(Exit::ShimLost, lived)))
    }
}

/// The n-th of the sessions that fit.
pub(crate) fn pick(number: u8, fits: impl Fn(usize) -> bool) -> Option<usize> {
    let fitting: Vec<usize> = (0..SESSIONS).filter(|session| fits(*session)).collect();
    fitting.get(usize::from(number) % fitting.len().max(1)).copied()
}
