//! Runs git without the caller's GIT_* variables, which could point it to another repository.

use crate::output::{Failure, Kind};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Git in a directory.
pub(super) struct Git<'a>(pub(super) &'a Path);

/// One worktree of a repository, as git lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Listed {
    pub(super) path: PathBuf,
    /// Its branch, without `refs/heads/`; `None` if it is on none.
    pub(super) branch: Option<String>,
    /// Why it must not be removed; empty if no reason was given.
    pub(super) locked: Option<String>,
}

impl Git<'_> {
    fn run(&self, words: &[&OsStr]) -> Result<Output, Failure> {
        let mut command = Command::new("git");
        command.env_clear();
        command.envs(
            std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(pinfold_daemon::is_harmless)),
        );
        // Git never prompts, and reading does not write.
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        command.arg("-C").arg(self.0).args(words).stdin(std::process::Stdio::null());
        command.output().map_err(|error| {
            Failure::new(Kind::BadConfig, format!("`git` could not be started: {error}"))
                .hint("worktrees need git: is it installed and on the PATH?")
        })
    }

    /// Its output, if it succeeds.
    pub(super) fn ask(&self, words: &[&str]) -> Result<Vec<u8>, Failure> {
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        self.act(&words)
    }

    pub(super) fn act(&self, words: &[&OsStr]) -> Result<Vec<u8>, Failure> {
        let output = self.run(words)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
        let said = said.map_or_else(|| output.status.to_string(), |line| line.to_owned());
        Err(Failure::new(
            Kind::Failed,
            format!("git {}: {said}", words.first().unwrap_or(&OsStr::new("")).display()),
        ))
    }

    /// Whether it exits with 0.
    pub(super) fn holds(&self, words: &[&str]) -> Result<bool, Failure> {
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        Ok(self.run(&words)?.status.success())
    }

    /// The worktrees of its repository, the main one first.
    pub(super) fn worktrees(&self) -> Result<Vec<Listed>, Failure> {
        Ok(listed(&self.ask(&["worktree", "list", "--porcelain", "-z"])?))
    }
}

/// Parses records of NUL-terminated lines, each record followed by an empty line.
fn listed(text: &[u8]) -> Vec<Listed> {
    let mut all: Vec<Listed> = Vec::new();
    for line in text.split(|byte| *byte == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            all.push(Listed { path: PathBuf::from(OsStr::from_bytes(path)), ..Listed::default() });
        }
        let Some(last) = all.last_mut() else { continue };
        let words = String::from_utf8_lossy(line);
        if let Some(branch) = words.strip_prefix("branch refs/heads/") {
            last.branch = Some(branch.to_owned());
        }
        if words == "locked" || words.starts_with("locked ") {
            last.locked = Some(words.trim_start_matches("locked").trim().to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_worktrees_is_read() {
        let text =
            b"worktree /a b\0HEAD 12\0branch refs/heads/main\0\0worktree /c\0HEAD 34\0detached\0locked\0\0\
                     worktree /d\0branch refs/heads/x/y\0locked on a stick\0\0";
        let one = |path: &str, branch: Option<&str>, locked: Option<&str>| Listed {
            path: path.into(),
            branch: branch.map(str::to_owned),
            locked: locked.map(str::to_owned),
        };
        let expected = [
            one("/a b", Some("main"), None),
            one("/c", None, Some("")),
            one("/d", Some("x/y"), Some("on a stick")),
        ];
        assert_eq!(listed(text), expected);
    }
}
