//! The program that every supervisor keeps: records when its first instruction ran and its pid, then waits
//! forever.
//!
//! `pinfold-bench-child RECORDS NUMBER`; without arguments, as a `run` file, the environment names the
//! records and its folder the number. It has no runtime and no memory of its own, so that it costs every
//! supervisor the same, and little.
#![no_main]

use libc::{c_char, c_int};

const RECORDS: &std::ffi::CStr = c"PINFOLD_BENCH_RECORDS";

/// The program.
///
/// # Safety
/// Called by the C library, once, with as many words as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(count: c_int, words: *const *const c_char) -> c_int {
    let at = boot_nanoseconds();
    let mut folder = [0; 4096];
    // SAFETY: `words` has `count` strings, each ended by zero; a string of the environment lives as long as we do;
    // `getcwd` writes at most the length it is given.
    let (records, number) = unsafe {
        if count > 2 {
            (*words.add(1), digits(*words.add(2)))
        } else {
            let length = folder.len();
            (libc::getenv(RECORDS.as_ptr()).cast_const(), digits(libc::getcwd(folder.as_mut_ptr(), length)))
        }
    };
    if records.is_null() {
        return 78;
    }
    let mut record = [0_u8; 16];
    record[..4].copy_from_slice(&number.to_le_bytes());
    record[4..8].copy_from_slice(&std::process::id().to_le_bytes());
    record[8..].copy_from_slice(&at.to_le_bytes());
    // SAFETY: a string ended by zero, and a buffer of the length that is said. One small write to a file that is
    // appended to is whole.
    unsafe {
        let file = libc::open(records, libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC);
        if libc::write(file, record.as_ptr().cast(), record.len()) != 16 {
            return 78;
        }
        libc::close(file);
        loop {
            libc::pause();
        }
    }
}

fn boot_nanoseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the number that a string ends with.
///
/// # Safety
/// A string ended by zero, or null.
unsafe fn digits(text: *const c_char) -> u32 {
    let mut number = 0;
    let mut at = text;
    // SAFETY: nothing behind the zero is read.
    while !at.is_null() && unsafe { *at } != 0 {
        // SAFETY: as above.
        let digit = unsafe { *at } as u8;
        number = if digit.is_ascii_digit() { number * 10 + u32::from(digit - b'0') } else { 0 };
        // SAFETY: the zero is not passed.
        at = unsafe { at.add(1) };
    }
    number
}
