//! Whether the files that are open are the ones that have their names: what goes into an unlinked file is lost.

use crate::open::log_of;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files of a store as they were when it was opened. They are looked at by name only: closing a descriptor of
/// our own would take away SQLite's locks.
#[derive(Debug)]
pub(crate) struct Footing {
    file: (PathBuf, Option<Identity>),
    /// SQLite makes the log with the first commit.
    log: (PathBuf, Option<Identity>),
}

type Identity = (u64, u64);

impl Footing {
    pub(crate) fn new(path: &Path) -> Footing {
        let known = |path: PathBuf| (path.clone(), identity(&path));
        Footing { file: known(path.to_owned()), log: known(log_of(path)) }
    }

    /// The first file that is not there any more, or is another one.
    pub(crate) fn lost(&mut self) -> Option<PathBuf> {
        for (path, known) in [&mut self.file, &mut self.log] {
            match (&known, identity(path)) {
                (Some(known), now) if now != Some(*known) => return Some(path.clone()),
                (None, now) => *known = now,
                (Some(_), _) => {}
            }
        }
        None
    }
}

fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_removed_moved_or_replaced_is_missed_until_it_is_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let (log, aside) = (log_of(&path), folder.path().join("aside"));
        fs::write(&path, "1").unwrap();
        let mut footing = Footing::new(&path);
        assert_eq!(footing.lost(), None);
        fs::write(&log, "1").unwrap();
        assert_eq!(footing.lost(), None, "a log that comes later is known from then on");
        for file in [&path, &log] {
            fs::rename(file, &aside).unwrap();
            assert_eq!(footing.lost().as_ref(), Some(file));
            fs::write(file, "another").unwrap();
            assert_eq!(footing.lost().as_ref(), Some(file));
            fs::rename(&aside, file).unwrap();
            assert_eq!(footing.lost(), None);
        }
    }
}
