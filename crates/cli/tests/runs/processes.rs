//! What the kernel knows about processes.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Far longer than anything takes on the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// A process held by a pidfd, so that its pid cannot come to mean another.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) pid: u32,
    pidfd: OwnedFd,
}

impl Held {
    pub(crate) fn open(pid: u32) -> Option<Held> {
        let number = Pid::from_raw(pid.cast_signed())?;
        let pidfd = rustix::process::pidfd_open(number, PidfdFlags::empty()).ok()?;
        Some(Held { pid, pidfd })
    }

    pub(crate) fn kill(&self) {
        _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::pidfd_send_signal(&self.pidfd, signal).unwrap();
    }

    /// Whether it ends within this time.
    pub(crate) fn ends_within(&self, patience: Duration) -> bool {
        let timeout =
            Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: patience.subsec_nanos().into() };
        rustix::event::poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&timeout)) == Ok(1)
    }

    pub(crate) fn wait(&self) {
        assert!(self.ends_within(PATIENCE), "process {} does not end", self.pid);
    }
}

/// Kills a process with SIGKILL and waits until it has ended.
pub(crate) fn kill(pid: u32) {
    if let Some(held) = Held::open(pid) {
        held.kill();
        held.wait();
    }
}

/// Whether a process exists and is not a zombie.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Whether a process is stopped.
#[cfg(debug_assertions)]
pub(crate) fn stands(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

/// All processes that the kernel lists.
pub(crate) fn all() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// A variable in the environment that a process was started with.
pub(crate) fn variable(pid: u32, name: &str) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let wanted = format!("{name}=");
    bytes.split(|byte| *byte == 0).find_map(|entry| {
        entry.strip_prefix(wanted.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned())
    })
}

/// The open files of a process, by descriptor.
pub(crate) fn open_files(pid: u32) -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let mut files: Vec<(u32, String)> = entries
        .flatten()
        .filter_map(|entry| {
            let target = std::fs::read_link(entry.path()).ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, target.to_string_lossy().into_owned()))
        })
        .collect();
    files.sort_unstable();
    files
}

/// All processes with a folder in their environment or open files, with all descendants.
pub(crate) fn around(folder: &Path) -> BTreeSet<u32> {
    let text = folder.to_str().unwrap().as_bytes();
    let own = std::process::id();
    let mut found: BTreeSet<u32> = all()
        .into_iter()
        .filter(|pid| *pid != own && *pid != 1 && lives(*pid))
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            contains(&environment, text)
                || open_files(*pid).iter().any(|(_, file)| contains(file.as_bytes(), text))
        })
        .collect();
    let mut open: Vec<u32> = found.iter().copied().collect();
    while let Some(pid) = open.pop() {
        for child in children(pid) {
            if found.insert(child) {
                open.push(child);
            }
        }
    }
    found
}

/// Ends all processes around a folder.
pub(crate) fn end_around(folder: &Path) {
    for _ in 0..100 {
        let found = around(folder);
        if found.is_empty() {
            return;
        }
        let groups: BTreeSet<PathBuf> = found.iter().filter_map(|pid| group(*pid)).collect();
        let held: Vec<Held> = found.into_iter().filter_map(Held::open).collect();
        held.iter().for_each(Held::kill);
        held.iter().for_each(|process| _ = process.ends_within(PATIENCE));
        // A killed shim cannot remove its group.
        groups.iter().for_each(|group| _ = std::fs::remove_dir(group));
    }
}

/// The control group that a shim made for a process, if any.
pub(crate) fn group(pid: u32) -> Option<PathBuf> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let inside = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Path::new(inside).file_name()?.to_str()?.strip_prefix("pinfold-")?;
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (place, kind) = (words.nth(1)?, words.next()?);
        (kind == "cgroup2").then(|| place.to_owned())
    })?;
    Some(Path::new(&mount).join(inside))
}

/// The parent of a process.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The children of all threads of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let texts = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    texts
        .flat_map(|text| text.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
