//! The sockets on which shims listen, and where they are looked for.

use pinfold_kernel::peer::Other;
use pinfold_kernel::private::{self, Wider};
use pinfold_kernel::socket;
use rustix::fs::Mode;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A listening socket, and the file that leads to it.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    path: PathBuf,
    file: (u64, u64),
}

impl Listener {
    /// Listens at the first of several paths where that is possible. Removed folders are created again.
    pub(crate) fn open(paths: &[&Path]) -> Result<Self, Errno> {
        let mut problem = Errno::INVAL;
        for path in paths {
            make_folders(path);
            // A user who may write to the folder could put another socket there.
            if let Err(error) =
                path.parent().map_or(Ok(()), |folder| private::make_private(folder, Wider::Tighten))
            {
                problem = error.errno();
                continue;
            }
            match socket::listen(path).and_then(|socket| Ok((socket, file_at(path)?))) {
                Ok((socket, file)) => return Ok(Self { socket, path: (*path).to_owned(), file }),
                Err(errno) => problem = errno,
            }
        }
        Err(problem)
    }

    /// Returns whether its path still leads to it: cleaners of socket folders do not ask whose they are.
    pub(crate) fn is_there(&self) -> bool {
        file_at(&self.path).is_ok_and(|file| file == self.file)
    }

    /// Removes the path, if it is still its own.
    pub(crate) fn remove(&self) {
        if self.is_there() {
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn file_at(path: &Path) -> Result<(u64, u64), Errno> {
    rustix::fs::lstat(path).map(|file| (file.st_dev, file.st_ino))
}

/// Creates the folder of a socket, and the one above it; more than that is not ours.
fn make_folders(socket: &Path) {
    let Some(folder) = socket.parent().filter(|folder| !folder.exists()) else { return };
    for missing in [folder.parent(), Some(folder)].into_iter().flatten() {
        let _ = rustix::fs::mkdir(missing, Mode::RWXU);
    }
}

/// Connects to a path where a process of this user listens; any other path gives `EPERM`, and nothing was
/// said.
pub(crate) fn connect(path: &Path) -> Result<OwnedFd, Errno> {
    let socket = socket::connect(path, None)?;
    if Other::of(&socket)?.is_own() { Ok(socket) } else { Err(Errno::PERM) }
}
