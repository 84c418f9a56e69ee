//! What is said to a shim: written at once; what the socket does not take follows when it does. Nobody waits.

use rustix::net::Shutdown;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::UnixStream;

/// The way to one shim. When the last of it is gone, the shim reads the end of the stream.
pub(crate) struct Outlet(Arc<Way>);

struct Way {
    stream: Arc<UnixStream>,
    /// What was not taken yet; a task is at it while there is any.
    unsent: Mutex<Vec<u8>>,
}

impl Outlet {
    pub(crate) fn new(stream: Arc<UnixStream>) -> Outlet {
        Outlet(Arc::new(Way { stream, unsent: Mutex::default() }))
    }

    /// Sends, behind everything that was sent before.
    pub(crate) fn send(&self, bytes: &[u8]) {
        let mut unsent = self.0.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        let first = unsent.is_empty();
        let taken = if first { self.0.write(bytes) } else { 0 };
        unsent.extend_from_slice(&bytes[taken..]);
        if first && !unsent.is_empty() {
            tokio::spawn(flush(Arc::clone(&self.0)));
        }
    }
}

impl Way {
    /// Writes what the socket takes. One that has gone takes everything: the end of its reports tells of it.
    fn write(&self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.stream.try_write(&bytes[taken..]) {
                Ok(count) => taken += count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
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
    while way.stream.writable().await.is_ok() {
        if way.go_on() {
            return;
        }
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        // It fails only where nobody is left to hear of it.
        _ = rustix::net::shutdown(&*self.stream, Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[test]
    fn everything_arrives_in_order_also_what_the_socket_did_not_take_and_then_the_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let outlet = Outlet::new(Arc::new(ours));
            let pieces: Vec<Vec<u8>> = (0..200_u8).map(|number| vec![number; 10_000]).collect();
            pieces.iter().for_each(|piece| outlet.send(piece));
            drop(outlet);
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).await.unwrap();
            assert!(all == pieces.concat(), "{} bytes", all.len());
        });
    }

    #[test]
    fn a_shim_that_has_gone_costs_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            drop(theirs);
            let outlet = Outlet::new(Arc::new(ours));
            outlet.0.stream.writable().await.unwrap();
            outlet.send(&[0; 100]);
            assert!(outlet.0.unsent.lock().unwrap().is_empty());
        });
    }
}
