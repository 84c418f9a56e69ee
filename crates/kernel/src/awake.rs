//! Waiting for an answer that is expected at once.

use rustix::event::{PollFd, Timespec};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// Waits like [`rustix::event::poll`], but stays awake for the first while: an answer that comes within it does
/// not have to wake this process, which takes longer than some answers. Others run meanwhile if they want to.
///
/// # Errors
///
/// Those of `poll`.
pub fn poll(fds: &mut [PollFd<'_>], timeout: Option<&Timespec>, awake: Duration) -> Result<usize, Errno> {
    let begun = Instant::now();
    while begun.elapsed() < awake {
        match rustix::event::poll(fds, Some(&Timespec::default())) {
            Ok(0) => std::thread::yield_now(),
            found => return found,
        }
    }
    rustix::event::poll(fds, timeout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::PollFlags;

    #[test]
    fn what_comes_while_awake_or_asleep_is_found_and_what_does_not_come_is_not_waited_for_twice() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut fds = [PollFd::new(&reader, PollFlags::IN)];
        let soon = crate::clock::timespec(Duration::from_millis(1));
        assert_eq!(poll(&mut fds, Some(&soon), Duration::from_millis(1)), Ok(0));
        for awake in [Duration::ZERO, Duration::from_secs(600)] {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(5));
                    rustix::io::write(&writer, b"x").unwrap();
                });
                assert_eq!(poll(&mut fds, None, awake), Ok(1));
            });
            assert!(fds[0].revents().contains(PollFlags::IN));
            rustix::io::read(&reader, &mut [0; 1]).unwrap();
        }
    }
}
