//! Room that is kept in advance: a file of zeroes that goes back to the file system when a commit finds the disk full.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What a few thousand stops, exits and their events take.
const KEPT: usize = 2 << 20;
const PIECE: usize = 64 << 10;

/// The room, and whether it is there.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: Option<PathBuf>,
    kept: bool,
}

impl Reserve {
    /// What was kept by whoever had the store before; it is made later, when there is time.
    pub(crate) fn new(path: Option<PathBuf>) -> Reserve {
        Reserve { path, kept: true }
    }

    /// Makes it as large as it should be where the disk has plenty; whether it is kept now.
    pub(crate) fn keep(&mut self) -> bool {
        let Some(path) = &self.path else { return true };
        let whole = fs::metadata(path).is_ok_and(|found| found.len() >= KEPT as u64);
        self.kept =
            whole || (has_plenty(path) && fill(path).inspect_err(|_| drop(fs::remove_file(path))).is_ok());
        self.kept
    }

    /// Gives it back; whether there was anything.
    pub(crate) fn give_back(&mut self) -> bool {
        let given = self.path.as_ref().is_some_and(|path| fs::remove_file(path).is_ok());
        self.kept &= !given;
        given
    }

    /// Whether it was not given back, as far as is known.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept
    }
}

/// Room that others need more is not taken.
fn has_plenty(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(Path::new("."));
    rustix::fs::statvfs(folder).is_ok_and(|room| room.f_bavail * room.f_frsize >= 4 * KEPT as u64)
}

fn fill(path: &Path) -> io::Result<()> {
    // Zeroes are written, not merely promised: some file systems promise more than they have.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let zeroes = vec![0; PIECE];
    for _ in 0..KEPT / PIECE {
        file.write_all(&zeroes)?;
    }
    Ok(())
}
