//! `/proc/PID/environ`: the environment a process was started with.

use super::{path, seen};
use crate::sys;
use rustix::io::Errno;

/// Reads the environment of a process; `None` if the process has gone or may not be examined.
///
/// # Errors
/// The failure is on our side.
pub fn read(pid: u32) -> Result<Option<Vec<u8>>, Errno> {
    seen(sys::read_file(&path(pid, "environ")))
}

/// Returns the names and values in an environment.
pub fn variables(environ: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    environ.split(|byte| *byte == 0).filter_map(|entry| {
        let at = entry.iter().position(|byte| *byte == b'=')?;
        Some((&entry[..at], &entry[at + 1..]))
    })
}

/// Returns the value of one variable.
#[must_use]
pub fn value<'a>(environ: &'a [u8], name: &str) -> Option<&'a [u8]> {
    variables(environ).find_map(|(found, value)| (found == name.as_bytes()).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_a_whole_entry() {
        let environ = b"A=1\0AB=2\0C=A=3\0D\0=5\0A=6\0";
        assert_eq!(value(environ, "A"), Some(&b"1"[..]));
        assert_eq!(value(environ, "AB"), Some(&b"2"[..]));
        assert_eq!(value(environ, "C"), Some(&b"A=3"[..]));
        assert_eq!(value(environ, "B"), None);
        assert_eq!(value(environ, "D"), None);
        assert_eq!(variables(environ).count(), 5);
    }
}
