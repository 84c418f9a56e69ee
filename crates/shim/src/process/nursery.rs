//! The process from which shims are forked, one for each socket that it is sent.

use super::life;
use super::process_title::Title;
use super::raw;
use pinfold_kernel::signals;
use pinfold_kernel::socket;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

/// Lives as long as the process that started it.
pub(super) fn serve(title: Option<Title>) -> ExitCode {
    pinfold_kernel::allocator::return_long_buffers();
    pinfold_kernel::own::close_from(3);
    signals::reset();
    // A shim's exit status is not needed: its connection and its records tell.
    signals::ignore(libc::SIGCHLD);
    // A signal from the daemon's terminal must not end a start that is under way.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"pinfold-nursery");
    if let Some(title) = &title {
        title.write(b"nursery");
    }
    // Looked up once, for all forked shims.
    let _ = pinfold_lock::process::vantage();
    crate::groups::group::find_mounts();
    loop {
        let (mut word, mut sockets) = ([0], Vec::new());
        match socket::receive_with(rustix::stdio::stdin(), &mut word, &mut sockets) {
            Ok(1) => sockets.into_iter().for_each(|socket| fork(&socket, title.as_ref())),
            Ok(_) => return ExitCode::SUCCESS,
            Err(_) => return ExitCode::FAILURE,
        }
    }
}

/// Forks a shim; if that fails, the other end of its socket notices.
fn fork(socket: &OwnedFd, title: Option<&Title>) {
    let become_shim = || -> Result<ExitCode, Errno> {
        rustix::stdio::dup2_stdin(socket)?;
        Ok(life(title))
    };
    let _ = raw::fork_away(&mut || become_shim().is_ok_and(|code| code == ExitCode::SUCCESS));
}
