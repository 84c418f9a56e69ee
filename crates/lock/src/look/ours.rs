//! Tells the files of a lock folder from look-alikes: a user who may mount can show a folder of their own at
//! the path of ours, with records of their choice.
//!
//! A file that exists is known by device and inode. A removed one is known by what only a file of our folder
//! can have: its owner, no name, our folder's mount, and below that mount our folder's path. A mount is an
//! object of the kernel with one number in all namespaces, and a description keeps the one it was opened
//! through. So a process that has left our mount namespace with the lock is still seen, and a folder that is
//! bound over ours elsewhere is not.

use crate::files::facts::facts;
use crate::files::file;
use crate::files::folder::Folder;
use crate::files::record::LockRecord;
use crate::look::scan::OpenFile;
use pinfold_kernel::sys;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Whether a descriptor refers to a file of this folder, even a removed one.
pub(crate) fn is_of(folder: &Folder, open: &OpenFile) -> bool {
    if open.removed { was_of(folder, open) } else { folder.id_at(&open.name).is_ok_and(|id| id == open.file) }
}

fn was_of(folder: &Folder, open: &OpenFile) -> bool {
    let owned = open.owner == rustix::process::geteuid().as_raw();
    if !owned || open.mount.is_none() || open.mount != folder.mount() {
        return false;
    }
    let link = sys::read_link(&open.through).unwrap_or_default();
    link.parent() == Some(folder.path())
        || link.parent() == std::fs::canonicalize(folder.path()).ok().as_deref()
}

/// Reopens the file of a descriptor: through the folder while it has a name there.
pub(crate) fn reopen(folder: &Folder, open: &OpenFile) -> Result<OwnedFd, Errno> {
    let file = if open.removed {
        sys::open(&open.through, OFlags::RDONLY | OFlags::NONBLOCK)?
    } else {
        folder.open_existing(&open.name, OFlags::RDONLY)?
    };
    // The number may belong to another descriptor by now, and the name to another file.
    if facts(&file)?.id == open.file { Ok(file) } else { Err(Errno::NOENT) }
}

/// Returns what the record of a file of this folder says.
pub(crate) fn record(folder: &Folder, open: &OpenFile) -> Option<LockRecord> {
    let file = reopen(folder, open).ok()?;
    // A holder may be writing at this moment; the next read will be whole.
    (0..3).find_map(|_| file::record(&file).ok().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::scan;
    use crate::{Request, Resource};

    #[test]
    fn a_file_of_the_folder_is_known_and_one_that_only_looks_like_it_is_not() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::open(temp.path().join("locks")).unwrap();
        let _guard = folder.try_acquire(&Resource::Key("k".into()), &Request::default()).unwrap();
        let own = std::process::id();
        let open = |removed| {
            let all = scan::open_files_of(own, folder.device()).unwrap();
            let name = crate::FileName::of_key("k");
            all.into_iter()
                .find(|one| one.name == name && one.locked.is_some() && one.removed == removed)
                .unwrap()
        };
        let there = open(false);
        assert!(is_of(&folder, &there));
        let other_file = crate::FileId { inode: there.file.inode + 1, ..there.file };
        assert!(!is_of(&folder, &OpenFile { file: other_file, ..there }), "the path alone");
        std::fs::remove_file(folder.file_path(&crate::FileName::of_key("k"))).unwrap();
        let gone = open(true);
        assert!(is_of(&folder, &gone));
        assert!(record(&folder, &gone).is_some());
        assert!(!is_of(&folder, &OpenFile { mount: gone.mount.map(|mount| mount + 1), ..gone.clone() }));
        assert!(!is_of(&folder, &OpenFile { mount: None, ..gone.clone() }));
        assert!(!is_of(&folder, &OpenFile { owner: gone.owner + 1, ..gone }));
    }
}
