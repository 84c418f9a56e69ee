//! Finds the user's one lock directory. Every process of a user must find the same one: with two, two holders
//! could have the same lock. So `HOME` and XDG variables, which differ between a login, a service and sudo,
//! do not count.

use super::password;
use super::paths::{absolute, variable};
use crate::output::{Failure, Kind};
use pinfold_lock::Folder;
use rustix::fs::Access;
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// Where users without a home directory in the password file have their locks. Unlike `/tmp`, it usually
/// survives a reboot and is the same directory for every login.
const SHARED: &str = "/var/tmp";

/// Returns the user's lock directory: the one that `PINFOLD_LOCKS` names, or the one in the home directory of
/// the password file, or one named by the user's number.
pub(super) fn user_locks() -> Result<PathBuf, Failure> {
    if let Some(named) = variable("PINFOLD_LOCKS") {
        return absolute(&named);
    }
    let home = variable("HOME").filter(|home| home.is_absolute());
    let user = rustix::process::geteuid().as_raw();
    let account = Account { user, password: password::password_home(), home, shared: Path::new(SHARED) };
    account.locks().map_err(|errno| {
        let why = format!("{SHARED} cannot be used for locks: {errno}");
        Failure::new(Kind::BadConfig, format!("user {user} has no home directory in /etc/passwd, and {why}"))
            .hint("set PINFOLD_LOCKS to a directory on a local file system, the same for every command")
    })
}

/// What is known about a user.
struct Account<'a> {
    user: u32,
    /// The home directory in the password file.
    password: Option<PathBuf>,
    /// The home directory in the environment.
    home: Option<PathBuf>,
    /// The directory for users without a home directory.
    shared: &'a Path,
}

impl Account<'_> {
    fn locks(&self) -> Result<PathBuf, Errno> {
        let numbered = self.shared.join(format!("pinfold-locks-{}", self.user));
        let owner = rustix::fs::lstat(&numbered).map(|facts| facts.st_uid);
        let home = self.password.as_ref().filter(|home| home.is_dir());
        match (owner, home) {
            // Created before the user had a line in the password file; its locks may still be held.
            (Ok(owner), Some(_)) if owner == self.user => Ok(numbered),
            (_, Some(home)) => Ok(below(home)),
            // If it belongs to another user, opening it reports that.
            (Ok(_), None) => Ok(numbered),
            (Err(_), None) => self.begin(numbered),
        }
    }

    /// Prepares the directory named by the user's number, which does not exist yet.
    fn begin(&self, numbered: PathBuf) -> Result<PathBuf, Errno> {
        rustix::fs::access(self.shared, Access::WRITE_OK | Access::EXEC_OK)?;
        // Earlier versions used HOME. Agents that they started may still hold locks there, so the number leads
        // to that directory from now on, whatever HOME is later.
        if let Some(used) = self.home.as_deref().map(below).filter(|used| Folder::was_used_in_this_boot(used))
        {
            match rustix::fs::symlink(&used, &numbered) {
                // Another process was faster: what it created counts for both.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(numbered)
    }
}

fn below(home: &Path) -> PathBuf {
    home.join(".local/state/pinfold/locks")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two homes and a shared directory of a test.
    struct Ground(tempfile::TempDir);

    impl Ground {
        fn new() -> Ground {
            let ground = Ground(tempfile::tempdir().unwrap());
            ["a", "b", "shared"].iter().for_each(|name| std::fs::create_dir(ground.path(name)).unwrap());
            ground
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn locks(&self, password: Option<&str>, home: Option<&str>) -> Result<PathBuf, Errno> {
            let path = |name: &str| self.path(name);
            let user = rustix::process::geteuid().as_raw();
            let (password, home) = (password.map(path), home.map(path));
            Account { user, password, home, shared: &self.path("shared") }.locks()
        }

        fn numbered(&self) -> PathBuf {
            self.path("shared").join(format!("pinfold-locks-{}", rustix::process::geteuid().as_raw()))
        }
    }

    #[test]
    fn the_password_file_decides_and_home_never_does() {
        let ground = Ground::new();
        for home in [Some("a"), Some("b"), Some("missing"), None] {
            assert_eq!(ground.locks(Some("a"), home), Ok(below(&ground.path("a"))), "{home:?}");
            assert_eq!(ground.locks(None, home), Ok(ground.numbered()), "{home:?}");
            assert_eq!(ground.locks(Some("missing"), home), Ok(ground.numbered()), "{home:?}");
        }
    }

    #[test]
    fn a_directory_named_by_the_number_stays_the_one_when_the_user_gets_a_home() {
        let ground = Ground::new();
        Folder::open(ground.locks(None, Some("b")).unwrap()).unwrap();
        assert_eq!(ground.locks(Some("a"), Some("a")), Ok(ground.numbered()));
        assert_eq!(ground.locks(None, Some("a")), Ok(ground.numbered()));
    }

    #[test]
    fn locks_that_an_earlier_version_granted_below_home_still_count() {
        let ground = Ground::new();
        let used = below(&ground.path("b"));
        Folder::open(&used).unwrap();
        for home in [Some("b"), Some("a"), None] {
            let found = ground.locks(None, home).unwrap();
            assert_eq!(found, ground.numbered(), "{home:?}");
            assert_eq!(found.canonicalize().unwrap(), used.canonicalize().unwrap(), "{home:?}");
        }
    }

    #[test]
    fn without_a_place_for_the_directory_none_is_made_up() {
        let ground = Ground::new();
        std::fs::remove_dir(ground.path("shared")).unwrap();
        assert_eq!(ground.locks(None, Some("a")), Err(Errno::NOENT));
        assert!(!ground.path("shared").exists());
        assert_eq!(ground.locks(Some("a"), None), Ok(below(&ground.path("a"))));
    }
}
