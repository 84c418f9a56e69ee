//! `/proc/locks`: every lock that is held or waited for, by inode. The device is ignored, because some file
//! systems show a different one elsewhere.

use crate::sys;
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// The processes that took the exclusive flocks held now, by the inodes of the files. Such a process may have
/// passed the lock on since, and ended. Reading this takes the same few milliseconds whatever else runs.
pub type Flocked = HashMap<u64, Vec<u32>>;

/// Reads which process took which exclusive flock.
///
/// # Errors
/// The kernel did not say.
pub fn flocked() -> Result<Flocked, Errno> {
    let mut flocked = Flocked::new();
    for (inode, taker) in read()?.lines().filter_map(flocked_in) {
        flocked.entry(inode).or_default().push(taker);
    }
    Ok(flocked)
}

/// Returns the inodes of all files whose flock a process waits for.
///
/// # Errors
/// The kernel did not say.
pub fn awaited() -> Result<HashSet<u64>, Errno> {
    let text = read()?;
    let waiting = text.lines().filter_map(|line| line.split_once("-> FLOCK"));
    Ok(waiting.filter_map(|(_, rest)| inode_in(rest.split_ascii_whitespace().nth(3)?)).collect())
}

fn read() -> Result<String, Errno> {
    sys::read_file(Path::new("/proc/locks")).map(|text| String::from_utf8_lossy(&text).into_owned())
}

fn inode_in(file: &str) -> Option<u64> {
    file.rsplit(':').next()?.parse().ok()
}

/// `12: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`; a process that waits has an arrow before the kind.
fn flocked_in(line: &str) -> Option<(u64, u32)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (kind, _, mode, taker, file) =
        (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
    let exclusive = kind == "FLOCK" && mode == "WRITE";
    // A process of a namespace that cannot be seen from here has no pid.
    let taker = taker.parse().unwrap_or(0);
    inode_in(file).filter(|_| exclusive).map(|inode| (inode, taker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exclusive_flocks_that_are_held_count() {
        let rows = [
            ("1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF", Some((1234, 4711))),
            ("1: FLOCK  ADVISORY  WRITE -1 fe:00:1234 0 EOF", Some((1234, 0))),
            ("1: -> FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF", None),
            ("2: FLOCK  ADVISORY  READ  4711 fe:00:1234 0 EOF", None),
            ("3: POSIX  ADVISORY  WRITE 4711 fe:00:1234 0 EOF", None),
            ("3: FLOCK  ADVISORY  WRITE", None),
            ("", None),
        ];
        for (line, expected) in rows {
            assert_eq!(flocked_in(line), expected, "{line}");
        }
    }
}
