//! `/proc/PID/fdinfo/N`: the flock and the mount of a descriptor, and whether threads share a descriptor table.
#![expect(unsafe_code, reason = "kcmp has no safe form")]

use std::path::Path;

/// A lock given by `flock(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flock {
    /// No other process has one.
    Exclusive,
    /// Others may have one of the same kind.
    Shared,
}

/// Returns the flock that a descriptor's fdinfo shows. A process that waits for one has none.
#[must_use]
pub fn flock(fdinfo: &[u8]) -> Option<Flock> {
    let text = std::str::from_utf8(fdinfo).ok()?;
    text.lines().filter(|line| line.starts_with("lock:")).find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip_while(|word| *word != "FLOCK").skip(2);
        match words.next()? {
            "WRITE" => Some(Flock::Exclusive),
            "READ" => Some(Flock::Shared),
            _ => None,
        }
    })
}

/// Returns the process that holds a flock on the file at this path, as far as this user may see. Takes no lock.
#[must_use]
pub fn holder(file: &Path) -> Option<u32> {
    let file = file.canonicalize().ok()?;
    let has_lock = |pid: &u32, number: &u32| {
        let opened = std::fs::read_link(super::path(*pid, &format!("fd/{number}")));
        let locked = || std::fs::read(super::path(*pid, &format!("fdinfo/{number}"))).ok();
        opened.is_ok_and(|opened| opened == file)
            && locked().is_some_and(|text| flock(&text) == Some(Flock::Exclusive))
    };
    super::pids().ok()?.into_iter().find(|pid| {
        let numbers = super::numbers(&super::path(*pid, "fd")).unwrap_or_default();
        numbers.iter().any(|number| has_lock(pid, number))
    })
}

/// Returns the mount that a descriptor was opened through, by the kernel's number for it, which is the same
/// in all namespaces.
#[must_use]
pub fn mount(fdinfo: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(fdinfo).ok()?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

/// Whether two threads of a process share a descriptor table; also false if the kernel does not say.
#[must_use]
pub fn same_table(one: u32, other: u32) -> bool {
    const KCMP_FILES: libc::c_long = 2;
    // SAFETY: kcmp takes integers only.
    unsafe {
        libc::syscall(libc::SYS_kcmp, libc::c_long::from(one), libc::c_long::from(other), KCMP_FILES, 0, 0)
            == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_flock_is_found_by_the_path_of_its_file() {
        let path = std::env::temp_dir().join(format!("pinfold-fdinfo-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        assert_eq!(holder(&path), None, "open, and not locked");
        file.lock_shared().unwrap();
        assert_eq!(holder(&path), None);
        file.lock().unwrap();
        assert_eq!(holder(&path), Some(std::process::id()));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(holder(&path), None);
    }

    #[test]
    fn a_flock_is_told_from_other_locks() {
        let head = "pos:\t0\nflags:\t02100000\nmnt_id:\t29\nino:\t1234\n";
        let rows = [
            ("lock:\t1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF\n", Some(Flock::Exclusive)),
            ("lock:\t1: FLOCK  ADVISORY  READ  4711 fe:00:1234 0 EOF\n", Some(Flock::Shared)),
            ("lock:\t1: POSIX  ADVISORY  WRITE 4711 fe:00:1234 0 EOF\n", None),
            (
                "lock:\t1: OFDLCK ADVISORY  READ -1 fe:00:1 0 EOF\nlock:\t2: FLOCK ADVISORY READ 1 a:b:1 0 EOF\n",
                Some(Flock::Shared),
            ),
            ("", None),
        ];
        for (line, expected) in rows {
            assert_eq!(flock(format!("{head}{line}").as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn the_mount_is_told() {
        assert_eq!(mount(b"pos:\t0\nflags:\t02100000\nmnt_id:\t29\nino:\t1234\n"), Some(29));
        assert_eq!(mount(b"pos:\t0\nmnt_id:\tx\n"), None);
    }
}
