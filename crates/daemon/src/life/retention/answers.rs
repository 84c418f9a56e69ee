//! Files of long answers that belong to no message: left by a crash, or by a message that was deleted.

use pinfold_store::{ANSWERS, DRAFT, MessageState, Query, Read, Ulid};
use std::fs::{self, DirEntry};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A file has its name before its message refers to it, and a draft grows until its turn ends: recent files
/// are not touched.
const YOUNG: Duration = Duration::from_secs(60 * 60);

/// Removes them, and returns how many there were.
///
/// # Errors
/// The store cannot be read.
pub(super) fn sweep(sessions: &Path, reader: &dyn Query, now: SystemTime) -> Read<usize> {
    let mut gone = 0;
    for session in entries(sessions) {
        for file in entries(&session.path().join(ANSWERS)).filter(|file| is_old(file, now)) {
            if !is_needed(reader, &file)? && fs::remove_file(file.path()).is_ok() {
                gone += 1;
            }
        }
    }
    Ok(gone)
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn is_old(file: &DirEntry, now: SystemTime) -> bool {
    let written = file.metadata().and_then(|found| found.modified());
    written.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age >= YOUNG))
}

fn is_needed(reader: &dyn Query, file: &DirEntry) -> Read<bool> {
    let name = file.file_name();
    let Some(name) = name.to_str() else { return Ok(true) };
    let (id, draft) = name.strip_suffix(DRAFT).map_or((name, false), |id| (id, true));
    // A file that is not ours is left alone.
    let Ok(id) = id.parse::<Ulid>() else { return Ok(true) };
    let message = match reader.message(id.into()) {
        Ok(message) => message,
        // A damaged message may be its owner.
        Err(pinfold_store::ReadError::Row { .. }) => return Ok(true),
        Err(error) => return Err(error),
    };
    Ok(message.is_some_and(|message| match message.state {
        MessageState::Queued | MessageState::Delivered => true,
        MessageState::Done => !draft && message.kept.beside.is_some(),
        MessageState::Failed => false,
    }))
}
