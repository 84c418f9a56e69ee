//! Who uses a directory: the holders of a lock on it, above it or below it, and the processes that work in it.

use crate::files::folder::Folder;
use crate::look::scan;
use crate::process::ProcessSeen;
use crate::resource::Kind;
use crate::seen::LockSeen;
use crate::want::directory::Place;
use crate::{AcquireError, Resource};
use pinfold_kernel::proc;
use std::path::{Path, PathBuf};

/// One user of a directory.
#[derive(Debug, Clone, PartialEq)]
pub enum User {
    /// A holder of a lock that covers it or a part of it.
    Holder {
        /// Where the locked directory lies.
        relation: Relation,
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
pub enum Relation {
    /// It is the same directory.
    Same,
    /// It contains it.
    Above,
    /// It is inside it.
    Below,
}

impl Folder {
    /// Returns everything that uses a directory now, except the caller's own process.
    pub fn users_of(&self, directory: &Path) -> Result<Vec<User>, AcquireError> {
        let place = Place::open(directory)?;
        let mut users: Vec<User> = self.holders_around(&place.path);
        // A bind-mounted twin has another path but the same inode.
        if let Some(lock) = self.holder_of(&Resource::Directory(place.path.clone()))?
            && !users.iter().any(|user| matches!(user, User::Holder { lock: other, .. } if **other == lock))
        {
            users.push(User::Holder { relation: Relation::Same, lock: Box::new(lock) });
        }
        let own = std::process::id();
        for (pid, at) in scan::working_in(&place.path) {
            if pid != own {
                let process = ProcessSeen { pid, command: proc::command(pid) };
                users.push(User::Worker { process, place: at });
            }
        }
        Ok(users)
    }

    fn holders_around(&self, path: &Path) -> Vec<User> {
        let locks = self.locks().unwrap_or_default();
        let directories = locks.into_iter().filter(|lock| lock.kind == Kind::Directory);
        let around = directories.filter_map(|lock| {
            let relation = relation(Path::new(&lock.resource), path)?;
            Some(User::Holder { relation, lock: Box::new(lock) })
        });
        around.collect()
    }
}

fn relation(other: &Path, path: &Path) -> Option<Relation> {
    match (other.starts_with(path), path.starts_with(other)) {
        (true, true) => Some(Relation::Same),
        (true, false) => Some(Relation::Below),
        (false, true) => Some(Relation::Above),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_those_of_whole_path_parts() {
        let rows = [
            ("/a/b", "/a/b", Some(Relation::Same)),
            ("/a", "/a/b", Some(Relation::Above)),
            ("/a/b/c", "/a/b", Some(Relation::Below)),
            ("/a/bc", "/a/b", None),
            ("/", "/a", Some(Relation::Above)),
        ];
        for (other, path, expected) in rows {
            assert_eq!(relation(Path::new(other), Path::new(path)), expected, "{other} {path}");
        }
    }
}
