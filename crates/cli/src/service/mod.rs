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
    /// The home, if it was named.
    home: Option<PathBuf>,
    /// The variables that the program needs besides those that every service manager sets.
    variables: Vec<(&'static str, PathBuf)>,
    /// The name of the service; each home has its own.
    name: String,
}

impl Service {
    pub(crate) fn of(global: &Global) -> Result<Service, Failure> {
        let program = std::env::current_exe().map_err(|error| Failure::from_error(Kind::Failed, &error))?;
        let named =
            global.home.is_some() || std::env::var_os("PINFOLD_HOME").is_some_and(|home| !home.is_empty());
        let home = if named { Some(home::home(global)?.state) } else { None };
        let variables = home::for_a_manager(global)?;
        let name =
            home.as_ref().map_or_else(|| "pinfold".to_owned(), |home| format!("pinfold-{}", mark(home)));
        Ok(Service { program, home, variables, name })
    }

    /// Checks that every path can be written for a service manager, in which `allowed` are the characters that
    /// can be written.
    fn check(&self, manager: Manager, allowed: fn(char) -> bool) -> Result<(), Failure> {
        let all = std::iter::once(&self.program).chain(&self.home);
        for path in all.chain(self.variables.iter().map(|(_, path)| path)) {
            if !path.to_str().is_some_and(|text| text.chars().all(allowed)) {
                let problem = format!("{} cannot be written for {manager}", path.display());
                return Err(Failure::new(Kind::BadConfig, format!("{problem}: its name has unusual bytes"))
                    .hint("rename it, so that its name is UTF-8 without control characters"));
            }
        }
        Ok(())
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
    let plain = |letter: char| !letter.is_control();
    match manager {
        Manager::Systemd => service.check(manager, |_| true).and_then(|()| systemd::text(service)),
        Manager::Launchd => service.check(manager, plain).and_then(|()| launchd::text(service)),
        Manager::Cron => {
            service.check(manager, plain)?;
            Ok(ServiceText { file: None, text: cron::line(service) })
        }
    }
}

/// Makes the manager start the daemon with the machine, and also now if it can.
pub(crate) fn install(service: &Service, manager: Manager, global: &Global) -> Result<Vec<String>, Failure> {
    let text = text(service, manager)?;
    match manager {
        Manager::Systemd => systemd::install(service, &text, global),
        Manager::Launchd => launchd::install(&text),
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
        variables: Vec::new(),
        name: "pinfold".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_manager_cannot_write_is_refused() {
        let bytes = |bytes: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
        for (path, refused) in [
            (&b"/plain 100% '\"$x"[..], &[][..]),
            (b"/a\n@reboot evil", &[Manager::Launchd, Manager::Cron]),
            (b"/a\x07", &[Manager::Launchd, Manager::Cron]),
            (b"/not utf-8 \xff", &[Manager::Systemd, Manager::Launchd, Manager::Cron]),
        ] {
            let of = |home, program, variables| Service { home, program, variables, ..service(None) };
            let odd = [
                of(Some(bytes(path)), "/p".into(), Vec::new()),
                of(None, bytes(path), Vec::new()),
                of(None, "/p".into(), vec![("XDG_STATE_HOME", bytes(path))]),
            ];
            for (service, manager) in odd.iter().flat_map(|service| {
                [Manager::Systemd, Manager::Launchd, Manager::Cron].map(|manager| (service, manager))
            }) {
                let text = text(service, manager);
                assert_eq!(text.is_err(), refused.contains(&manager), "{service:?} {manager}: {text:?}");
            }
        }
    }

    #[test]
    fn two_homes_have_two_names() {
        assert_ne!(mark(Path::new("/a")), mark(Path::new("/b")));
        assert_eq!(mark(Path::new("/a")).len(), 8);
    }
}
