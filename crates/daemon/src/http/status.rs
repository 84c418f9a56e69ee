//! The daemon's own status.

use super::HttpContext;
use super::api_error::{Answered, ApiError};
use super::extract::JsonBody;
use crate::engine::EngineCommand;
use crate::engine::input::{AgentsOnDown, LoopInput};
use crate::memory::capabilities;
use crate::show;
use axum::Json;
use pinfold_api::object::{Backup, Ping, Status, WentDown};
use pinfold_api::{ErrorBody, ErrorKind, request};
use pinfold_store::OpenError;
use pinfold_store::backup::BackupError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Instant;
use tokio::sync::{OnceCell, oneshot};

/// A sign of life from the loop, even before recovery has looked at every session.
pub(crate) async fn ping(context: HttpContext) -> Answered<Ping> {
    let (reply, receiver) = oneshot::channel();
    context.handle.tell(LoopInput::Ping { reply });
    Ok(Json(context.handle.answer(receiver).await?))
}

pub(crate) async fn status(context: HttpContext) -> Answered<Status> {
    let disk = context.disk.used(Instant::now()).await;
    let abilities = abilities(&context).await?;
    Ok(Json(context.handle.view(move |view| show::status::status(view, disk, abilities)).await?))
}

/// What this machine lets us do, tried once: the attempt affects nothing that runs.
async fn abilities(context: &HttpContext) -> Result<BTreeMap<String, Value>, ApiError> {
    static TRIED: OnceCell<BTreeMap<String, Value>> = OnceCell::const_new();
    let without = context.handle.view(|view| view.without()).await?;
    let all = TRIED.get_or_init(|| async move {
        tokio::task::spawn_blocking(move || capabilities(without)).await.unwrap_or_default()
    });
    Ok(all.await.clone())
}

pub(crate) async fn down(
    context: HttpContext,
    JsonBody(down): JsonBody<request::Down>,
) -> Answered<WentDown> {
    let agents = match (down.replace, down.keep) {
        (true, _) => AgentsOnDown::HandedOver,
        (false, true) => AgentsOnDown::Kept,
        (false, false) => AgentsOnDown::Stopped,
    };
    let (sender, receiver) = oneshot::channel();
    context.handle.tell(LoopInput::Down { agents, by: context.handle.by(), reply: Some(sender) });
    let left = context.handle.answer(receiver).await?;
    Ok(Json(WentDown { left }))
}

/// Copies the database while it is in use.
pub(crate) async fn backup(
    context: HttpContext,
    JsonBody(copy): JsonBody<request::Backup>,
) -> Answered<Backup> {
    if !copy.path.is_absolute() {
        return Err(ApiError::bad_value(ErrorBody::new(ErrorKind::Usage, "the path must be absolute")));
    }
    let (path, values) = (copy.path.clone(), context.values.clone());
    let (store, database) = (context.handle.view(|view| view.readable()).await?, context.database.clone());
    let copied = tokio::task::spawn_blocking(move || {
        match store.and_then(|store| store.reader().ok()) {
            Some(reader) => values.copied(|read| reader.backup_with(&path, read)),
            // The file has lost its name: only readers that have it open can still read it.
            None => {
                let reader = database.lock().unwrap_or_else(PoisonError::into_inner);
                values.copied(|read| reader.backup_with(&path, read))
            }
        }
    });
    let copied = copied.await;
    let copied = copied.map_err(|error| ErrorBody::new(ErrorKind::Failed, error.to_string()))?;
    let bytes = copied.map_err(|error| not_copied(&error))?;
    Ok(Json(Backup { path: crate::define::home::shown(&copy.path), bytes }))
}

fn not_copied(error: &BackupError) -> ErrorBody {
    let message = crate::error_chain::chain(error);
    match error {
        BackupError::Exists { .. } => {
            ErrorBody::new(ErrorKind::Exists, message).hint("a backup is never replaced: name another file")
        }
        BackupError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            ErrorBody::new(ErrorKind::NotPermitted, message)
        }
        BackupError::Unusable(OpenError::Damaged { .. }) => ErrorBody::new(ErrorKind::Damaged, message).hint(
            "no backup was made; `pinfold down`, then `pinfold restore-backup FILE`, puts an older one back",
        ),
        BackupError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            ErrorBody::new(ErrorKind::Failed, message).hint("the disk is full: name a file on another one")
        }
        BackupError::Io { .. } | BackupError::Copy { .. } | BackupError::Unusable(_) => {
            ErrorBody::new(ErrorKind::Failed, message)
        }
    }
}

/// A verb wrote a record: it becomes an event before this returns.
pub(crate) async fn audit(context: HttpContext) -> Answered<Value> {
    context.handle.order(|done| EngineCommand::TakeAudit { done }).await?;
    Ok(Json(json!({})))
}
