//! Checks whether the open files are still the ones at their names, and as long as they were: whatever is
//! written to an unlinked file is lost, and so is what was cut off.

use super::files::log_of;
use super::open::LARGEST_LOG;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// All that is asked about a file. Its times are not: on a kernel with multigrain timestamps, the next write
/// after a look at them updates them, and the next sync then writes the inode too.
const TIMELESS: StatxFlags =
    StatxFlags::TYPE.union(StatxFlags::INO).union(StatxFlags::SIZE).union(StatxFlags::NLINK);

/// The files of a store as last seen. They are held by descriptors that only name a place (`O_PATH`): closing
/// one that can read or write would drop SQLite's locks.
#[derive(Debug)]
pub(crate) struct Footing {
    /// SQLite shortens it only when it rewrites it or gives space back, which is announced here.
    file: Seen,
    /// SQLite creates it at the first commit, and may cut it to this length when it starts it over.
    log: Seen,
}

#[derive(Debug)]
struct Seen {
    path: PathBuf,
    /// The length to which SQLite itself may cut it, now and in general.
    may_be: u64,
    rule: u64,
    known: Option<Known>,
    /// The known file, whatever its name is now.
    held: Option<OwnedFd>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    identity: (u64, u64),
    length: u64,
    /// Whether it still has a name.
    named: bool,
}

impl Footing {
    pub(crate) fn new(path: &Path) -> Footing {
        Footing { file: Seen::new(path.to_owned(), u64::MAX), log: Seen::new(log_of(path), LARGEST_LOG) }
    }

    /// Returns the first file that is missing, replaced or cut.
    pub(crate) fn lost(&mut self) -> Option<PathBuf> {
        let lost =
            [&mut self.file, &mut self.log].into_iter().find_map(|file| (!file.stands()).then_some(file));
        lost.map(|file| file.path.clone())
    }

    /// Returns the first file that was cut or has lost every name, as far as this shows without resolving its
    /// path: a file that was moved, or whose folder was, shows only in [`lost`](Footing::lost).
    pub(crate) fn sunk(&mut self) -> Option<PathBuf> {
        let sunk =
            [&mut self.file, &mut self.log].into_iter().find_map(|file| (!file.floats()).then_some(file));
        sunk.map(|file| file.path.clone())
    }

    /// Whether a file is still the same but shorter: then it does not fit the other one.
    pub(crate) fn is_cut(&self) -> bool {
        [&self.file, &self.log].into_iter().any(Seen::is_cut)
    }

    /// Notes that we are cutting the log now.
    pub(crate) fn log_is_cut(&mut self) {
        self.log.may_be_any_length();
    }

    /// Notes that we will cut the file to this length at the next checkpoint.
    pub(crate) fn file_will_be_cut(&mut self, to: u64) {
        self.file.may_be = to;
    }

    /// Notes that we are rewriting the file now, and the log with it.
    pub(crate) fn file_is_cut(&mut self) {
        self.file.may_be_any_length();
        self.log.may_be_any_length();
    }
}

impl Seen {
    fn new(path: PathBuf, may_be: u64) -> Seen {
        let mut seen = Seen { path, may_be, rule: may_be, known: None, held: None };
        seen.stands();
        seen
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
            self.hold();
            self.was_cut();
        }
        stands
    }

    /// Notes that SQLite has cut off what it was expected to.
    fn was_cut(&mut self) {
        if self.known.is_some_and(|known| known.length <= self.may_be) {
            self.may_be = self.rule;
        }
    }

    /// Without a descriptor there is only the name.
    fn floats(&mut self) -> bool {
        let Some(now) = self.held.as_ref().and_then(look_at) else {
            return self.stands();
        };
        let floats = now.named && !self.falls_short(&now);
        if floats {
            self.known = Some(now);
        }
        floats
    }

    /// Takes hold of the known file, if it is still the one at its path.
    fn hold(&mut self) {
        if self.held.is_some() || self.known.is_none() {
            return;
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let held = rustix::fs::open(&self.path, flags, Mode::empty()).ok();
        let is_known = |held: &OwnedFd| {
            let identity = look_at(held).map(|found| found.identity);
            identity.is_some() && identity == self.known.map(|known| known.identity)
        };
        self.held = held.filter(is_known);
    }

    fn is_cut(&self) -> bool {
        look(&self.path).is_some_and(|now| self.falls_short(&now))
    }

    fn falls_short(&self, now: &Known) -> bool {
        let same = |known: &&Known| known.identity == now.identity;
        self.known.as_ref().filter(same).is_some_and(|known| now.length < known.length.min(self.may_be))
    }
}

impl Known {
    fn of(found: &Statx) -> Known {
        let device = (u64::from(found.stx_dev_major) << 32) | u64::from(found.stx_dev_minor);
        Known { identity: (device, found.stx_ino), length: found.stx_size, named: found.stx_nlink > 0 }
    }
}

fn look(path: &Path) -> Option<Known> {
    rustix::fs::statx(CWD, path, AtFlags::empty(), TIMELESS).ok().as_ref().map(Known::of)
}

fn look_at(held: impl AsFd) -> Option<Known> {
    rustix::fs::statx(held, c"", AtFlags::EMPTY_PATH, TIMELESS).ok().as_ref().map(Known::of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
    fn a_file_that_is_cut_or_removed_is_missed_whatever_has_its_name_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let (log, aside) = (log_of(&path), folder.path().join("aside"));
        for file in [&path, &log] {
            fs::write(file, "12345678").unwrap();
        }
        let mut footing = Footing::new(&path);
        assert_eq!(footing.sunk(), None);
        for file in [&path, &log] {
            let open = fs::File::options().write(true).open(file).unwrap();
            open.set_len(4).unwrap();
            assert_eq!(footing.sunk().as_ref(), Some(file));
            open.set_len(16).unwrap();
            assert_eq!(footing.sunk(), None);
            open.set_len(8).unwrap();
            assert_eq!(footing.sunk().as_ref(), Some(file), "it was longer when it was last looked at");
            open.set_len(16).unwrap();
            fs::rename(file, &aside).unwrap();
            fs::write(file, "another one, which is longer").unwrap();
            assert_eq!(footing.sunk(), None, "it is there, by another name");
            assert_eq!(footing.lost().as_ref(), Some(file));
            fs::rename(&aside, file).unwrap();
            assert_eq!(footing.lost(), None);
        }
        fs::remove_file(&log).unwrap();
        assert_eq!(footing.sunk(), Some(log));
    }

    #[test]
    fn to_let_go_of_the_files_takes_no_lock_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch("CREATE TABLE t (x); BEGIN EXCLUSIVE").unwrap();
        drop(Footing::new(&path));
        let is_locked = || {
            let locks = fs::read_to_string("/proc/locks").unwrap();
            let inode = format!(":{} ", rustix::fs::stat(&path).unwrap().st_ino);
            locks.lines().any(|line| line.contains("POSIX") && line.contains(&inode))
        };
        assert!(is_locked());
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
        footing.file_will_be_cut(6);
        assert_eq!(footing.lost(), None, "not yet");
        cut(&path, 6);
        assert_eq!(footing.lost(), None);
        cut(&path, 5);
        assert_eq!(footing.lost().as_ref(), Some(&path), "only so far, and only once");
        cut(&path, 6);
        footing.log_is_cut();
        cut(&log, 0);
        assert_eq!(footing.lost(), None);
        cut(&log, LARGEST_LOG + 10);
        assert_eq!(footing.lost(), None);
        cut(&log, LARGEST_LOG);
        assert_eq!(footing.lost(), None, "SQLite begins a long log anew");
    }
}
