//! The daemon's life, from its lock to its last event.

mod doorway;
mod only;
mod open_store;
mod retention;
mod socket_link;

use crate::crash;
use crate::define::account;
use crate::define::config::Config;
use crate::define::home::Home;
use crate::engine::input::{AgentsOnDown, Handle, LoopInput};
use crate::engine::{DaemonEnd, Engine, EngineFault, Parts, ResourceLimits};
use crate::http::{Configured, Holds, HttpContext, router};
use crate::indexing::{Indexer, Indexing};
use crate::ports::locks::Folders;
use crate::show::disk::Disk;
use doorway::Doorway;
use only::Only;
use pinfold_api::DaemonPlace;
use pinfold_core::EventKind;
use pinfold_core::event::Machine;
use pinfold_kernel::private::{self, Wider};
use pinfold_lock::BootId;
use pinfold_lock::FolderError;
use pinfold_store::{Batch, Meta, OpenError, Reader, Store};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tracing::info;

/// How long answers under way get when the daemon ends.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// With fewer descriptors than this, a daemon with a few sessions could not even be asked to stop them: it keeps 25
/// of its own, 16 for connections and 12 that are free.
const LEAST_FILES: u64 = 64;

/// The options of a daemon.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// The paths of the home.
    pub home: Home,
    /// The shim program, with the arguments that make it one.
    pub shim: (PathBuf, Vec<OsString>),
    /// The umask of agents whose creator did not give one.
    pub umask: Option<u32>,
    /// The file that standard error goes to, so that it can be rotated.
    pub log: Option<PathBuf>,
}

/// Why a daemon did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another daemon has this home.
    #[error("a daemon of this home runs already")]
    Running,
    /// A folder or socket could not be made.
    #[error("{} cannot be used", path.display())]
    Place {
        /// The folder or socket.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error("the database cannot be opened")]
    Store(#[from] OpenError),
    /// The database is missing, but what belongs to it exists.
    #[error("{} is missing, and {} of its sessions have files in {}", database.display(), count, folder.display())]
    Missing {
        /// Where it should be.
        database: PathBuf,
        /// Where the sessions' files are.
        folder: PathBuf,
        /// How many sessions have files there.
        count: usize,
    },
    /// The store cannot be read.
    #[error("the database cannot be read")]
    Read(#[from] pinfold_store::ReadError),
    /// The store cannot be written.
    #[error("the database cannot be written")]
    Commit(#[source] Arc<pinfold_store::CommitError>),
    /// A lock folder cannot be used.
    #[error("the lock folder cannot be used")]
    Locks(#[from] FolderError),
    /// The configuration cannot be used.
    #[error("the configuration cannot be used")]
    Config(#[from] crate::define::config::LoadError),
    /// No way to be told of the end of an agent.
    #[error(
        "this system offers none of pidfd_open, clone3 and clone with a pidfd, so no agent's end would be noticed"
    )]
    EndsUntold,
    /// It could not open enough files.
    #[error("the limit of open files is {limit}, and a daemon needs {least}")]
    FewFiles {
        /// The limit, as far as it can be raised.
        limit: u64,
        /// The smallest limit that is enough.
        least: u64,
    },
    /// The system failed.
    #[error("the daemon cannot run")]
    System(#[from] io::Error),
}

impl From<EngineFault> for StartError {
    fn from(fault: EngineFault) -> Self {
        match fault {
            EngineFault::Commit(error) => StartError::Commit(error),
            EngineFault::System(error) => StartError::System(error),
        }
    }
}

/// Runs a daemon until it goes down; `up` is called when it answers.
///
/// # Errors
/// Another daemon has the home, or something that it needs cannot be used.
pub fn run(options: DaemonOptions, up: impl FnOnce()) -> Result<(), StartError> {
    if !pinfold_shim::ends_are_told() {
        return Err(StartError::EndsUntold);
    }
    let state = options.home.state.clone();
    // It may be a link of its user.
    private::way(&state)
        .and_then(|real| private::make_private(&real, Wider::Tighten))
        .map_err(|error| StartError::Place { path: state, source: error.into() })?;
    let only = Arc::new(Only::take(&options.home)?);
    crate::log::begin(options.log.clone());
    crash::point("daemon.alone");
    let limits = ResourceLimits { open_files: raise_open_files()?, core: leave_no_core() };
    pinfold_kernel::allocator::keep_little();
    // One thread decides and serves; what may block has threads of its own.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(16).build()?;
    let mut store = None;
    let home = options.home.state.clone();
    let ended = runtime.block_on(live(options, Arc::clone(&only), limits, up, &mut store));
    // Before the locks are free: whoever finds them free reads here what became of the daemon.
    match ended {
        Ok(DaemonEnd::Stopped) => DaemonPlace::stop(&home),
        Ok(DaemonEnd::HandedOver) | Err(_) => DaemonPlace::remove(&home),
    }
    // Clients that still follow something read the database: it is closed when they are gone, and then it is
    // one file.
    runtime.shutdown_timeout(LAST_ANSWERS);
    drop(store);
    drop(only);
    ended.map(|_| ())
}

/// Agents inherit what is logged here from whoever started the daemon.
fn log_inherited(limits: &ResourceLimits) {
    let (soft, hard) = limits.open_files.unwrap_or((u64::MAX, u64::MAX));
    let nice = rustix::process::getpriority_process(None).unwrap_or(0);
    info!(
        "agents may open {soft} files (at most {hard}) and have the nice value {nice}, as in the shell that started the daemon"
    );
}

/// A thousand sessions need more descriptors than a login has; agents get what the login had.
fn raise_open_files() -> Result<Option<(u64, u64)>, StartError> {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    _ = setrlimit(Resource::Nofile, raised);
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < LEAST_FILES => Err(StartError::FewFiles { limit, least: LEAST_FILES }),
        Some(_) | None => Ok(before.current.zip(before.maximum)),
    }
}

/// The memory of a daemon and its shims contains messages and values of `--env`: none of it is written to a
/// file when one of them crashes. Agents get what the login had.
pub(crate) fn leave_no_core() -> Option<(u64, u64)> {
    let before = getrlimit(Resource::Core);
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: before.maximum }).ok()?;
    Some((before.current.unwrap_or(u64::MAX), before.maximum.unwrap_or(u64::MAX)))
}

/// Runs until the end; the caller closes what is left of the store, once there is no reader.
async fn live(
    options: DaemonOptions,
    only: Arc<Only>,
    limits: ResourceLimits,
    up: impl FnOnce(),
    left: &mut Option<Store>,
) -> Result<DaemonEnd, StartError> {
    // Stamped first: what changes while it is read counts as changed.
    let configured = Configured::now(options.home.config.clone());
    let config = crate::define::config::load(&options.home.config)?;
    crate::log::set_level(config.log_level());
    log_inherited(&limits);
    let (doorway, listener) = Doorway::open(&options.home)?;
    crash::point("daemon.listening");
    let home = doorway.home.clone();
    let (handle, inputs) = Handle::new();
    let (listeners, later) = mpsc::unbounded_channel();
    _ = listeners.send(listener);
    let (opens, door) = watch::channel(None);
    let served = tokio::spawn(crate::http::serve(later, door, handle.clone()));
    let kept = tokio::spawn(doorway.keep(only, listeners, handle.clone()));
    let begun = begin(DaemonOptions { home, ..options }, config, limits, handle.clone()).await;
    let ended = match begun {
        Ok((engine, reader)) => {
            let indexer = Indexer::begin(&engine.store, engine.home.search_index());
            let context = context(&engine, reader, &handle, indexer.shared(), configured);
            tokio::spawn(retention::keep(context.clone()));
            opens.send_replace(Some(router(context)));
            tokio::spawn(end_by_signal(handle.clone()));
            tokio::spawn(reload_by_signal(handle.clone()));
            // A file that may not grow (`ulimit -f`) is an error for the writer, and must not kill the
            // daemon.
            let _growth = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
            up();
            info!("daemon {} of {} is up", std::process::id(), engine.home.state.display());
            let look = open_store::StoreCheck::begin(&engine.store, &handle);
            let (ended, store) = engine.run(inputs).await;
            *left = Some(store);
            drop((look, indexer));
            ended.map_err(StartError::from)
        }
        Err(error) => {
            drop((inputs, opens));
            Err(error)
        }
    };
    // Clients that wait for an answer get it; followers notice the end.
    _ = tokio::time::timeout(LAST_ANSWERS, served).await;
    _ = kept.await;
    ended
}

/// Loads what is stored and looks at what exists. Requests that arrive meanwhile are told that the start is
/// under way.
async fn begin(
    options: DaemonOptions,
    config: Config,
    limits: ResourceLimits,
    handle: Handle,
) -> Result<(Engine, Reader), StartError> {
    let home = options.home;
    let (store, reader, meta) = opened_store(home.clone()).await?;
    let opened = store.opened();
    let boot = boot_id();
    let machine = match (&meta.boot_id, &boot) {
        (Some(then), _) if then == pinfold_store::backup::PUT_BACK => Machine::PutBack,
        (Some(then), Some(now)) if then == now => Machine::Same,
        (None, _) => Machine::Same,
        (Some(_), _) => Machine::Restarted,
    };
    let folders = Folders::open(&home)?;
    let told = handle.clone();
    folders.audit_to(&home.audit(), move || told.tell(LoopInput::Audited));
    let generation = open_store::next_generation(&home, opened, meta.generation);
    let own = Rc::new(store.reader()?);
    let parts = Parts {
        folders,
        socket: socket_link::make(&home.socket(), &home.state).path,
        home,
        reader: own,
        store,
        alone: None,
        generation,
        shim_program: options.shim,
        limits,
        umask: options.umask,
        last_event: reader.max_seq()?,
        handle: handle.clone(),
        config,
    };
    let mut engine = Engine::new(parts)?;
    crash::point("daemon.unannounced");
    announce(&engine, &boot.unwrap_or_default())?;
    open_store::watch(&engine, &handle);
    crash::point("daemon.announced");
    engine.accounts.key = account::HashKey::of_home(&engine.home.account_key());
    engine.load(&reader)?;
    engine.settle_given()?;
    engine.stop_as_noted();
    engine.look_for_strangers_first();
    engine.take_audit();
    crash::point("daemon.loaded");
    engine.look_around(machine);
    Ok((engine, reader))
}

/// A large database takes its time; the thread that answers does not wait for it.
async fn opened_store(home: Home) -> Result<(Store, Reader, Meta), StartError> {
    let opened = tokio::task::spawn_blocking(move || {
        let store = open_store::open(&home)?;
        let reader = store.reader()?;
        let meta = reader.meta()?;
        Ok((store, reader, meta))
    });
    opened.await.map_err(io::Error::other)?
}

fn boot_id() -> Option<String> {
    pinfold_kernel::own::boot_id().ok()?.parse::<BootId>().ok().map(|boot| boot.to_string())
}

/// The generation is durable before any shim hears of it: no two daemons ever have the same.
fn announce(engine: &Engine, boot: &str) -> Result<(), StartError> {
    let mut batch = Batch::new();
    batch.daemon_started(engine.generation, boot);
    batch.event(engine.daemon_event(EventKind::DaemonStarted, "the daemon starts"));
    // The caller of `up` is told what is wrong.
    batch.fail_if_held_up();
    let committed = engine.store.commit(batch).wait().map_err(StartError::Commit)?;
    engine.last_event.send_replace(committed.seqs.end.saturating_sub(1));
    Ok(())
}

fn context(
    engine: &Engine,
    reader: Reader,
    handle: &Handle,
    indexing: Arc<Indexing>,
    configured: Configured,
) -> HttpContext {
    HttpContext {
        handle: handle.clone(),
        database: Arc::new(Mutex::new(reader)),
        last_event: engine.last_event.subscribe(),
        events: Arc::default(),
        shown: Arc::default(),
        feed: Arc::default(),
        disk: Arc::new(Disk::new(engine.home.state.clone())),
        folders: engine.folders(),
        values: engine.values.clone(),
        holds: Holds::default(),
        indexing,
        configured: Arc::new(configured),
        metrics: Arc::clone(&engine.metrics),
        pass: crate::caller::Pass::default(),
    }
}

/// SIGTERM and SIGINT act as `down`.
async fn end_by_signal(handle: Handle) {
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    handle.tell(LoopInput::Down { agents: AgentsOnDown::Stopped, by: None, reply: None });
}

/// SIGHUP reads the configuration again.
async fn reload_by_signal(handle: Handle) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        handle.tell(LoopInput::Reload);
    }
}
