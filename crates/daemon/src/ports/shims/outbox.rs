//! What is said to a shim: written at once; what the socket does not take follows when it does. Nobody waits.

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The way to one shim. When the last of it is gone, the shim reads the end of the stream.
#[derive(Clone)]
pub(crate) struct Outlet(Arc<dyn Wire>);

/// What carries bytes to a shim.
pub(crate) trait Wire: Send + Sync {
    /// Sends, after everything that was sent before; never waits. A shim that has gone is noticed by other means.
    fn send(self: Arc<Self>, bytes: &[u8]);
}

impl Outlet {
    pub(crate) fn new(wire: Arc<dyn Wire>) -> Outlet {
        Outlet(wire)
    }

    /// Sends, after everything that was sent before.
    pub(crate) fn send(&self, bytes: &[u8]) {
        Arc::clone(&self.0).send(bytes);
    }
}

/// The socket of one shim.
pub(crate) struct Way {
    /// Watched for reading only: otherwise the loop would be woken by every command that the shim takes.
    socket: Arc<AsyncFd<OwnedFd>>,
    /// Whoever says something need not be on it.
    runtime: tokio::runtime::Handle,
    /// What was not taken yet; a task is at it while there is any.
    unsent: Mutex<Vec<u8>>,
}

impl Wire for Way {
    fn send(self: Arc<Self>, bytes: &[u8]) {
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        let first = unsent.is_empty();
        let taken = if first { self.write(bytes) } else { 0 };
        unsent.extend_from_slice(&bytes[taken..]);
        if first && !unsent.is_empty() {
            self.runtime.spawn(flush(Arc::clone(&self)));
        }
    }
}

impl Way {
    pub(crate) fn new(socket: Arc<AsyncFd<OwnedFd>>) -> Arc<Way> {
        let runtime = tokio::runtime::Handle::current();
        Arc::new(Way { socket, runtime, unsent: Mutex::default() })
    }

    /// Writes what the socket takes. One that has gone takes everything: the end of its reports tells of it.
    fn write(&self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(self.socket.get_ref(), &bytes[taken..], flags) {
                Ok(count) => taken += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return bytes.len(),
            }
        }
        taken
    }

    /// Writes on; whether that was all.
    fn go_on(&self) -> bool {
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.write(&unsent);
        unsent.drain(..taken);
        if unsent.is_empty() {
            *unsent = Vec::new();
        }
        unsent.is_empty()
    }
}

async fn flush(way: Arc<Way>) {
    let copy = way.socket.get_ref().as_fd().try_clone_to_owned();
    let Ok(room) = copy.and_then(|copy| crate::ports::async_fd::watch_for(copy, Interest::WRITABLE)) else {
        // Without a descriptor nothing more can be said: the shim reads the end, and is looked for anew.
        _ = rustix::net::shutdown(way.socket.get_ref(), Shutdown::Both);
        return;
    };
    while let Ok(mut ready) = room.writable().await {
        if way.go_on() {
            return;
        }
        ready.clear_ready();
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        // It fails only where nobody is left to hear of it.
        _ = rustix::net::shutdown(self.socket.get_ref(), Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use tokio::io::AsyncReadExt;
    use tokio::net::UnixStream;

    fn pair() -> (Arc<Way>, std::os::unix::net::UnixStream) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let ours = crate::ports::async_fd::watch(ours.into()).unwrap();
        (Way::new(Arc::new(ours)), theirs)
    }

    /// All that comes until the end.
    async fn rest(theirs: std::os::unix::net::UnixStream) -> Vec<u8> {
        let mut rest = Vec::new();
        UnixStream::from_std(theirs).unwrap().read_to_end(&mut rest).await.unwrap();
        rest
    }

    #[test]
    fn everything_arrives_in_order_also_what_the_socket_did_not_take_and_then_the_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (way, theirs) = pair();
            let outlet = Outlet::new(way);
            let pieces: Vec<Vec<u8>> = (0..200_u8).map(|number| vec![number; 10_000]).collect();
            pieces.iter().for_each(|piece| outlet.send(piece));
            drop(outlet);
            let all = rest(theirs).await;
            assert!(all == pieces.concat(), "{} bytes", all.len());
        });
    }

    #[test]
    fn a_command_waits_for_the_one_before_it_although_the_socket_has_room_again() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (way, mut theirs) = pair();
            let (long, short) = (vec![1; 2_000_000], [2; 10]);
            Arc::clone(&way).send(&long);
            assert!(!way.unsent.lock().unwrap().is_empty(), "the socket takes all of it");
            // Read without a pause: nobody writes on before the next command comes.
            let mut all = Vec::new();
            let full = theirs.read_to_end(&mut all).unwrap_err();
            assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock);
            way.send(&short);
            all.extend(rest(theirs).await);
            assert!(all == [&long[..], &short].concat(), "{} bytes", all.len());
        });
    }

    #[test]
    fn a_shim_that_has_gone_costs_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (way, theirs) = pair();
            drop(theirs);
            Arc::clone(&way).send(&[0; 100]);
            assert!(way.unsent.lock().unwrap().is_empty());
        });
    }
}
