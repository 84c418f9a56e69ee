//! `/proc/PID/status`: lines with a name and a value.

use super::path;
use crate::sys;

/// Returns the value of a line.
#[must_use]
pub fn value<'a>(status: &'a [u8], name: &str) -> Option<&'a str> {
    let mut lines = status.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b":"))?;
    std::str::from_utf8(value).ok()
}

/// Returns the user ids of a process: real, effective, saved, and the one used for files.
#[must_use]
pub fn users(pid: u32) -> Option<[u32; 4]> {
    users_in(&sys::read_file(&path(pid, "status")).ok()?)
}

fn users_in(status: &[u8]) -> Option<[u32; 4]> {
    let mut words = value(status, "Uid")?.split_ascii_whitespace().map(|word| word.parse().ok());
    Some([words.next()??, words.next()??, words.next()??, words.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read_from_their_own_line() {
        let rows = [
            ("Name:\tUid:\t7\nUid:\t12\t12\t12\t12\n", Some([12; 4])),
            ("Uid:\t12\t0\t0\t0\n", Some([12, 0, 0, 0])),
            ("Gid:\t12\t12\t12\t12\n", None),
            ("Uid:\t12\t12\n", None),
        ];
        for (status, expected) in rows {
            assert_eq!(users_in(status.as_bytes()), expected, "{status}");
        }
    }
}
