//! Memory of runs that have a limit: which runs are watched, and what the core is told of them.

use super::Engine;
use super::running::{LiveRun, RunMemory};
use crate::memory::{MeterReading, RunWatch, Subject, Without};
use pinfold_core::{RunEvent, RunNumber};
use pinfold_store::SessionId;

/// What the engine keeps for measuring and containing runs.
pub(crate) struct MemorySetup {
    pub(crate) without: Without,
}

impl MemorySetup {
    pub(super) fn new() -> MemorySetup {
        MemorySetup { without: Without::from_environment() }
    }
}

impl Engine {
    /// Watches the live run if it has a limit, and no other run.
    pub(super) fn follow_memory(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let limit = tracked.session.spec().memory_limit;
        let wanted = tracked.session.life().at_work().zip(limit);
        let Some(run) = &mut tracked.run else { return };
        if wanted.is_some() == (run.memory != RunMemory::Unwatched) {
            return;
        }
        let Some(((_, process, _), limit)) = wanted else {
            run.memory = RunMemory::Unwatched;
            return self.ports.memory.forget((id, run.number));
        };
        run.memory = RunMemory::Watched { swap: None };
        let run = run.number;
        let subject = Subject { agent: process.pid, shim: tracked.shim.as_ref().map(|shim| shim.pid) };
        // A reload counts from the next run on: this one keeps its sampling interval.
        let sample = self.config.settings(&tracked.definition.agent, &tracked.name).memory_sample;
        self.ports.memory.watch((id, run), RunWatch { subject, limit, sample });
    }

    pub(super) fn memory_read(&mut self, id: SessionId, run: RunNumber, read: MeterReading) {
        let live = self.sessions.get_mut(&id).and_then(|tracked| tracked.live(run));
        let Some(LiveRun { memory: RunMemory::Watched { swap }, .. }) = live else { return };
        *swap = Some(read.swap);
        self.of_run(id, run, RunEvent::MemoryRead { reading: read.reading, source: read.source });
    }

    /// Reads the exact memory of a run before anything is decided against it.
    pub(super) fn confirm_memory(&mut self, id: SessionId, run: RunNumber) {
        self.ports.memory.confirm((id, run));
    }
}
