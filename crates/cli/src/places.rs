//! Where things live: the home, and the one lock folder of the user.

use crate::args::Global;
use crate::edge::talk;
use crate::error::{Failure, Kind};
use crate::homes::{self, Candidate, Missing};
use pinfold_kernel::private::{self, NotPrivate, Wider};
use pinfold_lock::{Folder, Modes, Resource};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder, in the user's usual home, that lists the homes that were made here.
pub(crate) const LIST: &str = "homes";

/// The folder that has the lock of a resource: a session's is in its home, all others are the user's.
pub(crate) fn folder_for(resource: &Resource, global: &Global) -> Result<Folder, Failure> {
    match resource {
        Resource::Session(_) => open(&home(global)?.join("locks"), global),
        Resource::Key(_) | Resource::Vendor(_) | Resource::Directory(_) => user_folder(global),
    }
}

/// The lock folder of the user, whatever the home.
pub(crate) fn user_folder(global: &Global) -> Result<Folder, Failure> {
    open(&user_locks()?, global)
}

/// Every lock folder that exists and concerns this home and user.
pub(crate) fn existing_folders(global: &Global) -> Result<Vec<Folder>, Failure> {
    let home = existing_home(global)?.map(|home| home.join("locks"));
    let mut paths: Vec<PathBuf> = [user_locks()?].into_iter().chain(home).collect();
    paths.retain(|path| path.exists());
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut folders = Vec::new();
    for path in paths {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !seen.contains(&real) {
            seen.push(real);
            folders.push(open(&path, global)?);
        }
    }
    Ok(folders)
}

/// The folder of a home's session locks, if there is one.
pub(crate) fn session_locks(global: &Global) -> Result<Option<Folder>, Failure> {
    let Some(home) = existing_home(global)? else { return Ok(None) };
    let path = home.join("locks");
    path.exists().then(|| open(&path, global)).transpose()
}

fn open(path: &Path, global: &Global) -> Result<Folder, Failure> {
    let folder = Folder::open(path)?;
    if let Modes::Tightened { from } = folder.modes() {
        say_tightened(path, from, global);
    }
    Ok(folder)
}

fn say_tightened(path: &Path, from: u32, global: &Global) {
    if !global.quiet {
        let path = path.display();
        talk(&format!("note: {path} was open to others (mode {from:04o}); it is 0700 now"));
    }
}

pub(crate) fn user_locks() -> Result<PathBuf, Failure> {
    let password = || password_home(rustix::process::geteuid().as_raw()).filter(|home| home.is_dir());
    let chosen = choose_user_locks(variable("PINFOLD_LOCKS"), password, || variable("HOME"));
    let chosen = chosen.ok_or_else(|| {
        Failure::new(Kind::BadConfig, "this user has no home directory")
            .hint("PINFOLD_LOCKS names a lock folder")
    })?;
    absolute(&chosen)
}

/// Only `PINFOLD_LOCKS` moves it: two folders would be two truths. `HOME` and XDG differ between a login, a
/// service and sudo, so the user's entry in the password file decides.
fn choose_user_locks(
    variable: Option<PathBuf>,
    password: impl Fn() -> Option<PathBuf>,
    home: impl Fn() -> Option<PathBuf>,
) -> Option<PathBuf> {
    let below = |home: PathBuf| home.join(".local/state/pinfold/locks");
    variable.or_else(|| password().map(below)).or_else(|| home().filter(|home| home.is_absolute()).map(below))
}

fn password_home(user: u32) -> Option<PathBuf> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let ours = fields.get(2)?.parse() == Ok(user);
        fields.get(5).filter(|home| ours && home.starts_with('/')).map(PathBuf::from)
    })
}

/// The home, made when it is missing and tightened when it is open to others.
pub(crate) fn home(global: &Global) -> Result<PathBuf, Failure> {
    let path = home_path(global)?;
    settle(&path, Missing::Make, global)?;
    Ok(path)
}

/// The home, if there is one.
fn existing_home(global: &Global) -> Result<Option<PathBuf>, Failure> {
    let path = home_path(global)?;
    Ok(settle(&path, Missing::Leave, global)?.then_some(path))
}

/// Whether there is a home, which may be used.
fn settle(path: &Path, missing: Missing, global: &Global) -> Result<bool, Failure> {
    let usual = usual_home();
    let candidate = Candidate {
        path,
        usual: usual.as_deref() == Some(path),
        list: usual.as_ref().map(|usual| usual.join(LIST)),
    };
    let Some(settled) = homes::settle(&candidate, missing, global)? else { return Ok(false) };
    if let Some(from) = settled.tightened {
        say_tightened(path, from, global);
    }
    Ok(true)
}

/// Where sockets live: below a home that was named, else in the runtime folder of the login. Where that is not this
/// user's alone, in the home too; and why.
pub(crate) fn runtime(global: &Global) -> Result<(PathBuf, Option<String>), Failure> {
    let home = home_path(global)?;
    let login = variable("XDG_RUNTIME_DIR").filter(|path| path.is_absolute() && path.is_dir());
    let Some(login) = login.filter(|_| is_usual(&home)) else { return Ok((home, None)) };
    Ok(match own_runtime(&login) {
        Ok(folder) => (folder, None),
        Err(error) => (home, Some(error.to_string())),
    })
}

/// A folder of ours in the runtime folder of a login, if that is ours: `sudo -E` and `su` bring along another user's.
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

/// The configuration: in a home that was named, else in the user's folder for such files.
pub(crate) fn config(global: &Global) -> Result<PathBuf, Failure> {
    let home = home_path(global)?;
    let user = variable("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| variable("HOME").filter(|home| home.is_absolute()).map(|home| home.join(".config")));
    match user.filter(|_| is_usual(&home)) {
        Some(folder) => Ok(folder.join("pinfold/config.toml")),
        None => Ok(home.join("config.toml")),
    }
}

/// What agents are told of where things live, as `NAME=value`.
pub(crate) fn variables(global: &Global) -> Result<Vec<OsString>, Failure> {
    let said = |name: &str, path: PathBuf| {
        let mut entry = OsString::from(format!("{name}="));
        entry.push(path);
        entry
    };
    let mut all = vec![said("PINFOLD_HOME", home_path(global)?)];
    if variable("PINFOLD_LOCKS").is_some() {
        all.push(said("PINFOLD_LOCKS", user_locks()?));
    }
    Ok(all)
}

/// The variables by which the caller named a place, for a process in another directory.
pub(crate) fn named() -> Result<Vec<(&'static str, PathBuf)>, Failure> {
    let names = ["PINFOLD_HOME", "PINFOLD_LOCKS"].into_iter();
    names
        .filter_map(|name| Some((name, variable(name)?)))
        .map(|(name, path)| Ok((name, absolute(&path)?)))
        .collect()
}

fn home_path(global: &Global) -> Result<PathBuf, Failure> {
    if let Some(path) = global.home.clone().or_else(said_home) {
        return absolute(&path);
    }
    usual_home().ok_or_else(|| {
        Failure::new(Kind::BadConfig, "there is no home directory")
            .hint("--home DIR or PINFOLD_HOME names one")
    })
}

/// The home that the environment names: by its own variable, or inside a session by that session's socket, which is
/// all that agents of the version before were told.
pub(crate) fn said_home() -> Option<PathBuf> {
    variable("PINFOLD_HOME").or_else(|| {
        let socket = variable("PINFOLD_SESSION").and_then(|_| variable("PINFOLD_SOCKET"))?;
        let socket = std::fs::read_link(&socket).unwrap_or(socket);
        let home = socket.parent()?;
        home.join("daemon.lock").exists().then(|| home.to_owned())
    })
}

/// Whether a home is the one that is used where none is named: agents are told its name too.
fn is_usual(home: &Path) -> bool {
    usual_home().is_some_and(|usual| usual == home)
}

fn usual_home() -> Option<PathBuf> {
    let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state
        .or_else(|| variable("HOME").filter(|home| home.is_absolute()).map(|home| home.join(".local/state")));
    let state = state
        .or_else(|| password_home(rustix::process::geteuid().as_raw()).map(|home| home.join(".local/state")));
    state.map(|state| state.join("pinfold"))
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::from_error(Kind::Failed, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_variable_moves_the_users_lock_folder() {
        let choose = |variable: Option<&str>, password: Option<&str>, home: Option<&str>| {
            let path = |text: Option<&str>| text.map(PathBuf::from);
            choose_user_locks(path(variable), || path(password), || path(home))
        };
        let standard = Some(PathBuf::from("/home/u/.local/state/pinfold/locks"));
        assert_eq!(choose(None, Some("/home/u"), Some("/elsewhere")), standard);
        assert_eq!(choose(None, None, Some("/home/u")), standard);
        assert_eq!(choose(None, None, Some("relative")), None);
        assert_eq!(choose(Some("/locks"), Some("/home/u"), Some("/home/u")), Some("/locks".into()));
    }
}
