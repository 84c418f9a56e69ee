//! The ancestors and descendants of a process, by the parents that `/proc` shows now.

use super::stat::parent;
use super::{numbers, path};
use crate::sys;
use std::collections::BTreeSet;
use std::path::Path;

/// No chain of parents is longer; a longer one is a race with reused pids.
const DEEPEST: usize = 4096;

/// Returns the children of all threads of a process.
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for thread in numbers(&path(pid, "task")).unwrap_or_default() {
        match sys::read_file(&path(pid, &format!("task/{thread}/children"))) {
            Ok(text) => found.extend(numbers_in(&text)),
            // A kernel without this file: every process has to be asked for its parent.
            Err(_) if !Path::new("/proc/thread-self/children").exists() => return children_by_parent(pid),
            Err(_) => {}
        }
    }
    found
}

fn numbers_in(text: &[u8]) -> impl Iterator<Item = u32> {
    let words = text.split(u8::is_ascii_whitespace);
    words.filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

fn children_by_parent(process: u32) -> Vec<u32> {
    let all = numbers(Path::new("/proc")).unwrap_or_default();
    all.into_iter().filter(|pid| parent(*pid) == Some(process)).collect()
}

/// Returns every process below another, including the children of all its threads.
#[must_use]
pub fn descendants(pid: u32) -> Vec<u32> {
    with_descendants(children(pid))
}

/// Returns these processes and all processes below them.
#[must_use]
pub fn with_descendants(mut found: Vec<u32>) -> Vec<u32> {
    let mut known: BTreeSet<u32> = found.iter().copied().collect();
    let mut at = 0;
    while at < found.len() {
        found.extend(children(found[at]).into_iter().filter(|child| known.insert(*child)));
        at += 1;
    }
    found
}

/// Returns a process, its parent, that one's parent, and so on.
pub fn lineage(pid: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(pid), |pid| parent(*pid).filter(|parent| *parent > 0)).take(DEEPEST)
}

/// Whether a process is somewhere below another.
#[must_use]
pub fn is_below(pid: u32, ancestor: u32) -> bool {
    lineage(pid).skip(1).any(|above| above == ancestor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal};

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
        let own = std::process::id();
        let grandchildren = children(child.id());
        assert_eq!(grandchildren.len(), 1);
        let below = descendants(own);
        assert!(below.contains(&child.id()) && below.contains(&grandchildren[0]));
        assert_eq!(with_descendants(vec![child.id()]), [child.id(), grandchildren[0]]);
        assert!(is_below(grandchildren[0], own));
        assert!(!is_below(own, own), "nobody is below itself");
        assert_eq!(
            lineage(grandchildren[0]).take(3).collect::<Vec<_>>(),
            [grandchildren[0], child.id(), own]
        );
        assert_eq!(children_by_parent(child.id()), grandchildren);
        assert!(!is_below(1, own));
        child.kill().unwrap();
        child.wait().unwrap();
        let grandchild = Pid::from_raw(grandchildren[0].cast_signed()).unwrap();
        rustix::process::kill_process(grandchild, Signal::KILL).unwrap();
    }
}
