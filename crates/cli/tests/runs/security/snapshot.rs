//! A snapshot of a whole tree, to see what was changed in it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Everything about a file that its owner would care about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    mode: u32,
    owner: (u32, u32),
    inode: u64,
    /// Of a file or link; a directory's only says that something was put into it.
    modified: Option<(i64, i64)>,
    contents: Option<Vec<u8>>,
}

/// A tree, by path.
pub(super) fn of(root: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut all = BTreeMap::new();
    add(root, &mut all);
    all
}

fn add(path: &Path, all: &mut BTreeMap<PathBuf, Seen>) {
    let Some(seen) = look(path) else { return };
    all.insert(path.to_owned(), seen);
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            add(&entry.path(), all);
        }
    }
}

/// One file, if it exists.
pub(super) fn look(path: &Path) -> Option<Seen> {
    let facts = std::fs::symlink_metadata(path).ok()?;
    let kind = facts.file_type();
    let contents = match () {
        () if kind.is_symlink() => {
            Some(std::fs::read_link(path).unwrap().into_os_string().into_encoded_bytes())
        }
        () if kind.is_file() => Some(std::fs::read(path).unwrap()),
        () => None,
    };
    let modified = (!kind.is_dir()).then(|| (facts.mtime(), facts.mtime_nsec()));
    let owner = (facts.uid(), facts.gid());
    Some(Seen { mode: facts.mode(), owner, inode: facts.ino(), modified, contents })
}

/// What was changed or is gone; additions do not count.
pub(super) fn harm(before: &BTreeMap<PathBuf, Seen>) -> Vec<String> {
    let changed = before.iter().map(|(path, seen)| (path, seen, look(path)));
    let changed = changed.filter(|(_, seen, now)| now.as_ref() != Some(*seen));
    changed.map(|(path, seen, now)| format!("{}: {seen:?} is {now:?}", path.display())).collect()
}
