//! Gives memory that is no longer needed back to the kernel.
#![expect(unsafe_code, reason = "the allocator of the C library is asked through numbers")]

/// Makes all threads allocate from one arena, and makes large allocations come from the kernel and go back to
/// it: an arena per thread would keep what a burst of threads left behind.
///
/// For a program whose threads mostly wait and that calls [`trim`] after work that needed much memory. Call
/// it before any thread is started.
pub fn keep_little() {
    // SAFETY: sets numbers inside the allocator.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
        // While there is work, the memory is needed again at once: giving back a megabyte and taking it again
        // costs an interrupt on every processor and a page fault for each page.
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 << 20);
        libc::mallopt(libc::M_TOP_PAD, 256 << 10);
    }
}

/// Drops the pages of the program file: those needed only at start-up stay away, the others come back from
/// the page cache when they are used.
pub fn forget_program() {
    let Ok(program) = std::env::current_exe() else { return };
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    let own = program.to_string_lossy();
    for line in maps.lines().filter(|line| line.ends_with(&*own)) {
        if let Some((from, length)) = unwritten(line) {
            // SAFETY: a mapping of a file that this process cannot write and has not written: nothing in it
            // can be lost, and the next read comes from the file again.
            unsafe {
                libc::madvise(std::ptr::with_exposed_provenance_mut(from), length, libc::MADV_DONTNEED);
            }
        }
    }
}

/// Returns the address and length of a mapping of program text or constants, from a line of `/proc/self/maps`.
fn unwritten(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let (from, to) = (usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?);
    // Relocated constants have been written to; the text, and what precedes it in the file, never is.
    let (rights, offset) = (words.next()?, words.next()?);
    let first = u64::from_str_radix(offset, 16) == Ok(0);
    (rights == "r-xp" || rights == "r--p" && first).then(|| (from, to - from))
}

/// Makes large buffers come from the kernel and go back to it, so that a burst leaves no memory behind.
pub fn return_long_buffers() {
    // SAFETY: sets a number inside the allocator.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 10);
    }
}

/// Gives free memory of the allocator back to the kernel.
pub fn trim() {
    // SAFETY: touches only what the allocator has free, under its own locks.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_ever_writes_is_let_go_of() {
        let text = "00254000-00370000 r-xp 00053000 fe:00 11216073    /usr/bin/pinfold";
        assert_eq!(unwritten(text), Some((0x0025_4000, 0x0011_c000)));
        assert_eq!(unwritten(&text.replace("r-xp", "r--p")), None);
        assert_eq!(unwritten(&text.replace("r-xp", "rw-p")), None);
        assert_eq!(
            unwritten("00200000-00201000 r--p 00000000 fe:00 1 /usr/bin/pinfold"),
            Some((0x0020_0000, 0x1000))
        );
        assert_eq!(unwritten(""), None);
    }
}
