//! What `/proc` tells about processes.
//!
//! A process that ends while it is looked at, or may not be examined, is passed over where that says so; other trouble
//! (`EMFILE`, `EIO`) is never taken for "nobody there".

pub mod environ;
pub mod fdinfo;
pub mod locks;
pub mod memory;
pub mod stat;
pub mod status;
pub mod tree;

use crate::sys;
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// A file of a process.
#[must_use]
pub fn path(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

/// Whether `/proc` numbers processes as the caller does; inside a pid namespace it may be another's.
///
/// # Errors
/// The kernel did not say.
pub fn is_ours() -> Result<bool, Errno> {
    let own = std::process::id().to_string();
    match sys::read_link(Path::new("/proc/self")) {
        Ok(link) => Ok(link == Path::new(&own)),
        // No /proc, or one of a namespace in which we have no pid.
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// What an errno says about a process that is being looked at: gone or closed is passed over, while trouble
/// of our own (`EMFILE`, `EIO`) must not pass for "nobody there".
///
/// # Errors
/// Trouble of our own.
pub fn seen<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// All pids that `/proc` shows; none when it shows another namespace.
///
/// # Errors
/// The kernel did not say.
pub fn pids() -> Result<Vec<u32>, Errno> {
    if is_ours()? { numbers(Path::new("/proc")) } else { Ok(Vec::new()) }
}

/// The entries of a folder that are numbers: processes, threads, descriptors. None where it may not be read.
///
/// # Errors
/// The kernel did not say.
pub fn numbers(folder: &Path) -> Result<Vec<u32>, Errno> {
    let names = seen(sys::list(folder))?.unwrap_or_default();
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// The command line of a process, for people; its name in brackets where it has none.
#[must_use]
pub fn command(pid: u32) -> String {
    let words = sys::read_file(&path(pid, "cmdline")).unwrap_or_default();
    let words: Vec<_> = words.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
    if !words.is_empty() {
        return words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
    }
    // One that has gone has no name any more.
    name(pid).map_or(String::new(), |name| format!("[{name}]"))
}

/// The name that a process gave itself, or has from its program.
#[must_use]
pub fn name(pid: u32) -> Option<String> {
    let name = sys::read_file(&path(pid, "comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// The program that a process runs.
#[must_use]
pub fn program(pid: u32) -> Option<PathBuf> {
    sys::read_link(&path(pid, "exe")).ok()
}

/// Where a process works, if that is a path of ours.
#[must_use]
pub fn working_directory(pid: u32) -> Option<PathBuf> {
    sys::read_link(&path(pid, "cwd")).ok().filter(|place| place.is_absolute())
}
