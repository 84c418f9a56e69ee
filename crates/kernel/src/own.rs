//! What a process asks about itself: its pid, namespace, boot, rights and inherited descriptors.
#![expect(unsafe_code, reason = "memory that is wiped at fork and close_range have no safe form")]

use crate::sys;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// Returns the caller's pid. It is asked for once and kept in memory that the kernel wipes in every forked child.
pub fn pid() -> u32 {
    static KEPT: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();
    let Some(kept) = KEPT.get_or_init(wiped_at_fork) else { return std::process::id() };
    match kept.load(Ordering::Relaxed) {
        0 => {
            let pid = std::process::id();
            kept.store(pid, Ordering::Relaxed);
            pid
        }
        pid => pid,
    }
}

/// Returns a zero that becomes zero again in every forked child; `None` if the kernel has no such memory.
fn wiped_at_fork() -> Option<&'static AtomicU32> {
    const LENGTH: usize = size_of::<AtomicU32>();
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours. It is
    // page-aligned, zeroed and at least as long as asked, and it is unmapped only if no reference to it was made.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), LENGTH, access, kind, -1, 0);
        if page == libc::MAP_FAILED {
            return None;
        }
        if libc::madvise(page, LENGTH, libc::MADV_WIPEONFORK) != 0 {
            libc::munmap(page, LENGTH);
            return None;
        }
        Some(&*page.cast::<AtomicU32>())
    }
}

/// Returns the pid namespace of this process. A process never leaves its own, but a forked child may be in another.
///
/// # Errors
/// `/proc` does not say.
pub fn pid_namespace() -> Result<u64, Errno> {
    static OWN: Mutex<Option<(u32, u64)>> = Mutex::new(None);
    let pid = pid();
    let mut cached = OWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match *cached {
        Some((of, namespace)) if of == pid => Ok(namespace),
        _ => {
            let stat = sys::stat_at(rustix::fs::CWD, Path::new("/proc/self/ns/pid"), AtFlags::empty())?;
            *cached = Some((pid, stat.st_ino));
            Ok(stat.st_ino)
        }
    }
}

/// Returns the kernel's random id of this boot, as text.
///
/// # Errors
/// `/proc` does not say.
pub fn boot_id() -> Result<String, Errno> {
    let text = sys::read_file(Path::new("/proc/sys/kernel/random/boot_id"))?;
    std::str::from_utf8(&text).map(|text| text.trim().to_owned()).map_err(|_| Errno::IO)
}

/// Whether this program has rights that its caller does not have: it is set-uid or set-gid, or its file has
/// capabilities. Its caller would get them for any command.
#[must_use]
pub fn has_borrowed_rights() -> bool {
    use rustix::process::{getegid, geteuid, getgid, getuid};
    // SAFETY: reads a value that the kernel gave at exec.
    let secure = || unsafe { libc::getauxval(libc::AT_SECURE) != 0 };
    getuid() != geteuid() || getgid() != getegid() || secure()
}

/// Closes the descriptors that the caller left open: 3 and above, except those that systemd passes to a
/// service. Call it before anything is opened.
pub fn close_inherited() {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let handed = number("LISTEN_FDS").filter(|_| number("LISTEN_PID") == Some(std::process::id()));
    close_from(handed.unwrap_or(0).saturating_add(3));
}

/// Closes every descriptor from `first` on. Call it before anything is opened.
pub fn close_from(first: u32) {
    // SAFETY: the caller has opened nothing yet: these came through exec and have no owner here.
    unsafe {
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0);
    }
}

/// Makes every descriptor from `first` on close at exec.
pub fn close_at_exec_from(first: u32) {
    // SAFETY: sets a flag on descriptors; closes nothing.
    unsafe {
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}
