//! A client of the daemon: blocking, on its unix socket, one connection per request.
//!
//! A request has no deadline of its own. Whether the daemon runs at all is asked separately: see [`Client::ping`].

use crate::endpoint::{self, Call, Endpoint, WholeAnswer};
use crate::error::{ErrorBody, ErrorEnvelope, ErrorKind};
use crate::http::{self, BodyReader, Rest};
use crate::object::Ping;
use crate::place::{self, DaemonPlace};
use crate::watched::{ANSWERS_WITHIN, AskAfter, Mute, Sign, WatchedConnection, timed_out};
use pinfold_kernel::peer::Other;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A client of the daemon at one address.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
    /// The home, which says where its daemon is now.
    home: Option<PathBuf>,
}

/// Keeps an answer open that goes on; dropping this ends it.
#[derive(Debug)]
pub struct OpenAnswer(UnixStream);

impl Drop for OpenAnswer {
    fn drop(&mut self) {
        // It may have ended by itself.
        _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No process listens.
    #[error("no daemon answers at {}", socket.display())]
    Down {
        /// Where the daemon was looked for.
        socket: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The connection broke.
    #[error("the daemon went away while it answered")]
    Broken(#[source] io::Error),
    /// The daemon lives but does not answer.
    #[error(transparent)]
    Mute(Mute),
    /// A process of another user listens; nothing was sent to it.
    #[error("another user's process answers at {}: user {user}", socket.display())]
    Stranger {
        /// The path of the socket.
        socket: PathBuf,
        /// The user of that process.
        user: u32,
    },
    /// The daemon refused.
    #[error("{}", .0.message)]
    Refused(Box<ErrorBody>),
    /// The answer cannot be parsed.
    #[error("the daemon's answer could not be read")]
    Garbled(#[source] serde_json::Error),
}

impl Client {
    /// Creates a client of the daemon at this socket. Nothing is sent yet.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>) -> Client {
        Client { socket: socket.into(), home: None }
    }

    /// Creates a client of a home's daemon, which may move: it is asked where the home says it is, or at
    /// `socket` if the home says nothing.
    #[must_use]
    pub fn of_home(home: impl Into<PathBuf>, socket: impl Into<PathBuf>) -> Client {
        Client { socket: socket.into(), home: Some(home.into()) }
    }

    /// Returns where the daemon is looked for.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks for a sign of life, which the daemon's loop gives within 5 s, even while it starts.
    ///
    /// A listening socket does not prove that a daemon runs: a daemon that is stopped listens too, and a
    /// child that a dead daemon was just starting has its socket for a moment.
    ///
    /// # Errors
    /// No process listens, or the one that does is [`ClientError::Mute`].
    pub fn ping(&self) -> Result<Ping, ClientError> {
        let failed = |error: io::Error| {
            if timed_out(&error) { ClientError::Mute(self.mute()) } else { ClientError::Broken(error) }
        };
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(ANSWERS_WITHIN)).map_err(failed)?;
        stream.set_write_timeout(Some(ANSWERS_WITHIN)).map_err(failed)?;
        let ping = endpoint::Ping::DESCRIPTION;
        http::write_request(&mut stream, ping.method.word(), ping.path, None).map_err(failed)?;
        let text = answer(BufReader::new(stream)).map_err(failed)??.whole().map_err(failed)?;
        serde_json::from_slice(&text).map_err(ClientError::Garbled)
    }

    /// Returns where the daemon is now, as far as is known.
    fn address(&self) -> PathBuf {
        let place = self.home.as_deref().and_then(DaemonPlace::read);
        place.map_or_else(|| self.socket.clone(), |place| place.socket)
    }

    /// Gets whatever is at an address: for tests, and for what this version does not know.
    ///
    /// # Errors
    /// The daemon does not answer, the connection breaks, or the daemon refuses.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.whole("GET", path, None)
    }

    /// Asks an endpoint and reads its answer.
    ///
    /// # Errors
    /// The daemon does not answer, the connection breaks, or the daemon refuses.
    pub fn ask<T, E>(&self, call: &Call<E>) -> Result<T, ClientError>
    where
        T: DeserializeOwned,
        E: Endpoint<Answer = WholeAnswer<T>>,
    {
        serde_json::from_slice(&self.text(call)?).map_err(ClientError::Garbled)
    }

    /// Asks an endpoint for something that must not be done twice: only a daemon that has answered a ping on
    /// the same connection is asked. If none has, nothing was asked, and the error is [`ClientError::Down`].
    ///
    /// # Errors
    /// The daemon does not answer, the connection breaks after that, or the daemon refuses.
    pub fn ask_once<T, E>(&self, call: &Call<E>) -> Result<T, ClientError>
    where
        T: DeserializeOwned,
        E: Endpoint<Answer = WholeAnswer<T>>,
    {
        let body = call.body().map_err(ClientError::Garbled)?;
        let unheard = |source: io::Error| match ClientError::from(source) {
            ClientError::Broken(source) => ClientError::Down { socket: self.address(), source },
            other @ (ClientError::Down { .. }
            | ClientError::Mute(_)
            | ClientError::Stranger { .. }
            | ClientError::Refused(_)
            | ClientError::Garbled(_)) => other,
        };
        let mut stream = WatchedConnection::new(self.connect()?, Box::new(self.clone())).map_err(unheard)?;
        let ping = endpoint::Ping::DESCRIPTION;
        http::write_first_request(&mut stream, ping.method.word(), ping.path).map_err(unheard)?;
        let mut stream = answer(BufReader::new(stream)).map_err(unheard)??.passed().map_err(unheard)?;
        let written =
            http::write_request(stream.get_mut(), E::DESCRIPTION.method.word(), call.address(), body);
        let text = answer(stream).map_err(|error| written.err().unwrap_or(error))??.whole()?;
        serde_json::from_slice(&text).map_err(ClientError::Garbled)
    }

    /// Asks an endpoint and returns the text of its answer, so that the caller can borrow from it.
    ///
    /// # Errors
    /// The daemon does not answer, the connection breaks, or the daemon refuses.
    pub fn text<E: Endpoint>(&self, call: &Call<E>) -> Result<Vec<u8>, ClientError> {
        self.send(call)?.whole().map_err(ClientError::from)
    }

    /// Asks an endpoint and follows its answer line by line, for as long as that lasts.
    ///
    /// # Errors
    /// The daemon does not answer, the connection breaks, or the daemon refuses.
    pub fn lines<E: Endpoint>(
        &self,
        call: &Call<E>,
    ) -> Result<impl Iterator<Item = io::Result<String>> + use<E>, ClientError> {
        self.send(call).map(|body| BufReader::new(body).lines())
    }

    /// Does the same for a client that waits for days: a silent daemon is not pinged, so that nothing wakes
    /// up while nothing happens. When the daemon ends, so do the lines; a daemon that is stopped is not noticed here.
    ///
    /// # Errors
    /// The daemon does not answer, the connection breaks, or the daemon refuses.
    pub fn patient_lines<E: Endpoint>(
        &self,
        call: &Call<E>,
    ) -> Result<impl Iterator<Item = io::Result<String>> + use<E>, ClientError> {
        let mut body = self.send(call)?;
        body.stream().be_patient()?;
        Ok(BufReader::new(body).lines())
    }

    /// Does the same, and returns a value that ends the answer when it is dropped, on any thread.
    ///
    /// # Errors
    /// The daemon does not answer, the connection breaks, or the daemon refuses.
    pub fn held_lines<E: Endpoint>(
        &self,
        call: &Call<E>,
    ) -> Result<(OpenAnswer, impl Iterator<Item = io::Result<String>> + use<E>), ClientError> {
        let mut body = self.send(call)?;
        body.stream().be_patient()?;
        let held = OpenAnswer(body.stream().hold()?);
        Ok((held, BufReader::new(body).lines()))
    }

    /// Does the same, and returns what the answer's head says.
    ///
    /// # Errors
    /// The daemon does not answer, the connection breaks, or the daemon refuses.
    pub fn told_lines<E: Endpoint>(
        &self,
        call: &Call<E>,
    ) -> Result<(Rest, impl Iterator<Item = io::Result<String>> + use<E>), ClientError> {
        let mut body = self.send(call)?;
        let rest = std::mem::take(&mut body.rest);
        Ok((rest, BufReader::new(body).lines()))
    }

    /// Follows whatever is at an address line by line: for tests, and for what this version does not know.
    ///
    /// # Errors
    /// The daemon does not answer, the connection breaks, or the daemon refuses.
    pub fn follow(
        &self,
        path: &str,
    ) -> Result<impl Iterator<Item = io::Result<String>> + use<>, ClientError> {
        self.open("GET", path, None).map(|body| BufReader::new(body).lines())
    }

    /// Sends a request and reads the head of its answer.
    pub(crate) fn send<E: Endpoint>(
        &self,
        call: &Call<E>,
    ) -> Result<BodyReader<WatchedConnection>, ClientError> {
        let body = call.body().map_err(ClientError::Garbled)?;
        self.open(E::DESCRIPTION.method.word(), call.address(), body)
    }

    /// Posts to an address, whatever is there: for tests, and for what this version does not know.
    ///
    /// # Errors
    /// The daemon does not answer, the connection breaks, or the daemon refuses.
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(ClientError::Garbled)?;
        self.whole("POST", path, Some(&body))
    }

    fn whole<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
    ) -> Result<T, ClientError> {
        let text = self.open(method, path, body)?.whole()?;
        serde_json::from_slice(&text).map_err(ClientError::Garbled)
    }

    fn open(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
    ) -> Result<BodyReader<WatchedConnection>, ClientError> {
        let mut stream = WatchedConnection::new(self.connect()?, Box::new(self.clone()))?;
        // A daemon that has heard enough answers and closes: its answer counts, not that we were cut short.
        let written = http::write_request(&mut stream, method, path, body);
        answer(BufReader::new(stream)).map_err(|error| written.err().unwrap_or(error))?
    }

    /// Connects where the home says its daemon is. An address that its daemon left behind is not final, nor
    /// is one outside of the home if no daemon holds the home: another home's daemon may listen there.
    fn connect(&self) -> Result<UnixStream, ClientError> {
        let written = self.home.as_deref().and_then(DaemonPlace::read).map(|place| place.socket);
        match written.as_deref().map(connect) {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(error)) if timed_out(&error) => return Err(ClientError::Mute(self.mute())),
            Some(Err(error)) if stranger(&error).is_some() => return Err(error.into()),
            Some(Err(_)) | None => {}
        }
        let elsewhere = |home: &&PathBuf| self.socket.parent() != Some(home.as_path());
        let nobody = self.home.as_ref().filter(elsewhere).is_some_and(|home| !place::is_held(home));
        let connected = if nobody { Err(io::ErrorKind::NotFound.into()) } else { connect(&self.socket) };
        connected.map_err(|source| match timed_out(&source) {
            // A daemon that listens but accepts no connection for this long has a full queue.
            true => ClientError::Mute(self.mute()),
            false if stranger(&source).is_some() => source.into(),
            false => ClientError::Down { socket: self.socket.clone(), source },
        })
    }
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> ClientError {
        if let Some(Stranger { socket, user }) = stranger(&error) {
            return ClientError::Stranger { socket: socket.clone(), user: *user };
        }
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Mute>()) {
            Some(mute) => ClientError::Mute(mute.clone()),
            None => ClientError::Broken(error),
        }
    }
}

/// A process of another user listens where a daemon should.
#[derive(Debug, thiserror::Error)]
#[error("user {user} answers at {}", socket.display())]
struct Stranger {
    socket: PathBuf,
    user: u32,
}

impl AskAfter for Client {
    fn sign(&self) -> Sign {
        match self.ping() {
            Ok(_) | Err(ClientError::Refused(_) | ClientError::Garbled(_)) => Sign::Life,
            Err(ClientError::Mute(mute)) => Sign::Mute(mute),
            Err(ClientError::Down { .. } | ClientError::Broken(_) | ClientError::Stranger { .. }) => {
                Sign::Nobody
            }
        }
    }

    fn mute(&self) -> Mute {
        Mute { pid: self.home.as_deref().and_then(place::holder), socket: self.address() }
    }
}

fn stranger(error: &io::Error) -> Option<&Stranger> {
    error.get_ref()?.downcast_ref()
}

/// Any user who creates a folder first can listen in it, so requests go only to our own daemon.
fn only_ours(stream: UnixStream, socket: &Path) -> io::Result<UnixStream> {
    let other = Other::of(&stream)?;
    if other.is_own() {
        return Ok(stream);
    }
    let stranger = Stranger { socket: socket.to_owned(), user: other.user };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, stranger))
}

/// Returns the answer's body, or the refusal.
fn answer<R: Read>(mut from: BufReader<R>) -> io::Result<Result<BodyReader<R>, ClientError>> {
    let head = http::read_head(&mut from)?;
    let status = head.status;
    let mut body = BodyReader::new(from, head);
    if (200..300).contains(&status) {
        return Ok(Ok(body));
    }
    let mut text = String::new();
    body.read_to_string(&mut text)?;
    Ok(Err(ClientError::Refused(Box::new(refusal(status, &text)))))
}

/// Returns the error object, or a substitute if something other than our daemon answered.
fn refusal(status: u16, text: &str) -> ErrorBody {
    serde_json::from_str::<ErrorEnvelope>(text).map_or_else(
        |_| ErrorBody::new(ErrorKind::Failed, format!("the daemon answered {status}: {}", text.trim())),
        |envelope| envelope.error,
    )
}

/// Connects to a unix socket, within the time that a daemon has to answer.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = pinfold_kernel::socket::connect(socket, Some(ANSWERS_WITHIN))?;
    only_ours(stream.into(), socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_where_nobody_listens_is_down_and_named() {
        let client = Client::new("/nowhere/pinfold.sock");
        let error = client.get::<serde_json::Value>("/v1/status").unwrap_err();
        assert_eq!(error.to_string(), "no daemon answers at /nowhere/pinfold.sock");
    }

    #[test]
    fn an_answer_that_is_no_error_object_still_says_something() {
        let body = refusal(502, "bad gateway\n");
        assert_eq!(
            (body.kind, body.message.as_str()),
            (ErrorKind::Failed, "the daemon answered 502: bad gateway")
        );
    }
}
