//! `agents --check`: one turn of a real agent on the caller's own account, in a throw-away home.

use crate::global::Global;
use crate::output::{Failure, Kind, say, talk};
use crate::signals;
use pinfold_daemon::preset::Preset;
use serde_json::json;
use std::io::{self, BufRead, IsTerminal};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// The name of the session made for the check.
const SESSION: &str = "check";
const QUESTION: &str = "Reply with the one word: ready";
/// Agents may have much to load at their first start.
const PATIENCE: &str = "3m";

/// Has an agent answer one question, if the user agrees.
pub(crate) fn check(
    name: &str,
    preset: Option<&Preset>,
    config: &Path,
    yes: bool,
    global: &Global,
) -> Result<(), Failure> {
    if preset.is_some_and(|preset| preset.pty) {
        let text = format!("agent `{name}` has only a terminal, which does not show when a turn is over");
        return Err(Failure::new(Kind::Usage, text).hint(format!("pinfold new NAME --agent {name}")));
    }
    if !yes && !is_wanted(name)? {
        return Err(Failure::new(Kind::Failed, "nothing was run"));
    }
    let failed = |error: io::Error| Failure::from_error(Kind::Failed, &error);
    // An interrupt ends the verb under way; the clean-up then runs as usual.
    let _signals = signals::take().map_err(failed)?;
    let place = Place::make(config).map_err(failed)?;
    let begun = Instant::now();
    let answer = place.asked(name);
    let took = begun.elapsed();
    place.clear();
    let answer = answer?;
    if global.json {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        say(&json!({ "name": name, "answer": answer, "took_ms": took }));
    } else {
        say(&format!("{name} answered after {:.1} s: {answer}", took.as_secs_f64()));
    }
    Ok(())
}

/// Asks the user. Without a terminal, nobody can be asked.
fn is_wanted(name: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let text =
            format!("a turn of `{name}` is run on your own account, and there is no terminal to ask you on");
        return Err(Failure::new(Kind::Usage, text).hint("`--yes` runs it"));
    }
    talk(&format!("One turn of `{name}` is run on your own account: \"{QUESTION}\". Do it? [y/N]"));
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    Ok(["y", "yes"].contains(&line.trim().to_lowercase().as_str()))
}

/// A throw-away home with a directory to work in.
struct Place {
    root: PathBuf,
    program: PathBuf,
}

impl Place {
    fn make(config: &Path) -> io::Result<Place> {
        let root = std::env::temp_dir().join(format!("pinfold-check-{}", std::process::id()));
        let mut private = std::fs::DirBuilder::new();
        private.mode(0o700).create(&root)?;
        let place = Place { root: root.canonicalize()?, program: std::env::current_exe()? };
        for folder in ["home", "work"] {
            private.create(place.root.join(folder))?;
        }
        match std::fs::copy(config, place.root.join("home/config.toml")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(_) | Err(_) => Ok(place),
        }
    }

    fn asked(&self, name: &str) -> Result<String, Failure> {
        self.verb(&["new", SESSION, "--agent", name])?;
        self.verb(&["send", SESSION, QUESTION, "--wait", PATIENCE])
    }

    fn clear(&self) {
        _ = self.run(&["--quiet", "down"]);
        _ = std::fs::remove_dir_all(&self.root);
    }

    /// Returns what a verb prints, or its error message as a failure.
    fn verb(&self, words: &[&str]) -> Result<String, Failure> {
        let Output { status, stdout, stderr } =
            self.run(words).map_err(|error| Failure::from_error(Kind::Failed, &error))?;
        if status.success() {
            return Ok(String::from_utf8_lossy(&stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&stderr);
        let mut lines = said.lines().filter_map(|line| line.strip_prefix("error: "));
        let kind = if status.code() == Some(78) { Kind::BadConfig } else { Kind::Failed };
        let failure = Failure::new(kind, lines.next().unwrap_or("it did not answer"));
        let hint =
            said.lines().find_map(|line| line.strip_prefix("hint: ")).filter(|_| kind == Kind::BadConfig);
        Err(hint.into_iter().fold(failure, Failure::hint))
    }

    fn run(&self, words: &[&str]) -> io::Result<Output> {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(self.root.join("work")).stdin(Stdio::null());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PINFOLD_"))
        {
            command.env_remove(name);
        }
        command.env("PINFOLD_HOME", self.root.join("home")).env("PINFOLD_LOCKS", self.root.join("locks"));
        // Keeps the throw-away home out of the user's list of known homes.
        command.env("XDG_STATE_HOME", self.root.join("state")).output()
    }
}
