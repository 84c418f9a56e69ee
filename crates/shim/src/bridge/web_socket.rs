//! The part of WebSocket (RFC 6455) that a local client needs: text messages are lines, pings are answered.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

const CONTINUED: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// Marks the last frame of a message.
const LAST: u8 = 0x80;
/// A client masks its bytes so that no proxy misreads them. There is no proxy here, and a mask of zeroes
/// leaves them as they are.
const MASKED: u8 = 0x80;
const MASK: [u8; 4] = [0; 4];
/// Most bytes in a control frame.
const LONGEST_CONTROL: u64 = 125;
/// Only this much of the handshake's answer is read.
const LONGEST_HEAD: u64 = 16 << 10;

/// The receiving side.
pub(super) struct Receiver(BufReader<UnixStream>);

/// The sending side.
pub(super) struct FrameSender {
    to: UnixStream,
    /// A line has begun and not ended.
    within: bool,
}

/// Does the handshake. The key protects against servers that do not speak WebSocket; this one was started for
/// it.
pub(super) fn open(mut connection: UnixStream) -> io::Result<(Receiver, FrameSender)> {
    connection.write_all(
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
          Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: cGluZm9sZCdzIGJyaWRnZQ==\r\n\r\n",
    )?;
    let to = connection.try_clone()?;
    let mut from = BufReader::new(connection);
    let mut head = from.by_ref().take(LONGEST_HEAD);
    let mut line = String::new();
    head.read_line(&mut line)?;
    if line.split(' ').nth(1) != Some("101") {
        return Err(io::Error::other(format!("it does not speak WebSocket: {}", line.trim_end())));
    }
    while line.trim_end() != "" {
        line.clear();
        if head.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok((Receiver(from), FrameSender { to, within: false }))
}

impl FrameSender {
    /// Sends a piece of a line; with its newline it is the last piece. Empty lines are skipped.
    pub(super) fn line(&mut self, piece: &[u8]) -> io::Result<()> {
        let (bytes, last) = match piece.strip_suffix(b"\n") {
            Some(bytes) => (bytes, true),
            None => (piece, false),
        };
        if bytes.is_empty() && !self.within {
            return Ok(());
        }
        let kind = if self.within { CONTINUED } else { TEXT };
        self.within = !last;
        self.frame(kind | if last { LAST } else { 0 }, bytes)
    }

    /// Answers a ping.
    pub(super) fn pong(&mut self, asked: &[u8]) -> io::Result<()> {
        self.frame(PONG | LAST, asked)
    }

    /// Ends the connection in both directions.
    pub(super) fn hang_up(&self) {
        _ = self.to.shutdown(Shutdown::Both);
    }

    fn frame(&mut self, first: u8, bytes: &[u8]) -> io::Result<()> {
        let mut frame = Vec::with_capacity(bytes.len() + 14);
        frame.push(first);
        match (u8::try_from(bytes.len()), u16::try_from(bytes.len())) {
            (Ok(length @ 0..=125), _) => frame.push(MASKED | length),
            (_, Ok(length)) => {
                frame.push(MASKED | 126);
                frame.extend(length.to_be_bytes());
            }
            (_, Err(_)) => {
                frame.push(MASKED | 127);
                frame.extend((bytes.len() as u64).to_be_bytes());
            }
        }
        frame.extend(MASK);
        frame.extend(bytes);
        self.to.write_all(&frame)
    }
}

impl Receiver {
    /// Passes on one frame; returns false at the end. Only a little of a message is in memory, however long
    /// it is.
    pub(super) fn pass_on(
        &mut self,
        out: &mut impl Write,
        pong: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<bool> {
        let mut head = [0; 2];
        match self.0.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        let length = self.length(head[1])?;
        match head[0] & 0xF {
            CONTINUED | TEXT | BINARY => {
                self.text(length, out)?;
                if head[0] & LAST != 0 {
                    out.write_all(b"\n")?;
                }
                Ok(true)
            }
            PING => {
                let mut asked = Vec::new();
                self.0.by_ref().take(length.min(LONGEST_CONTROL)).read_to_end(&mut asked)?;
                pong(&asked).map(|()| true)
            }
            CLOSE => Ok(false),
            _ => io::copy(&mut self.0.by_ref().take(length), &mut io::sink()).map(|_| true),
        }
    }

    fn length(&mut self, short: u8) -> io::Result<u64> {
        match short & !MASKED {
            126 => {
                let mut bytes = [0; 2];
                self.0.read_exact(&mut bytes)?;
                Ok(u16::from_be_bytes(bytes).into())
            }
            127 => {
                let mut bytes = [0; 8];
                self.0.read_exact(&mut bytes)?;
                Ok(u64::from_be_bytes(bytes))
            }
            short => Ok(short.into()),
        }
    }

    /// A newline within a message is JSON whitespace: one message is one line.
    fn text(&mut self, mut left: u64, out: &mut impl Write) -> io::Result<()> {
        while left > 0 {
            let have = self.0.fill_buf()?;
            if have.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let count = usize::try_from(left).map_or(have.len(), |left| left.min(have.len()));
            for (at, line) in have[..count].split(|byte| *byte == b'\n').enumerate() {
                if at > 0 {
                    out.write_all(b" ")?;
                }
                out.write_all(line)?;
            }
            self.0.consume(count);
            left -= count as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a sender and the socket that it sends to.
    fn sender() -> (FrameSender, UnixStream) {
        let (to, other) = UnixStream::pair().unwrap();
        (FrameSender { to, within: false }, other)
    }

    fn heard(bytes: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
        let (mut to, from) = UnixStream::pair().unwrap();
        let bytes = bytes.to_vec();
        let writer = std::thread::spawn(move || to.write_all(&bytes));
        let (mut receiver, mut out, mut asked) = (Receiver(BufReader::new(from)), Vec::new(), Vec::new());
        let mut pong = |bytes: &[u8]| {
            asked.push(bytes.to_vec());
            Ok(())
        };
        while receiver.pass_on(&mut out, &mut pong).unwrap() {}
        writer.join().unwrap().unwrap();
        (out, asked)
    }

    #[test]
    fn a_line_is_one_message_in_as_many_pieces_as_it_comes_in() {
        let rows: [(&[&[u8]], &[u8]); 4] = [
            (&[b"ab\n"], b"\x81\x82\0\0\0\0ab"),
            (&[b"a", b"b\n"], b"\x01\x81\0\0\0\0a\x80\x81\0\0\0\0b"),
            (&[b"a", b"\n"], b"\x01\x81\0\0\0\0a\x80\x80\0\0\0\0"),
            (&[b"\n", b""], b""),
        ];
        for (pieces, expected) in rows {
            let (mut sender, mut other) = sender();
            pieces.iter().for_each(|piece| sender.line(piece).unwrap());
            drop(sender);
            let mut sent = Vec::new();
            other.read_to_end(&mut sent).unwrap();
            assert_eq!(sent, expected, "{pieces:?}");
        }
    }

    #[test]
    fn lengths_of_every_size_are_understood_by_the_other_side() {
        for length in [0, 1, 125, 126, 127, 65_535, 65_536, 1 << 20] {
            let mut frame = vec![TEXT | LAST];
            match length {
                0..=125 => frame.push(u8::try_from(length).unwrap()),
                126..=65_535 => {
                    frame.push(126);
                    frame.extend(u16::try_from(length).unwrap().to_be_bytes());
                }
                _ => {
                    frame.push(127);
                    frame.extend((length as u64).to_be_bytes());
                }
            }
            frame.extend(vec![b'x'; length]);
            let (out, _) = heard(&frame);
            assert_eq!((out.len(), out.last()), (length + 1, Some(&b'\n')));
            let (mut sender, other) = sender();
            let line = [vec![b'x'; length.max(1)], b"\n".to_vec()].concat();
            let reader = std::thread::spawn(move || {
                let mut receiver = Receiver(BufReader::new(other));
                let mut head = [0; 2];
                receiver.0.read_exact(&mut head).unwrap();
                (head[0], receiver.length(head[1]).unwrap())
            });
            // The rest is not read.
            _ = sender.line(&line);
            assert_eq!(reader.join().unwrap(), (TEXT | LAST, length.max(1) as u64));
        }
    }

    #[test]
    fn messages_in_pieces_are_lines_and_pings_between_them_are_answered() {
        let bytes = b"\x01\x02{\n\x89\x01p\x80\x02 }\x8A\x00\x82\x01b\x88\x02\x03\xe8\x81\x01x";
        assert_eq!(heard(bytes), (b"{  }\nb\n".to_vec(), vec![b"p".to_vec()]));
    }

    #[test]
    fn a_server_that_does_not_speak_it_is_an_error() {
        for (answer, opened) in [
            ("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n", true),
            ("HTTP/1.1 404 Not Found\r\n\r\n", false),
            ("HTTP/1.1 101 Switching Protocols\r\n", false),
            ("", false),
        ] {
            let (mut server, client) = UnixStream::pair().unwrap();
            server.write_all(answer.as_bytes()).unwrap();
            server.shutdown(Shutdown::Write).unwrap();
            assert_eq!(open(client).is_ok(), opened, "{answer}");
        }
    }
}
