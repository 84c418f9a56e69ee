//! Programs of the system, started where no agent can change which program is meant or what it reads.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where programs are looked for if the caller has no search path.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A program to be found on the search path, with the root as its working directory: many programs read
/// settings from where they are started.
pub(crate) fn system_program(name: &OsStr) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", search_path(None)).current_dir("/");
    command
}

/// The caller's search path without relative entries, and without those inside `agents`, a directory that an
/// agent can write.
pub(crate) fn search_path(agents: Option<&Path>) -> OsString {
    trusted(&std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into()), agents)
}

fn trusted(path: &OsStr, agents: Option<&Path>) -> OsString {
    let is_trusted =
        |entry: &PathBuf| entry.is_absolute() && agents.is_none_or(|agents| !entry.starts_with(agents));
    std::env::join_paths(std::env::split_paths(path).filter(is_trusted)).unwrap_or_else(|_| USUAL_PATH.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_looked_for_where_an_agent_writes() {
        let path = OsStr::new(".:/usr/bin::bin:/src/fix/bin:/src/fixed/bin:/bin");
        assert_eq!(trusted(path, None), "/usr/bin:/src/fix/bin:/src/fixed/bin:/bin");
        assert_eq!(trusted(path, Some(Path::new("/src/fix"))), "/usr/bin:/src/fixed/bin:/bin");
        assert_eq!(trusted(OsStr::new("."), None), "");
    }
}
