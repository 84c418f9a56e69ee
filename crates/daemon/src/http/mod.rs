//! HTTP on the unix socket: thin; every handler asks the loop and turns its answer into an object.

mod admission;
mod api_error;
mod apply;
mod archive;
mod attach;
mod beside;
mod configured;
mod connection;
pub(crate) mod consumer;
mod declared;
mod events;
mod extract;
mod feed;
mod following;
mod gate;
mod handler_arguments;
mod hold_limits;
mod holds;
mod kin;
mod locks;
mod logs;
mod look;
mod messages;
mod metrics;
mod nearest;
mod openapi;
mod paging;
mod reach;
mod refusal;
mod rename;
mod ring;
mod routes;
mod screen;
mod search;
mod server;
mod session_list;
mod session_stream;
mod sessions;
mod status;
mod streaming;
mod together;
mod usage;
mod vendor_session;

use crate::caller::Pass;
use crate::define::values::Values;
use crate::engine::input::Handle;
use crate::indexing::Indexing;
use crate::metrics::Metrics;
use crate::ports::locks::Folders;
use crate::show::disk::Disk;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_store::Reader;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

use feed::Written;
use following::Latest;
use session_stream::Shown;

pub(crate) use configured::Configured;
pub(crate) use hold_limits::Holds;
pub(crate) use routes::router;
pub(crate) use server::serve;

/// What every handler needs.
#[derive(Clone)]
pub(crate) struct HttpContext {
    pub(crate) handle: Handle,
    pub(crate) database: Arc<Mutex<Reader>>,
    pub(crate) last_event: watch::Receiver<u64>,
    /// Shared by all followers of audit records.
    pub(crate) events: Arc<Latest>,
    /// Shared by all readers of the feed.
    pub(crate) feed: Arc<Written>,
    /// Shared by all clients that have a session open.
    pub(crate) shown: Arc<Shown>,
    pub(crate) disk: Arc<Disk>,
    pub(crate) folders: Folders,
    pub(crate) values: Values,
    pub(crate) holds: Holds,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) indexing: Arc<Indexing>,
    pub(crate) configured: Arc<Configured>,
    /// What the gate found out about the caller.
    pub(crate) pass: Pass,
}

impl HttpContext {
    /// Reads from the store, off the loop.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, pinfold_store::ReadError> + Send + 'static,
    ) -> Result<T, ErrorBody> {
        let database = self.database.clone();
        let failed = |message: String| ErrorBody::new(ErrorKind::Failed, message);
        let done = tokio::task::spawn_blocking(move || {
            let reader = database.lock().map_err(|_| failed("the reader is broken".to_owned()))?;
            read(&reader).map_err(|error| unread(&error))
        });
        done.await.map_err(|error| failed(error.to_string()))?
    }
}

fn unread(error: &pinfold_store::ReadError) -> ErrorBody {
    use pinfold_store::ReadError;
    let message = crate::error_chain::chain(error);
    match error {
        ReadError::Damaged { .. } | ReadError::Row { .. } => ErrorBody::new(ErrorKind::Damaged, message)
            .hint("what it was is in your last backup: `pinfold down`, then `pinfold restore-backup FILE`"),
        ReadError::Failed { .. } => ErrorBody::new(ErrorKind::Failed, message),
    }
}
