//! Looks at the process at the other end of a socket: what restricts it, and which processes are above it.
//!
//! It reads a few files of that process and of its ancestors and never searches through `/proc`. The caller
//! judges what that means. The peer is the process that connected: a process that passes a connection on
//! passes on its own rights.

use crate::proc;
use crate::proc::fdinfo::{Flock, flock};
use crate::proc::stat::Stat;
use crate::{peer, pidfd, sys};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// No chain of parents is longer; a longer one is not followed to its end.
const LONGEST_LINE: usize = 1024;
/// An ancestor may end while it is looked at; then its child has another parent.
const TRIES: usize = 16;
/// A daemon takes its lock before it opens much else, so only the first descriptors are searched.
const LOOKED_AT: u32 = 128;
/// How many neighbours are remembered; each costs a descriptor.
const MOST_KNOWN: usize = 4;

/// The restrictions on a process beyond those of its user, as far as the kernel shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// `NoNewPrivs`, which every unprivileged seccomp or Landlock sandbox sets.
    pub no_new_privs: bool,
    /// The number of seccomp filters; strict mode counts as one.
    pub filters: u32,
    /// What tells its mount, user, pid and network namespaces from others.
    pub namespaces: [u64; 4],
}

/// What was seen of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerSeen {
    /// Everything, and the process was still alive afterwards, so what was read belongs to it.
    Whole {
        /// The restrictions on it.
        bounds: Bounds,
        /// The processes with the given name above it, the nearest first.
        above: Vec<u32>,
    },
    /// It has no pid here: it lives in a pid namespace that we cannot see.
    Unseen,
    /// It ended before or during the look.
    Ended,
    /// Some of it could not be read.
    Unreadable,
}

/// The process at the other end of a socket, according to the kernel.
#[derive(Debug)]
pub struct Peer {
    /// Its user id.
    pub user: u32,
    /// Its pid; `None` if it is in a pid namespace that cannot be seen from here.
    pub pid: Option<u32>,
    /// Shows whether it is still the same process.
    pidfd: Option<OwnedFd>,
}

impl Peer {
    /// Asks the kernel which process is there.
    ///
    /// # Errors
    /// The socket has no peer.
    pub fn of(socket: BorrowedFd<'_>) -> Result<Peer, Errno> {
        Peer::known_as(peer::Other::of(socket)?, socket)
    }

    /// Takes hold of a peer whose pid and user are already known.
    ///
    /// # Errors
    /// No descriptor is left to hold it by.
    pub fn known_as(other: peer::Other, socket: BorrowedFd<'_>) -> Result<Peer, Errno> {
        let peer::Other { user, pid } = other;
        // Before Linux 6.5 only the pid is known, and which process had it at the time of the connect is not.
        let pidfd = match (peer::pidfd(socket), pid) {
            (Err(Errno::NOPROTOOPT), Some(pid)) => sys::pidfd(pid),
            (other, _) => other,
        };
        match pidfd {
            Err(errno) if is_shortage(errno) => Err(errno),
            pidfd => Ok(Peer { user, pid, pidfd: pidfd.ok() }),
        }
    }

    /// Looks at it, and for processes called `name` above it. If there are none, its neighbours are quick to
    /// look at from then on.
    ///
    /// # Errors
    /// No descriptor or memory is left to look with; that says nothing about the peer.
    pub fn look(&self, name: &[u8], known: Option<&Neighbours>) -> Result<PeerSeen, Errno> {
        let Some(pid) = self.pid else { return Ok(PeerSeen::Unseen) };
        let Some(pidfd) = &self.pidfd else { return Ok(PeerSeen::Ended) };
        let peer = Proc(pid);
        let seen = peer.bounds(Some(pidfd)).and_then(|(bounds, parent)| {
            let beside_known = known.is_some_and(|known| known.has(parent));
            Ok((bounds, if beside_known { Vec::new() } else { named_above(peer, name, known)? }))
        });
        // Asked last: a process that has not ended by now had not ended when /proc was read.
        match (pidfd::has_ended(pidfd), seen) {
            (_, Err(errno)) | (Err(errno), _) if is_shortage(errno) => Err(errno),
            (Ok(false), Ok((bounds, above))) => Ok(PeerSeen::Whole { bounds, above }),
            (Ok(true), _) => Ok(PeerSeen::Ended),
            (Ok(false) | Err(_), Err(_)) | (Err(_), Ok(_)) => Ok(PeerSeen::Unreadable),
        }
    }

    /// Whether it holds an exclusive `flock` on one of these files, through one of its first descriptors.
    #[must_use]
    pub fn holds(&self, files: &[FileId]) -> bool {
        let (Some(pid), Some(pidfd)) = (self.pid, &self.pidfd) else { return false };
        let holds = (0..LOOKED_AT).any(|number| Proc(pid).holds(files, number).unwrap_or(false));
        holds && pidfd::has_ended(pidfd) == Ok(false)
    }
}

/// Living processes that have no process of the wanted name above them; use it for looks with one name only.
/// If those named processes are reapers, this never changes, because they adopt only what was already below
/// them. Most callers are children of the same few processes.
#[derive(Debug)]
pub struct Neighbours {
    known: Mutex<Vec<(u32, OwnedFd)>>,
    /// Most callers are in the namespaces of this process. While those are open here, the kernel does not
    /// have to create a file for them at each look, which is half the cost of looking at namespaces.
    _namespaces: Vec<OwnedFd>,
}

impl Default for Neighbours {
    fn default() -> Neighbours {
        let open = |name| {
            let path = proc::path(std::process::id(), name);
            rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
        };
        // Without them a look is slower but just as good.
        let namespaces = ["ns/mnt", "ns/user", "ns/net"].into_iter().filter_map(open).collect();
        Neighbours { known: Mutex::default(), _namespaces: namespaces }
    }
}

impl Neighbours {
    fn has(&self, pid: u32) -> bool {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = all.iter().position(|(known, _)| *known == pid) else { return false };
        // While it lives, no other process has its pid.
        let lives = pidfd::has_ended(&all[at].1) == Ok(false);
        if !lives {
            all.remove(at);
        }
        lives
    }

    fn add(&self, pid: u32, pidfd: OwnedFd) {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_KNOWN {
            all.remove(0);
        }
        all.push((pid, pidfd));
    }
}

/// Returns the restrictions on this process.
///
/// # Errors
/// `/proc` does not exist or belongs to another pid namespace.
pub fn own_bounds() -> Result<Bounds, Errno> {
    // Pids mean nothing in the /proc of another pid namespace.
    if !proc::is_ours()? {
        return Err(Errno::IO);
    }
    Proc(std::process::id()).bounds(None).map(|(bounds, _)| bounds)
}

/// Whether the kernel ran out of descriptors or memory.
#[must_use]
pub fn is_shortage(errno: Errno) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM].contains(&errno)
}

/// A file as the kernel knows it: device and inode.
pub type FileId = (u64, u64);

/// Returns the file at a path, if there is one.
#[must_use]
pub fn file_id(path: &Path) -> Option<FileId> {
    rustix::fs::stat(path).ok().map(|found| (found.st_dev, found.st_ino))
}

/// The files in `/proc` of the process that has this pid now. It uses one descriptor at a time, because no
/// more may be left.
#[derive(Clone, Copy)]
struct Proc(u32);

impl Proc {
    fn read<'a>(&self, name: &str, bytes: &'a mut [u8]) -> Result<&'a [u8], Errno> {
        let path = proc::path(self.0, name);
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let length = rustix::io::read(&file, &mut *bytes)?;
        Ok(&bytes[..length])
    }

    /// Returns the restrictions on it, and its parent.
    fn bounds(&self, pidfd: Option<&OwnedFd>) -> Result<(Bounds, u32), Errno> {
        let mut bytes = [0; 4096];
        let status = Status::parse(self.read("status", &mut bytes)?).ok_or(Errno::IO)?;
        let Status { no_new_privs, filters, parent, pids } = status;
        let [mounts, users, network] = self.namespaces(pidfd)?;
        Ok((Bounds { no_new_privs, filters, namespaces: [mounts, users, pids, network] }, parent))
    }

    fn namespaces(&self, pidfd: Option<&OwnedFd>) -> Result<[u64; 3], Errno> {
        match pidfd.map(|pidfd| pidfd::namespaces(pidfd.as_fd())) {
            Some(Ok(namespaces)) => return Ok(namespaces),
            Some(Err(errno)) if is_shortage(errno) => return Err(errno),
            // An older kernel, or the process has ended; then its files are gone as well.
            Some(Err(_)) | None => {}
        }
        let inode = |name| rustix::fs::stat(proc::path(self.0, name)).map(|found| found.st_ino);
        Ok([inode("ns/mnt")?, inode("ns/user")?, inode("ns/net")?])
    }

    fn stat(&self, name: &[u8]) -> Result<InLine, Errno> {
        let mut bytes = [0; 1024];
        InLine::parse(self.read("stat", &mut bytes)?, name).ok_or(Errno::IO)
    }

    fn holds(&self, files: &[FileId], number: u32) -> Result<bool, Errno> {
        let found = rustix::fs::stat(proc::path(self.0, &format!("fd/{number}")))?;
        let mut bytes = [0; 1024];
        Ok(files.contains(&(found.st_dev, found.st_ino))
            && flock(self.read(&format!("fdinfo/{number}"), &mut bytes)?) == Some(Flock::Exclusive))
    }
}

/// What `/proc/PID/status` says.
#[derive(Debug, PartialEq, Eq)]
struct Status {
    no_new_privs: bool,
    filters: u32,
    parent: u32,
    /// The number of pid namespaces in which it has a pid, counted from the one of this /proc.
    pids: u64,
}

impl Status {
    fn parse(text: &[u8]) -> Option<Status> {
        let (mut no_new_privs, mut parent, mut pids) = (None, None, None);
        // A kernel without seccomp has no such line, and one before 5.10 does not count filters.
        let (mut mode, mut filters) = (0, 0);
        // Only the name, in the first line, may contain other bytes.
        let name = text.iter().position(|byte| *byte == b'\n')?;
        let lines = std::str::from_utf8(&text[name + 1..]).ok()?.split('\n');
        // Five of more than fifty lines are needed; the first letter rules out most of the others.
        for line in lines.filter(|line| line.starts_with(['N', 'P', 'S'])) {
            let Some((name, value)) = line.split_once(':') else { continue };
            let number = || value.trim().parse::<u32>().ok();
            match name {
                "PPid" => parent = number(),
                "NSpid" => pids = Some(value.split_ascii_whitespace().count() as u64),
                "NoNewPrivs" => no_new_privs = Some(number()? != 0),
                "Seccomp" => mode = number().unwrap_or(0),
                "Seccomp_filters" => filters = number().unwrap_or(0),
                _ => {}
            }
        }
        let filters = filters.max(mode.min(1));
        Some(Status { no_new_privs: no_new_privs?, filters, parent: parent?, pids: pids? })
    }
}

/// What is read about every process in a chain of parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InLine {
    parent: u32,
    start: u64,
    named: bool,
}

impl InLine {
    fn parse(line: &[u8], name: &[u8]) -> Option<Self> {
        let stat = Stat::parse(line)?;
        Some(Self { parent: stat.parent()?, start: stat.start_ticks()?, named: stat.name == name })
    }
}

/// Returns the processes with this name above another, the nearest first. If they are reapers, whatever is
/// below them stays there, so no chain leads past them.
fn named_above(peer: Proc, name: &[u8], known: Option<&Neighbours>) -> Result<Vec<u32>, Errno> {
    let mut found = Vec::new();
    let (mut below, mut child) = (peer, peer.stat(name)?);
    let first = child.parent;
    let pidfd = known.and_then(|_| sys::pidfd(first).ok());
    for _ in 0..LONGEST_LINE {
        let Some((parent, stat)) = above(below, child, name)? else {
            if let (Some(known), Some(pidfd), true) = (known, pidfd, found.is_empty() && first > 1) {
                remember(known, peer, first, pidfd);
            }
            return Ok(found);
        };
        if stat.named {
            found.push(parent.0);
        }
        (below, child) = (parent, stat);
    }
    Err(Errno::LOOP)
}

/// Remembers the parent of a process, if it is still the one whose chain was followed.
fn remember(known: &Neighbours, child: Proc, parent: u32, pidfd: OwnedFd) {
    let same = child.stat(b"").is_ok_and(|stat| stat.parent == parent);
    if same && pidfd::has_ended(&pidfd) == Ok(false) {
        known.add(parent, pidfd);
    }
}

/// Returns the process above another; `None` at the end of the chain.
fn above(below: Proc, mut child: InLine, name: &[u8]) -> Result<Option<(Proc, InLine)>, Errno> {
    for _ in 0..TRIES {
        if child.parent <= 1 {
            return Ok(None);
        }
        let parent = Proc(child.parent);
        match parent.stat(name) {
            // A parent is never younger than its child: if it is, the pid was reused.
            Ok(stat) if stat.start <= child.start => return Ok(Some((parent, stat))),
            Ok(_) => {}
            // Ended, or hidden, because /proc may hide other users' processes. It hides none of this user's.
            Err(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM) => {
                if below.stat(name)?.parent == child.parent {
                    return Ok(None);
                }
            }
            Err(errno) => return Err(errno),
        }
        child = below.stat(name)?;
    }
    Err(Errno::AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    const NAME: &[u8] = b"keeper";

    #[test]
    fn this_process_is_placed_as_what_it_is() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = Peer::of(ours.as_fd()).unwrap();
        assert_eq!(peer.pid, Some(std::process::id()));
        let Ok(PeerSeen::Whole { bounds, .. }) = peer.look(NAME, None) else { panic!("it is not seen") };
        assert_eq!(Ok(bounds), own_bounds(), "nobody is more confined than it is itself");
    }

    #[test]
    fn a_pidfd_and_proc_tell_of_the_same_namespaces() {
        let pidfd = sys::pidfd(std::process::id()).unwrap();
        let own = Proc(std::process::id());
        match pidfd::namespaces(pidfd.as_fd()) {
            Ok(found) => assert_eq!(own.namespaces(None), Ok(found)),
            Err(errno) => assert!([Errno::NOTTY, Errno::INVAL].contains(&errno), "{errno}"),
        }
    }

    #[test]
    fn one_that_has_ended_is_not_placed() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id();
        let pidfd = sys::pidfd(pid).unwrap();
        let peer = Peer { user: 0, pid: Some(pid), pidfd: Some(pidfd) };
        child.wait().unwrap();
        assert_eq!(peer.look(NAME, None), Ok(PeerSeen::Ended));
        let unseen = Peer { user: 0, pid: None, pidfd: None };
        assert_eq!(unseen.look(NAME, None), Ok(PeerSeen::Unseen));
    }

    #[test]
    fn a_number_that_another_process_has_by_now_is_not_believed() {
        // The pidfd says which process was meant; the pid is that of a living one.
        let mut gone = Command::new("true").spawn().unwrap();
        let pidfd = sys::pidfd(gone.id()).unwrap();
        gone.wait().unwrap();
        let peer = Peer { user: 0, pid: Some(std::process::id()), pidfd: Some(pidfd) };
        assert_eq!(peer.look(NAME, None), Ok(PeerSeen::Ended));
    }

    #[test]
    fn status_tells_what_holds_a_process_back() {
        let head = "Name:\tNoNewPrivs: 1\nPPid:\t7\nNSpid:\t9\t1\n";
        let rows: [(&str, Option<(bool, u32)>); 5] = [
            ("NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n", Some((false, 0))),
            ("NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n", Some((true, 3))),
            ("NoNewPrivs:\t1\nSeccomp:\t2\n", Some((true, 1))),
            ("NoNewPrivs:\t0\n", Some((false, 0))),
            ("", None),
        ];
        for (rest, expected) in rows {
            let expected =
                expected.map(|(no_new_privs, filters)| Status { no_new_privs, filters, parent: 7, pids: 2 });
            assert_eq!(Status::parse(format!("{head}{rest}").as_bytes()), expected, "{rest:?}");
        }
    }

    #[test]
    fn one_beside_a_neighbour_is_placed_as_without_it_and_a_neighbour_that_ended_is_forgotten() {
        let known = Neighbours::default();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = Peer::of(ours.as_fd()).unwrap();
        let placed = peer.look(NAME, None).unwrap();
        for _ in 0..3 {
            assert_eq!(peer.look(NAME, Some(&known)).unwrap(), placed);
        }
        let mut gone = Command::new("true").spawn().unwrap();
        known.add(gone.id(), sys::pidfd(gone.id()).unwrap());
        gone.wait().unwrap();
        assert!(!known.has(gone.id()));
        for _ in 0..2 * MOST_KNOWN {
            known.add(std::process::id(), sys::pidfd(std::process::id()).unwrap());
        }
        assert!(known.has(std::process::id()) && known.known.lock().unwrap().len() == MOST_KNOWN);
    }

    #[test]
    fn one_is_known_by_its_name_whatever_stands_in_the_others() {
        let line = |name: &str| {
            let after = (3..=30).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
            format!("7 ({name}) {after}\n").into_bytes()
        };
        for (name, named) in [("keeper", true), ("sh", false), ("a) (keeper", false), ("keeper)", false)] {
            assert_eq!(
                InLine::parse(&line(name), NAME),
                Some(InLine { parent: 4, start: 22, named }),
                "{name}"
            );
        }
        assert_eq!(InLine::parse(b"7 (x", NAME), None);
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
        // It ends with its input, which belongs to this test.
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec 3<&0; (cat <&3 >&2 & echo $!)"]);
        let mut shell =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let input = shell.stdin.take();
        let mut told = String::new();
        shell.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        let pid = told.trim().parse().unwrap();
        shell.wait().unwrap();
        let own = named_above(Proc(std::process::id()), NAME, None).unwrap();
        assert_eq!(named_above(Proc(pid), NAME, None).unwrap(), own);
        drop(input);
    }
}
