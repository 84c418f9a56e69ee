//! The parts of an engine, and why it may not go on.

use super::input::Handle;
use crate::define::config::Config;
use crate::define::home::Home;
use crate::ports::locks::Folders;
use pinfold_core::Decision;
use pinfold_shim::client::Foreground;
use pinfold_store::{CommitError, Reader, Store};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The parts of an engine.
pub(crate) struct Parts {
    pub(crate) home: Home,
    /// The API socket, by a path short enough for every client to connect to.
    pub(crate) socket: PathBuf,
    pub(crate) store: Store,
    pub(crate) alone: Option<ForegroundParts>,
    /// A reader for the loop alone.
    pub(crate) reader: Rc<Reader>,
    pub(crate) folders: Folders,
    pub(crate) generation: u64,
    pub(crate) shim_program: (PathBuf, Vec<OsString>),
    pub(crate) limits: ResourceLimits,
    pub(crate) umask: Option<u32>,
    pub(crate) last_event: u64,
    pub(crate) handle: Handle,
    pub(crate) config: Config,
}

/// What the loop needs to know in the foreground, without a daemon.
pub(crate) struct ForegroundParts {
    /// What its agents get from this process.
    pub(crate) foreground: Foreground,
    /// Called with every decision.
    pub(crate) witness: Box<dyn FnMut(&Decision)>,
    /// Receives the threads that wait for the end of shims.
    pub(crate) reapers: mpsc::UnboundedSender<JoinHandle<()>>,
}

/// The limits that the daemon changed for itself, as agents get them: soft and hard.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResourceLimits {
    pub(crate) open_files: Option<(u64, u64)>,
    pub(crate) core: Option<(u64, u64)>,
}

/// Why the loop could not begin, or ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineFault {
    #[error("the database cannot be written")]
    Commit(#[source] Arc<CommitError>),
    #[error("the daemon cannot run")]
    System(#[from] io::Error),
}
