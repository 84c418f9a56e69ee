//! Accepts connections, within limits: no client that is slow, silent or gone holds up the others.

use super::api_error::ApiError;
use super::connection::{self, HttpWire};
use super::gate::Asker;
use crate::engine::input::Handle;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use pinfold_api::endpoint::{self, Endpoint};
use pinfold_api::object::{Ping, Starting};
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_kernel::peer::Other;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, mpsc, watch};
use tower_service::Service;
use tracing::warn;

/// Every request's head is smaller.
const LARGEST_HEAD: usize = 16 << 10;
/// The head of a request arrives within this time, also on a connection that waits for its next one.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How much is read or written at once.
const BUFFER: usize = 64 << 10;
/// Far more than the people and programs of one user open.
const MOST_CONNECTIONS: usize = 4096;
/// When no descriptor is left, some come back soon.
const TRY_AGAIN: Duration = Duration::from_millis(50);
/// A shortage may last for hours.
const LOG_AGAIN: Duration = Duration::from_secs(60);

/// The process at the other end, as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionPeer {
    /// `None` if it is in a pid namespace that cannot be seen from here.
    pub(crate) pid: Option<u32>,
    pub(crate) user: u32,
}

/// The router, once everything is loaded.
pub(crate) type Door = watch::Receiver<Option<Router>>;

/// Serves until the loop has ended, on the latest listener; returns when the last answer is sent.
pub(crate) async fn serve(mut listeners: mpsc::UnboundedReceiver<UnixListener>, door: Door, handle: Handle) {
    let connections = Connections::new(most());
    let (open, mut closed) = mpsc::channel::<()>(1);
    let Some(mut listener) = listeners.recv().await else { return };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(another) = listeners.recv() => {
                listener = another;
                continue;
            }
            () = handle.ended() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                // The modes of the folder keep other users out; where they do not, this does.
                let Some(other) = Other::of(&stream).ok().filter(|other| other.may_ask()) else { continue };
                let Some(place) = connections.enter() else {
                    connection::turn_away(&stream);
                    continue;
                };
                let open = open.clone();
                let connection = attend((stream, other), place, door.clone(), handle.clone());
                tokio::spawn(async move {
                    connection.await;
                    drop(open);
                });
            }
            Err(error) => {
                connections.note_refusal(&error);
                if connections.make_room() {
                    // Its descriptor is free as soon as it has ended.
                    _ = tokio::time::timeout(TRY_AGAIN, connections.left.notified()).await;
                } else {
                    tokio::time::sleep(TRY_AGAIN).await;
                }
            }
        }
    }
    drop((listener, open));
    closed.recv().await;
}

/// At most a quarter of the descriptors: sessions need the others.
fn most() -> usize {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let quarter = descriptors.map_or(usize::MAX, |all| usize::try_from(all / 4).unwrap_or(usize::MAX));
    quarter.clamp(16, MOST_CONNECTIONS)
}

async fn attend((stream, other): (UnixStream, Other), place: Place, door: Door, handle: Handle) {
    let stream = Arc::new(stream);
    let asker = Asker::new(other, Arc::clone(&stream));
    let peer = ConnectionPeer { pid: other.pid, user: other.user };
    let used = &place;
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        used.has_asked();
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(asker.clone());
        answer(request, door.clone())
    });
    let mut settings = http1::Builder::new();
    settings.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    settings.max_header_size(LARGEST_HEAD).max_buf_size(BUFFER);
    // A peer that stops sending may still read; the kernel tells whether it is there.
    settings.half_close(true);
    let mut connection = pin!(settings.serve_connection(HttpWire::new(Arc::clone(&stream)), service));
    let mut gone = pin!(connection::hung_up(&stream));
    let mut evicted = pin!(place.evicted.notified());
    let mut ended = pin!(handle.ended());
    let mut ending = false;
    loop {
        tokio::select! {
            // Errors have been answered where possible.
            _ = connection.as_mut() => return,
            () = &mut gone => return,
            () = &mut evicted => return,
            () = &mut ended, if !ending => {
                ending = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Answers; before everything is loaded, only pings, which report the start.
async fn answer(request: Request, mut door: Door) -> Result<Response, Infallible> {
    if door.borrow().is_none() && request.uri().path() == endpoint::Ping::DESCRIPTION.path {
        return Ok(axum::Json(Ping { starting: Some(Starting::default()) }).into_response());
    }
    let Ok(Some(mut router)) = door.wait_for(Option::is_some).await.map(|router| router.clone()) else {
        let problem = ErrorBody::new(ErrorKind::Unavailable, "the daemon did not start");
        return Ok(ApiError::from(problem).into_response());
    };
    router.call(request).await
}

/// The open connections.
#[derive(Clone)]
struct Connections {
    most: usize,
    state: Arc<Mutex<Open>>,
    /// Told when one has ended.
    left: Arc<Notify>,
}

#[derive(Default)]
struct Open {
    count: usize,
    next: u64,
    /// When it was last logged that one could not be accepted.
    refused: Option<Instant>,
    /// Those that have not sent a request yet, the oldest first.
    silent: BTreeMap<u64, Arc<Notify>>,
}

/// One connection's place among them.
struct Place {
    number: u64,
    evicted: Arc<Notify>,
    state: Arc<Mutex<Open>>,
    left: Arc<Notify>,
}

impl Connections {
    fn new(most: usize) -> Connections {
        Connections { most, state: Arc::default(), left: Arc::default() }
    }

    /// Admits one more; if there are too many, the one silent for longest is closed.
    fn enter(&self) -> Option<Place> {
        if self.state().count >= self.most && !self.make_room() {
            return None;
        }
        let mut state = self.state();
        state.count += 1;
        state.next += 1;
        let (number, evicted) = (state.next, Arc::new(Notify::new()));
        state.silent.insert(number, Arc::clone(&evicted));
        Some(Place { number, evicted, state: Arc::clone(&self.state), left: Arc::clone(&self.left) })
    }

    /// Logs why a connection was not accepted, once for all that follow soon.
    fn note_refusal(&self, error: &std::io::Error) {
        let refused = &mut self.state().refused;
        if refused.is_none_or(|last| last.elapsed() > LOG_AGAIN) {
            *refused = Some(Instant::now());
            warn!("a connection could not be taken: {error}");
        }
    }

    fn make_room(&self) -> bool {
        let silent = self.state().silent.pop_first();
        silent.inspect(|(_, evicted)| evicted.notify_one()).is_some()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Open> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    fn has_asked(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).silent.remove(&self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count -= 1;
        state.silent.remove(&self.number);
        self.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_silent_one_makes_room_and_one_that_asked_never_does() {
        let connections = Connections::new(2);
        let first = connections.enter().unwrap();
        let second = connections.enter().unwrap();
        first.has_asked();
        let third = connections.enter().unwrap();
        assert_eq!(connections.state().silent.keys().copied().collect::<Vec<_>>(), [third.number]);
        third.has_asked();
        drop(second);
        assert!(connections.enter().is_none(), "two have asked, and two is the limit");
        drop(first);
        assert!(connections.enter().is_some());
    }
}
