//! `/proc/PID/stat`: one line, which includes a name with arbitrary bytes.

use super::{is_ours, path};
use crate::sys;
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// `USER_HZ` is 100 on every architecture that Rust's std supports on Linux except alpha.
const TICKS_A_SECOND: i64 = 100;

/// A stat line, split after the name.
#[derive(Debug, Clone, Copy)]
pub struct Stat<'a> {
    /// The name of the process.
    pub name: &'a [u8],
    rest: &'a str,
}

impl<'a> Stat<'a> {
    /// Parses a line. The name may contain anything, even `)` and newlines: the LAST `)` ends it.
    #[must_use]
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&line[close + 1..]).ok()?;
        Some(Self { name: line.get(open + 1..close)?, rest })
    }

    /// Returns a field by its number in proc(5); the first after the name is 3.
    #[must_use]
    pub fn field(&self, number: usize) -> Option<&'a str> {
        self.rest.split_ascii_whitespace().nth(number.checked_sub(3)?)
    }

    /// Returns the letter for the state of the process.
    #[must_use]
    pub fn state(&self) -> Option<char> {
        self.field(3)?.chars().next()
    }

    /// Whether it has ended and is only waiting to be reaped.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state(), Some('Z' | 'X'))
    }

    /// Returns the parent's pid.
    #[must_use]
    pub fn parent(&self) -> Option<u32> {
        self.field(4)?.parse().ok()
    }

    /// Returns when it was started, as the caller's time namespace shows it.
    #[must_use]
    pub fn start_ticks(&self) -> Option<u64> {
        self.field(22)?.parse().ok()
    }

    /// Returns where its command line begins and ends in its memory.
    #[must_use]
    pub fn arguments(&self) -> Option<(usize, usize)> {
        Some((self.field(48)?.parse().ok()?, self.field(49)?.parse().ok()?))
    }
}

/// Returns the parent of a process.
#[must_use]
pub fn parent(pid: u32) -> Option<u32> {
    Stat::parse(&sys::read_file(&path(pid, "stat")).ok()?)?.parent()
}

/// Returns the letter for the state of a process.
#[must_use]
pub fn state(pid: u32) -> Option<char> {
    Stat::parse(&sys::read_file(&path(pid, "stat")).ok()?)?.state()
}

/// Whether a process exists and has not ended.
#[must_use]
pub fn lives(pid: u32) -> bool {
    let line = sys::read_file(&path(pid, "stat")).unwrap_or_default();
    Stat::parse(&line).is_some_and(|stat| !stat.has_ended())
}

/// Returns when a process was started, as the initial time namespace would show it.
///
/// # Errors
/// `/proc` does not say, or it belongs to another namespace.
pub fn start_ticks(pid: u32) -> Result<u64, Errno> {
    let path = match pid {
        // Correct whichever pid namespace /proc shows.
        own if own == std::process::id() => PathBuf::from("/proc/self/stat"),
        _ if is_ours()? => path(pid, "stat"),
        _ => return Err(Errno::IO),
    };
    let line = sys::read_file(&path)?;
    let shown = Stat::parse(&line).and_then(|stat| stat.start_ticks()).ok_or(Errno::IO)?;
    Ok(shown.wrapping_sub(time_namespace_ticks().cast_unsigned()))
}

/// Returns by how much this process's time namespace shifts the start times it reads.
fn time_namespace_ticks() -> i64 {
    let Ok(text) = sys::read_file(Path::new("/proc/self/timens_offsets")) else { return 0 };
    std::str::from_utf8(&text).ok().and_then(boot_offset).unwrap_or(0)
}

fn boot_offset(text: &str) -> Option<i64> {
    let line = text.lines().find(|line| line.starts_with("boottime"))?;
    let mut numbers = line.split_ascii_whitespace().skip(1);
    let seconds: i64 = numbers.next()?.parse().ok()?;
    let nanoseconds: i64 = numbers.next()?.parse().ok()?;
    Some(seconds * TICKS_A_SECOND + nanoseconds / (1_000_000_000 / TICKS_A_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str) -> Vec<u8> {
        let after = (3..=52).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        format!("4711 ({name}) {after}\n").into_bytes()
    }

    #[test]
    fn fields_are_read_after_any_name() {
        for name in ["sh", "", ")", "(", ") 1 2 3", "a) S 9 9", "new\nline", "tab\t) R 1", "🐑 (x)"] {
            let line = line(name);
            let stat = Stat::parse(&line).unwrap();
            assert_eq!(stat.name, name.as_bytes());
            assert_eq!((stat.parent(), stat.start_ticks()), (Some(4), Some(22)), "{name:?}");
            assert_eq!((stat.state(), stat.arguments()), (Some('3'), Some((48, 49))), "{name:?}");
        }
        let mut raw = line("x");
        raw.splice(6..7, [0xFF, 0xFE]);
        assert_eq!(Stat::parse(&raw).unwrap().start_ticks(), Some(22));
    }

    #[test]
    fn a_line_cut_short_lacks_what_was_cut_off() {
        for text in ["", "4711", "4711 (x", "4711 (x) S 1 2"] {
            let stat = Stat::parse(text.as_bytes());
            assert_eq!(stat.and_then(|stat| stat.start_ticks()), None, "{text:?}");
            assert_eq!(stat.and_then(|stat| stat.arguments()), None, "{text:?}");
        }
    }

    #[test]
    fn one_that_only_waits_to_be_reaped_does_not_live() {
        for (letter, ended) in [("Z", true), ("X", true), ("S", false), ("R", false), ("T", false)] {
            assert_eq!(Stat::parse(format!("7 (a) {letter} 1").as_bytes()).unwrap().has_ended(), ended);
        }
        assert!(lives(std::process::id()));
        assert!(!lives(4_000_000));
    }

    #[test]
    fn the_offset_of_a_time_namespace_is_taken_off() {
        assert_eq!(boot_offset("monotonic 0 0\nboottime 0 0\n"), Some(0));
        assert_eq!(boot_offset("monotonic 5 0\nboottime    10000   500000000\n"), Some(1_000_050));
        assert_eq!(boot_offset("monotonic -5 0\nboottime -1 0\n"), Some(-100));
        assert_eq!(boot_offset(""), None);
    }
}
