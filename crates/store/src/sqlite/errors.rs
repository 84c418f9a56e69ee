//! What SQLite's errors mean to the store.

use super::reserve;
use crate::commit_error::CommitError;
use crate::open::{Damage, OpenError};
use crate::query::ReadError;
use rusqlite::ErrorCode;
use std::io;
use std::path::Path;

/// Returns what an SQLite error means for a commit into this file.
pub(crate) fn commit_error(path: &Path, source: rusqlite::Error) -> CommitError {
    let (path, code) = (path.to_owned(), source.sqlite_error_code());
    let source = source.into();
    match code {
        Some(ErrorCode::DiskFull) => CommitError::StorageFull { path, source },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => CommitError::Busy { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => CommitError::Damaged { path, source },
        // Not all of SQLite's file operations report a full disk as such.
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if reserve::is_full(&path) => {
            CommitError::StorageFull { path, source }
        }
        Some(ErrorCode::SystemIoFailure | ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
            CommitError::StorageFailed { path, source }
        }
        // The remaining codes are SQLite's, not ours: all say that these statements do not fit these tables.
        Some(_) | None => CommitError::Contradiction { source },
    }
}

/// Returns what an SQLite error means for a reader of this file.
pub(crate) fn read_error(path: &Path, source: rusqlite::Error) -> ReadError {
    let (path, code) = (path.to_owned(), source.sqlite_error_code());
    let source = source.into();
    match code {
        // `Unknown` is SQLite's word for a statement that does not fit the tables: they are not ours any more.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) | None => {
            ReadError::Damaged { path, source }
        }
        Some(_) => ReadError::Failed { path, source },
    }
}

pub(crate) fn damaged(path: &Path, problem: Damage) -> OpenError {
    OpenError::Damaged { path: path.to_owned(), problem }
}

pub(crate) fn io_error(path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { path: path.to_owned(), source }
}

/// Returns what an SQLite error means for opening: these codes are about locks, rights and space, all others
/// about the file itself.
pub(crate) fn unusable(path: &Path, source: rusqlite::Error) -> OpenError {
    let code = source.sqlite_error_code();
    // SQLite has removed its unfinished file by now, so the disk may have space again.
    let said = code == Some(ErrorCode::DiskFull);
    let refused = [ErrorCode::CannotOpen, ErrorCode::SystemIoFailure];
    if said || (code.is_some_and(|code| refused.contains(&code)) && reserve::is_full(path)) {
        return io_error(path, rustix::io::Errno::NOSPC.into());
    }
    match code {
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::OutOfMemory
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure,
        ) => OpenError::Unusable { path: path.to_owned(), source: source.into() },
        Some(_) | None => damaged(path, Damage::Unreadable(source.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_one_even_if_it_has_space_again() {
        let full =
            rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL), None);
        let error = unusable(Path::new("/"), full);
        assert!(
            matches!(&error, OpenError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull),
            "{error:?}"
        );
    }
}
