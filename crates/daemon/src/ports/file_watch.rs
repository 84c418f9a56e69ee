//! Reports when a file changes: the kernel notifies, nothing polls.

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tracing::warn;

/// Sends a message each time something in the file's folder was written or removed. Several may be merged
/// into one.
pub(crate) fn watch(file: &Path) -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel(1);
    match open(file) {
        Ok(fd) => {
            tokio::spawn(tell(fd, sender));
        }
        Err(error) => warn!("{} cannot be watched: {error}", file.display()),
    }
    receiver
}

fn open(file: &Path) -> std::io::Result<AsyncFd<OwnedFd>> {
    let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let flags = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE;
    inotify::add_watch(&fd, folder, flags)?;
    super::async_fd::watch(fd)
}

async fn tell(fd: AsyncFd<OwnedFd>, sender: mpsc::Sender<()>) {
    let mut buffer = [0_u8; 4096];
    loop {
        tokio::select! {
            ready = fd.readable() => {
                let Ok(mut ready) = ready else { return };
                while rustix::io::read(&fd, &mut buffer).is_ok() {}
                ready.clear_ready();
            }
            () = sender.closed() => return,
        }
        // A full channel already holds one.
        _ = sender.try_send(());
    }
}
