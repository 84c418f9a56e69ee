//! HTTP on the unix socket: thin; every handler asks the loop and turns its answer into an object.

mod answer;
mod daemon;
mod events;
mod holds;
mod locks;
mod logs;
mod openapi;
mod routes;
mod server;
mod sessions;
mod wire;

use crate::input::Handle;
use crate::locks::Folders;
use pinfold_store::Reader;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

pub(crate) use holds::Holds;
pub(crate) use routes::router;
pub(crate) use server::serve;

/// What every handler needs.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) handle: Handle,
    pub(crate) database: Arc<Mutex<Reader>>,
    pub(crate) last_event: watch::Receiver<u64>,
    pub(crate) state: PathBuf,
    pub(crate) folders: Folders,
    pub(crate) holds: Holds,
}
