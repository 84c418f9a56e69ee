//! Ends a command that waits for news when the reader of its output has gone.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Exits with this code as soon as nobody can read what is printed, even if nothing is printed. Only for
/// commands that leave nothing behind: they may end at any moment.
#[expect(clippy::exit, reason = "the command waits in a call that nothing else can end")]
pub(crate) fn exit_with_the_reader(code: u8) {
    // Without the thread, the next line that is printed finds the reader gone.
    _ = std::thread::Builder::new().name("reader".to_owned()).spawn(move || {
        if reader_leaves() {
            std::process::exit(code.into());
        }
    });
}

/// Returns when stdout has lost its last reader: a pipe reports an error, a socket or terminal a hang-up. False if
/// that cannot happen to it. A file never reports anything.
fn reader_leaves() -> bool {
    let stdout = rustix::stdio::stdout();
    loop {
        // No events are asked for: errors and hang-ups are always reported.
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => {}
            Err(_) => return false,
            Ok(_) => return fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
        }
    }
}
