//! Decides whether a directory may be used as a home.
//!
//! A home says which programs are run as its user, and pinfold writes into it and closes it to others. So a
//! directory is used only if pinfold made it a home (`marker`), or an earlier version did (`unmarked`), or if
//! it is empty; and a home that came from elsewhere, in a clone or an archive, only if its user approves it
//! once (`known`). A directory that is refused is not touched.

mod known;
mod marker;
mod unmarked;

use crate::global::Global;
use crate::output::{Failure, Kind};
use marker::Marker;
use pinfold_kernel::private::{self, NotPrivate, Wider};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The name of the folder, in the user's usual home, that lists the homes made here.
pub(super) use known::LIST;

const ANOTHER: &str = "--home DIR or PINFOLD_HOME names another one";

/// What to do if the home does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Make,
    Leave,
}

/// A directory named as a home.
pub(super) struct HomeCandidate<'a> {
    pub(super) path: &'a Path,
    /// Whether it is the user's default home.
    pub(super) usual: bool,
    /// Where the homes made here are listed.
    pub(super) list: Option<PathBuf>,
}

/// A home that may be used.
pub(super) struct SettledHome {
    /// The permission bits it had, if they were too wide and have been tightened.
    pub(super) tightened: Option<u32>,
}

/// Makes sure that a directory is a home of ours and closed to others. Returns `None` if it does not exist
/// and is not to be made.
pub(super) fn settle(
    candidate: &HomeCandidate<'_>,
    missing: Missing,
    global: &Global,
) -> Result<Option<SettledHome>, Failure> {
    let path = candidate.path;
    let unusable = |error: NotPrivate| unusable(path, &error);
    let real = private::way(path).map_err(unusable)?;
    let Some(dir) = open(&real, missing).map_err(unusable)? else { return Ok(None) };
    let facts = rustix::fs::fstat(&dir).map_err(|errno| unusable(system(path, errno)))?;
    let caller = rustix::process::geteuid().as_raw();
    if facts.st_uid != caller {
        return Err(unusable(NotPrivate::NotOurs { path: path.to_owned(), owner: facts.st_uid, caller }));
    }
    let home = Looked { candidate, real: &real, dir: dir.as_fd() };
    match home.judge() {
        Verdict::Known => {}
        Verdict::Fresh if missing == Missing::Leave => return Ok(None),
        Verdict::Fresh => home.mark().map_err(|errno| unusable(system(path, errno)))?,
        // If the marker cannot be written, the next verb judges again.
        Verdict::Unmarked => _ = home.mark(),
        Verdict::Strange(_) if global.trust => home.mark().map_err(|errno| unusable(system(path, errno)))?,
        Verdict::Strange(what) => return Err(strange(path, what)),
        Verdict::Foreign(name) => return Err(foreign(path, &name)),
    }
    let bits = private::check(&dir, &facts, path, Wider::Tighten).map_err(unusable)?;
    Ok(Some(SettledHome { tightened: (bits & 0o077 != 0).then_some(bits) }))
}

fn open(real: &Path, missing: Missing) -> Result<Option<OwnedFd>, NotPrivate> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(real, flags, Mode::empty()) {
        Err(Errno::NOENT) if missing == Missing::Leave => Ok(None),
        Err(Errno::NOENT) => private::open(real, Wider::Refuse).map(|(dir, _)| Some(dir)),
        opened => opened.map(Some).map_err(|errno| system(real, errno)),
    }
}

fn system(path: &Path, source: Errno) -> NotPrivate {
    match source {
        Errno::NOTDIR | Errno::LOOP => NotPrivate::NotADirectory { path: path.to_owned() },
        source => NotPrivate::System { path: path.to_owned(), source },
    }
}

/// What kind of directory it is.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// A home made here.
    Known,
    /// It has nothing in it that anyone would miss.
    Fresh,
    /// A home made here by an earlier version.
    Unmarked,
    /// A home or a configuration that may have come from anywhere.
    Strange(&'static str),
    /// Another kind of directory, with this file in it.
    Foreign(OsString),
}

struct Looked<'a> {
    candidate: &'a HomeCandidate<'a>,
    real: &'a Path,
    dir: BorrowedFd<'a>,
}

impl Looked<'_> {
    fn judge(&self) -> Verdict {
        loop {
            if let Some(marker) = Marker::read(self.dir) {
                return if self.is_known(&marker) { Verdict::Known } else { Verdict::Strange("a home") };
            }
            let names = self.names();
            // Another verb may have made it a home in the meantime.
            if !names.iter().any(|name| name == marker::FILE) || Marker::is_broken(self.dir) {
                return self.unmarked(names);
            }
        }
    }

    fn is_known(&self, marker: &Marker) -> bool {
        let listed = || self.candidate.list.as_deref().is_some_and(|list| known::is_listed(list, &marker.id));
        self.candidate.usual || marker.is_of(self.dir) || listed() || unmarked::was_used_here(self.real)
    }

    fn unmarked(&self, mut names: Vec<OsString>) -> Verdict {
        names.retain(|name| !is_nobodys(name));
        if names.is_empty() {
            return Verdict::Fresh;
        }
        if names.iter().all(|name| name == "config.toml") {
            let strange = !self.candidate.usual && unmarked::is_cloned(self.real);
            return if strange { Verdict::Strange("its configuration") } else { Verdict::Fresh };
        }
        match unmarked::stranger(self.dir, &names, self.candidate.usual) {
            Some(name) => Verdict::Foreign(name),
            None if self.candidate.usual || unmarked::was_used_here(self.real) => Verdict::Unmarked,
            None => Verdict::Strange("a home"),
        }
    }

    fn names(&self) -> Vec<OsString> {
        let through = format!("/proc/self/fd/{}", self.dir.as_raw_fd());
        let entries = std::fs::read_dir(through).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).collect()
    }

    /// Makes the directory a home of ours.
    fn mark(&self) -> Result<(), Errno> {
        let marker = Marker::read(self.dir).unwrap_or_else(Marker::new);
        marker.write(self.dir)?;
        if let Some(list) = self.candidate.list.as_deref() {
            _ = known::add(list, &marker.id, self.real);
        }
        Ok(())
    }
}

/// Whether a file comes from a new file system, or from a marker that was not finished.
fn is_nobodys(name: &OsString) -> bool {
    name == "lost+found" || name.to_str().is_some_and(|name| name.starts_with(marker::FILE))
}

fn unusable(path: &Path, error: &NotPrivate) -> Failure {
    let closed = [Errno::ACCESS, Errno::PERM, Errno::ROFS].contains(&error.errno());
    let failure = match error {
        NotPrivate::System { source, .. } => {
            let kind = if closed { Kind::NotPermitted } else { Kind::Failed };
            Failure::new(kind, format!("{} cannot be used as home: {source}", path.display()))
        }
        NotPrivate::NotADirectory { .. } => Failure::from_error(Kind::BadConfig, error),
        NotPrivate::NotOurs { .. }
        | NotPrivate::Open { .. }
        | NotPrivate::Above { .. }
        | NotPrivate::Writable { .. } => Failure::from_error(Kind::NotPermitted, error),
    };
    failure.hint(ANOTHER)
}

fn foreign(path: &Path, name: &OsString) -> Failure {
    let name = Path::new(name).display();
    let message = format!("{} is not a home of pinfold: it has `{name}` in it", path.display());
    Failure::new(Kind::BadConfig, message)
        .hint("nothing was changed; --home DIR or PINFOLD_HOME names a new directory, an empty one or a home")
}

fn strange(path: &Path, what: &str) -> Failure {
    let message =
        format!("{} was not made here, and {what} says which programs are run as you", path.display());
    Failure::new(Kind::BadConfig, message)
        .hint("nothing was changed; if you know where it comes from, `--trust` uses it from now on")
}
