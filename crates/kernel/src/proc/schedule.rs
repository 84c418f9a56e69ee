//! How long threads have run, and how long they have waited for a processor.

use super::path;
use std::path::Path;

/// What the kernel has counted of one thread, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// How long it ran.
    pub ran: u64,
    /// How long it was ready to run and had no processor.
    pub waited: u64,
}

impl Schedule {
    /// The first thread of a process; `None` if it has gone, or if the kernel does not count.
    #[must_use]
    pub fn of_process(pid: u32) -> Option<Self> {
        Self::read(&path(pid, "schedstat"))
    }

    /// The calling thread; `None` if the kernel does not count.
    #[must_use]
    pub fn of_this_thread() -> Option<Self> {
        Self::read(Path::new("/proc/thread-self/schedstat"))
    }

    fn read(path: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
        Some(Self { ran: words.next()??, waited: words.next()?? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_figure_is_running_and_the_second_is_waiting() {
        let schedule = Schedule { ran: 261_299_997, waited: 23_256_065 };
        assert_eq!(Schedule::parse("261299997 23256065 1024\n"), Some(schedule));
        for text in ["", "1", "1 x 3", "-1 2 3"] {
            assert_eq!(Schedule::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_thread_that_works_has_run() {
        let before = Schedule::of_this_thread().unwrap();
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 5 {}
        assert!(Schedule::of_this_thread().unwrap().ran > before.ran);
        assert!(Schedule::of_process(std::process::id()).is_some());
        assert_eq!(Schedule::of_process(u32::MAX), None);
    }
}
