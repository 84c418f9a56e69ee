//! Finds a program as a shell would.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the files that a program name may mean: itself if it contains a slash, otherwise one in each
/// folder of `path`. An empty folder is the working directory.
pub fn places<'a>(program: &'a OsStr, path: &'a OsStr) -> impl Iterator<Item = PathBuf> + 'a {
    let named = program.as_bytes().contains(&b'/');
    let searched = !named && !program.is_empty();
    let folders = searched.then(|| std::env::split_paths(path)).into_iter().flatten();
    let here = |folder: PathBuf| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
    let in_folders = folders.map(move |folder| here(folder).join(program));
    named.then(|| PathBuf::from(program)).into_iter().chain(in_folders)
}

/// Returns the path of a program, if it is found.
#[must_use]
pub fn find(program: &OsStr, path: &OsStr) -> Option<PathBuf> {
    places(program, path).find(|file| is_executable(file))
}

/// Whether this process may execute a file.
#[must_use]
pub fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_searched_and_a_path_is_not() {
        let all = |program: &str, path: &str| {
            places(program.as_ref(), path.as_ref())
                .map(|place| place.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(all("sh", "/a:/b"), ["/a/sh", "/b/sh"]);
        assert_eq!(all("sh", ":/b"), ["./sh", "/b/sh"]);
        assert_eq!(all("./sh", "/a:/b"), ["./sh"]);
        assert_eq!(all("", "/a:/b"), Vec::<String>::new());
    }

    #[test]
    fn a_program_is_found_and_what_may_not_be_executed_is_not_one() {
        assert!(find("sh".as_ref(), "/nowhere:/usr/bin:/bin".as_ref()).is_some());
        assert_eq!(find("sh".as_ref(), "/nowhere".as_ref()), None);
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("plain"), "").unwrap();
        assert_eq!(find("plain".as_ref(), temp.path().as_os_str()), None);
        assert_eq!(find(temp.path().as_os_str(), "".as_ref()), None, "a folder is not a program");
    }
}
