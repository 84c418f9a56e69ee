//! Asks the kernel who is at the other end of a socket.
//!
//! The verdict is [`pinfold_core::caller::judge`], the same for daemon and shims; this file gathers its evidence: a few
//! files of one process and of those above it, never a search through `/proc`. The peer is the process that connected:
//! whoever hands a connection on hands on what it may do.

use crate::process::{parse_parent, parse_start_ticks};
use crate::{process, raw, sys};
use pinfold_core::caller::{Bounds, Sighting, Standing, judge};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What every shim is called, whatever its program's file is called by now.
const SHIM: &[u8] = b"pinfold-shim";
/// No line of processes is longer; a longer one is not followed to its end.
const LONGEST_LINE: usize = 1024;
/// A process above may end while it is looked at: its child has another parent then.
const TRIES: usize = 16;
/// A daemon takes its lock before it opens much else; whoever has a thousand descriptors is not searched.
const LOOKED_AT: u32 = 128;
const NAMESPACES: [&str; 4] = ["ns/mnt", "ns/user", "ns/pid", "ns/net"];

/// Who is at the other end of a socket, as the kernel says.
#[derive(Debug)]
pub struct Peer {
    /// Its user.
    pub user: u32,
    /// Nothing where it is in a pid namespace that cannot be seen from here.
    pub pid: Option<u32>,
    /// Tells whether it still is who it was.
    pidfd: Option<OwnedFd>,
}

impl Peer {
    /// Asks who is there.
    ///
    /// # Errors
    /// When the socket has no peer.
    pub fn of(socket: BorrowedFd<'_>) -> Result<Peer, Errno> {
        let (pid, user) = raw::peer(socket)?;
        // Before Linux 6.5 the number has to do, from now on: who had it when it connected is not known.
        let pidfd = match (raw::peer_pidfd(socket), pid) {
            (Err(Errno::NOPROTOOPT), Some(pid)) => sys::pidfd(pid),
            (other, _) => other,
        };
        match pidfd {
            Err(errno) if is_shortage(errno) => Err(errno),
            pidfd => Ok(Peer { user, pid, pidfd: pidfd.ok() }),
        }
    }

    /// Places it relative to this process.
    ///
    /// # Errors
    /// When there is no descriptor or memory left to look with: that says nothing about the peer.
    pub fn place(&self) -> Result<Standing, Errno> {
        static OWN: OnceLock<Bounds> = OnceLock::new();
        let own = match OWN.get() {
            Some(own) => own,
            None => match Proc(std::process::id()).bounds() {
                Ok(own) => OWN.get_or_init(|| own),
                Err(errno) if is_shortage(errno) => return Err(errno),
                Err(_) => return Ok(judge(&Bounds::default(), Sighting::Unreadable)),
            },
        };
        Ok(judge(own, self.sight()?))
    }

    fn sight(&self) -> Result<Sighting, Errno> {
        let Some(pid) = self.pid else { return Ok(Sighting::Unseen) };
        let Some(pidfd) = &self.pidfd else { return Ok(Sighting::Ended) };
        let peer = Proc(pid);
        let seen = peer.bounds().and_then(|bounds| Ok((bounds, shims_above(peer)?)));
        // Asked last: one that has not ended now had not ended when /proc was read.
        match (process::has_ended(pidfd), seen) {
            (_, Err(errno)) | (Err(errno), _) if is_shortage(errno) => Err(errno),
            (Ok(false), Ok((bounds, shims))) => Ok(Sighting::Whole { bounds, shims }),
            (Ok(true), _) => Ok(Sighting::Ended),
            (Ok(false) | Err(_), Err(_)) | (Err(_), Ok(_)) => Ok(Sighting::Unreadable),
        }
    }

    /// The program that it runs, for people.
    #[must_use]
    pub fn program(&self) -> Option<PathBuf> {
        sys::read_link(Path::new(&format!("/proc/{}/exe", self.pid?))).ok()
    }

    /// Whether it holds an exclusive `flock` on one of these files, by one of the descriptors that it opened first.
    #[must_use]
    pub fn holds(&self, files: &[FileId]) -> bool {
        let (Some(pid), Some(pidfd)) = (self.pid, &self.pidfd) else { return false };
        let holds = (0..LOOKED_AT).any(|number| Proc(pid).holds(files, number).unwrap_or(false));
        holds && process::has_ended(pidfd) == Ok(false)
    }
}

/// Whether the kernel had nothing left to answer with.
fn is_shortage(errno: Errno) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM].contains(&errno)
}

/// A file as the kernel knows it: device and inode.
pub type FileId = (u64, u64);

/// The file at a path, if there is one.
#[must_use]
pub fn file_id(path: &Path) -> Option<FileId> {
    rustix::fs::stat(path).ok().map(|found| (found.st_dev, found.st_ino))
}

/// What `/proc` has of the process that has a number now. It takes one descriptor at a time: there may be no more.
#[derive(Clone, Copy)]
struct Proc(u32);

impl Proc {
    fn read<'a>(&self, name: &str, bytes: &'a mut [u8]) -> Result<&'a [u8], Errno> {
        let path = process::proc_path(self.0, name);
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let length = rustix::io::read(&file, &mut *bytes)?;
        Ok(&bytes[..length])
    }

    fn bounds(&self) -> Result<Bounds, Errno> {
        let mut bytes = [0; 4096];
        let (no_new_privs, filters) = held_back(self.read("status", &mut bytes)?).ok_or(Errno::IO)?;
        let mut namespaces = [0; 4];
        for (namespace, name) in namespaces.iter_mut().zip(NAMESPACES) {
            *namespace = rustix::fs::stat(process::proc_path(self.0, name))?.st_ino;
        }
        Ok(Bounds { no_new_privs, filters, namespaces })
    }

    fn stat(&self) -> Result<Stat, Errno> {
        let mut bytes = [0; 1024];
        Stat::parse(self.read("stat", &mut bytes)?).ok_or(Errno::IO)
    }

    fn holds(&self, files: &[FileId], number: u32) -> Result<bool, Errno> {
        let found = rustix::fs::stat(process::proc_path(self.0, &format!("fd/{number}")))?;
        let mut bytes = [0; 1024];
        Ok(files.contains(&(found.st_dev, found.st_ino))
            && has_flock(self.read(&format!("fdinfo/{number}"), &mut bytes)?))
    }
}

/// What `fdinfo` says of the locks that are held by one description.
fn has_flock(text: &[u8]) -> bool {
    let words =
        |line: &[u8]| line.starts_with(b"lock:") && contains(line, b"FLOCK") && contains(line, b"WRITE");
    text.split(|byte| *byte == b'\n').any(words)
}

fn contains(line: &[u8], word: &[u8]) -> bool {
    line.split(u8::is_ascii_whitespace).any(|found| found == word)
}

/// `NoNewPrivs` and the number of filters in `/proc/PID/status`. Kernels before 5.10 do not count the filters.
fn held_back(status: &[u8]) -> Option<(bool, u32)> {
    let field = |name: &[u8]| {
        let mut lines = status.split(|byte| *byte == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(name))?;
        std::str::from_utf8(value).ok()?.trim().parse::<u32>().ok()
    };
    // A kernel without seccomp has no such line.
    let mode = field(b"Seccomp:").unwrap_or(0);
    let filters = field(b"Seccomp_filters:").unwrap_or(0).max(mode.min(1));
    Some((field(b"NoNewPrivs:")? != 0, filters))
}

/// What is read of every process in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: u32,
    start: u64,
    shim: bool,
}

impl Stat {
    fn parse(bytes: &[u8]) -> Option<Stat> {
        let open = bytes.iter().position(|byte| *byte == b'(')?;
        let close = bytes.iter().rposition(|byte| *byte == b')')?;
        let shim = bytes.get(open + 1..close)? == SHIM;
        Some(Stat { parent: parse_parent(bytes)?, start: parse_start_ticks(bytes)?, shim })
    }
}

/// The shims above a process, the nearest first. A shim adopts what its agents leave behind, so no process of a run
/// has a line that does not lead to it.
fn shims_above(peer: Proc) -> Result<Vec<u32>, Errno> {
    let mut shims = Vec::new();
    let (mut below, mut child) = (peer, peer.stat()?);
    for _ in 0..LONGEST_LINE {
        let Some((parent, stat)) = above(below, child)? else { return Ok(shims) };
        if stat.shim {
            shims.push(parent.0);
        }
        (below, child) = (parent, stat);
    }
    Err(Errno::LOOP)
}

/// The process above one; nothing at the end of the line.
fn above(below: Proc, mut child: Stat) -> Result<Option<(Proc, Stat)>, Errno> {
    for _ in 0..TRIES {
        if child.parent <= 1 {
            return Ok(None);
        }
        let parent = Proc(child.parent);
        match parent.stat() {
            // A parent is never younger than its child: one that is has the number of one that ended.
            Ok(stat) if stat.start <= child.start => return Ok(Some((parent, stat))),
            Ok(_) => {}
            // Ended, or hidden, as /proc may hide other users' processes. No shim of this user is hidden.
            Err(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM) => {
                if below.stat()?.parent == child.parent {
                    return Ok(None);
                }
            }
            Err(errno) => return Err(errno),
        }
        child = below.stat()?;
    }
    Err(Errno::AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    #[test]
    fn this_process_is_placed_as_what_it_is() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = Peer::of(ours.as_fd()).unwrap();
        assert_eq!(peer.pid, Some(std::process::id()));
        assert_eq!(peer.place().unwrap().confined, [], "nobody is more confined than it is itself");
    }

    #[test]
    fn one_that_has_ended_is_not_placed() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id();
        let pidfd = sys::pidfd(pid).unwrap();
        let peer = Peer { user: 0, pid: Some(pid), pidfd: Some(pidfd) };
        child.wait().unwrap();
        assert_eq!(peer.sight(), Ok(Sighting::Ended));
        let unseen = Peer { user: 0, pid: None, pidfd: None };
        assert_eq!(unseen.sight(), Ok(Sighting::Unseen));
    }

    #[test]
    fn a_number_that_another_process_has_by_now_is_not_believed() {
        // The pidfd says who was meant; the number is that of one who lives.
        let mut gone = Command::new("true").spawn().unwrap();
        let pidfd = sys::pidfd(gone.id()).unwrap();
        gone.wait().unwrap();
        let peer = Peer { user: 0, pid: Some(std::process::id()), pidfd: Some(pidfd) };
        assert_eq!(peer.sight(), Ok(Sighting::Ended));
    }

    #[test]
    fn status_tells_what_holds_a_process_back() {
        let rows: [(&str, Option<(bool, u32)>); 5] = [
            ("Name:\tx\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n", Some((false, 0))),
            ("NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n", Some((true, 3))),
            ("NoNewPrivs:\t1\nSeccomp:\t2\n", Some((true, 1))),
            ("NoNewPrivs:\t0\n", Some((false, 0))),
            ("Name:\tx\n", None),
        ];
        for (status, expected) in rows {
            assert_eq!(held_back(status.as_bytes()), expected, "{status:?}");
        }
    }

    #[test]
    fn a_shim_is_known_by_its_name_whatever_stands_in_the_others() {
        let line = |name: &str| {
            let after = (3..=30).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
            format!("7 ({name}) {after}\n").into_bytes()
        };
        for (name, shim) in
            [("pinfold-shim", true), ("sh", false), ("a) (pinfold-shim", false), ("pinfold-shim)", false)]
        {
            let stat = Stat::parse(&line(name)).unwrap();
            assert_eq!((stat.parent, stat.start, stat.shim), (4, 22, shim), "{name}");
        }
        assert_eq!(Stat::parse(b"7 (x"), None);
    }

    #[test]
    fn only_an_exclusive_flock_on_that_file_counts_as_held() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("lock"), folder.path().join("other"));
        let file = std::fs::File::create(&path).unwrap();
        std::fs::write(&other, "").unwrap();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = Peer::of(ours.as_fd()).unwrap();
        let [file_id, other] = [&path, &other].map(|path| [file_id(path).unwrap()]);
        assert!(!peer.holds(&file_id), "nobody holds it");
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockShared).unwrap();
        assert!(!peer.holds(&file_id), "shared is not enough");
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
        assert!(peer.holds(&file_id));
        assert!(!peer.holds(&other) && !peer.holds(&[]));
    }

    #[test]
    fn one_whose_parent_has_ended_has_a_line_to_its_end() {
        // It ends with what it reads, which is this test's.
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec 3<&0; (cat <&3 >&2 & echo $!)"]);
        let mut shell =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let input = shell.stdin.take();
        let mut told = String::new();
        shell.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        let pid = told.trim().parse().unwrap();
        shell.wait().unwrap();
        let own = shims_above(Proc(std::process::id())).unwrap();
        assert_eq!(shims_above(Proc(pid)).unwrap(), own);
        drop(input);
    }
}
