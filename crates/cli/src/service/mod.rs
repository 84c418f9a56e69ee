//! Starts the daemon with the machine: a systemd unit, a launchd agent, or a crontab line.
//!
//! Each uses the same two commands: one that is the daemon, and one that makes it leave without touching the agents.

mod cron;
mod launchd;
mod systemd;

use crate::global::Global;
use crate::home;
use crate::output::{Failure, Kind};
use crate::system_program::system_program;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// What there is to start things with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Manager {
    Systemd,
    Launchd,
    Cron,
}

impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Manager::Systemd => "systemd",
            Manager::Launchd => "launchd",
            Manager::Cron => "cron",
        })
    }
}

impl Manager {
    /// The service manager of this machine.
    pub(crate) fn here() -> Manager {
        match () {
            () if cfg!(target_os = "macos") => Manager::Launchd,
            // The same check as sd_booted(3).
            () if Path::new("/run/systemd/system").is_dir() => Manager::Systemd,
            () => Manager::Cron,
        }
    }
}

/// What to start, and its name.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    /// This program.
    program: PathBuf,
    /// The home, if it is not the usual one.
    home: Option<PathBuf>,
    /// The lock folder, if it was named.
    locks: Option<PathBuf>,
    /// The name of the service; each home has its own.
    name: String,
}

impl Service {
    pub(crate) fn of(global: &Global) -> Result<Service, Failure> {
        let program = std::env::current_exe().map_err(|error| Failure::from_error(Kind::Failed, &error))?;
        let named =
            global.home.is_some() || std::env::var_os("PINFOLD_HOME").is_some_and(|home| !home.is_empty());
        let home = if named { Some(home::home(global)?.state) } else { None };
        let locks = std::env::var_os("PINFOLD_LOCKS").filter(|locks| !locks.is_empty()).map(PathBuf::from);
        let name =
            home.as_ref().map_or_else(|| "pinfold".to_owned(), |home| format!("pinfold-{}", mark(home)));
        Ok(Service { program, home, locks, name })
    }

    /// The command that runs the daemon.
    fn up(&self) -> Vec<PathBuf> {
        self.words(&["up", "--foreground"])
    }

    /// The command that makes the daemon leave and its agents go on.
    fn keep(&self) -> Vec<PathBuf> {
        self.words(&["down", "--keep"])
    }

    fn words(&self, verb: &[&str]) -> Vec<PathBuf> {
        let home = self.home.iter().flat_map(|home| [PathBuf::from("--home"), home.clone()]);
        std::iter::once(self.program.clone()).chain(home).chain(verb.iter().map(PathBuf::from)).collect()
    }
}

/// A short hash that tells homes apart in a service's name (FNV-1a).
fn mark(home: &Path) -> String {
    let hash = home
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

/// What to install, and where.
#[derive(Debug, Clone)]
pub(crate) struct ServiceText {
    /// The file; `None` if a program keeps the text, as crontab does.
    pub(crate) file: Option<PathBuf>,
    pub(crate) text: String,
}

/// The text to install for a service manager.
pub(crate) fn text(service: &Service, manager: Manager) -> Result<ServiceText, Failure> {
    match manager {
        Manager::Systemd => systemd::text(service),
        Manager::Launchd => launchd::text(service),
        Manager::Cron => Ok(ServiceText { file: None, text: cron::line(service) }),
    }
}

/// Makes the manager start the daemon with the machine, and also now if it can.
pub(crate) fn install(service: &Service, manager: Manager, global: &Global) -> Result<Vec<String>, Failure> {
    match manager {
        Manager::Systemd => systemd::install(service, global),
        Manager::Launchd => launchd::install(service),
        Manager::Cron => cron::install(service),
    }
}

/// Undoes `install`. What runs goes on.
pub(crate) fn uninstall(service: &Service, manager: Manager) -> Result<bool, Failure> {
    match manager {
        Manager::Systemd => systemd::uninstall(service),
        Manager::Launchd => launchd::uninstall(service),
        Manager::Cron => cron::uninstall(service),
    }
}

pub(crate) use systemd::{LINGER, linger, lingers};

/// A folder of the user: named by a variable, or below the home directory.
fn user_folder(variable: Option<&str>, below: &str) -> Result<PathBuf, Failure> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = variable.and_then(absolute).or_else(|| absolute("HOME").map(|home| home.join(below)));
    folder.ok_or_else(|| Failure::new(Kind::BadConfig, "this user has no home directory (HOME is not set)"))
}

/// Writes a file, creating its folders.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let written =
        file.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(file, text));
    written.map_err(|error| Failure::new(Kind::Failed, format!("{}: {error}", file.display())))
}

/// Removes a file; returns whether it existed.
fn remove(file: &Path) -> Result<bool, Failure> {
    match std::fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::new(Kind::Failed, format!("{}: {error}", file.display()))),
    }
}

/// Runs a system program to its end and returns its output.
fn run(program: &str, words: &[&str]) -> Result<String, Failure> {
    let output = system_program(program.as_ref()).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::new(Kind::Failed, format!("`{program}`: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    Err(Failure::new(Kind::Failed, format!("`{program} {}` failed: {line}", words.join(" "))))
}

#[cfg(test)]
fn service(home: Option<&str>) -> Service {
    Service {
        program: "/opt/my bin/pinfold".into(),
        home: home.map(PathBuf::from),
        locks: None,
        name: "pinfold".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_homes_have_two_names() {
        assert_ne!(mark(Path::new("/a")), mark(Path::new("/b")));
        assert_eq!(mark(Path::new("/a")).len(), 8);
    }
}
