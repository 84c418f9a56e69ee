//! A client of the daemon: blocking, on its unix socket, one connection for each request.

use crate::error::{ErrorBody, ErrorEnvelope, ErrorKind};
use crate::http::{self, BodyReader};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Where the daemon listens.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
}

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error("no daemon answers at {}", socket.display())]
    Down {
        /// Where it was looked for.
        socket: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The connection broke.
    #[error("the daemon went away while it answered")]
    Broken(#[source] io::Error),
    /// The daemon refused.
    #[error("{}", .0.message)]
    Refused(Box<ErrorBody>),
    /// The answer makes no sense.
    #[error("the daemon's answer could not be read")]
    Garbled(#[source] serde_json::Error),
}

impl Client {
    /// A client of the daemon at this socket. Nothing is sent yet.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>) -> Client {
        Client { socket: socket.into() }
    }

    /// Where the daemon is looked for.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether a daemon answers.
    ///
    /// That somebody listens does not prove it: a child that a dead daemon was just starting has its socket
    /// for a moment.
    ///
    /// # Errors
    /// None does.
    pub fn reach(&self) -> Result<(), ClientError> {
        self.get::<serde::de::IgnoredAny>("/v1/ping").map(drop)
    }

    /// Asks for something.
    ///
    /// # Errors
    /// Nobody answers, the connection breaks, or the daemon refuses.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.whole("GET", path, None)
    }

    /// Asks for something, and leaves its text to the caller, who may borrow from it.
    ///
    /// # Errors
    /// Nobody answers, the connection breaks, or the daemon refuses.
    pub fn text(&self, path: &str) -> Result<Vec<u8>, ClientError> {
        self.open("GET", path, None)?.whole().map_err(ClientError::Broken)
    }

    /// Says something.
    ///
    /// # Errors
    /// Nobody answers, the connection breaks, or the daemon refuses.
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(ClientError::Garbled)?;
        self.whole("POST", path, Some(&body))
    }

    /// Deletes something.
    ///
    /// # Errors
    /// Nobody answers, the connection breaks, or the daemon refuses.
    pub fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.whole("DELETE", path, None)
    }

    /// Follows something line by line, for as long as it lasts.
    ///
    /// # Errors
    /// Nobody answers, the connection breaks, or the daemon refuses.
    pub fn lines(&self, path: &str) -> Result<impl Iterator<Item = io::Result<String>> + use<>, ClientError> {
        self.open("GET", path, None).map(|body| BufReader::new(body).lines())
    }

    /// Says something, and follows the answer line by line.
    ///
    /// # Errors
    /// Nobody answers, the connection breaks, or the daemon refuses.
    pub fn post_lines<B: Serialize>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<impl Iterator<Item = io::Result<String>> + use<B>, ClientError> {
        let body = serde_json::to_vec(body).map_err(ClientError::Garbled)?;
        self.open("POST", path, Some(&body)).map(|body| BufReader::new(body).lines())
    }

    fn whole<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
    ) -> Result<T, ClientError> {
        let text = self.open(method, path, body)?.whole().map_err(ClientError::Broken)?;
        serde_json::from_slice(&text).map_err(ClientError::Garbled)
    }

    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
    ) -> Result<BodyReader<UnixStream>, ClientError> {
        let mut stream = crate::client::connect(&self.socket)
            .map_err(|source| ClientError::Down { socket: self.socket.clone(), source })?;
        // A daemon that has heard enough answers and closes: its answer counts, not that we were cut short.
        let written = http::write_request(&mut stream, method, path, body);
        let mut from = BufReader::new(stream);
        let head = http::read_head(&mut from);
        let head = head.map_err(|error| ClientError::Broken(written.err().unwrap_or(error)))?;
        let mut body = BodyReader::new(from, head);
        if (200..300).contains(&head.status) {
            return Ok(body);
        }
        let mut text = String::new();
        body.read_to_string(&mut text).map_err(ClientError::Broken)?;
        Err(ClientError::Refused(Box::new(refusal(head.status, &text))))
    }
}

/// The error object, or a stand-in where something else than our daemon answered.
fn refusal(status: u16, text: &str) -> ErrorBody {
    serde_json::from_str::<ErrorEnvelope>(text).map_or_else(
        |_| ErrorBody::new(ErrorKind::Failed, format!("the daemon answered {status}: {}", text.trim())),
        |envelope| envelope.error,
    )
}

/// Connects to a unix socket, however long its path is: the kernel takes about 100 bytes, so a longer one is
/// reached through a descriptor of its folder.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    const LONGEST: usize = 100;
    if socket.as_os_str().len() <= LONGEST {
        return UnixStream::connect(socket);
    }
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = std::fs::File::open(folder)?;
    let short = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&folder));
    UnixStream::connect(Path::new(&short).join(name))
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
