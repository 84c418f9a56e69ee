//! Memory that is not needed goes back to the kernel.
#![expect(unsafe_code, reason = "the allocator of the C library is asked through numbers")]

/// Has all threads allocate from one place, and long answers come from the kernel and go back to it: a place of its
/// own for each thread would keep what a burst of them left behind.
///
/// For a program whose threads mostly wait, and that calls [`trim`] after what needed much. Call it before there are any.
pub fn keep_little() {
    // SAFETY: sets numbers inside the allocator.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
        // While there is work it is wanted again at once: a megabyte that goes and comes costs an interrupt of every
        // processor, and a fault for each of its pages.
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 << 20);
        libc::mallopt(libc::M_TOP_PAD, 256 << 10);
    }
}

/// Lets go of the pages of the program itself: those that its start needed and its rest does not stay away, the others
/// come back from the kernel's cache when they are used.
pub fn forget_program() {
    let Ok(program) = std::env::current_exe() else { return };
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    let own = program.to_string_lossy();
    for line in maps.lines().filter(|line| line.ends_with(&*own)) {
        if let Some((from, length)) = unwritten(line) {
            // SAFETY: a mapping of a file that this process cannot write and has not written: nothing in it can be
            // lost, and what is read next is read from the file again.
            unsafe {
                libc::madvise(std::ptr::with_exposed_provenance_mut(from), length, libc::MADV_DONTNEED);
            }
        }
    }
}

/// The place of a mapping of program text or constants, from a line of `/proc/self/maps`.
fn unwritten(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let (from, to) = (usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?);
    // Constants that were relocated have been written; text and what lies before it in the file never are.
    let (rights, offset) = (words.next()?, words.next()?);
    let first = u64::from_str_radix(offset, 16) == Ok(0);
    (rights == "r-xp" || rights == "r--p" && first).then(|| (from, to - from))
}

/// Has long buffers come from the kernel and go back to it, so that a burst leaves no memory behind.
pub fn return_long_buffers() {
    // SAFETY: sets a number inside the allocator.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 10);
    }
}

/// Gives back what the allocator has free.
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
