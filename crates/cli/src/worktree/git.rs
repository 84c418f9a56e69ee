//! The one place that starts git.
//!
//! An agent can write its worktree, and often the repository's configuration too. Git runs programs that
//! these name: `core.fsmonitor`, hooks, filters, transports. So every git that starts here
//! - has a cleared environment, so no GIT_* variable points it to another repository,
//! - has the settings that name programs overridden on its command line (`settings` finds filters),
//! - fetches nothing: not even a missing object of a partial clone,
//! - and, if an agent worked in the directory, gets the git directory by name instead of discovering it.

use super::settings;
use crate::output::{Failure, Kind};
use crate::system_program::search_path;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Settings that make git run a program, or believe that a file has not changed. They win over every file.
const SETTINGS: [&str; 10] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.sshCommand=",
    "core.askPass=",
    "core.attributesFile=/dev/null",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "status.submoduleSummary=false",
];

/// The caller's variables that git needs: to find programs, and the user's own configuration.
const KEPT: [&str; 2] = ["HOME", "XDG_CONFIG_HOME"];

/// Where git works.
#[derive(Debug, Clone, Copy)]
enum Place<'a> {
    /// In the repository that git finds around a directory.
    Around(&'a Path),
    /// In exactly this git directory, with this worktree.
    Exactly { gitdir: &'a Path, tree: &'a Path },
}

/// Git in one place.
#[derive(Debug)]
pub(super) struct Git<'a> {
    place: Place<'a>,
    /// Words that override what the repository's configuration says.
    overridden: Vec<OsString>,
    /// Used instead of the worktree's own index.
    index: Option<PathBuf>,
}

/// One worktree of a repository, as git lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Listed {
    pub(super) path: PathBuf,
    /// Its branch, without `refs/heads/`; `None` if it is on none.
    pub(super) branch: Option<String>,
    /// Why it must not be removed; empty if no reason was given.
    pub(super) locked: Option<String>,
}

impl<'a> Git<'a> {
    /// Git in the repository around a directory.
    pub(super) fn around(dir: &'a Path) -> Result<Git<'a>, Failure> {
        Git { place: Place::Around(dir), overridden: Vec::new(), index: None }.with_settings_overridden()
    }

    /// Git in a worktree whose git directory is known: nothing that an agent wrote leads it elsewhere.
    pub(super) fn exactly(gitdir: &'a Path, tree: &'a Path) -> Result<Git<'a>, Failure> {
        let place = Place::Exactly { gitdir, tree };
        Git { place, overridden: Vec::new(), index: None }.with_settings_overridden()
    }

    /// The same with another index.
    pub(super) fn with_index(&self, index: &Path) -> Git<'a> {
        let overridden = self.overridden.clone();
        Git { place: self.place, overridden, index: Some(index.to_owned()) }
    }

    fn with_settings_overridden(mut self) -> Result<Git<'a>, Failure> {
        let words = ["config", "--show-scope", "-z", "--get-regexp", settings::PATTERN];
        let output = self.run(&words.map(OsStr::new), b"")?;
        // Git exits with 1 if there are none.
        if output.status.code() == Some(1) && output.stdout.is_empty() {
            return Ok(self);
        }
        if !output.status.success() {
            return Err(failure_of("config", &output));
        }
        self.overridden = settings::overriding(&output.stdout).map_err(|name| {
            let name = String::from_utf8_lossy(&name).into_owned();
            Failure::new(Kind::Failed, format!("git cannot be told to ignore the setting `{name}`"))
                .hint("`git config --show-origin --get-regexp '='` shows where it is set")
        })?;
        Ok(self)
    }

    /// The names of the repository's own filters, which are not run.
    pub(super) fn filters_left_out(&self) -> Vec<String> {
        settings::filters(&self.overridden)
    }

    fn run(&self, words: &[&OsStr], input: &[u8]) -> Result<Output, Failure> {
        let mut command = Command::new("git");
        command.env_clear();
        command.envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.env("PATH", search_path(self.tree()));
        // Git never prompts, and reading does not write. The list of protocols is empty: in contrast to the
        // setting, no other setting makes an exception from it.
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        command.env("GIT_ALLOW_PROTOCOL", "").env("GIT_NO_LAZY_FETCH", "1");
        command.envs(self.index.iter().map(|index| ("GIT_INDEX_FILE", index)));
        command.arg("--no-pager");
        SETTINGS.iter().for_each(|setting| _ = command.args(["-c", setting]));
        self.overridden.iter().for_each(|setting| _ = command.arg("-c").arg(setting));
        match self.place {
            Place::Around(dir) => _ = command.arg("-C").arg(dir),
            Place::Exactly { gitdir, tree } => {
                command.arg("--git-dir").arg(gitdir).arg("--work-tree").arg(tree).current_dir("/");
            }
        }
        command.args(words);
        fed(command, input).map_err(|error| {
            Failure::new(Kind::BadConfig, format!("`git` could not be started: {error}"))
                .hint("worktrees need git: is it installed and on the PATH?")
        })
    }

    fn tree(&self) -> Option<&Path> {
        match self.place {
            Place::Around(_) => None,
            Place::Exactly { tree, .. } => Some(tree),
        }
    }

    /// Its output, if it succeeds.
    pub(super) fn ask(&self, words: &[&str]) -> Result<Vec<u8>, Failure> {
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        self.act(&words)
    }

    pub(super) fn act(&self, words: &[&OsStr]) -> Result<Vec<u8>, Failure> {
        self.feed(words, b"")
    }

    /// Its output, if it succeeds with this input.
    pub(super) fn feed(&self, words: &[&OsStr], input: &[u8]) -> Result<Vec<u8>, Failure> {
        let output = self.run(words, input)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(failure_of(&words.first().unwrap_or(&OsStr::new("")).to_string_lossy(), &output))
    }

    /// Whether it exits with 0.
    pub(super) fn holds(&self, words: &[&str]) -> Result<bool, Failure> {
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        Ok(self.run(&words, b"")?.status.success())
    }

    /// The worktrees of its repository, the main one first.
    pub(super) fn worktrees(&self) -> Result<Vec<Listed>, Failure> {
        Ok(listed(&self.ask(&["worktree", "list", "--porcelain", "-z"])?))
    }
}

/// The first line in which git says what is wrong.
fn failure_of(what: &str, output: &Output) -> Failure {
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
    let line = line.map_or_else(|| output.status.to_string(), |line| line.to_owned());
    Failure::new(Kind::Failed, format!("git {what}: {line}"))
}

/// Runs a command to its end with this input.
fn fed(mut command: Command, input: &[u8]) -> std::io::Result<Output> {
    if input.is_empty() {
        return command.stdin(Stdio::null()).output();
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // If git stops reading, its exit code says why.
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(input));
    let output = child.wait_with_output()?;
    match written {
        Some(Err(error)) if output.status.success() => Err(error),
        Some(_) | None => Ok(output),
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
