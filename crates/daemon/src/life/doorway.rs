//! The API socket: where it is bound, recording that in the home, and binding it again after it was removed.
//!
//! A folder for sockets belongs to the login and is removed with it; temporary folders are swept. The daemon
//! goes on, so it checks every second whether its path still leads to it. If the folder is gone for good, or
//! belongs to a daemon of another home, the socket is in the home.

use crate::define::home::Home;
use crate::engine::input::{Handle, LoopInput};
use crate::life::StartError;
use crate::life::only::Only;
use crate::life::socket_link::Short;
use pinfold_api::DaemonPlace;
use pinfold_kernel::peer::Other;
use pinfold_kernel::private::{self, NotPrivate, Wider};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tracing::{info, warn};

/// A missing socket is noticed after this time at the latest. The kernel reports it only to a process that
/// watches every folder above it, any of which may be moved.
const LOOK: Duration = Duration::from_secs(1);

/// A bound socket.
pub(crate) struct Doorway {
    /// The home, with the runtime folder in use.
    pub(crate) home: Home,
    /// Device and inode of the socket.
    file: (u64, u64),
    /// The path by which programs connect.
    alias: PathBuf,
}

impl Doorway {
    /// Binds the socket in the runtime folder, or in the home if that is impossible, and records where it is.
    pub(crate) fn open(home: &Home) -> Result<(Doorway, UnixListener), StartError> {
        let in_home = Home { runtime: home.state.clone(), ..home.clone() };
        match Doorway::bind(home) {
            Err(error) if home.runtime != home.state => {
                let why = crate::error_chain::chain(&error);
                warn!("the home is used for sockets: {why}");
                Doorway::bind(&Home { refused: Some(why), ..in_home })
            }
            bound => bound,
        }
    }

    fn bind(home: &Home) -> Result<(Doorway, UnixListener), StartError> {
        let socket = home.socket();
        let place = |path: &Path, source| StartError::Place { path: path.to_owned(), source };
        for folder in home.folders() {
            make_private(&folder, home).map_err(|error| place(&folder, error.into()))?;
        }
        if home.runtime != home.state && is_anothers(&socket) {
            return Err(place(&socket, io::ErrorKind::AddrInUse.into()));
        }
        let listener = listen(&socket).map_err(|source| place(&socket, source))?;
        let file = file_at(&socket).map_err(|source| place(&socket, source))?;
        let Short { path: alias, refused } = crate::life::socket_link::make(&socket, &home.state);
        let home = Home { refused: refused.or_else(|| home.refused.clone()), ..home.clone() };
        let doorway = Doorway { home, file, alias };
        doorway.write_down();
        Ok((doorway, listener))
    }

    /// Without this, only clients that compute the same path find the daemon.
    fn write_down(&self) {
        let place = DaemonPlace { pid: std::process::id(), socket: self.home.socket() };
        if let Err(error) = place.write(&self.home.state) {
            warn!("{} does not say where the socket is: {error}", self.home.state.display());
        }
    }

    fn is_there(&self) -> bool {
        file_at(&self.home.socket()).is_ok_and(|file| file == self.file)
            && std::fs::symlink_metadata(&self.alias).is_ok()
            && self.home.runtime.join("shims").is_dir()
    }

    fn is_written_down(&self) -> bool {
        DaemonPlace::read(&self.home.state).is_some_and(|place| place.socket == self.home.socket())
    }

    /// Keeps it open until the loop has ended, and then removes it. What the home says of it stays.
    pub(crate) async fn keep(
        mut self,
        only: Arc<Only>,
        listeners: mpsc::UnboundedSender<UnixListener>,
        handle: Handle,
    ) {
        let mut missed = false;
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = handle.ended() => break,
            }
            only.stand();
            if !self.is_there() {
                missed = self.open_again(&listeners, &handle, missed);
            } else if !self.is_written_down() {
                self.write_down();
            }
        }
        self.remove();
    }

    /// Binds it again; returns whether that has failed, which is logged once.
    fn open_again(
        &mut self,
        listeners: &mpsc::UnboundedSender<UnixListener>,
        handle: &Handle,
        missed: bool,
    ) -> bool {
        match Doorway::open(&self.home) {
            Ok((doorway, listener)) => {
                info!("{} was removed; it is {} now", self.alias.display(), doorway.alias.display());
                *self = doorway;
                _ = listeners.send(listener);
                let (runtime, socket) = (self.home.runtime.clone(), self.alias.clone());
                handle.tell(LoopInput::Moved { runtime, socket });
                false
            }
            Err(error) if !missed => {
                warn!("the socket was removed: {}", crate::error_chain::chain(&error));
                true
            }
            Err(_) => true,
        }
    }

    fn remove(&self) {
        let socket = self.home.socket();
        if file_at(&socket).is_ok_and(|file| file == self.file) {
            _ = std::fs::remove_file(&socket);
        }
        crate::life::socket_link::remove(&self.alias, &socket);
    }
}

/// The home is known to be one, and may be a link of its user; any other folder may be in use by another
/// program.
fn make_private(folder: &Path, home: &Home) -> Result<(), NotPrivate> {
    if folder == home.state {
        return private::make_private(&private::way(folder)?, Wider::Tighten);
    }
    let wider = if folder.starts_with(&home.state) { Wider::Tighten } else { Wider::Refuse };
    private::make_private(folder, wider)
}

fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

/// Whether a daemon of another home listens there: two homes may have one runtime folder. A dead daemon may
/// have left its socket to a child for a moment.
fn is_anothers(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connected = || {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        Other::of(&socket)
    };
    match connected() {
        // A process that cannot be seen from here may well be alive.
        Ok(other) => other.pid.is_none_or(|pid| pid != std::process::id() && lives(pid)),
        // A process listens and accepts no connection.
        Err(errno) => errno == Errno::AGAIN,
    }
}

fn lives(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Replaces the socket of a daemon that is gone.
fn listen(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Binds a socket, however long its path is.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let (short, _folder) = pinfold_kernel::socket::reachable(path)?;
    UnixListener::bind(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_stopped_from_the_end_of_its_daemon_to_the_next_one() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let place = DaemonPlace { pid: 4711, socket: "/run/p.sock".into() };
        assert!(!DaemonPlace::is_stopped(home), "no daemon ever ran");
        for _ in 0..2 {
            place.write(home).unwrap();
            assert!(!DaemonPlace::is_stopped(home), "a daemon that is killed leaves its file");
            DaemonPlace::stop(home);
            assert!(DaemonPlace::is_stopped(home));
            DaemonPlace::stop(home);
            assert!(DaemonPlace::is_stopped(home), "stopped twice");
        }
        place.write(home).unwrap();
        std::fs::write(home.join("daemon.stopped"), "").unwrap();
        assert!(!DaemonPlace::is_stopped(home), "the mark of an earlier daemon does not count");
        DaemonPlace::remove(home);
        place.write(home).unwrap();
        DaemonPlace::remove(home);
        assert!(!DaemonPlace::is_stopped(home), "another daemon is to follow");
    }
}
