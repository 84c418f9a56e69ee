//! Whether this process is part of a run. The kernel knows; the environment may have been cleared on the way.

use crate::home;
use crate::output::{Failure, Kind};
use pinfold_api::request::Caller;
use pinfold_daemon::Home;
use pinfold_kernel::proc;
use std::path::Path;

/// The process name of every shim, whatever its program file is called by now.
const SHIM: &str = "pinfold-shim";

/// Whether anything says that this process is part of a run of any home.
pub(crate) fn is_inside() -> bool {
    says_so() || is_in_group() || is_below_shim()
}

/// Whether the kernel says that this process is part of a run of any home.
pub(crate) fn is_below_shim() -> bool {
    above().into_iter().any(is_shim)
}

/// Whether this process is part of a run of this home.
pub(crate) fn is_inside_of(home: &Home) -> bool {
    let shims: Vec<u32> = above().into_iter().filter(|pid| is_shim(*pid)).collect();
    if shims.is_empty() {
        return says_so() && home::said_home().is_some_and(|said| same(&said, &home.state));
    }
    let locks = std::fs::canonicalize(home.session_locks());
    locks.is_ok_and(|locks| shims.into_iter().any(|shim| has_open_below(shim, &locks)))
}

/// The caller of a request: the session in our environment, and the processes above us.
pub(crate) fn caller() -> Caller {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    Caller {
        session: variable("PINFOLD_SESSION"),
        run: variable("PINFOLD_RUN"),
        socket: variable("PINFOLD_SOCKET"),
        ancestors: above(),
    }
}

/// Refuses a verb that would end the calling session.
pub(crate) fn refuse(home: &Home, verb: &str) -> Result<(), Failure> {
    if !is_inside_of(home) {
        return Ok(());
    }
    let message =
        format!("`{verb}` is not for a session of the same home: it would act on the one that asks");
    Err(Failure::new(Kind::NotPermitted, message)
        .hint(format!("call `pinfold {verb}` outside of any session")))
}

fn says_so() -> bool {
    std::env::var_os("PINFOLD_RUN").is_some()
}

fn same(one: &Path, other: &Path) -> bool {
    one == other
        || std::fs::canonicalize(one).ok().is_some_and(|one| std::fs::canonicalize(other).ok() == Some(one))
}

/// Whether this process is in a control group that a shim made. Names of systemd's groups contain a dot.
fn is_in_group() -> bool {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups.lines().flat_map(|line| line.split('/')).any(is_group)
}

fn is_group(name: &str) -> bool {
    name.starts_with(pinfold_shim::groups::PREFIX) && !name.contains('.')
}

fn is_shim(pid: u32) -> bool {
    proc::name(pid).is_some_and(|name| name == SHIM)
}

fn has_open_below(pid: u32, folder: &Path) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.into_iter().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|file| file.starts_with(folder)))
}

/// The ancestors of this process, nearest first.
pub(crate) fn above() -> Vec<u32> {
    proc::tree::lineage(std::process::id()).skip(1).take_while(|pid| *pid > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processes_above_are_found() {
        let parent = std::os::unix::process::parent_id();
        assert_eq!(above().first().copied(), Some(parent).filter(|parent| *parent > 1));
    }

    #[test]
    fn a_group_of_a_run_is_known_by_its_name_and_a_unit_is_not_one() {
        assert!(is_group("pinfold-00c0ffee00c0ffee") && is_group("pinfold-00c0ffee00c0ffee-7"));
        assert!(!is_group("pinfold-daemon.service") && !is_group("pinfold") && !is_group("user.slice"));
    }
}
