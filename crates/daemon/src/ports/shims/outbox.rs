//! Commands to a shim: written at once; what the socket does not take follows when it does. The caller never
//! waits.

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown};
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The way to one shim. When the last clone is dropped, the shim reads the end of the stream.
#[derive(Clone)]
pub(crate) struct Outlet(Arc<dyn ShimWire>);

/// What carries bytes to a shim.
pub(crate) trait ShimWire: Send + Sync {
    /// Sends after everything sent before; never waits. A shim that has gone is noticed by other means.
    fn send(self: Arc<Self>, bytes: &[u8]);

    /// The same with descriptors, which arrive with the first byte.
    fn send_with(self: Arc<Self>, bytes: &[u8], descriptors: Vec<OwnedFd>) {
        drop(descriptors);
        self.send(bytes);
    }
}

impl Outlet {
    pub(crate) fn new(wire: Arc<dyn ShimWire>) -> Outlet {
        Outlet(wire)
    }

    /// Sends after everything sent before.
    pub(crate) fn send(&self, bytes: &[u8]) {
        Arc::clone(&self.0).send(bytes);
    }

    /// Sends with descriptors, after everything sent before.
    pub(crate) fn send_with(&self, bytes: &[u8], descriptors: Vec<OwnedFd>) {
        Arc::clone(&self.0).send_with(bytes, descriptors);
    }
}

/// The socket of one shim.
pub(crate) struct Way {
    /// Watched for reading only: otherwise every command that the shim takes would wake the loop.
    socket: Arc<AsyncFd<OwnedFd>>,
    /// A sender need not be on it.
    runtime: tokio::runtime::Handle,
    /// What was not taken yet; while there is any, a task writes it.
    unsent: Mutex<Unsent>,
}

#[derive(Default)]
struct Unsent {
    bytes: Vec<u8>,
    /// Descriptors, and how many bytes before the end they go: more may be added after them.
    lent: VecDeque<(usize, Vec<OwnedFd>)>,
}

impl Unsent {
    /// How many bytes may be sent before descriptors have to be.
    fn before_lent(&self) -> usize {
        self.lent.front().map_or(self.bytes.len(), |(from_end, _)| self.bytes.len() - from_end)
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.lent.iter_mut().for_each(|(from_end, _)| *from_end += bytes.len());
    }
}

impl ShimWire for Way {
    fn send(self: Arc<Self>, bytes: &[u8]) {
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        let first = unsent.bytes.is_empty();
        let taken = if first { self.write(bytes) } else { 0 };
        unsent.add(&bytes[taken..]);
        if first && !unsent.bytes.is_empty() {
            self.runtime.spawn(flush(Arc::clone(&self)));
        }
    }

    fn send_with(self: Arc<Self>, bytes: &[u8], descriptors: Vec<OwnedFd>) {
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        let first = unsent.bytes.is_empty();
        unsent.add(bytes);
        unsent.lent.push_back((bytes.len(), descriptors));
        if first && !self.write_on(&mut unsent) {
            self.runtime.spawn(flush(Arc::clone(&self)));
        }
    }
}

impl Way {
    pub(crate) fn new(socket: Arc<AsyncFd<OwnedFd>>) -> Arc<Way> {
        let runtime = tokio::runtime::Handle::current();
        Arc::new(Way { socket, runtime, unsent: Mutex::default() })
    }

    /// Writes what the socket takes. A closed one takes everything: the end of its reports tells of it.
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

    /// Continues writing; returns whether that was all.
    fn go_on(&self) -> bool {
        self.write_on(&mut self.unsent.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn write_on(&self, unsent: &mut Unsent) -> bool {
        while !unsent.bytes.is_empty() {
            let plain = unsent.before_lent();
            let taken = match unsent.lent.front() {
                Some((_, descriptors)) if plain == 0 => self.write_with(&unsent.bytes[..1], descriptors),
                Some(_) | None => self.write(&unsent.bytes[..plain]),
            };
            if plain == 0 && taken > 0 {
                unsent.lent.pop_front();
            }
            unsent.bytes.drain(..taken);
            if taken < plain.max(1) {
                return false;
            }
        }
        *unsent = Unsent::default();
        true
    }

    fn write_with(&self, bytes: &[u8], descriptors: &[OwnedFd]) -> usize {
        let lent: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        match pinfold_kernel::socket::send_with(self.socket.get_ref(), bytes, &lent) {
            Ok(count) => count,
            Err(Errno::AGAIN) => 0,
            Err(_) => bytes.len(),
        }
    }
}

async fn flush(way: Arc<Way>) {
    let copy = way.socket.get_ref().as_fd().try_clone_to_owned();
    let Ok(room) = copy.and_then(|copy| crate::ports::async_fd::watch_for(copy, Interest::WRITABLE)) else {
        // Without a descriptor nothing more can be sent: the shim reads the end, and is looked for again.
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
        // It fails only if the shim is gone anyway.
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

    /// Everything up to the end.
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
            assert!(!way.unsent.lock().unwrap().bytes.is_empty(), "the socket takes all of it");
            // Read without a pause: nothing is written before the next command comes.
            let mut all = Vec::new();
            let full = theirs.read_to_end(&mut all).unwrap_err();
            assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock);
            way.send(&short);
            all.extend(rest(theirs).await);
            assert!(all == [&long[..], &short].concat(), "{} bytes", all.len());
        });
    }

    #[test]
    fn descriptors_arrive_in_their_place_also_behind_what_the_socket_did_not_take() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            let ours = crate::ports::async_fd::watch(ours.into()).unwrap();
            let outlet = Outlet::new(Way::new(Arc::new(ours)));
            let descriptor = || vec![OwnedFd::from(std::fs::File::open("/dev/null").unwrap())];
            let mut expected = Vec::new();
            for number in 0..40_u8 {
                let piece = vec![number; 20_000];
                outlet.send(&piece);
                outlet.send_with(&[200 + number % 40, 1], descriptor());
                expected.extend(piece);
                expected.extend([200 + number % 40, 1]);
            }
            drop(outlet);
            let read = tokio::task::spawn_blocking(move || {
                let (mut all, mut came) = (Vec::new(), Vec::new());
                loop {
                    let (mut bytes, mut descriptors) = ([0; 4096], Vec::new());
                    match pinfold_kernel::socket::receive_with(&theirs, &mut bytes, &mut descriptors).unwrap()
                    {
                        0 => return (all, came),
                        count => {
                            if !descriptors.is_empty() {
                                came.push((all.len(), count));
                            }
                            all.extend_from_slice(&bytes[..count]);
                        }
                    }
                }
            });
            let (all, came) = read.await.unwrap();
            assert!(all == expected, "{} bytes", all.len());
            assert_eq!(came.len(), 40);
            for (number, (at, count)) in came.into_iter().enumerate() {
                let place = number * 20_002 + 20_000;
                assert!((at..at + count).contains(&place), "{number}: {at} {count}");
            }
        });
    }

    #[test]
    fn a_shim_that_has_gone_costs_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (way, theirs) = pair();
            drop(theirs);
            Arc::clone(&way).send(&[0; 100]);
            assert!(way.unsent.lock().unwrap().bytes.is_empty());
        });
    }
}
