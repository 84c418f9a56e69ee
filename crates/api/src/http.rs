//! As much of HTTP/1.1 as a client on a unix socket needs: one request, one answer, whole or line by line.

use std::io::{self, BufRead, BufReader, Read, Write};

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerHead {
    pub(crate) status: u16,
    /// What it says about a list.
    pub(crate) rest: Rest,
    body: Body,
}

/// What is said about a list in addition to its rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rest {
    /// How many rows there would be if all were asked for.
    pub total: Option<u64>,
    /// Set if they were not all counted: there are more than this.
    pub more_than: Option<u64>,
    /// How many of them were searched.
    pub indexed: Option<u64>,
    /// The number from which on no event was forgotten.
    pub complete_from: Option<u64>,
    /// When that event happened.
    pub complete_since: Option<String>,
    /// The revision of the feed that a list of sessions is as of.
    pub revision: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Length(u64),
    Chunked,
    UntilEnd,
}

/// More than any list has.
const LARGEST_ROOM: u64 = 16 << 20;

pub(crate) fn write_request(
    to: &mut impl Write,
    method: &str,
    path: &str,
    body: Option<&[u8]>,
) -> io::Result<()> {
    to.write_all(&request(method, path, body, "connection: close\r\n"))
}

/// Writes a request that another one will follow on the same connection.
pub(crate) fn write_first_request(to: &mut impl Write, method: &str, path: &str) -> io::Result<()> {
    to.write_all(&request(method, path, None, ""))
}

/// Returns a request in one piece, which the daemon reads in one go if it fits.
fn request(method: &str, path: &str, body: Option<&[u8]>, fields: &str) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: pinfold\r\n{fields}");
    if let Some(body) = body {
        head.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    let mut request = head.into_bytes();
    request.extend_from_slice(body.unwrap_or_default());
    request
}

pub(crate) fn read_head(from: &mut impl BufRead) -> io::Result<AnswerHead> {
    let line = read_line(from)?;
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or_else(|| malformed("status line"))?;
    let (mut body, mut rest) = (Body::UntilEnd, Rest::default());
    loop {
        let text = read_line(from)?;
        let line = text.to_ascii_lowercase();
        if line.is_empty() {
            return Ok(AnswerHead { status, rest, body });
        }
        if let Some(length) = line.strip_prefix("content-length:") {
            body = Body::Length(length.trim().parse().map_err(|_| malformed("content-length"))?);
        } else if line.starts_with("transfer-encoding:") && line.contains("chunked") {
            body = Body::Chunked;
        } else if let Some(count) = line.strip_prefix("total:") {
            rest.total = count.trim().parse().ok();
        } else if let Some(count) = line.strip_prefix("indexed:") {
            rest.indexed = count.trim().parse().ok();
        } else if let Some(count) = line.strip_prefix("more-than:") {
            rest.more_than = count.trim().parse().ok();
        } else if let Some(seq) = line.strip_prefix("complete-from:") {
            rest.complete_from = seq.trim().parse().ok();
        } else if let Some(revision) = line.strip_prefix("revision:") {
            rest.revision = Some(revision.trim().to_owned());
        } else if line.starts_with("complete-since:") {
            rest.complete_since = text.split_once(':').map(|(_, at)| at.trim().to_owned());
        }
    }
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the daemon answered with a malformed {what}"))
}

/// The body of an answer, whatever its encoding.
pub(crate) struct BodyReader<R> {
    from: BufReader<R>,
    /// What its head says about a list.
    pub(crate) rest: Rest,
    body: Body,
    /// How much is left of the present chunk.
    chunk: u64,
}

impl<R: Read> BodyReader<R> {
    pub(crate) fn new(from: BufReader<R>, head: AnswerHead) -> Self {
        BodyReader { from, rest: head.rest, body: head.body, chunk: 0 }
    }

    /// Skips the rest of it; what follows is the next answer.
    pub(crate) fn passed(mut self) -> io::Result<BufReader<R>> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(self.from)
    }

    /// Returns the stream that it is read from.
    pub(crate) fn stream(&mut self) -> &mut R {
        self.from.get_mut()
    }

    /// Reads all of it.
    pub(crate) fn whole(mut self) -> io::Result<Vec<u8>> {
        // If its length is known, memory is reserved once. An absurd length is not believed.
        let room = if let Body::Length(length) = self.body { length.min(LARGEST_ROOM) } else { 0 };
        let mut text = Vec::with_capacity(usize::try_from(room).unwrap_or(0));
        self.read_to_end(&mut text)?;
        Ok(text)
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        let line = read_line(&mut self.from)?;
        // There is an empty line between two chunks.
        let line = if line.is_empty() { read_line(&mut self.from)? } else { line };
        let size = line.split(';').next().unwrap_or_default().trim();
        self.chunk = u64::from_str_radix(size, 16).map_err(|_| malformed("chunk"))?;
        if self.chunk == 0 {
            self.body = Body::Length(0);
        }
        Ok(())
    }
}

impl<R: Read> Read for BodyReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.body == Body::Chunked && self.chunk == 0 {
            self.next_chunk()?;
        }
        let left = match self.body {
            Body::Length(left) => left,
            Body::Chunked => self.chunk,
            Body::UntilEnd => u64::MAX,
        };
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
        if room == 0 {
            // All of it is here: what the daemon does with the connection does not matter.
            return Ok(0);
        }
        let read = self.from.read(&mut into[..room])?;
        match &mut self.body {
            Body::Length(left) => *left -= read as u64,
            Body::Chunked => self.chunk -= read as u64,
            Body::UntilEnd => {}
        }
        if read == 0 && self.body != Body::UntilEnd {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> (u16, io::Result<String>) {
        let mut from = BufReader::new(text.as_bytes());
        let head = read_head(&mut from).unwrap();
        let mut body = String::new();
        let read = BodyReader::new(from, head.clone()).read_to_string(&mut body);
        (head.status, read.map(|_| body))
    }

    #[test]
    fn bodies_by_length_by_chunks_and_to_the_end() {
        let sized = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, more";
        assert_eq!(answer(sized).1.unwrap(), "hello");
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\n\r\n";
        assert_eq!(answer(chunked).1.unwrap(), "hello, world");
        assert_eq!(answer("HTTP/1.1 404 Not Found\r\n\r\nto the end").0, 404);
    }

    #[test]
    fn a_body_that_is_cut_short_is_an_error() {
        assert!(answer("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello").1.is_err());
        assert!(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel").1.is_err());
        assert!(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").1.is_err());
    }

    #[test]
    fn an_answer_that_is_not_http_is_an_error() {
        assert!(read_head(&mut BufReader::new(&b"SSH-2.0\r\n"[..])).is_err());
        assert!(read_head(&mut BufReader::new(&b""[..])).is_err());
    }
}
