//! Who uses a directory: the holders of a lock on it, above it or below it, and the processes that work in it.

use crate::files::folder::Folder;
use crate::look::scan;
use crate::process::ProcessSeen;
use crate::resource::ResourceKind;
use crate::seen::LockSeen;
use crate::want::directory::OpenDirectory;
use crate::{AcquireError, Resource};
use pinfold_kernel::proc;
use std::path::{Path, PathBuf};

/// One user of a directory.
#[derive(Debug, Clone, PartialEq)]
pub enum DirectoryUser {
    /// A holder of a lock that covers it or a part of it.
    Holder {
        /// Where the locked directory lies.
        relation: DirectoryRelation,
        /// The lock that is held.
        lock: Box<LockSeen>,
    },
    /// A process has its working directory there, with or without a lock.
    Worker {
        /// The process.
        process: ProcessSeen,
        /// Its working directory.
        place: PathBuf,
    },
}

/// Where another directory lies, relative to the one asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryRelation {
    /// It is the same directory.
    Same,
    /// It contains it.
    Above,
    /// It is inside it.
    Below,
}

impl Folder {
    /// Returns everything that uses a directory now, except the caller's own process.
    pub fn users_of(&self, directory: &Path) -> Result<Vec<DirectoryUser>, AcquireError> {
        let place = OpenDirectory::open(directory)?;
        let mut users: Vec<DirectoryUser> = self.holders_around(&place.path);
        // A bind-mounted twin has another path but the same inode.
        if let Some(lock) = self.holder_of(&Resource::Directory(place.path.clone()))?
            && !users
                .iter()
                .any(|user| matches!(user, DirectoryUser::Holder { lock: other, .. } if **other == lock))
        {
            users.push(DirectoryUser::Holder { relation: DirectoryRelation::Same, lock: Box::new(lock) });
        }
        let own = std::process::id();
        for (pid, at) in scan::working_in(&place.path) {
            if pid != own {
                let process = ProcessSeen { pid, command: proc::command(pid) };
                users.push(DirectoryUser::Worker { process, place: at });
            }
        }
        Ok(users)
    }

    fn holders_around(&self, path: &Path) -> Vec<DirectoryUser> {
        let locks = self.locks().unwrap_or_default();
        let directories = locks.into_iter().filter(|lock| lock.kind == ResourceKind::Directory);
        let around = directories.filter_map(|lock| {
            let relation = relation(Path::new(&lock.resource), path)?;
            Some(DirectoryUser::Holder { relation, lock: Box::new(lock) })
        });
        around.collect()
    }
}

fn relation(other: &Path, path: &Path) -> Option<DirectoryRelation> {
    match (other.starts_with(path), path.starts_with(other)) {
        (true, true) => Some(DirectoryRelation::Same),
        (true, false) => Some(DirectoryRelation::Below),
        (false, true) => Some(DirectoryRelation::Above),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_those_of_whole_path_parts() {
        let rows = [
            ("/a/b", "/a/b", Some(DirectoryRelation::Same)),
            ("/a", "/a/b", Some(DirectoryRelation::Above)),
            ("/a/b/c", "/a/b", Some(DirectoryRelation::Below)),
            ("/a/bc", "/a/b", None),
            ("/", "/a", Some(DirectoryRelation::Above)),
        ];
        for (other, path, expected) in rows {
            assert_eq!(relation(Path::new(other), Path::new(path)), expected, "{other} {path}");
        }
    }
}
