//! HTTP on the unix socket: thin; every handler asks the loop and turns its answer into an object.

mod answer;
mod daemon;
mod events;
mod logs;
mod messages;
mod retire;
mod sessions;
mod stream;

use crate::input::Handle;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_store::Reader;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// Bodies are larger only by mistake or malice: a message may have 1 MiB.
const LARGEST_BODY: usize = 2 << 20;

/// What every handler needs.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) handle: Handle,
    pub(crate) database: Arc<Mutex<Reader>>,
    pub(crate) last_event: watch::Receiver<u64>,
    pub(crate) state: PathBuf,
}

/// A message may be longer on the wire than other requests are.
fn inbox() -> Router<Context> {
    Router::new()
        .route("/v1/sessions/{session}/messages", get(messages::list).post(messages::send))
        .method_not_allowed_fallback(answer::no_such_method)
        .layer(DefaultBodyLimit::max(messages::LARGEST_BODY))
}

impl Context {
    /// Reads from the store, off the loop.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, pinfold_store::ReadError> + Send + 'static,
    ) -> Result<T, ErrorBody> {
        let database = self.database.clone();
        let failed = |message: String| ErrorBody::new(ErrorKind::Failed, message);
        let done = tokio::task::spawn_blocking(move || {
            let reader = database.lock().map_err(|_| "the reader is broken".to_owned())?;
            read(&reader).map_err(|error| crate::locks::chain(&error))
        });
        done.await.map_err(|error| failed(error.to_string()))?.map_err(failed)
    }
}

pub(crate) fn router(context: Context) -> Router {
    Router::new()
        .route("/v1/ping", get(daemon::ping))
        .route("/v1/status", get(daemon::status))
        .route("/v1/daemon/down", post(daemon::down))
        .route("/v1/daemon/audit", post(daemon::audit))
        .route("/v1/sessions", get(sessions::list).post(sessions::create))
        .route("/v1/sessions/{session}", get(sessions::show).delete(retire::remove))
        .route("/v1/sessions/{session}/set", post(sessions::set))
        .route("/v1/sessions/{session}/start", post(sessions::start))
        .route("/v1/sessions/{session}/stop", post(sessions::stop))
        .route("/v1/sessions/{session}/restart", post(sessions::restart))
        .route("/v1/sessions/{session}/archive", post(retire::archive))
        .route("/v1/sessions/{session}/restore", post(retire::restore))
        .route("/v1/sessions/{session}/wait", get(sessions::wait))
        .route("/v1/sessions/{session}/logs", get(logs::logs))
        .route("/v1/sessions/{session}/stream", get(stream::stream))
        .route("/v1/sessions/{session}/interrupt", post(messages::interrupt))
        .route("/v1/sessions/{session}/answer", post(messages::answer))
        .route("/v1/sessions/{session}/messages/{message}", get(messages::show))
        .route("/v1/sessions/{session}/messages/{message}/cancel", post(messages::cancel))
        .route("/v1/sessions/{session}/messages/{message}/retry", post(messages::retry))
        .route("/v1/purge", post(retire::purge))
        .route("/v1/restore", post(retire::restore_all))
        .route("/v1/events", get(events::events))
        .fallback(answer::no_such_place)
        .method_not_allowed_fallback(answer::no_such_method)
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .merge(inbox())
        .with_state(context)
}
