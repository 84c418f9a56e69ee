//! A client of the API socket that shows every byte, as any program would see it.

use crate::processes::PATIENCE;
use crate::world::World;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

/// An answer whose head was read; its body may still be arriving.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    from: BufReader<UnixStream>,
}

/// A connection on which nothing has been sent.
pub(crate) fn connect(world: &World) -> UnixStream {
    let stream = UnixStream::connect(world.home.join("pinfold.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends bytes as they are and reads the head of the answer.
pub(crate) fn send(world: &World, bytes: &[u8]) -> Reply {
    let mut stream = connect(world);
    // A peer that has heard enough answers and closes; its answer counts.
    _ = stream.write_all(bytes);
    read(stream)
}

pub(crate) fn read(stream: UnixStream) -> Reply {
    let mut from = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(from.read_line(&mut head).unwrap(), 0, "the connection ended after {head:?}");
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head, from }
}

/// The text of a request that asks for the connection to be closed after it.
pub(crate) fn request(method: &str, path: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: pinfold\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends a request and reads the whole answer.
pub(crate) fn ask(world: &World, method: &str, path: &str, body: &str) -> (u16, Value) {
    let reply = send(world, request(method, path, body).as_bytes());
    (reply.status, reply.object())
}

/// Requests a hold.
pub(crate) fn hold(world: &World, wanted: &Value) -> Reply {
    send(world, request("POST", "/v1/locks/hold", &wanted.to_string()).as_bytes())
}

impl Reply {
    /// A header, by its name in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The body of an answer, by its length or up to the end of the connection.
    pub(crate) fn text(mut self) -> String {
        let mut text = String::new();
        match self.field("content-length").map(|length| length.parse::<usize>().unwrap()) {
            Some(length) => {
                let mut bytes = vec![0; length];
                self.from.read_exact(&mut bytes).unwrap();
                text = String::from_utf8(bytes).unwrap();
            }
            None => _ = self.from.read_to_string(&mut text).unwrap(),
        }
        text
    }

    pub(crate) fn object(self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?}"))
    }

    /// The next line of a stream; `None` at its end. Chunk sizes are not lines of it.
    pub(crate) fn line(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let line = line.trim();
            if line.starts_with('{') {
                return Some(serde_json::from_str(line).unwrap());
            }
            // The chunk of size 0 ends the stream, even if the connection stays open.
            if line == "0" {
                return None;
            }
        }
    }

    /// The lock object of a granted hold.
    pub(crate) fn granted(&mut self) -> Value {
        assert_eq!(self.status, 200, "{}", self.head);
        self.line().unwrap()["granted"].clone()
    }

    pub(crate) fn stream(&self) -> &UnixStream {
        self.from.get_ref()
    }
}
