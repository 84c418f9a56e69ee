//! A connection as hyper reads and writes it, and how the kernel tells that a client is gone.

use hyper::rt::ReadBufCursor;
use pinfold_api::error::ErrorEnvelope;
use pinfold_api::{ErrorBody, ErrorKind};
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// How often to look whether a peer has hung up when no descriptor is left by which the kernel could tell.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// A connection. Answers that hyper gives by itself have no body: they get the error object here.
pub(super) struct HttpWire {
    stream: Arc<UnixStream>,
    /// What replaces hyper's own answer, as far as it is not written yet.
    instead: Vec<u8>,
}

impl HttpWire {
    pub(super) fn new(stream: Arc<UnixStream>) -> HttpWire {
        HttpWire { stream, instead: Vec::new() }
    }

    fn write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match self.stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    fn write_instead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.instead.is_empty() {
            let written = ready!(self.write(cx, &self.instead))?;
            self.instead.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Read for HttpWire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0_u8; 8192];
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            let room = bytes.len().min(into.remaining());
            match self.stream.try_read(&mut bytes[..room]) {
                Ok(read) => {
                    into.put_slice(&bytes[..read]);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl hyper::rt::Write for HttpWire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wire = self.get_mut();
        ready!(wire.write_instead(cx))?;
        if let Some(object) = own_words(bytes) {
            wire.instead = object;
            // What does not fit now goes out before anything else.
            _ = wire.write_instead(cx)?;
            return Poll::Ready(Ok(bytes.len()));
        }
        wire.write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().write_instead(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        ready!(wire.write_instead(cx))?;
        Poll::Ready(rustix::net::shutdown(&*wire.stream, rustix::net::Shutdown::Write).map_err(Into::into))
    }
}

/// The error object for an answer of hyper's own: a refusal without a body, which we never send.
fn own_words(bytes: &[u8]) -> Option<Vec<u8>> {
    let head = std::str::from_utf8(bytes.strip_prefix(b"HTTP/1.")?).ok()?;
    let status = head.get(2..5).filter(|status| status.starts_with('4'))?;
    if !head.contains("\r\ncontent-length: 0\r\n") {
        return None;
    }
    let message = match status {
        "431" => "the head of the request is larger than 16 KiB, or has more than 100 fields",
        "414" => "the address is too long",
        _ => "this is not a request of HTTP/1.1",
    };
    let reason = head.get(2..)?.split("\r\n").next()?;
    Some(answer(reason, &ErrorBody::new(ErrorKind::Usage, message)))
}

fn answer(status: &str, body: &ErrorBody) -> Vec<u8> {
    let object = serde_json::to_string(&ErrorEnvelope { error: body.clone() }).unwrap_or_default();
    let length = object.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{object}"
    )
    .into_bytes()
}

/// Tells a connection over the limit why it is closed. The text fits into every socket's buffer.
pub(super) fn turn_away(stream: &UnixStream) {
    let body = ErrorBody::new(ErrorKind::Unavailable, "the daemon has too many connections");
    let body = body.hint("close those that are not needed, then try again");
    _ = stream.try_write(&answer("503 Service Unavailable", &body));
}

/// Returns when the peer has closed its socket. A peer that only stopped sending may still read.
pub(super) async fn hung_up(stream: &UnixStream) {
    // On a socket this fires when the peer closes or stops sending; data does not wake us.
    if stream.ready(Interest::PRIORITY).await.is_err() || is_hung_up(stream) {
        return;
    }
    let copy = stream.as_fd().try_clone_to_owned();
    let watched = copy.and_then(|copy| crate::ports::async_fd::watch_for(copy, Interest::WRITABLE));
    let Ok(watched) = watched else {
        // Out of descriptors. The peer still gets its answer.
        while !is_hung_up(stream) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        return;
    };
    while let Ok(mut event) = watched.ready(Interest::WRITABLE).await {
        if event.ready().is_write_closed() || is_hung_up(stream) {
            return;
        }
        event.clear_ready();
    }
}

fn is_hung_up(stream: &UnixStream) -> bool {
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(stream, PollFlags::empty())];
    // If the state cannot be asked for, there is no reason to keep the connection.
    rustix::event::poll(&mut fds, Some(&now)).is_err() || fds[0].revents().contains(PollFlags::HUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_without_a_body_is_given_one() {
        let own =
            b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let text = String::from_utf8(own_words(own).unwrap()).unwrap();
        assert!(text.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"), "{text}");
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        let object: ErrorEnvelope = serde_json::from_str(body).unwrap();
        assert_eq!(object.error.kind, ErrorKind::Usage);
        for other in [
            &b"HTTP/1.1 404 Not Found\r\ncontent-length: 12\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            b"{\"error\":1}",
        ] {
            assert_eq!(own_words(other), None);
        }
    }

    #[tokio::test]
    async fn a_half_closed_peer_is_there_and_a_closed_one_is_not() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let soon = Duration::from_millis(20);
        // Unread data must not hide the end.
        theirs.try_write(b"unread").unwrap();
        assert!(tokio::time::timeout(soon, hung_up(&ours)).await.is_err());
        rustix::net::shutdown(&theirs, rustix::net::Shutdown::Write).unwrap();
        assert!(tokio::time::timeout(soon, hung_up(&ours)).await.is_err());
        let waiting = tokio::spawn(async move { hung_up(&ours).await });
        tokio::task::yield_now().await;
        drop(theirs);
        tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap().unwrap();
    }
}
