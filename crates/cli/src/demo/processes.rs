//! Finds the processes that belong to a demo by their environments and open files in `/proc`.

pub(super) use pinfold_kernel::proc::stat::lives;
use pinfold_kernel::proc::{self, environ};
use rustix::process::{Pid, PidfdFlags, Signal};
use std::collections::BTreeSet;
use std::path::Path;

/// The runs of a session that still have a living process.
pub(super) fn runs(root: &Path, session: &str) -> BTreeSet<String> {
    let socket = format!("PINFOLD_SOCKET={}/", root.display());
    let named = format!("PINFOLD_SESSION={session}");
    let mut found = BTreeSet::new();
    for pid in everybody().filter(|pid| lives(*pid)) {
        let environment = environ::read(pid).ok().flatten().unwrap_or_default();
        let entries: Vec<String> = environment
            .split(|byte| *byte == 0)
            .map(|entry| String::from_utf8_lossy(entry).into_owned())
            .collect();
        if entries.contains(&named) && entries.iter().any(|entry| entry.starts_with(&socket)) {
            found.extend(
                entries.iter().find_map(|entry| entry.strip_prefix("PINFOLD_RUN=")).map(str::to_owned),
            );
        }
    }
    found
}

/// All other processes that have a file below a folder open, work in it, or were started with its name.
pub(super) fn around(root: &Path) -> BTreeSet<u32> {
    let own = std::process::id();
    everybody().filter(|pid| *pid != own && lives(*pid) && names(*pid, root)).collect()
}

/// Kills every process around a folder.
pub(super) fn end_around(root: &Path) {
    for pid in around(root) {
        let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { continue };
        // Checked again once the pidfd is open: the pid may belong to another process by now.
        if let Ok(held) = rustix::process::pidfd_open(number, PidfdFlags::empty())
            && names(pid, root)
        {
            _ = rustix::process::pidfd_send_signal(&held, Signal::KILL);
        }
    }
}

fn names(pid: u32, root: &Path) -> bool {
    let text = root.as_os_str().as_encoded_bytes();
    let environment = environ::read(pid).ok().flatten().unwrap_or_default();
    if environment.windows(text.len()).any(|window| window == text) {
        return true;
    }
    let below = |link: &Path| std::fs::read_link(link).is_ok_and(|target| target.starts_with(root));
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    below(Path::new(&format!("/proc/{pid}/cwd"))) || files.into_iter().any(|file| below(&file.path()))
}

fn everybody() -> impl Iterator<Item = u32> {
    proc::pids().unwrap_or_default().into_iter()
}
