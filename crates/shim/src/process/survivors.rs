//! The survivors of a killed tree, and why they survive: for people, who may be able to do more than a shim.

use pinfold_core::unended::{Survivor, Undying};
use pinfold_kernel::proc::{self, stat::Stat};
use pinfold_kernel::sys;
use rustix::io::Errno;
use rustix::process::Pid;
use std::time::Duration;

/// Another user's process will not end by our signals: that is known at once, and reported once the others
/// have had time to end.
const NOT_PERMITTED: Duration = Duration::from_secs(1);
/// SIGKILL ends a process in milliseconds unless the kernel keeps it; a machine under load may need longer.
const DOES_NOT_END: Duration = Duration::from_secs(5);

/// Returns the processes below this one that evidently do not end, this long after the first SIGKILL.
pub(super) fn after(killing: Duration) -> Vec<Survivor> {
    if killing < NOT_PERMITTED {
        return Vec::new();
    }
    let mut left: Vec<Survivor> =
        proc::tree::descendants(std::process::id()).into_iter().filter_map(survivor).collect();
    left.retain(|survivor| survivor.why != Undying::DoesNotEnd || killing >= DOES_NOT_END);
    left.sort_unstable_by_key(|survivor| survivor.pid);
    left
}

/// Describes a process that was to be ended, if it is alive; one that only waits to be reaped is not.
pub(crate) fn survivor(process: u32) -> Option<Survivor> {
    let line = sys::read_file(&proc::path(process, "stat")).ok()?;
    let stat = Stat::parse(&line).filter(|stat| !stat.has_ended())?;
    let name = String::from_utf8_lossy(stat.name).into_owned();
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw)?;
    let why = match rustix::process::test_kill_process(pid) {
        Err(Errno::PERM) => Undying::NotPermitted { uid: proc::status::users(process)?[0] },
        Err(Errno::SRCH) => return None,
        Ok(()) | Err(_) => Undying::DoesNotEnd,
    };
    Some(Survivor { pid: process, name, why })
}
