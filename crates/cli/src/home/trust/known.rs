//! The homes that this user made or approved: one file for each, named after the home's id, with its path inside.
//!
//! By this list a copy of a home is recognised, and a home that was moved to another file system. Without a
//! list they are not; nothing else depends on it.

use pinfold_kernel::private::{self, Wider};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The name of the folder with the list, in the user's usual home.
pub(in crate::home) const LIST: &str = "homes";
/// With more entries than this, those whose home no longer exists are removed.
const MANY: usize = 512;

pub(super) fn is_listed(list: &Path, id: &str) -> bool {
    is_ours(list) && std::fs::symlink_metadata(list.join(id)).is_ok_and(|entry| entry.is_file())
}

pub(super) fn add(list: &Path, id: &str, home: &Path) -> io::Result<()> {
    let real = private::way(list)?;
    private::make_private(&real, Wider::Refuse)?;
    forget(&real);
    let mut file = std::fs::OpenOptions::new();
    let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(real.join(id))?;
    file.write_all(home.as_os_str().as_bytes())
}

/// Whether the list belongs to this user. Another user's list is not believed, even if `HOME` points to it.
fn is_ours(list: &Path) -> bool {
    let Ok(real) = private::way(list) else { return false };
    // A check must not create it.
    real.is_dir() && private::make_private(&real, Wider::Refuse).is_ok()
}

fn forget(list: &Path) {
    let entries = || std::fs::read_dir(list).into_iter().flatten().flatten();
    if entries().count() < MANY {
        return;
    }
    for entry in entries() {
        let home = std::fs::read(entry.path()).unwrap_or_default();
        if !Path::new(std::ffi::OsStr::from_bytes(&home)).exists() {
            _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_listed_is_known_and_a_list_that_others_can_write_is_not_believed() {
        let temp = tempfile::tempdir().unwrap();
        let list = temp.path().canonicalize().unwrap().join("homes");
        assert!(!is_listed(&list, "a") && !list.exists());
        add(&list, "a", Path::new("/home")).unwrap();
        assert!(is_listed(&list, "a") && !is_listed(&list, "b"));
        std::fs::set_permissions(&list, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_listed(&list, "a") && add(&list, "b", Path::new("/home")).is_err());
    }

    #[test]
    fn homes_that_are_gone_are_forgotten_when_there_are_many() {
        let temp = tempfile::tempdir().unwrap();
        let list = temp.path().canonicalize().unwrap().join("homes");
        add(&list, "there", temp.path()).unwrap();
        for number in 0..MANY {
            std::fs::write(list.join(number.to_string()), "/nowhere").unwrap();
        }
        add(&list, "new", temp.path()).unwrap();
        let mut left: Vec<_> =
            std::fs::read_dir(&list).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["new", "there"]);
    }
}
