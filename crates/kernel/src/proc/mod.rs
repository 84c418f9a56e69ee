//! What `/proc` says about processes.
//!
//! A process that ends during the look, or that may not be examined, is skipped where the function says so;
//! other errors (`EMFILE`, `EIO`) are never taken for "no such process".

pub mod environ;
pub mod fdinfo;
pub mod locks;
pub mod memory;
pub mod schedule;
pub mod stat;
pub mod status;
pub mod tree;

use crate::sys;
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// Returns the path of a file of a process.
#[must_use]
pub fn path(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

/// Whether `/proc` numbers processes as the caller does; inside a pid namespace it may show another one.
///
/// # Errors
/// The kernel did not say.
pub fn is_ours() -> Result<bool, Errno> {
    let own = std::process::id().to_string();
    match sys::read_link(Path::new("/proc/self")) {
        Ok(link) => Ok(link == Path::new(&own)),
        // No /proc, or that of a namespace in which we have no pid.
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Interprets an errno about a process being looked at: one that is gone or closed to us is skipped, but an
/// error on our side (`EMFILE`, `EIO`) must not pass for "no such process".
///
/// # Errors
/// The failure is on our side.
pub fn seen<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Returns all pids that `/proc` shows; none if it shows another namespace.
///
/// # Errors
/// The kernel did not say.
pub fn pids() -> Result<Vec<u32>, Errno> {
    if is_ours()? { numbers(Path::new("/proc")) } else { Ok(Vec::new()) }
}

/// Returns the entries of a folder that are numbers: processes, threads, descriptors. None if it may not be read.
///
/// # Errors
/// The kernel did not say.
pub fn numbers(folder: &Path) -> Result<Vec<u32>, Errno> {
    let names = seen(sys::list(folder))?.unwrap_or_default();
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// Returns the command line of a process, for people; its name in brackets if it has none.
#[must_use]
pub fn command(pid: u32) -> String {
    let words = sys::read_file(&path(pid, "cmdline")).unwrap_or_default();
    let words: Vec<_> = words.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
    if !words.is_empty() {
        return words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
    }
    // A process that has gone has no name.
    name(pid).map_or(String::new(), |name| format!("[{name}]"))
}

/// Returns the name that a process gave itself, or that of its program.
#[must_use]
pub fn name(pid: u32) -> Option<String> {
    let name = sys::read_file(&path(pid, "comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// Returns the program that a process runs.
#[must_use]
pub fn program(pid: u32) -> Option<PathBuf> {
    sys::read_link(&path(pid, "exe")).ok()
}

/// Returns the working directory of a process, if it can be reached from here.
#[must_use]
pub fn working_directory(pid: u32) -> Option<PathBuf> {
    sys::read_link(&path(pid, "cwd")).ok().filter(|place| place.is_absolute())
}
