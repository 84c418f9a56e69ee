//! Asks the kernel who a process is and whether it still lives.
//!
//! The verdict itself is [`pinfold_core::holder::judge`], the same for locks, adoption and people; this file
//! gathers its evidence. No subprocess is started and nothing is waited for.

use pinfold_core::holder::{AliveBecause, Holder, Sighting, judge};
use pinfold_core::identity::{BootId, Identity, Vantage};
use pinfold_kernel::sys;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use rustix::process::Pid;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// `PID_FS_MAGIC`: pidfds are files of a file system of their own, with an inode per process (Linux 6.9).
const PIDFS: i64 = 0x5049_4446;
/// `USER_HZ` is 100 on every architecture that Rust's std supports on Linux except alpha.
const TICKS_A_SECOND: i64 = 100;

/// Why a process could not be identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdentifyError {
    /// No process has this pid.
    #[error("there is no process {pid}")]
    Gone {
        /// The pid asked for.
        pid: u32,
    },
    /// `/proc` is missing, shows another pid namespace, or may not be read.
    #[error("/proc does not tell who process {pid} is")]
    NotReadable {
        /// The pid asked for.
        pid: u32,
        /// What the kernel said.
        #[source]
        source: Errno,
    },
}

static OWN: Mutex<Option<Identity>> = Mutex::new(None);

/// Who the calling process is. Asked once per process; a forked child asks again.
pub fn own() -> Result<Identity, IdentifyError> {
    let pid = crate::raw::pid();
    let mut cached = OWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match *cached {
        Some(identity) if identity.pid == pid => Ok(identity),
        _ => {
            let identity = identify(pid)?;
            *cached = Some(identity);
            Ok(identity)
        }
    }
}

/// The command line of a process, for people; its name in brackets where it has none.
#[must_use]
pub fn command(pid: u32) -> String {
    crate::scan::command(pid)
}

/// Who the process with this pid (in the caller's pid namespace) is now.
pub fn identify(pid: u32) -> Result<Identity, IdentifyError> {
    let unreadable = |source| IdentifyError::NotReadable { pid, source };
    let vantage = vantage().map_err(unreadable)?;
    let pidfd = match sys::pidfd(pid) {
        Ok(pidfd) => Some(pidfd),
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Err(IdentifyError::Gone { pid }),
        // An old kernel, or a sandbox that does not know the call: start time has to do.
        Err(Errno::NOSYS | Errno::PERM) => None,
        Err(errno) => return Err(unreadable(errno)),
    };
    let start_ticks = start_ticks(pid).map_err(unreadable)?;
    let pidfs = pidfd.and_then(pidfs_inode);
    Ok(Identity { boot: vantage.boot, pid_namespace: vantage.pid_namespace, pid, start_ticks, pidfs })
}

/// A word that no other process of this boot has. A control group whose name ends in its holder's word is proved to be
/// that holder's, and nobody else's, by its path.
#[must_use]
pub fn word(identity: &Identity) -> String {
    format!("{:x}-{:x}", identity.pid, identity.pidfs.unwrap_or(identity.start_ticks))
}

/// Where the calling process looks from.
pub fn vantage() -> Result<Vantage, Errno> {
    static BOOT: Mutex<Option<BootId>> = Mutex::new(None);
    let mut cached = BOOT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let boot = match *cached {
        Some(boot) => boot,
        None => *cached.insert(read_boot_id()?),
    };
    Ok(Vantage { boot, pid_namespace: pid_namespace()? })
}

/// Whether this program has rights that its caller has not: it is set-uid or set-gid, or has capabilities of its file.
/// Whoever calls it would get them for any command.
#[must_use]
pub fn has_borrowed_rights() -> bool {
    use rustix::process::{getegid, geteuid, getgid, getuid};
    getuid() != geteuid() || getgid() != getegid() || crate::raw::is_secure_execution()
}

/// Closes the descriptors that the caller left open: 3 and above, but for those that systemd hands to a service. Call
/// it before anything is opened.
pub fn close_inherited() {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let handed = number("LISTEN_FDS").filter(|_| number("LISTEN_PID") == Some(std::process::id()));
    crate::raw::close_from(handed.unwrap_or(0).saturating_add(3));
}

/// The pid namespace of this process. A process never leaves its own; a forked child may be in another.
fn pid_namespace() -> Result<u64, Errno> {
    static OWN: Mutex<Option<(u32, u64)>> = Mutex::new(None);
    let pid = crate::raw::pid();
    let mut cached = OWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match *cached {
        Some((of, namespace)) if of == pid => Ok(namespace),
        _ => {
            let stat = sys::stat_at(rustix::fs::CWD, Path::new("/proc/self/ns/pid"), AtFlags::empty())?;
            *cached = Some((pid, stat.st_ino));
            Ok(stat.st_ino)
        }
    }
}

fn read_boot_id() -> Result<BootId, Errno> {
    let text = sys::read_file(Path::new("/proc/sys/kernel/random/boot_id"))?;
    std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).ok_or(Errno::IO)
}

/// The verdict on a stored holder, from here and now.
#[must_use]
pub fn verdict(stored: Option<&Identity>) -> Holder {
    // Where the observer itself cannot be placed, the stored pid means nothing.
    let Ok(here) = vantage() else {
        return judge(None, Vantage { boot: BootId(0), pid_namespace: 0 }, Sighting::Unreadable);
    };
    let sighting = stored.map_or(Sighting::Unreadable, sight);
    judge(stored, here, sighting)
}

/// Whether a stored process is not provably gone.
pub(crate) fn may_live(stored: &Identity) -> bool {
    match verdict(Some(stored)) {
        Holder::Alive(_) | Holder::Unknown(_) => true,
        Holder::Dead(_) => false,
    }
}

/// Whether a stored process is provably the one that has its pid now. Where the kernel has an inode for every process,
/// one that was stored without it proves nothing: pid and start time are known to everybody and can be made up.
pub(crate) fn is_proved(stored: &Identity) -> bool {
    let kernel_knows = own().is_ok_and(|own| own.pidfs.is_some());
    match verdict(Some(stored)) {
        Holder::Alive(AliveBecause::SameProcess) => stored.pidfs.is_some() || !kernel_knows,
        Holder::Alive(AliveBecause::NotOursToExamine) | Holder::Dead(_) | Holder::Unknown(_) => false,
    }
}

/// What the kernel says now about the pid that `stored` names.
#[must_use]
pub fn sight(stored: &Identity) -> Sighting {
    match sys::pidfd(stored.pid) {
        Ok(pidfd) => sight_through(&pidfd, stored),
        // The last two: the number belongs to a thread now, so no process has it.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => Sighting::Nobody,
        // The call checks no permission: it is a sandbox that refuses it.
        Err(Errno::NOSYS | Errno::PERM) => sight_without_pidfd(stored),
        Err(_) => Sighting::Unreadable,
    }
}

fn sight_through(pidfd: &OwnedFd, stored: &Identity) -> Sighting {
    let pidfs = pidfs_inode(pidfd);
    // With inodes on both sides the start time is not needed; /proc may hide it, and takes long to say it.
    let start = if pidfs.is_some() && stored.pidfs.is_some() {
        Ok(stored.start_ticks)
    } else {
        start_ticks(stored.pid)
    };
    // Asked last: a pidfd that has not ended now had not ended when /proc was read.
    let Ok(ended) = has_ended(pidfd) else { return Sighting::Unreadable };
    match start {
        Ok(start_ticks) => Sighting::Somebody { start_ticks, pidfs, ended },
        Err(_) if ended => Sighting::Nobody,
        Err(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM) => Sighting::Closed,
        Err(_) => Sighting::Unreadable,
    }
}

fn sight_without_pidfd(stored: &Identity) -> Sighting {
    let Some(pid) = i32::try_from(stored.pid).ok().and_then(Pid::from_raw) else { return Sighting::Nobody };
    match (rustix::process::test_kill_process(pid), start_ticks(stored.pid)) {
        (Err(Errno::SRCH), _) => Sighting::Nobody,
        (_, Ok(start_ticks)) => Sighting::Somebody { start_ticks, pidfs: None, ended: false },
        // Somebody is there: the signal could be sent, or was refused for want of permission.
        (Ok(()) | Err(Errno::PERM), Err(_)) => Sighting::Closed,
        (Err(_), Err(_)) => Sighting::Unreadable,
    }
}

/// Whether every thread behind a pidfd has ended. A zombie leader with living threads has not.
pub(crate) fn has_ended(pidfd: &OwnedFd) -> Result<bool, Errno> {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    loop {
        match sys::poll(&mut fds, Some(Duration::ZERO)) {
            Err(Errno::INTR) => {}
            other => return other.map(|count| count > 0),
        }
    }
}

/// The pidfs inode behind a pidfd, where the kernel has one.
pub(crate) fn pidfs_inode(pidfd: impl AsFd) -> Option<u64> {
    // All pidfds of a kernel are of one kind.
    static KNOWN: OnceLock<bool> = OnceLock::new();
    let known = match KNOWN.get() {
        Some(known) => *known,
        None => {
            let kind = sys::fstatfs(pidfd.as_fd()).ok()?.f_type;
            *KNOWN.get_or_init(|| kind as i64 == PIDFS)
        }
    };
    known.then(|| sys::fstat(pidfd.as_fd()).ok().map(|stat| stat.st_ino))?
}

/// Field 22 of `/proc/PID/stat`, as the initial time namespace would show it.
pub(crate) fn start_ticks(pid: u32) -> Result<u64, Errno> {
    let path = match pid {
        // Right whatever pid namespace /proc shows.
        own if own == std::process::id() => PathBuf::from("/proc/self/stat"),
        _ if proc_is_ours()? => proc_path(pid, "stat"),
        _ => return Err(Errno::IO),
    };
    let stat = sys::read_file(&path)?;
    let shown = parse_start_ticks(&stat).ok_or(Errno::IO)?;
    Ok(shown.wrapping_sub(time_namespace_ticks().cast_unsigned()))
}

/// Field 22 of a stat line. The command name may hold anything, also `)` and newlines: the LAST `)` ends it.
pub(crate) fn parse_start_ticks(stat: &[u8]) -> Option<u64> {
    parse_field(stat, 22)?.parse().ok()
}

/// The parent's pid, field 4 of a stat line.
pub(crate) fn parse_parent(stat: &[u8]) -> Option<u32> {
    parse_field(stat, 4)?.parse().ok()
}

fn parse_field(stat: &[u8], number: usize) -> Option<&str> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    // The first field after the name is number 3.
    rest.split_ascii_whitespace().nth(number.checked_sub(3)?)
}

/// How far this process's time namespace shifts the start times it reads.
fn time_namespace_ticks() -> i64 {
    let Ok(text) = sys::read_file(Path::new("/proc/self/timens_offsets")) else { return 0 };
    std::str::from_utf8(&text).ok().and_then(boot_offset).unwrap_or(0)
}

fn boot_offset(text: &str) -> Option<i64> {
    let line = text.lines().find(|line| line.starts_with("boottime"))?;
    let mut numbers = line.split_ascii_whitespace().skip(1);
    let seconds: i64 = numbers.next()?.parse().ok()?;
    let nanoseconds: i64 = numbers.next()?.parse().ok()?;
    Some(seconds * TICKS_A_SECOND + nanoseconds / (1_000_000_000 / TICKS_A_SECOND))
}

/// Whether `/proc` numbers processes as the caller does; inside a pid namespace it may be another's.
pub(crate) fn proc_is_ours() -> Result<bool, Errno> {
    let own = std::process::id().to_string();
    match sys::read_link(Path::new("/proc/self")) {
        Ok(link) => Ok(link == Path::new(&own)),
        // No /proc, or one of a namespace in which we have no pid.
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

pub(crate) fn proc_path(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_core::holder::{DeadBecause, UnknownBecause};

    fn stat_line(name: &str) -> Vec<u8> {
        let after = (3..=30).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        format!("4711 ({name}) {after}\n").into_bytes()
    }

    #[test]
    fn the_start_time_is_read_behind_any_command_name() {
        for name in ["sh", "", ")", "(", ") 1 2 3", "a) S 9 9", "new\nline", "tab\t) R 1", "🐑 (x)"] {
            assert_eq!(parse_start_ticks(&stat_line(name)), Some(22), "{name:?}");
            assert_eq!(parse_parent(&stat_line(name)), Some(4), "{name:?}");
        }
        let mut raw = stat_line("x");
        raw.splice(6..7, [0xFF, 0xFE]);
        assert_eq!(parse_start_ticks(&raw), Some(22));
    }

    #[test]
    fn a_stat_line_cut_short_has_no_start_time() {
        for text in ["", "4711", "4711 (x", "4711 (x) S 1 2"] {
            assert_eq!(parse_start_ticks(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn the_offset_of_a_time_namespace_is_taken_off() {
        assert_eq!(boot_offset("monotonic 0 0\nboottime 0 0\n"), Some(0));
        assert_eq!(boot_offset("monotonic 5 0\nboottime    10000   500000000\n"), Some(1_000_050));
        assert_eq!(boot_offset("monotonic -5 0\nboottime -1 0\n"), Some(-100));
        assert_eq!(boot_offset(""), None);
    }

    #[test]
    fn this_process_is_alive_and_the_same() {
        let own = own().unwrap();
        assert_eq!(verdict(Some(&own)), Holder::Alive(AliveBecause::SameProcess));
    }

    #[test]
    fn the_own_pid_in_an_old_payload_proves_nothing() {
        let own = own().unwrap();
        let before = Identity { start_ticks: own.start_ticks.wrapping_sub(1), pidfs: None, ..own };
        assert_eq!(verdict(Some(&before)), Holder::Dead(DeadBecause::PidRecycled));
        let other_boot = Identity { boot: BootId(7), ..own };
        assert_eq!(verdict(Some(&other_boot)), Holder::Dead(DeadBecause::OtherBoot));
        let elsewhere = Identity { pid_namespace: 1, ..own };
        assert_eq!(verdict(Some(&elsewhere)), Holder::Unknown(UnknownBecause::OtherNamespace));
        assert_eq!(verdict(None), Holder::Unknown(UnknownBecause::NoIdentity));
    }

    #[test]
    fn a_process_stored_without_its_inode_is_not_proved_where_the_kernel_has_one() {
        let own = own().unwrap();
        assert!(is_proved(&own));
        let forged = Identity { pidfs: None, ..own };
        assert_eq!(is_proved(&forged), own.pidfs.is_none());
        assert!(!is_proved(&Identity { pid_namespace: 1, ..own }));
    }

    #[test]
    fn a_pid_that_nobody_has_is_dead() {
        let nobody = Identity { pid: 4_000_000, pidfs: None, ..own().unwrap() };
        assert_eq!(verdict(Some(&nobody)), Holder::Dead(DeadBecause::NoSuchProcess));
    }

    #[test]
    fn a_zombie_that_nobody_reaped_is_dead() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let identity = identify(child.id()).unwrap();
        assert_eq!(verdict(Some(&identity)), Holder::Alive(AliveBecause::SameProcess));
        let pidfd = sys::pidfd(child.id()).unwrap();
        drop(child.stdin.take());
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        sys::poll(&mut fds, Some(Duration::from_secs(20))).unwrap();
        assert_eq!(verdict(Some(&identity)), Holder::Dead(DeadBecause::Ended));
        child.wait().unwrap();
        assert!(matches!(verdict(Some(&identity)), Holder::Dead(_)));
    }

    #[test]
    fn without_pidfds_start_times_have_to_do() {
        let own = own().unwrap();
        let recycled = Identity { start_ticks: own.start_ticks.wrapping_sub(1), ..own };
        let nobody = Identity { pid: 4_000_000, ..own };
        let here = vantage().unwrap();
        let verdict = |stored: Identity| {
            let stored = Identity { pidfs: None, ..stored };
            judge(Some(&stored), here, sight_without_pidfd(&stored))
        };
        assert_eq!(verdict(own), Holder::Alive(AliveBecause::SameProcess));
        assert_eq!(verdict(recycled), Holder::Dead(DeadBecause::PidRecycled));
        assert_eq!(verdict(nobody), Holder::Dead(DeadBecause::NoSuchProcess));
    }

    #[test]
    fn a_thread_number_names_no_process() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            let _ = ended.recv();
        });
        let tid = told.recv().unwrap().as_raw_nonzero().get().cast_unsigned();
        let stored = Identity { pid: tid, pidfs: None, ..own().unwrap() };
        assert_eq!(verdict(Some(&stored)), Holder::Dead(DeadBecause::NoSuchProcess));
        drop(end);
        thread.join().unwrap();
    }
}
