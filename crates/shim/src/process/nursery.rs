//! The process from which shims are forked, one for each socket that it is sent.

use super::life;
use super::process_title::Title;
use super::raw;
use pinfold_kernel::proc::tree::{children, is_below};
use pinfold_kernel::signals;
use pinfold_kernel::socket;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::Duration;

/// Lives as long as the process that started it.
pub(super) fn serve(title: Option<Title>) -> ExitCode {
    pinfold_kernel::allocator::return_long_buffers();
    pinfold_kernel::own::close_from(3);
    signals::reset();
    // A shim's exit status is not needed: its connection and its records tell.
    signals::ignore(libc::SIGCHLD);
    // What a killed shim leaves behind becomes our child, whatever it has done to hide from its run.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    // A signal from the daemon's terminal must not end a start that is under way.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"pinfold-nursery");
    if let Some(title) = &title {
        title.write(b"nursery");
    }
    // Looked up once, for all forked shims.
    let _ = pinfold_lock::process::vantage();
    crate::groups::group::find_mounts();
    let mut shims = BTreeSet::new();
    loop {
        let (mut word, mut sockets) = ([0], Vec::new());
        match socket::receive_with(rustix::stdio::stdin(), &mut word, &mut sockets) {
            Ok(1) if sockets.is_empty() => end_orphans(&mut shims),
            Ok(1) => shims.extend(sockets.into_iter().filter_map(|socket| fork(&socket, title.as_ref()))),
            Ok(_) => return ExitCode::SUCCESS,
            Err(_) => return ExitCode::FAILURE,
        }
    }
}

/// Ends our children that are no shims: each belonged to a run whose shim was killed. A shim that has just lost its
/// locks may still be exiting, and children of an orphan come to us after it: so it is looked for several times.
fn end_orphans(shims: &mut BTreeSet<u32>) {
    /// A process that cannot be killed must not keep the next shim from being forked.
    const LOOKS: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(2);
    let mut clean = 0;
    for _ in 0..LOOKS {
        let children: BTreeSet<u32> = children(std::process::id()).into_iter().collect();
        // A number that was reused could otherwise hide an orphan.
        shims.retain(|shim| children.contains(shim));
        let killed = children.difference(shims).filter(|child| kill_child(**child)).count();
        clean = if killed == 0 { clean + 1 } else { 0 };
        if clean == 3 {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Kills a process if it is still our child: nobody has to reap it, so its pid may be another's by now.
fn kill_child(child: u32) -> bool {
    let Some(pid) = i32::try_from(child).ok().and_then(Pid::from_raw) else { return false };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    is_below(child, std::process::id()) && pidfd_send_signal(&pidfd, Signal::KILL).is_ok()
}

/// Forks a shim and returns its pid; if that fails, the other end of its socket notices.
fn fork(socket: &OwnedFd, title: Option<&Title>) -> Option<u32> {
    let become_shim = || -> Result<ExitCode, Errno> {
        rustix::stdio::dup2_stdin(socket)?;
        Ok(life(title))
    };
    raw::fork_away(&mut || become_shim().is_ok_and(|code| code == ExitCode::SUCCESS)).ok()
}
