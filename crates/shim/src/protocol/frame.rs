//! Frames: how a daemon and a shim put messages on a stream, and find them again.
//!
//! A frame is a length (4 bytes, little-endian, of what follows), a version, a kind and tagged fields. An
//! unknown kind or tag is skipped, so that shims and daemons of different versions always understand each
//! other. A tag is never reused for another meaning.

/// The version that this code writes. It grows only when older readers must not guess.
pub const VERSION: u8 = 1;
/// No frame is longer; the longest message fits even with every byte escaped.
pub const LONGEST: usize = 16 << 20;
const LENGTH: usize = 4;
const HEAD: usize = 2;
/// Most bytes of one read.
const READ: usize = 16 << 10;

/// Why bytes are not frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length exceeds that of any frame.
    #[error("a frame of {length} bytes is longer than any may be")]
    TooLong {
        /// The announced length.
        length: usize,
    },
    /// The fields do not fill the frame.
    #[error("a frame of kind {kind} has broken fields")]
    Broken {
        /// The frame's kind.
        kind: u8,
    },
    /// A necessary field is missing or has an unknown value.
    #[error("a frame of kind {kind} has no usable field {tag}")]
    Missing {
        /// The frame's kind.
        kind: u8,
        /// The field's tag.
        tag: u8,
    },
}

/// One frame as received.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The writer's version.
    pub version: u8,
    /// The frame's kind.
    pub kind: u8,
    /// The frame's fields.
    pub fields: Fields<'a>,
}

/// Reassembles frames from reads that end anywhere.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
}

impl Decoder {
    /// Adds received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.space(0).extend_from_slice(bytes);
    }

    /// Returns the buffer to append a read to, with room for one read.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.space(READ)
    }

    /// The same, for whoever reads much at once.
    pub fn room_for(&mut self, read: usize) -> &mut Vec<u8> {
        self.space(read)
    }

    fn space(&mut self, room: usize) -> &mut Vec<u8> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            // An idle shim keeps no memory of a long frame.
            self.buffer.shrink_to(room.max(READ));
        } else {
            self.buffer.drain(..self.start);
        }
        self.start = 0;
        self.buffer.reserve(room);
        &mut self.buffer
    }

    /// Returns whether nothing is in it, not even half a frame.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.buffer.len()
    }

    /// Keeps only what it holds, and no spare room: there may be thousands of decoders that hardly ever
    /// receive anything.
    pub fn shrink(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.shrink_to_fit();
    }

    /// Returns the next whole frame, if there is one.
    ///
    /// # Errors
    /// The stream is unusable after an error.
    pub fn frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let rest = &self.buffer[self.start..];
        let Some(head) = rest.first_chunk::<LENGTH>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > LONGEST {
            return Err(FrameError::TooLong { length });
        }
        let Some(body) = rest.get(LENGTH..LENGTH + length) else { return Ok(None) };
        self.start += LENGTH + length;
        let [version, kind, fields @ ..] = body else { return Err(FrameError::Broken { kind: 0 }) };
        let fields = Fields::new(*kind, fields)?;
        Ok(Some(Frame { version: *version, kind: *kind, fields }))
    }
}

/// The fields of a frame, or of a group inside one.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    kind: u8,
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Checks once that the fields are whole.
    pub(crate) fn new(kind: u8, bytes: &'a [u8]) -> Result<Self, FrameError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = split(rest).ok_or(FrameError::Broken { kind })?.2;
        }
        Ok(Self { kind, bytes })
    }

    /// Returns every field with this tag, in order.
    pub(crate) fn all(self, tag: u8) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.bytes;
        let every = std::iter::from_fn(move || {
            let (tag, bytes, after) = split(rest)?;
            rest = after;
            Some((tag, bytes))
        });
        every.filter(move |(found, _)| *found == tag).map(|(_, bytes)| bytes)
    }

    pub(crate) fn find(self, tag: u8) -> Option<&'a [u8]> {
        self.all(tag).next()
    }

    pub(crate) fn bytes(self, tag: u8) -> Result<&'a [u8], FrameError> {
        self.find(tag).ok_or(self.missing(tag))
    }

    pub(crate) fn text(self, tag: u8) -> Result<String, FrameError> {
        String::from_utf8(self.bytes(tag)?.to_vec()).map_err(|_| self.missing(tag))
    }

    pub(crate) fn number(self, tag: u8) -> Result<u64, FrameError> {
        self.optional_number(tag)?.ok_or(self.missing(tag))
    }

    pub(crate) fn optional_number(self, tag: u8) -> Result<Option<u64>, FrameError> {
        let wide = self.optional_wide(tag)?;
        wide.map(|number| u64::try_from(number).map_err(|_| self.missing(tag))).transpose()
    }

    pub(crate) fn wide(self, tag: u8) -> Result<u128, FrameError> {
        self.optional_wide(tag)?.ok_or(self.missing(tag))
    }

    fn optional_wide(self, tag: u8) -> Result<Option<u128>, FrameError> {
        let Some(bytes) = self.find(tag) else { return Ok(None) };
        let mut all = [0; 16];
        all.get_mut(..bytes.len()).ok_or(self.missing(tag))?.copy_from_slice(bytes);
        Ok(Some(u128::from_le_bytes(all)))
    }

    pub(crate) fn small(self, tag: u8) -> Result<u32, FrameError> {
        u32::try_from(self.number(tag)?).map_err(|_| self.missing(tag))
    }

    pub(crate) fn flag(self, tag: u8) -> Result<bool, FrameError> {
        Ok(self.optional_number(tag)?.unwrap_or(0) != 0)
    }

    /// Returns the fields inside a field.
    pub(crate) fn inside(self, bytes: &'a [u8]) -> Result<Self, FrameError> {
        Self::new(self.kind, bytes)
    }

    /// Returns the error for a field that is missing, or has a value that this version does not know.
    pub(crate) fn missing(self, tag: u8) -> FrameError {
        FrameError::Missing { kind: self.kind, tag }
    }
}

/// Splits off the first field; returns its tag, its bytes, and the rest.
fn split(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, mut rest) = bytes.split_first()?;
    let mut length = 0_usize;
    for shift in [0, 7, 14, 21] {
        let (byte, after) = rest.split_first()?;
        rest = after;
        length |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            let (bytes, after) = rest.split_at_checked(length)?;
            return Some((*tag, bytes, after));
        }
    }
    None
}

/// Writes the fields of one frame, or of a group inside one.
#[derive(Debug)]
pub(crate) struct FieldWriter<'a> {
    out: &'a mut Vec<u8>,
}

/// Appends one frame to `out`.
pub(crate) fn write(out: &mut Vec<u8>, kind: u8, fields: impl FnOnce(&mut FieldWriter<'_>)) {
    let at = out.len();
    out.extend_from_slice(&[0; LENGTH]);
    out.extend_from_slice(&[VERSION, kind]);
    fields(&mut FieldWriter { out });
    let length = u32::try_from(out.len() - at - LENGTH).unwrap_or(u32::MAX);
    debug_assert!((HEAD..=LONGEST).contains(&(length as usize)), "callers bound what they send");
    out[at..at + LENGTH].copy_from_slice(&length.to_le_bytes());
}

/// Appends fields without a frame around them.
pub(crate) fn write_fields(out: &mut Vec<u8>, fields: impl FnOnce(&mut FieldWriter<'_>)) {
    fields(&mut FieldWriter { out });
}

impl FieldWriter<'_> {
    pub(crate) fn bytes(&mut self, tag: u8, bytes: &[u8]) -> &mut Self {
        self.out.push(tag);
        let mut length = bytes.len();
        while length >= 0x80 {
            self.out.push((length & 0x7F) as u8 | 0x80);
            length >>= 7;
        }
        self.out.push(length as u8);
        self.out.extend_from_slice(bytes);
        self
    }

    pub(crate) fn number(&mut self, tag: u8, number: u64) -> &mut Self {
        self.wide(tag, u128::from(number))
    }

    pub(crate) fn wide(&mut self, tag: u8, number: u128) -> &mut Self {
        let bytes = number.to_le_bytes();
        let used = bytes.len() - number.leading_zeros() as usize / 8;
        self.bytes(tag, &bytes[..used])
    }

    /// Writes a flag only if it is set: absent means no.
    pub(crate) fn flag(&mut self, tag: u8, set: bool) -> &mut Self {
        if set { self.number(tag, 1) } else { self }
    }

    pub(crate) fn group(&mut self, tag: u8, fields: impl FnOnce(&mut FieldWriter<'_>)) -> &mut Self {
        let mut inside = Vec::new();
        fields(&mut FieldWriter { out: &mut inside });
        self.bytes(tag, &inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, 7, |fields| {
            fields.number(1, 300).bytes(2, &[b'x'; 200]).flag(3, true).flag(4, false);
            fields.group(9, |inner| _ = inner.wide(1, u128::MAX));
        });
        out
    }

    fn check(decoder: &mut Decoder) {
        let frame = decoder.frame().unwrap().unwrap();
        assert_eq!((frame.version, frame.kind), (VERSION, 7));
        assert_eq!(frame.fields.number(1), Ok(300));
        assert_eq!(frame.fields.bytes(2).unwrap(), [b'x'; 200]);
        assert_eq!((frame.fields.flag(3), frame.fields.flag(4)), (Ok(true), Ok(false)));
        let inner = frame.fields.inside(frame.fields.bytes(9).unwrap()).unwrap();
        assert_eq!(inner.wide(1), Ok(u128::MAX));
        assert_eq!(inner.number(1), Err(FrameError::Missing { kind: 7, tag: 1 }));
    }

    #[test]
    fn a_frame_is_found_however_the_reads_are_split() {
        let bytes = [sample(), sample()].concat();
        for cut in 0..bytes.len() {
            let mut decoder = Decoder::default();
            decoder.feed(&bytes[..cut]);
            let mut found = 0;
            for part in [&bytes[cut..], &[]] {
                while found < 2 && decoder.buffer[decoder.start..].len() >= sample().len() {
                    check(&mut decoder);
                    found += 1;
                }
                decoder.feed(part);
            }
            while found < 2 {
                check(&mut decoder);
                found += 1;
            }
            assert!(decoder.frame().unwrap().is_none());
        }
    }

    #[test]
    fn a_cut_frame_is_none_and_a_broken_one_an_error() {
        let bytes = sample();
        for length in 0..bytes.len() {
            let mut decoder = Decoder::default();
            decoder.feed(&bytes[..length]);
            assert!(decoder.frame().unwrap().is_none(), "{length}");
        }
        for broken in [&[1, 0, 0, 0, 1][..], &[3, 0, 0, 0, 1, 7, 9], &[4, 0, 0, 0, 1, 7, 9, 1]] {
            let mut decoder = Decoder::default();
            decoder.feed(broken);
            assert!(matches!(decoder.frame(), Err(FrameError::Broken { .. })), "{broken:?}");
        }
    }

    #[test]
    fn a_length_beyond_all_frames_is_refused_before_it_is_waited_for() {
        let mut decoder = Decoder::default();
        decoder.feed(&u32::MAX.to_le_bytes());
        assert!(matches!(decoder.frame(), Err(FrameError::TooLong { .. })));
    }
}
