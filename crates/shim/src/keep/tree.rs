//! The tree of processes below a shim: who is in it, and how it is signalled.
//!
//! A shim is the reaper of all its descendants: none of them can get away from below it. A direct child keeps
//! its pid until the shim reaps it; any other process is signalled only through a pidfd that was seen to be
//! below the shim after it was opened.

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, waitid};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// No chain of parents is longer; a longer one is a race with changing pids.
const DEEPEST: usize = 4096;

/// Whether somebody was met who was not met before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    New,
    Known,
}

/// Kills the children of this process once; whether there was one that was not met before. Whatever is forked by
/// somebody who then ends becomes a child of this process.
pub(super) fn kill_children(met: &mut BTreeSet<u32>) -> Met {
    let mut all = Met::Known;
    // The kernel lists them as they came: the last ones live, where thousands before them have ended.
    for child in children(std::process::id()).into_iter().rev().filter(|child| met.insert(*child)) {
        all = Met::New;
        if let Some(pid) = pid(child) {
            // A child that has ended is a zombie until it is reaped: the pid is still its own.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    all
}

/// Sends a signal to everything below this process, except to one that got it before; who is there.
pub(super) fn signal_below(signal: Signal, except: Option<Pid>) -> Vec<u32> {
    let own = std::process::id();
    let below = living();
    for process in below.iter().copied() {
        let Some(pid) = pid(process).filter(|pid| Some(*pid) != except) else { continue };
        let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if is_below(process, own) {
            let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
        }
    }
    below
}

/// Whether a process is somewhere below another.
pub(super) fn is_below(process: u32, ancestor: u32) -> bool {
    let mut at = process;
    for _ in 0..DEEPEST {
        match parent(at) {
            Some(parent) if parent == ancestor => return true,
            Some(parent) if parent > 1 => at = parent,
            Some(_) | None => return false,
        }
    }
    false
}

/// Whether there is such a process at all.
pub(super) fn exists(process: u32) -> bool {
    parent(process).is_some()
}

/// Everything below this process but children that have ended: to look below thousands of those takes seconds.
fn living() -> Vec<u32> {
    let ended = |child: u32| {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        pid(child).is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), options), Ok(Some(_))))
    };
    below(children(std::process::id()).into_iter().filter(|child| !ended(*child)).collect())
}

pub(crate) fn descendants(root: u32) -> Vec<u32> {
    below(children(root))
}

/// Some processes, and all that are below them.
fn below(mut found: Vec<u32>) -> Vec<u32> {
    let mut known: BTreeSet<u32> = found.iter().copied().collect();
    let mut at = 0;
    while at < found.len() {
        found.extend(children(found[at]).into_iter().filter(|child| known.insert(*child)));
        at += 1;
    }
    found
}

/// The children of all threads of a process.
fn children(process: u32) -> Vec<u32> {
    let tasks = PathBuf::from(format!("/proc/{process}/task"));
    let mut found = Vec::new();
    for thread in numbers(&tasks) {
        match read(&tasks.join(format!("{thread}/children"))) {
            Some(text) => found.extend(text.split_ascii_whitespace().filter_map(|n| n.parse::<u32>().ok())),
            // A kernel without this file: everybody has to be asked for its parent.
            None if !Path::new("/proc/thread-self/children").exists() => return children_by_parent(process),
            None => {}
        }
    }
    found
}

fn children_by_parent(process: u32) -> Vec<u32> {
    numbers(Path::new("/proc")).into_iter().filter(|pid| parent(*pid) == Some(process)).collect()
}

fn parent(process: u32) -> Option<u32> {
    let stat = read(Path::new(&format!("/proc/{process}/stat")))?;
    // The name before it may hold anything, also `)`: the last one ends it.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn numbers(folder: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// A small file of a kernel's file system, as text.
pub(crate) fn read(path: &Path) -> Option<String> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = Vec::with_capacity(1024);
    loop {
        match rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(0) => return Some(String::from_utf8_lossy(&bytes).into_owned()),
            Ok(_) => bytes.reserve(1024),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_and_its_child_are_below_this_process_and_a_stranger_is_not() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 1000 & echo started; wait"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 8];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let below = descendants(std::process::id());
        assert!(below.contains(&child.id()));
        let grandchildren = children(child.id());
        assert_eq!(grandchildren.len(), 1);
        assert!(is_below(grandchildren[0], std::process::id()));
        assert_eq!(children_by_parent(child.id()), grandchildren);
        assert!(!is_below(1, std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
        rustix::process::kill_process(pid(grandchildren[0]).unwrap(), Signal::KILL).unwrap();
    }
}
