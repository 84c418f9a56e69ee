//! Asks the kernel which process an identity names and whether it is still alive.
//!
//! The verdict itself is [`crate::judge::holder::judge`], the same for locks, adoption and people; this file
//! gathers its evidence. It starts no process and does not wait.

use crate::judge::holder::{AliveBecause, HolderVerdict, PidSighting, judge};
use crate::judge::identity::{BootId, Identity, Vantage};
use pinfold_kernel::proc::stat::start_ticks;
use pinfold_kernel::{own, pidfd, sys};
use rustix::io::Errno;
use rustix::process::Pid;
use std::os::fd::OwnedFd;
use std::sync::Mutex;

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
    #[error("/proc does not say which process {pid} is")]
    NotReadable {
        /// The pid asked for.
        pid: u32,
        /// What the kernel said.
        #[source]
        source: Errno,
    },
}

/// A process that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSeen {
    /// Its pid.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

static OWN: Mutex<Option<Identity>> = Mutex::new(None);

/// Returns the identity of the calling process. Asked once per process; a forked child asks again.
pub fn own() -> Result<Identity, IdentifyError> {
    let pid = own::pid();
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

/// Returns the identity of the process that has this pid (in the caller's pid namespace) now.
pub fn identify(pid: u32) -> Result<Identity, IdentifyError> {
    let unreadable = |source| IdentifyError::NotReadable { pid, source };
    let vantage = vantage().map_err(unreadable)?;
    let pidfd = match sys::pidfd(pid) {
        Ok(pidfd) => Some(pidfd),
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Err(IdentifyError::Gone { pid }),
        // An old kernel, or a sandbox that does not know the call: the start time has to do.
        Err(Errno::NOSYS | Errno::PERM) => None,
        Err(errno) => return Err(unreadable(errno)),
    };
    let start_ticks = start_ticks(pid).map_err(unreadable)?;
    let pidfs = pidfd.and_then(pidfd::inode);
    Ok(Identity { boot: vantage.boot, pid_namespace: vantage.pid_namespace, pid, start_ticks, pidfs })
}

/// Returns a word that no other process of this boot has. A control group whose path ends in its holder's
/// word is thereby proved to be that holder's alone.
#[must_use]
pub fn word(identity: &Identity) -> String {
    format!("{:x}-{:x}", identity.pid, identity.pidfs.unwrap_or(identity.start_ticks))
}

/// Returns where the calling process looks from.
pub fn vantage() -> Result<Vantage, Errno> {
    static BOOT: Mutex<Option<BootId>> = Mutex::new(None);
    let mut cached = BOOT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let boot = match *cached {
        Some(boot) => boot,
        None => *cached.insert(own::boot_id()?.parse().map_err(|_| Errno::IO)?),
    };
    Ok(Vantage { boot, pid_namespace: own::pid_namespace()? })
}

/// Judges a stored holder, from here and now.
#[must_use]
pub fn verdict(stored: Option<&Identity>) -> HolderVerdict {
    // If the observer itself cannot be placed, the stored pid means nothing.
    let Ok(here) = vantage() else {
        return judge(None, Vantage { boot: BootId(0), pid_namespace: 0 }, PidSighting::Unreadable);
    };
    let sighting = stored.map_or(PidSighting::Unreadable, sight);
    judge(stored, here, sighting)
}

/// Whether a stored process is not provably gone.
pub(crate) fn may_live(stored: &Identity) -> bool {
    match verdict(Some(stored)) {
        HolderVerdict::Alive(_) | HolderVerdict::Unknown(_) => true,
        HolderVerdict::Dead(_) => false,
    }
}

/// Whether a stored process is provably the one that has its pid now. If the kernel has an inode for every
/// process, an identity stored without one proves nothing: anyone can know, and so make up, a pid and a start time.
pub(crate) fn is_proved(stored: &Identity) -> bool {
    let kernel_knows = own().is_ok_and(|own| own.pidfs.is_some());
    match verdict(Some(stored)) {
        HolderVerdict::Alive(AliveBecause::SameProcess) => stored.pidfs.is_some() || !kernel_knows,
        HolderVerdict::Alive(AliveBecause::NotOursToExamine)
        | HolderVerdict::Dead(_)
        | HolderVerdict::Unknown(_) => false,
    }
}

/// Returns what the kernel says now about the pid in `stored`.
#[must_use]
pub fn sight(stored: &Identity) -> PidSighting {
    match sys::pidfd(stored.pid) {
        Ok(pidfd) => sight_through(&pidfd, stored),
        // The last two: the number belongs to a thread now, so no process has it.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => PidSighting::Nobody,
        // The call checks no permission, so it is a sandbox that refuses it.
        Err(Errno::NOSYS | Errno::PERM) => sight_without_pidfd(stored),
        Err(_) => PidSighting::Unreadable,
    }
}

fn sight_through(pidfd: &OwnedFd, stored: &Identity) -> PidSighting {
    let pidfs = pidfd::inode(pidfd);
    // With inodes on both sides the start time is not needed; /proc may hide it and is slow to read.
    let start = if pidfs.is_some() && stored.pidfs.is_some() {
        Ok(stored.start_ticks)
    } else {
        start_ticks(stored.pid)
    };
    // Asked last: a process that has not ended by now had not ended when /proc was read.
    let Ok(ended) = pidfd::has_ended(pidfd) else { return PidSighting::Unreadable };
    match start {
        Ok(start_ticks) => PidSighting::Somebody { start_ticks, pidfs, ended },
        Err(_) if ended => PidSighting::Nobody,
        Err(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM) => PidSighting::Closed,
        Err(_) => PidSighting::Unreadable,
    }
}

fn sight_without_pidfd(stored: &Identity) -> PidSighting {
    let Some(pid) = i32::try_from(stored.pid).ok().and_then(Pid::from_raw) else {
        return PidSighting::Nobody;
    };
    match (rustix::process::test_kill_process(pid), start_ticks(stored.pid)) {
        (Err(Errno::SRCH), _) => PidSighting::Nobody,
        (_, Ok(start_ticks)) => PidSighting::Somebody { start_ticks, pidfs: None, ended: false },
        // A process is there: the signal could be sent, or was refused for lack of permission.
        (Ok(()) | Err(Errno::PERM), Err(_)) => PidSighting::Closed,
        (Err(_), Err(_)) => PidSighting::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::holder::{DeadBecause, UnknownBecause};
    use rustix::event::{PollFd, PollFlags};
    use std::time::Duration;

    #[test]
    fn this_process_is_alive_and_the_same() {
        let own = own().unwrap();
        assert_eq!(verdict(Some(&own)), HolderVerdict::Alive(AliveBecause::SameProcess));
    }

    #[test]
    fn the_own_pid_in_an_old_payload_proves_nothing() {
        let own = own().unwrap();
        let before = Identity { start_ticks: own.start_ticks.wrapping_sub(1), pidfs: None, ..own };
        assert_eq!(verdict(Some(&before)), HolderVerdict::Dead(DeadBecause::PidRecycled));
        let other_boot = Identity { boot: BootId(7), ..own };
        assert_eq!(verdict(Some(&other_boot)), HolderVerdict::Dead(DeadBecause::OtherBoot));
        let elsewhere = Identity { pid_namespace: 1, ..own };
        assert_eq!(verdict(Some(&elsewhere)), HolderVerdict::Unknown(UnknownBecause::OtherNamespace));
        assert_eq!(verdict(None), HolderVerdict::Unknown(UnknownBecause::NoIdentity));
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
        assert_eq!(verdict(Some(&nobody)), HolderVerdict::Dead(DeadBecause::NoSuchProcess));
    }

    #[test]
    fn a_zombie_that_nobody_reaped_is_dead() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let identity = identify(child.id()).unwrap();
        assert_eq!(verdict(Some(&identity)), HolderVerdict::Alive(AliveBecause::SameProcess));
        let pidfd = sys::pidfd(child.id()).unwrap();
        drop(child.stdin.take());
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        sys::poll(&mut fds, Some(Duration::from_secs(20))).unwrap();
        assert_eq!(verdict(Some(&identity)), HolderVerdict::Dead(DeadBecause::Ended));
        child.wait().unwrap();
        assert!(matches!(verdict(Some(&identity)), HolderVerdict::Dead(_)));
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
        assert_eq!(verdict(own), HolderVerdict::Alive(AliveBecause::SameProcess));
        assert_eq!(verdict(recycled), HolderVerdict::Dead(DeadBecause::PidRecycled));
        assert_eq!(verdict(nobody), HolderVerdict::Dead(DeadBecause::NoSuchProcess));
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
        assert_eq!(verdict(Some(&stored)), HolderVerdict::Dead(DeadBecause::NoSuchProcess));
        drop(end);
        thread.join().unwrap();
    }
}
