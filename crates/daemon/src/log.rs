//! The daemon's own log: its standard error, which `up` sends to a file. It is bounded.

use crate::clock::time;
use pinfold_core::visible::visible;
use rustix::fs::{Mode, OFlags};
use std::fmt;
use std::path::PathBuf;
use std::sync::Mutex;

/// A file that has grown to this is moved aside; one such file is kept.
const LARGEST: u64 = 1 << 20;

/// The file that standard error is, if it is one of ours.
static FILE: Mutex<Option<PathBuf>> = Mutex::new(None);

#[cfg(test)]
thread_local! {
    /// Whether a test of this thread has so much happen that nobody would read it.
    pub(crate) static QUIET: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Says which file standard error is.
pub(crate) fn rotate(file: Option<PathBuf>) {
    if let Ok(mut own) = FILE.lock() {
        *own = file;
    }
}

/// Says something about the daemon itself; what happens to sessions is in the events.
pub(crate) fn log(what: fmt::Arguments<'_>) {
    use std::io::Write;
    #[cfg(test)]
    if QUIET.get() {
        return;
    }
    let Ok(file) = FILE.lock() else { return };
    // Paths and names are in it, and in the foreground this is somebody's terminal.
    let line = what.to_string();
    // A log that cannot be written must not end the daemon, as `eprintln` would.
    _ = writeln!(std::io::stderr(), "{} {}", time(crate::clock::wall()), visible(&line));
    if let Some(file) = &*file {
        move_aside(file);
    }
}

fn move_aside(file: &PathBuf) {
    let grown =
        rustix::fs::fstat(rustix::stdio::stderr()).is_ok_and(|facts| facts.st_size.unsigned_abs() > LARGEST);
    if !grown || std::fs::rename(file, file.with_extension("log.1")).is_err() {
        return;
    }
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
    if let Ok(new) = rustix::fs::open(file, flags, Mode::RUSR | Mode::WUSR) {
        _ = rustix::stdio::dup2_stderr(&new);
    }
}
