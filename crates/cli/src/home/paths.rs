//! Where things are: the home, its sockets and its configuration. Nothing is created here.

use super::password::password_home;
use crate::global::Global;
use crate::output::{Failure, Kind};
use pinfold_kernel::private::{self, NotPrivate, Wider};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder for sockets: below a named home, else in the login's runtime folder. If that is not this user's
/// alone, the home is used after all, and the text says why.
pub(super) fn runtime(global: &Global) -> Result<(PathBuf, Option<String>), Failure> {
    let home = home_path(global)?;
    let login = variable("XDG_RUNTIME_DIR").filter(|path| path.is_absolute() && path.is_dir());
    let Some(login) = login.filter(|_| is_usual(&home)) else { return Ok((home, None)) };
    Ok(match own_runtime(&login) {
        Ok(folder) => (folder, None),
        Err(error) => (home, Some(error.to_string())),
    })
}

/// Our folder in a login's runtime folder, if that belongs to us: `sudo -E` and `su` carry another user's along.
fn own_runtime(login: &Path) -> Result<PathBuf, NotPrivate> {
    let folder = login.join("pinfold");
    let caller = rustix::process::geteuid().as_raw();
    let real = private::way(login)?;
    let owner = rustix::fs::lstat(&real).map_or(caller, |facts| facts.st_uid);
    if owner != caller {
        return Err(NotPrivate::NotOurs { path: login.to_owned(), owner, caller });
    }
    private::way(&folder)?;
    if std::fs::symlink_metadata(&folder).is_ok() {
        private::make_private(&folder, Wider::Refuse)?;
    }
    Ok(folder)
}

/// The configuration: in a named home, else in the user's configuration folder.
pub(super) fn config(global: &Global) -> Result<PathBuf, Failure> {
    let home = home_path(global)?;
    let user = variable("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| variable("HOME").filter(|home| home.is_absolute()).map(|home| home.join(".config")));
    match user.filter(|_| is_usual(&home)) {
        Some(folder) => Ok(folder.join("pinfold/config.toml")),
        None => Ok(home.join("config.toml")),
    }
}

/// The variables that tell agents where things are, as `NAME=value`.
pub(super) fn variables(global: &Global) -> Result<Vec<OsString>, Failure> {
    let said = |name: &str, path: PathBuf| {
        let mut entry = OsString::from(format!("{name}="));
        entry.push(path);
        entry
    };
    let mut all = vec![said("PINFOLD_HOME", home_path(global)?)];
    if let Some(locks) = variable("PINFOLD_LOCKS") {
        all.push(said("PINFOLD_LOCKS", absolute(&locks)?));
    }
    Ok(all)
}

/// The variables with which the caller named a place, made absolute for a process in another directory.
pub(crate) fn named() -> Result<Vec<(&'static str, PathBuf)>, Failure> {
    let names = ["PINFOLD_HOME", "PINFOLD_LOCKS"].into_iter();
    names
        .filter_map(|name| Some((name, variable(name)?)))
        .map(|(name, path)| Ok((name, absolute(&path)?)))
        .collect()
}

/// The variables that lead a service manager to this home: it starts programs with the home directory of the
/// password file and with nothing else that says where things are.
pub(crate) fn for_a_manager(global: &Global) -> Result<Vec<(&'static str, PathBuf)>, Failure> {
    let mut all = Vec::new();
    let mut add = |name, usual: Option<PathBuf>| {
        let here = variable(name).filter(|path| path.is_absolute() && usual.as_ref() != Some(path));
        all.extend(here.map(|path| (name, path)));
    };
    if is_usual(&home_path(global)?) {
        let below = |below: &str| variable("HOME").map(|home| home.join(below));
        add("HOME", password_home());
        add("XDG_STATE_HOME", below(".local/state"));
        add("XDG_CONFIG_HOME", below(".config"));
    }
    if let Some(locks) = variable("PINFOLD_LOCKS") {
        all.push(("PINFOLD_LOCKS", absolute(&locks)?));
    }
    Ok(all)
}

pub(super) fn home_path(global: &Global) -> Result<PathBuf, Failure> {
    if let Some(path) = global.home.clone().or_else(said_home) {
        return absolute(&path);
    }
    usual_home().ok_or_else(|| {
        Failure::new(Kind::BadConfig, "there is no home directory")
            .hint("--home DIR or PINFOLD_HOME names one")
    })
}

/// The home named by the environment: by its own variable, or inside a session by that session's socket,
/// which is all that the version before told its agents.
pub(crate) fn said_home() -> Option<PathBuf> {
    variable("PINFOLD_HOME").or_else(|| {
        let socket = variable("PINFOLD_SESSION").and_then(|_| variable("PINFOLD_SOCKET"))?;
        let socket = std::fs::read_link(&socket).unwrap_or(socket);
        let home = socket.parent()?;
        home.join("daemon.lock").exists().then(|| home.to_owned())
    })
}

/// Whether a home is the default one: agents are told its name too.
fn is_usual(home: &Path) -> bool {
    usual_home().is_some_and(|usual| usual == home)
}

pub(super) fn usual_home() -> Option<PathBuf> {
    let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state
        .or_else(|| variable("HOME").filter(|home| home.is_absolute()).map(|home| home.join(".local/state")));
    let state = state.or_else(|| password_home().map(|home| home.join(".local/state")));
    state.map(|state| state.join("pinfold"))
}

pub(super) fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::from_error(Kind::Failed, &error))
}
