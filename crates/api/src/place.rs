//! Where a home's daemon is: a small file in the home, written by its daemon and read by all clients.
//!
//! A login, cron, `su` and ssh look for sockets in different places; the home is the same for all of them.
//! Which process has the home is another question that only the kernel answers: the flocks on the home's
//! folder and on `daemon.lock`. A file can be removed under its daemon; the folder cannot.

use pinfold_kernel::proc;
use pinfold_kernel::proc::fdinfo::{Flock, flock};
use pinfold_lock::{Identity, process};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file in a home that says where its daemon is.
const FILE: &str = "daemon.place";
/// The file in a home that says that its last daemon was stopped. It counts only while [`FILE`] is missing.
const STOPPED: &str = "daemon.stopped";
/// The file in a home whose flock makes its daemon the only one.
const LOCK: &str = "daemon.lock";
/// The name of every daemon's program, even of one that did not sign the lock.
const PROGRAM: &str = "pinfold";

/// Where a daemon is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonPlace {
    /// The daemon's process.
    pub pid: u32,
    /// Its API socket.
    pub socket: PathBuf,
}

impl DaemonPlace {
    /// Reads what the home says. A missing or torn file says nothing, nor does one that was written for
    /// another home or names a socket of another user.
    ///
    /// It may have outlived its daemon, so it proves nothing: it only says where to ask.
    #[must_use]
    pub fn read(home: &Path) -> Option<DaemonPlace> {
        let (place, of) = DaemonPlace::from_bytes(&std::fs::read(home.join(FILE)).ok()?)?;
        let (socket, home) = (std::fs::metadata(&place.socket).ok()?, std::fs::metadata(home).ok()?);
        // A copied home has the file of another home's daemon.
        let ours = of == (home.dev(), home.ino()) && socket.uid() == home.uid();
        (ours && socket.file_type().is_socket()).then_some(place)
    }

    /// Writes where the daemon is. A client that reads meanwhile sees the old file or this one.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, home: &Path) -> io::Result<()> {
        let of = std::fs::metadata(home)?;
        let new = home.join(format!("{FILE}.new"));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&self.to_bytes((of.dev(), of.ino())))?;
        std::fs::rename(&new, home.join(FILE))?;
        _ = std::fs::remove_file(home.join(STOPPED));
        Ok(())
    }

    /// Removes the file when its daemon goes, but another one is to follow.
    pub fn remove(home: &Path) {
        _ = std::fs::remove_file(home.join(FILE));
    }

    /// Leaves a mark that the daemon was stopped: clients that follow something start none until the next one
    /// was started. A rename needs no space on a full disk.
    pub fn stop(home: &Path) {
        let mark = home.join(STOPPED);
        if std::fs::rename(home.join(FILE), &mark).is_err() {
            _ = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(mark);
        }
    }

    /// Whether the last daemon of a home was stopped. A daemon that crashed has left its own file.
    #[must_use]
    pub fn is_stopped(home: &Path) -> bool {
        let exists = |name| std::fs::symlink_metadata(home.join(name)).is_ok();
        exists(STOPPED) && !exists(FILE)
    }

    /// The home is identified by its device and inode.
    fn to_bytes(&self, home: (u64, u64)) -> Vec<u8> {
        let mut bytes = format!("{} {} {}\n", self.pid, home.0, home.1).into_bytes();
        bytes.extend_from_slice(self.socket.as_os_str().as_bytes());
        bytes.push(b'\n');
        bytes
    }

    /// A path may contain any byte but 0, even a newline: the last one ends the file.
    fn from_bytes(bytes: &[u8]) -> Option<(DaemonPlace, (u64, u64))> {
        let bytes = bytes.strip_suffix(b"\n")?;
        let line = bytes.iter().position(|byte| *byte == b'\n')?;
        let mut words = std::str::from_utf8(&bytes[..line]).ok()?.split(' ');
        let pid = words.next()?.parse().ok()?;
        let home = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let socket = PathBuf::from(std::ffi::OsString::from_vec(bytes[line + 1..].to_vec()));
        socket.is_absolute().then_some((DaemonPlace { pid, socket }, home))
    }
}

/// Returns the process that has a home, according to the kernel: it holds the lock. `None` if it cannot be
/// seen from here or is gone.
#[must_use]
pub fn holder(home: &Path) -> Option<u32> {
    let written = std::fs::read(home.join(FILE)).ok().and_then(|bytes| DaemonPlace::from_bytes(&bytes));
    let written = written.map(|(place, _)| place.pid);
    locks(home).iter().find_map(|lock| {
        let lock = std::fs::metadata(lock).ok()?;
        let lock = (lock.dev(), lock.ino());
        let said = written.filter(|pid| holds(*pid, lock));
        said.or_else(|| processes().find(|pid| holds(*pid, lock)))
    })
}

/// Returns what a daemon holds exclusive flocks on. A daemon of the previous version has only the one on the file.
#[must_use]
pub fn locks(home: &Path) -> [PathBuf; 2] {
    [home.join(LOCK), home.to_owned()]
}

fn processes() -> impl Iterator<Item = u32> {
    proc::pids().unwrap_or_default().into_iter()
}

/// Whether a process holds the exclusive flock on a file. A process that waits for it has the file open, too.
fn holds(pid: u32, lock: (u64, u64)) -> bool {
    has_flock(pid, lock, |flock| flock == Flock::Exclusive)
}

fn has_flock(pid: u32, lock: (u64, u64), is_it: impl Fn(Flock) -> bool) -> bool {
    let open = proc::numbers(&proc::path(pid, "fd")).unwrap_or_default();
    open.into_iter().any(|number| {
        let file = std::fs::metadata(proc::path(pid, &format!("fd/{number}")));
        file.is_ok_and(|file| (file.dev(), file.ino()) == lock) && {
            let info = std::fs::read(proc::path(pid, &format!("fdinfo/{number}"))).unwrap_or_default();
            flock(&info).is_some_and(&is_it)
        }
    })
}

/// Writes into the lock which process holds it: the daemon that just took it.
///
/// # Errors
/// The system's error.
pub fn sign(lock: impl AsFd) -> io::Result<()> {
    let own = process::own().map_err(io::Error::other)?;
    let text = serde_json::to_vec(&own).map_err(io::Error::other)?;
    rustix::fs::ftruncate(&lock, 0)?;
    rustix::io::pwrite(&lock, &text, 0)?;
    Ok(())
}

/// A process that holds a home's lock but is not a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Squatter {
    /// Its pid.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

/// Returns the process that keeps every daemon out of a home although it is not one: it holds the lock, did
/// not sign it, and is not called `pinfold`. Looks at every process, so it is for when nothing answers.
#[must_use]
pub fn squatter(home: &Path) -> Option<Squatter> {
    let signed = std::fs::read(home.join(LOCK)).ok();
    let signed: Option<Identity> = signed.and_then(|text| serde_json::from_slice(&text).ok());
    let daemon = |pid: u32| {
        let own = signed.is_some_and(|signed| process::identify(pid).is_ok_and(|found| found == signed));
        own || proc::name(pid).is_some_and(|name| name.starts_with(PROGRAM))
    };
    let pid = locks(home).iter().find_map(|lock| {
        let lock = std::fs::symlink_metadata(lock).ok()?;
        let lock = (lock.dev(), lock.ino());
        processes().filter(|pid| has_flock(*pid, lock, |_| true)).find(|pid| !daemon(*pid))
    })?;
    Some(Squatter { pid, command: proc::command(pid) })
}

/// Whether a daemon has the home. This takes a shared lock for a moment: a daemon that starts just then tries again.
#[must_use]
pub fn is_held(home: &Path) -> bool {
    use rustix::fs::{FlockOperation, flock};
    // Whatever a directory has under this name, opening it neither waits nor follows a link.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    locks(home).iter().any(|lock| {
        rustix::fs::open(lock, flags, Mode::empty())
            .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn any_path_is_read_back_and_a_torn_file_says_nothing() {
        for path in [&b"/run/user/7/pinfold/pinfold.sock"[..], b"/a\nb/\xff.sock"] {
            let place = DaemonPlace { pid: 4711, socket: OsStr::from_bytes(path).into() };
            let bytes = place.to_bytes((7, 8));
            assert_eq!(DaemonPlace::from_bytes(&bytes), Some((place, (7, 8))));
            for cut in 0..bytes.len() - 1 {
                let torn = DaemonPlace::from_bytes(&bytes[..cut]);
                // A newline in a path may end a piece of it; that piece is not a socket.
                assert!(torn.is_none() || path.contains(&b'\n'), "{cut}");
            }
        }
        assert_eq!(DaemonPlace::from_bytes(b"4711 7 8\nrelative.sock\n"), None);
        assert_eq!(DaemonPlace::from_bytes(b"4711\n/of/no/home.sock\n"), None);
        assert_eq!(DaemonPlace::from_bytes(b"\0\0\0\0"), None);
    }
}
