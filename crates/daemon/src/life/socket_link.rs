//! A short link to a socket whose path is too long for the kernel: agents and other programs connect through
//! it.

use pinfold_kernel::checksum::checksum;
use pinfold_kernel::private::{self, Wider};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use tracing::warn;

/// The kernel accepts 107 bytes.
const LONGEST: usize = 107;

/// The file in a home that names the folder of its short link, if another user has the usual one.
const ELSEWHERE: &str = "socket.folder";

/// A path short enough to connect to.
pub(crate) struct Short {
    pub(crate) path: PathBuf,
    /// Why it is not the usual one.
    pub(crate) refused: Option<String>,
}

/// The path itself, or a link to it if that is too long.
pub(crate) fn make(socket: &Path, state: &Path) -> Short {
    let user = rustix::process::geteuid().as_raw();
    make_in(socket, state, &PathBuf::from(format!("/tmp/pinfold-{user}")))
}

fn make_in(socket: &Path, state: &Path, usual: &Path) -> Short {
    if socket.as_os_str().len() <= LONGEST {
        return Short { path: socket.to_owned(), refused: None };
    }
    // In a folder that every user may write to, another user may have been first.
    let problem = match link(socket, usual) {
        Ok(path) => return Short { path, refused: None },
        Err(problem) => problem,
    };
    let refused = Some(problem.to_string());
    match elsewhere(state, usual).and_then(|folder| link(socket, &folder)) {
        Ok(path) => Short { path, refused },
        Err(error) => {
            warn!("{} has no short name: {error}", socket.display());
            Short { path: socket.to_owned(), refused }
        }
    }
}

/// Removes the link.
pub(crate) fn remove(alias: &Path, socket: &Path) {
    if alias != socket {
        _ = std::fs::remove_file(alias);
    }
}

/// A folder beside the usual one, with a name that cannot be guessed; the same at every start.
fn elsewhere(state: &Path, usual: &Path) -> io::Result<PathBuf> {
    let noted = state.join(ELSEWHERE);
    let beginning = format!("{}-", usual.display());
    let before = std::fs::read_to_string(&noted).unwrap_or_default();
    let before = before.trim_end();
    if before.strip_prefix(&beginning).is_some_and(|rest| !rest.contains('/')) {
        let folder = PathBuf::from(before);
        if private::make_private(&folder, Wider::Refuse).is_ok() {
            return Ok(folder);
        }
    }
    let folder = PathBuf::from(format!("{beginning}{:016x}", RandomState::new().build_hasher().finish()));
    private::make_private(&folder, Wider::Refuse)?;
    std::fs::write(&noted, format!("{}\n", folder.display()))?;
    Ok(folder)
}

fn name(socket: &Path) -> String {
    format!("{:016x}.sock", checksum(socket.as_os_str().as_encoded_bytes()))
}

fn link(socket: &Path, folder: &Path) -> io::Result<PathBuf> {
    private::make_private(folder, Wider::Refuse)?;
    let alias = folder.join(name(socket));
    let new = alias.with_extension("new");
    _ = std::fs::remove_file(&new);
    std::os::unix::fs::symlink(socket, &new)?;
    std::fs::rename(&new, &alias)?;
    Ok(alias)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_path_is_its_own_name_and_a_long_one_has_the_same_short_one_each_time() {
        let temp = tempfile::tempdir().unwrap();
        let make = |socket: &Path| make_in(socket, temp.path(), &temp.path().join("short")).path;
        let short = Path::new("/run/pinfold.sock");
        assert_eq!(make(short), short);
        let long = PathBuf::from(format!("/{}/pinfold.sock", "x".repeat(200)));
        let alias = make(&long);
        assert!(alias.as_os_str().len() <= LONGEST, "{}", alias.display());
        assert_eq!((make(&long), std::fs::read_link(&alias).unwrap()), (alias.clone(), long.clone()));
        remove(&alias, &long);
        assert!(std::fs::symlink_metadata(&alias).is_err());
    }

    #[test]
    fn where_somebody_else_has_the_usual_folder_another_is_used_at_every_start() {
        let temp = tempfile::tempdir().unwrap();
        let usual = temp.path().join("short");
        std::os::unix::fs::symlink("/", &usual).unwrap();
        let long = PathBuf::from(format!("/{}/pinfold.sock", "x".repeat(200)));
        let made = make_in(&long, temp.path(), &usual);
        assert!(made.path.as_os_str().len() <= LONGEST && !made.path.starts_with(&usual), "{:?}", made.path);
        assert_eq!(std::fs::read_link(&made.path).unwrap(), long);
        assert!(made.refused.is_some_and(|why| why.contains("short")));
        assert_eq!(make_in(&long, temp.path(), &usual).path, made.path);
    }
}
