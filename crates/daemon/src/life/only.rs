//! Proof that no other daemon has a home: a flock on its folder, which cannot be removed under a daemon, and
//! one on `daemon.lock`, by which the home is known and which daemons and verbs of the previous version
//! check.

use crate::define::home::Home;
use crate::life::StartError;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use tracing::{info, warn};

/// A process that waits for a daemon's end has its locks for a moment: they are tried this many times before
/// they count as held.
const GLANCES: u32 = 10;
const GLANCE: Duration = Duration::from_millis(5);

/// Both locks of the only daemon of a home, as long as it lives.
#[derive(Debug)]
pub(crate) struct Only {
    path: PathBuf,
    file: Mutex<OwnedFd>,
    _folder: OwnedFd,
}

impl Only {
    /// Takes both locks, or reports that another daemon has one of them.
    pub(crate) fn take(home: &Home) -> Result<Only, StartError> {
        let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let _folder = locked(&home.state, folder)?;
        let path = home.daemon_lock();
        let file = Mutex::new(signed(&path)?);
        Ok(Only { path, file, _folder })
    }

    /// Makes the file again if it was removed or replaced.
    pub(crate) fn stand(&self) {
        let Ok(mut file) = self.file.lock() else { return };
        if is_at(&file, &self.path) {
            return;
        }
        match signed(&self.path) {
            Ok(again) => {
                info!("{} was removed or replaced; it is there again", self.path.display());
                *file = again;
            }
            Err(error) => warn!("{}", crate::error_chain::chain(&error)),
        }
    }
}

fn file_flags() -> OFlags {
    OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW
}

fn signed(path: &Path) -> Result<OwnedFd, StartError> {
    let file = locked(path, file_flags())?;
    // Without a signature the lock is as good; its holder is harder to find.
    _ = pinfold_api::place::sign(&file);
    Ok(file)
}

fn is_at(file: &OwnedFd, path: &Path) -> bool {
    match (rustix::fs::fstat(file), rustix::fs::lstat(path)) {
        (Ok(open), Ok(named)) => (open.st_dev, open.st_ino) == (named.st_dev, named.st_ino),
        (Ok(_) | Err(_), _) => false,
    }
}

fn locked(path: &Path, flags: OFlags) -> Result<OwnedFd, StartError> {
    let place = |source: Errno| StartError::Place { path: path.to_owned(), source: source.into() };
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)).map_err(place)?;
    for _ in 0..GLANCES {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(GLANCE),
            Err(errno) => return Err(place(errno)),
        }
    }
    Err(StartError::Running)
}
