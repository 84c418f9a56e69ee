//! Assembles an engine, with the ports of this machine or with others.

use super::audit::Audit;
use super::{Closing, Engine, Parts, StoreHealth, memory};
use crate::engine::deadlines::Deadlines;
use crate::engine::feed::Feed;
use crate::engine::input::{Handle, LoopInput};
use crate::metrics::Metrics;
use crate::ports::Ports;
use crate::ports::clock::{Alarm, MachineClock};
use crate::ports::files::DiskFiles;
use crate::ports::id_files::IdFileTask;
use crate::ports::journal::StoreJournal;
use crate::ports::locks::MachineLocks;
use crate::ports::memory::MemoryThread;
use crate::ports::shims::ShimProcesses;
use crate::ports::tapes::DiskTapes;
use pinfold_shim::nursery::Nursery;
use pinfold_store::Solo;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Instant;
use tokio::sync::{Semaphore, watch};

/// How many locks are taken and shims started at once: more would only slow all of them down.
const STARTS_AT_ONCE: usize = 8;

impl Engine {
    /// An engine for this machine.
    pub(crate) fn new(parts: Parts) -> io::Result<Engine> {
        let (metrics, alarm) = (Arc::<Metrics>::default(), Arc::new(Alarm::new()?));
        let (memory, places) = (memory::MemorySetup::new(), Arc::new(Semaphore::new(STARTS_AT_ONCE)));
        let ports = Ports {
            clock: Box::new(MachineClock::new(Arc::clone(&alarm))),
            locks: Box::new(MachineLocks::new(
                parts.folders.clone(),
                Arc::clone(&places),
                Arc::clone(&metrics),
            )),
            shims: Box::new(shims(&parts, places)),
            tapes: Box::new(DiskTapes::default()),
            journal: Box::new(journal(&parts)),
            memory: Box::new(watch_memory(&memory, &parts.handle)),
            id_files: Box::new(watch_id_files(&parts.handle)),
            files: Arc::new(DiskFiles::default()),
        };
        let engine = Engine::with(parts, ports);
        Ok(Engine { memory, metrics, alarm: Some(alarm), ..engine })
    }

    /// An engine that acts on these ports; its owner says when a deadline has passed.
    pub(crate) fn with(parts: Parts, ports: Ports) -> Engine {
        Engine {
            socket: parts.socket,
            values: parts.home.values(),
            home: parts.home,
            sessions: BTreeMap::new(),
            names: BTreeMap::new(),
            damaged: BTreeMap::new(),
            unknown: Vec::new(),
            strangers: 0,
            health: StoreHealth::default(),
            generation: parts.generation,
            started: Instant::now(),
            store: parts.store,
            ports,
            alarm: None,
            alone: parts.alone,
            last_event: watch::Sender::new(parts.last_event),
            feed: Feed::default(),
            shim_program: parts.shim_program,
            limits: parts.limits,
            umask: parts.umask,
            config: parts.config,
            config_refused: None,
            deadlines: Deadlines::default(),
            gathered: None,
            together: RefCell::default(),
            unswept: BTreeSet::new(),
            sweep_at: None,
            accounts: super::accounts::Accounts::default(),
            memory: memory::MemorySetup::new(),
            folders: parts.folders,
            handle: parts.handle,
            links: 0,
            calm_at: None,
            audit: Audit::default(),
            audit_awaited: Weak::new(),
            removing: Vec::new(),
            closing: Closing::No,
            handed_over: false,
            closed_by: None,
            metrics: Arc::default(),
            early: BTreeMap::new(),
            waiting: Vec::new(),
            #[cfg(test)]
            witness: None,
        }
    }
}

fn journal(parts: &Parts) -> StoreJournal {
    let owners = Solo::new(&parts.store, Rc::clone(&parts.reader), parts.generation);
    StoreJournal::new(owners, parts.store.clone(), Rc::clone(&parts.reader))
}

fn shims(parts: &Parts, places: Arc<Semaphore>) -> ShimProcesses {
    let (program, words) = parts.shim_program.clone();
    let crash_at = std::env::var_os(pinfold_shim::crash::VARIABLE);
    let nursery = parts.alone.is_none().then(|| Arc::new(Nursery::new(program, words, crash_at)));
    ShimProcesses::new(parts.folders.clone(), nursery, places)
}

fn watch_id_files(handle: &Handle) -> IdFileTask {
    let handle = handle.clone();
    IdFileTask::new(move |(id, run), filed| handle.tell(LoopInput::Filed { id, run, filed }))
}

fn watch_memory(memory: &memory::MemorySetup, handle: &Handle) -> MemoryThread {
    let handle = handle.clone();
    MemoryThread::new(memory.without, move |(id, run), read| handle.tell(LoopInput::Memory { id, run, read }))
}
