//! `restore-backup`: replaces the database by a backup, while no daemon runs.

use crate::doing::StandaloneVerb;
use crate::global::Global;
use crate::home;
use crate::output::{Failure, Kind, say, talk};
use clap::{Args, ValueHint};
use pinfold_core::Wall;
use pinfold_daemon::Home;
use pinfold_shim::client::ShimConnection;
use pinfold_shim::{Command, Report};
use pinfold_store::backup::{self, BackupCopy, BackupError};
use pinfold_store::{Damage, OpenError};
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde_json::json;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A live shim answers within this time.
const ANSWER: Duration = Duration::from_secs(2);

/// Which file.
#[derive(Debug, Args)]
pub(crate) struct RestoreBackup {
    /// The file that `backup` made
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

impl StandaloneVerb for RestoreBackup {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        let home = home::home(global)?;
        let file = self.file.as_path();
        own(file)?;
        let _nobody_else = claim(&home)?;
        let found = backup::look(file).map_err(|error| refused(&error))?;
        let seen = live_shims(&home);
        refuse_newer(&seen, &found)?;
        let highest = seen.iter().map(|(_, generation)| *generation).max().unwrap_or(0);
        let at = Wall(i64::try_from(pinfold_kernel::clock::wall_ms()).unwrap_or(i64::MAX));
        put_values_back(&home, &found)?;
        let put = found.put_back(&home.database(), &home.witness(), highest, at);
        let position = put.map_err(|error| refused(&error))?;
        if global.json {
            say(&json!({ "path": file, "seq": position.seq, "generation": position.generation }));
        } else if !global.quiet {
            talk(
                &"the database is the backup now; what was there is pinfold.db.old beside it, and env-values.old",
            );
        }
        Ok(())
    }
}

/// Restores the values of `--env` before the records that name them. Existing values are set aside.
fn put_values_back(home: &Home, found: &BackupCopy) -> Result<(), Failure> {
    let files = found.files().map_err(|error| refused(&error))?;
    let values = home.values();
    let kept = values.keep_aside().and_then(|()| values.put_back(&files));
    kept.map_err(|error| {
        Failure::new(Kind::Failed, format!("the values of --env cannot be put back: {error}"))
            .hint("nothing else was changed")
    })
}

/// Whether the file exists, can be a backup, and belongs to us: another user's would decide what our agents do.
fn own(file: &Path) -> Result<(), Failure> {
    let found = std::fs::metadata(file).map_err(|error| {
        let denied = error.kind() == std::io::ErrorKind::PermissionDenied;
        let kind = if denied { Kind::NotPermitted } else { Kind::NotFound };
        Failure::new(kind, format!("{} cannot be read: {error}", file.display()))
    })?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        let message = format!("{} belongs to user {}", file.display(), found.uid());
        return Err(Failure::new(Kind::NotPermitted, message)
            .hint("copy it, if you trust what is in it: it says what your agents run"));
    }
    // SQLite would read an empty file as a new database, and wait for the other end of a FIFO.
    let problem = match () {
        () if !found.is_file() => "is not a regular file",
        () if found.len() == 0 => "is empty",
        () => return Ok(()),
    };
    let damaged = Failure::new(Kind::Damaged, format!("{} {problem}", file.display()));
    Err(damaged.hint("a backup is a file that `pinfold backup` made"))
}

/// Takes the daemon's locks, so that none starts meanwhile.
fn claim(home: &Home) -> Result<[OwnedFd; 2], Failure> {
    let file = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok([claimed(home, &home.state, folder)?, claimed(home, &home.daemon_lock(), file)?])
}

fn claimed(home: &Home, path: &Path, flags: OFlags) -> Result<OwnedFd, Failure> {
    let lock = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
    let lock = lock.map_err(|errno| unusable(home, &errno))?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            Err(Failure::new(Kind::Busy, "the daemon of this home is up").hint("`pinfold down` ends it"))
        }
        Err(errno) => Err(unusable(home, &errno)),
    }
}

fn unusable(home: &Home, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Kind::Failed, format!("{} cannot be used: {error}", home.state.display()))
}

/// The live shims of this home, by session id, with the generation that each has seen.
fn live_shims(home: &Home) -> Vec<(String, u64)> {
    let Ok(entries) = std::fs::read_dir(home.runtime.join("shims")) else { return Vec::new() };
    let sockets = entries.flatten().map(|entry| entry.path());
    let sockets = sockets.filter(|path| path.extension().is_some_and(|ending| ending == "sock"));
    sockets
        .filter_map(|path| Some((path.file_stem()?.to_string_lossy().into_owned(), seen_by(&path)?)))
        .collect()
}

/// The generation a shim has seen: it refuses every lower one and names its own. `None` if no shim listens.
fn seen_by(socket: &Path) -> Option<u64> {
    let mut link = ShimConnection::connect(socket).ok()?;
    link.send(&Command::Hello { generation: 0 }).ok()?;
    match link.receive(Some(Instant::now() + ANSWER)) {
        Ok(Some(Report::Refused { generation })) => Some(generation),
        // It is alive but gave no useful answer: assume a generation above any in use.
        Ok(_) | Err(_) => Some(u64::MAX >> 1),
    }
}

fn refuse_newer(seen: &[(String, u64)], found: &BackupCopy) -> Result<(), Failure> {
    let newer: Vec<&str> = seen
        .iter()
        .filter(|(_, generation)| *generation > found.position.generation)
        .map(|(id, _)| id.as_str())
        .collect();
    if newer.is_empty() {
        return Ok(());
    }
    let message = format!("agents live that are newer than this backup: sessions {}", newer.join(", "));
    Err(Failure::new(Kind::Busy, message)
        .hint("`pinfold locks` shows them, and `pinfold unlock session:NAME --kill` ends one"))
}

fn refused(error: &BackupError) -> Failure {
    let kind = match error {
        BackupError::Unusable(OpenError::Damaged { .. } | OpenError::TooNew { .. }) => Kind::Damaged,
        BackupError::Exists { .. } => Kind::Exists,
        BackupError::Unusable(OpenError::Missing { .. }) => Kind::NotFound,
        BackupError::Io { source, .. } | BackupError::Unusable(OpenError::Io { source, .. })
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            Kind::NotPermitted
        }
        BackupError::Io { .. } | BackupError::Copy { .. } | BackupError::Unusable(_) => Kind::Failed,
    };
    let failure = Failure::from_error(kind, error);
    if let BackupError::Unusable(OpenError::Damaged { problem: Damage::NotOurs, .. }) = error {
        return failure.hint("a backup is a file that `pinfold backup` made");
    }
    failure
}
