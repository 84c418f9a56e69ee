//! Whether the files that are open are the ones that have their names, and as long as they were: what goes into an
//! unlinked file is lost, and so is what was cut off.

use super::files::log_of;
use super::open::LARGEST_LOG;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files of a store as they were when they were last looked at. They are looked at by name only: closing a
/// descriptor of our own would take away SQLite's locks.
#[derive(Debug)]
pub(crate) struct Footing {
    /// SQLite makes it shorter only when it is written anew, which is said here.
    file: Seen,
    /// SQLite makes it with the first commit, and may cut it to this length when it begins it anew.
    log: Seen,
}

#[derive(Debug)]
struct Seen {
    path: PathBuf,
    /// The length to which SQLite itself may cut it.
    may_be: u64,
    known: Option<Known>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    identity: (u64, u64),
    length: u64,
}

impl Footing {
    pub(crate) fn new(path: &Path) -> Footing {
        Footing { file: Seen::new(path.to_owned(), u64::MAX), log: Seen::new(log_of(path), LARGEST_LOG) }
    }

    /// The first file that is not there any more, is another one, or was cut.
    pub(crate) fn lost(&mut self) -> Option<PathBuf> {
        let lost =
            [&mut self.file, &mut self.log].into_iter().find_map(|file| (!file.stands()).then_some(file));
        lost.map(|file| file.path.clone())
    }

    /// Whether a file is the one that it was, and shorter: what the other one has does not fit to it.
    pub(crate) fn is_cut(&self) -> bool {
        [&self.file, &self.log].into_iter().any(Seen::is_cut)
    }

    /// The log is cut by ourselves now.
    pub(crate) fn log_is_cut(&mut self) {
        self.log.may_be_any_length();
    }

    /// The file is written anew by ourselves now, and the log with it.
    pub(crate) fn file_is_cut(&mut self) {
        self.file.may_be_any_length();
        self.log.may_be_any_length();
    }
}

impl Seen {
    fn new(path: PathBuf, may_be: u64) -> Seen {
        let known = look(&path);
        Seen { path, may_be, known }
    }

    fn may_be_any_length(&mut self) {
        if let Some(known) = &mut self.known {
            known.length = 0;
        }
    }

    fn stands(&mut self) -> bool {
        let now = look(&self.path);
        let stands = match (&self.known, &now) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(known), Some(now)) => now.identity == known.identity && !self.falls_short(now),
        };
        if stands {
            self.known = now;
        }
        stands
    }

    fn is_cut(&self) -> bool {
        look(&self.path).is_some_and(|now| self.falls_short(&now))
    }

    fn falls_short(&self, now: &Known) -> bool {
        let same = |known: &&Known| known.identity == now.identity;
        self.known.as_ref().filter(same).is_some_and(|known| now.length < known.length.min(self.may_be))
    }
}

fn look(path: &Path) -> Option<Known> {
    let found = fs::metadata(path).ok()?;
    Some(Known { identity: (found.dev(), found.ino()), length: found.len() })
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
            assert!(!footing.is_cut());
            fs::rename(&aside, file).unwrap();
            assert_eq!(footing.lost(), None);
        }
    }

    #[test]
    fn a_file_that_is_cut_by_others_is_missed_and_a_log_that_we_cut_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let log = log_of(&path);
        let cut = |path: &Path, length| {
            fs::File::options().write(true).open(path).unwrap().set_len(length).unwrap();
        };
        for file in [&path, &log] {
            fs::write(file, "12345678").unwrap();
        }
        let mut footing = Footing::new(&path);
        for file in [&path, &log] {
            cut(file, 4);
            assert_eq!(footing.lost().as_ref(), Some(file));
            assert!(footing.is_cut());
            cut(file, 8);
            assert_eq!(footing.lost(), None);
        }
        footing.log_is_cut();
        cut(&log, 0);
        assert_eq!(footing.lost(), None);
        cut(&log, LARGEST_LOG + 10);
        assert_eq!(footing.lost(), None);
        cut(&log, LARGEST_LOG);
        assert_eq!(footing.lost(), None, "SQLite begins a long log anew");
    }
}
