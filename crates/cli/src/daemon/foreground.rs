//! Runs the daemon in this process, and says what keeps one from starting.

use super::damage;
use super::start::refuse_inside;
use super::system;
use crate::global::Global;
use crate::home;
use crate::output::{Failure, Kind, say, talk};
use pinfold_daemon::config::LoadError;
use pinfold_daemon::{DaemonOptions, StartError};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// The argument that makes this program a shim, for when the small shim is not installed beside it.
pub(crate) const SHIM: &str = "__shim";

/// Runs the daemon in this process.
pub(crate) fn run(global: &Global, detached: bool) -> Result<(), Failure> {
    // Files and locks inherited from the caller would otherwise stay open for as long as the daemon lives.
    pinfold_kernel::own::close_inherited();
    let home = home::home(global)?;
    refuse_inside(&home)?;
    if let Some(failure) = system::refuses_threads() {
        return Err(failure);
    }
    if let Some(note) = as_init(std::process::id()).filter(|_| !global.quiet) {
        talk(&note);
    }
    if detached {
        // Fails only for a process group leader, which a spawned process is not.
        _ = rustix::process::setsid();
    }
    let umask = Some(rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077)).as_raw_mode());
    let log = detached.then(|| home.daemon_log());
    let shim = shim_program().map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    let up = move || {
        if detached {
            say(&"up");
            close_stdout();
        }
    };
    pinfold_daemon::run(DaemonOptions { home, shim, umask, log }, up).map_err(|error| start_failure(&error))
}

/// What to know if the daemon is process 1 of its pid namespace.
fn as_init(pid: u32) -> Option<&'static str> {
    (pid == 1).then_some(
        "warning: as process 1, the daemon does not reap processes that it did not start; use an init, for example \
         `docker run --init`",
    )
}

/// Closes stdout, so that a caller reading our first line does not wait for our end.
fn close_stdout() {
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// The small shim beside this program, or this program as a shim.
pub(crate) fn shim_program() -> std::io::Result<(PathBuf, Vec<OsString>)> {
    let own = std::env::current_exe()?;
    let small = own.parent().unwrap_or(Path::new("/")).join("pinfold-shim");
    if small.is_file() { Ok((small, Vec::new())) } else { Ok((own, vec![SHIM.into()])) }
}

pub(crate) fn start_failure(error: &StartError) -> Failure {
    match error {
        StartError::Running => Failure::from_error(Kind::Busy, error).hint("`pinfold status` shows it"),
        StartError::Store(
            pinfold_store::OpenError::Damaged { .. } | pinfold_store::OpenError::TooNew { .. },
        )
        | StartError::Missing { .. }
        | StartError::Read(pinfold_store::ReadError::Damaged { .. } | pinfold_store::ReadError::Row { .. }) => {
            Failure::from_error(Kind::Damaged, error).hint(damage::hint(error))
        }
        StartError::Place { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Failure::from_error(Kind::NotPermitted, error)
        }
        StartError::Config(LoadError::NotOurs { .. }) => Failure::from_error(Kind::BadConfig, error)
            .hint("it says which programs run as you: look into it, make it yours, and `chmod go-w` it"),
        StartError::Config(_) => Failure::from_error(Kind::BadConfig, error)
            .hint("correct it, or move it aside: then everything has its usual value"),
        StartError::Locks(folder) => Failure::of_folder(error, folder),
        StartError::EndsUntold => Failure::from_error(Kind::BadConfig, error)
            .hint("use Linux 5.4 or later; in a container, use a seccomp profile that allows pidfd_open"),
        StartError::FewFiles { .. } => Failure::from_error(Kind::BadConfig, error)
            .hint("raise the hard limit where you start pinfold, for example `ulimit -n 1024`"),
        StartError::Place { .. }
        | StartError::Store(_)
        | StartError::Read(_)
        | StartError::Commit(_)
        | StartError::System(_) => Failure::from_error(Kind::Failed, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_process_1_is_told_to_use_an_init() {
        assert!(as_init(1).is_some_and(|note| note.contains("docker run --init")));
        assert_eq!(as_init(2), None);
    }
}
