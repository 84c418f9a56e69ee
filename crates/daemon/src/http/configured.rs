//! `config.toml`, read again on request, or when it has changed and a request needs it.

use super::HttpContext;
use super::api_error::{Answered, ApiError};
use crate::define::config;
use crate::define::home::shown;
use crate::engine::input::LoopInput;
use axum::Json;
use pinfold_api::object::Reloaded;
use pinfold_api::{ErrorBody, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file, and its stamp when it was last read.
#[derive(Debug)]
pub(crate) struct Configured {
    path: PathBuf,
    seen: Mutex<Stamp>,
}

/// Changes whenever a file is written or replaced; `None` if there is no file.
type Stamp = Option<(u64, u64, i64, i64)>;

fn stamp(path: &Path) -> Stamp {
    let facts = std::fs::metadata(path).ok()?;
    Some((facts.ino(), facts.len(), facts.mtime(), facts.mtime_nsec()))
}

impl Configured {
    /// The file as it is now, before it is read.
    pub(crate) fn now(path: PathBuf) -> Configured {
        let seen = Mutex::new(stamp(&path));
        Configured { path, seen }
    }

    /// The present stamp, if it differs from the one last read.
    fn change(&self) -> Option<Stamp> {
        let now = stamp(&self.path);
        (now != *self.seen.lock().unwrap_or_else(PoisonError::into_inner)).then_some(now)
    }

    fn taken(&self, read: Stamp) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = read;
    }
}

pub(crate) async fn reload(context: HttpContext) -> Answered<Reloaded> {
    read_again(&context, stamp(&context.configured.path)).await?;
    Ok(Json(Reloaded { config: shown(&context.configured.path) }))
}

/// Reads the file again if it has changed: a client that creates a session means the present configuration. A
/// stat takes microseconds.
pub(super) async fn up_to_date(context: &HttpContext) -> Result<(), ApiError> {
    match context.configured.change() {
        Some(change) => read_again(context, change).await,
        None => Ok(()),
    }
}

/// If the new configuration cannot be used, the old one stays in force, and each request is told why until
/// the file is correct.
async fn read_again(context: &HttpContext, seen: Stamp) -> Result<(), ApiError> {
    let path = context.configured.path.clone();
    let read = tokio::task::spawn_blocking(move || config::load(&path)).await;
    let read = read.map_err(|error| ErrorBody::new(ErrorKind::Failed, error.to_string()))?;
    context.handle.tell(LoopInput::ConfigRead(Box::new(read)));
    // Asked after the input was sent: the loop takes them in order.
    let refused = context.handle.view(|view| view.daemon().config_refused.map(str::to_owned)).await?;
    let Some(problem) = refused else {
        context.configured.taken(seen);
        return Ok(());
    };
    let body = ErrorBody::new(ErrorKind::BadConfig, format!("the configuration stays as it was: {problem}"));
    Err(ApiError::bad_value(body.hint("correct the file; `pinfold reload` reads it again")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_made_written_or_gone_has_changed_until_it_is_taken() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("config.toml");
        let configured = Configured::now(path.clone());
        assert_eq!(configured.change(), None);
        let acts: [&dyn Fn(); 3] = [
            &|| std::fs::write(&path, "[policy]\n").unwrap(),
            &|| std::fs::write(&path, "").unwrap(),
            &|| std::fs::remove_file(&path).unwrap(),
        ];
        for act in acts {
            act();
            let change = configured.change().unwrap();
            assert_eq!(configured.change(), Some(change), "until it was taken");
            configured.taken(change);
            assert_eq!(configured.change(), None);
        }
    }
}
