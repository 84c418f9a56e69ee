//! The lines of a fenced file, and which of them count. Pure.

use crate::files::fence::Fence;
use crate::files::layout::checksum;

/// How far a file was read, and what was learned from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScanState {
    pub(crate) scanned: u64,
    pub(crate) highest: Fence,
    /// The file does not end with a newline: a writer was cut short.
    pub(crate) open_line: bool,
}

impl Default for ScanState {
    fn default() -> Self {
        Self { scanned: 0, highest: Fence(0), open_line: false }
    }
}

/// The kind of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FencedLine {
    Claim,
    Record(Fence, Vec<u8>),
    /// Written under a fence that the file had already superseded.
    Late,
    /// Not a record; its length in bytes.
    Damaged(u64),
}

/// Scans `bytes`, which begin where `state` ended.
pub(crate) fn scan(bytes: &[u8], state: &mut ScanState, mut take: impl FnMut(FencedLine)) {
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let parsed = line.strip_suffix(b"\n").filter(|_| !state.open_line).and_then(decode);
        state.open_line = line.last() != Some(&b'\n');
        match parsed {
            // The newline that closes a torn line is not a line of its own.
            None if line == b"\n" => {}
            None => take(FencedLine::Damaged(line.len() as u64)),
            Some((fence, _)) if fence < state.highest => take(FencedLine::Late),
            Some((fence, data)) => {
                state.highest = fence;
                take(data.map_or(FencedLine::Claim, |data| FencedLine::Record(fence, data)));
            }
        }
    }
    state.scanned += bytes.len() as u64;
}

/// Encodes one line; `after_torn` closes the line that an interrupted writer left open.
pub(crate) fn encode(fence: Fence, data: Option<&[u8]>, after_torn: bool) -> Vec<u8> {
    let mut body = format!("{} {fence} ", if data.is_some() { 'd' } else { 'c' }).into_bytes();
    for byte in data.unwrap_or_default() {
        match byte {
            b'\n' => body.extend_from_slice(b"\\n"),
            b'\\' => body.extend_from_slice(b"\\\\"),
            other => body.push(*other),
        }
    }
    let mut line = Vec::with_capacity(body.len() + 19);
    if after_torn {
        line.push(b'\n');
    }
    line.extend_from_slice(format!("{:016x} ", checksum(&body)).as_bytes());
    line.extend_from_slice(&body);
    line.push(b'\n');
    line
}

fn decode(line: &[u8]) -> Option<(Fence, Option<Vec<u8>>)> {
    let (sum, body) = (line.get(..16)?, line.get(17..)?);
    if line[16] != b' ' || sum != format!("{:016x}", checksum(body)).as_bytes() {
        return None;
    }
    let mut parts = body.splitn(3, |byte| *byte == b' ');
    let kind = parts.next()?;
    let fence = Fence(std::str::from_utf8(parts.next()?).ok()?.parse().ok()?);
    match kind {
        b"c" => Some((fence, None)),
        b"d" => Some((fence, Some(unescape(parts.next()?)))),
        _ => None,
    }
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        match (byte, byte == &b'\\') {
            (_, true) => bytes.push(if rest.next() == Some(&b'n') { b'\n' } else { b'\\' }),
            (other, false) => bytes.push(*other),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<FencedLine> {
        let mut found = Vec::new();
        scan(bytes, &mut ScanState::default(), |line| found.push(line));
        found
    }

    #[test]
    fn any_bytes_read_back_as_they_were_written() {
        for data in [&b""[..], b"text", b"two\nlines\\n\n", b"\\", &[0, 255, 10, 92]] {
            let expected = [FencedLine::Record(Fence(7), data.to_vec())];
            assert_eq!(lines(&encode(Fence(7), Some(data), false)), expected);
        }
    }

    #[test]
    fn a_record_behind_a_later_claim_never_counts() {
        let mut bytes = encode(Fence(6), Some(b"early"), false);
        bytes.extend(encode(Fence(7), None, false));
        bytes.extend(encode(Fence(6), Some(b"late"), false));
        bytes.extend(encode(Fence(7), Some(b"now"), false));
        let expected = [
            FencedLine::Record(Fence(6), b"early".to_vec()),
            FencedLine::Claim,
            FencedLine::Late,
            FencedLine::Record(Fence(7), b"now".to_vec()),
        ];
        assert_eq!(lines(&bytes), expected);
    }

    #[test]
    fn a_torn_line_costs_only_itself() {
        let whole = encode(Fence(7), Some(b"data"), false);
        for length in 1..whole.len() {
            let mut bytes = whole[..length].to_vec();
            bytes.extend(encode(Fence(8), Some(b"next"), true));
            let found = lines(&bytes);
            assert_eq!(found.last(), Some(&FencedLine::Record(Fence(8), b"next".to_vec())), "{length}");
            assert_eq!(found.len(), 2, "{length}");
        }
    }

    #[test]
    fn every_flipped_bit_makes_a_line_that_does_not_count() {
        let whole = encode(Fence(7), Some(b"data"), false);
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!lines(&bytes).iter().any(|line| matches!(line, FencedLine::Record(..))), "bit {bit}");
        }
    }

    #[test]
    fn a_file_read_in_parts_is_the_same_as_one_read_whole() {
        let mut bytes = encode(Fence(6), Some(b"a"), false);
        bytes.extend(encode(Fence(7), Some(b"b"), false));
        let mut state = ScanState::default();
        let mut found = Vec::new();
        let first = encode(Fence(6), Some(b"a"), false).len();
        scan(&bytes[..first], &mut state, |line| found.push(line));
        scan(&bytes[first..], &mut state, |line| found.push(line));
        assert_eq!(found, lines(&bytes));
    }
}
