//! The disk space of a worktree, as far as it can be counted while a person waits.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A person waits for `show`, and a large worktree has a million files.
const WITHIN: Duration = Duration::from_millis(100);

/// What `show` says of a session's directory, if that is a linked worktree, in which `.git` is a file.
pub(crate) fn shown(dir: &Path) -> Option<Value> {
    let link = dir.join(".git");
    if !fs::symlink_metadata(&link).ok()?.is_file() {
        return None;
    }
    let (bytes, whole) = used(dir, Instant::now() + WITHIN);
    Some(json!({ "disk_bytes": bytes, "counted": if whole { "all" } else { "some" } }))
}

/// Bytes on disk below a directory, and whether all of it was counted.
fn used(dir: &Path, until: Instant) -> (u64, bool) {
    let (mut bytes, mut left): (u64, Vec<PathBuf>) = (0, vec![dir.to_owned()]);
    while let Some(folder) = left.pop() {
        if Instant::now() > until {
            return (bytes, false);
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            // A link counts with its own size, not with that of its target.
            let Ok(facts) = entry.metadata() else { continue };
            bytes += facts.blocks() * 512;
            if facts.is_dir() {
                left.push(entry.path());
            }
        }
    }
    (bytes, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_linked_worktree_is_measured() {
        let temp = tempfile::tempdir().unwrap();
        let (main, linked) = (temp.path().join("main"), temp.path().join("linked"));
        fs::create_dir_all(main.join(".git")).unwrap();
        fs::create_dir_all(linked.join("deep")).unwrap();
        fs::write(linked.join(".git"), "gitdir: elsewhere").unwrap();
        fs::write(linked.join("deep/file"), [1; 100_000]).unwrap();
        assert_eq!(shown(&main), None);
        let shown = shown(&linked).unwrap();
        assert!(shown["disk_bytes"].as_u64().unwrap() >= 100_000, "{shown}");
        assert_eq!(shown["counted"], "all");
        assert_eq!(used(&linked, Instant::now() - Duration::from_secs(1)), (0, false));
    }
}
