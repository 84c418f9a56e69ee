//! Agents that use memory in ways that watchdogs get wrong: the test program itself, started again with a role.

use crate::again;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// The variable with the role, and with what to wait for before playing it.
const ROLE: &str = "EATER";
const PAGE: usize = 4096;
pub(crate) const MIB: usize = 1 << 20;

/// The command that plays a role; `ROLE` has to be in its environment.
pub(crate) fn words() -> Vec<String> {
    again::words("eater::plays_its_role").to_vec()
}

/// The option of `new` that sets a role.
pub(crate) fn role(role: &str) -> String {
    format!("{ROLE}={role}")
}

/// Not a test: what an agent does that was started with a role.
#[test]
fn plays_its_role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let kept = match words[..] {
        ["anonymous", size] => vec![anonymous(mebibytes(size))],
        ["when", file, size] => {
            println!("eater waits");
            while !Path::new(file).exists() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            vec![anonymous(mebibytes(size))]
        }
        // A little memory of its own at the end: a reading that shows it proves that all before was there.
        ["file", path, size] => {
            touch_file(Path::new(path), mebibytes(size));
            vec![anonymous(40 * MIB)]
        }
        ["forks", count, size] => {
            let shared = anonymous(mebibytes(size));
            (0..count.parse().unwrap()).for_each(|_| fork_a_sleeper());
            vec![shared, anonymous(40 * MIB)]
        }
        _ => panic!("no role `{role}`"),
    };
    println!("eater has {}", kept.iter().map(Vec::len).sum::<usize>());
    sleep_for_ever();
}

fn mebibytes(text: &str) -> usize {
    text.parse::<usize>().unwrap() * MIB
}

/// Memory that is really in use: every page was written.
fn anonymous(size: usize) -> Vec<u8> {
    vec![1; size]
}

/// Maps a file and reads every page of it: all of it is page cache.
fn touch_file(path: &Path, size: usize) {
    let file = File::open(path).unwrap();
    let (read, shared, file) = (libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd());
    // SAFETY: a new mapping at an address of the kernel's choice, of a file that no process makes shorter.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), size, read, shared, file, 0) };
    assert_ne!(start, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    // SAFETY: the mapping above has this size and stays until the process ends.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), size) };
    let sum: usize = bytes.iter().step_by(PAGE).map(|byte| usize::from(std::hint::black_box(*byte))).sum();
    println!("eater read {} pages: {sum}", size / PAGE);
}

/// Forks a copy of this process that has all its memory and does nothing.
fn fork_a_sleeper() {
    // SAFETY: the child calls nothing but pause.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", std::io::Error::last_os_error());
    if pid == 0 {
        sleep_for_ever();
    }
}

fn sleep_for_ever() -> ! {
    loop {
        // SAFETY: waits for a signal, nothing else.
        unsafe { libc::pause() };
    }
}
