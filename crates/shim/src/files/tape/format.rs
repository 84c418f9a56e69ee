//! The layout of a tape: segments with a head, then entries, each with a checksum over the whole entry.

use crate::protocol::output::Position;
use crate::protocol::say::SayNumber;
use pinfold_core::ids::RunNumber;
use pinfold_core::time::Wall;
use pinfold_kernel::checksum::checksum;

/// Length of a segment's head.
pub(super) const SEGMENT_HEAD: usize = 32;
/// Length of an entry's head.
pub(super) const HEAD: usize = 40;
/// Most bytes in an entry of any kind: what is said comes in one frame.
pub(super) const MOST: usize = crate::LONGEST;
const MAGIC: &[u8; 8] = b"PFTAPE\0\x01";
const SUM_AT: usize = HEAD - 8;

/// One entry of a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapeEntry<'a> {
    /// Where the entry begins.
    pub position: Position,
    /// Where the next entry can begin.
    pub next: Position,
    /// When it was written.
    pub at: Wall,
    /// The run it belongs to.
    pub run: RunNumber,
    /// The entry's kind and content.
    pub what: TapeContent<'a>,
    /// How many bytes of the tape are missing before it: dropped, damaged, or lost with the power.
    pub lost: u64,
}

/// The kind and content of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapeContent<'a> {
    /// Standard output.
    Out(&'a [u8]),
    /// Standard error.
    Error(&'a [u8]),
    /// Something said to the agent; on the tape before its first byte was written to the agent.
    Said {
        /// The word's number in the run.
        number: SayNumber,
        /// What the word was for.
        label: &'a str,
        /// What was, or was to be, written to the agent.
        bytes: &'a [u8],
    },
    /// This many bytes were printed here that could not be written to the tape.
    Gap(u64),
    /// The output of the run has ended; nothing of it follows.
    End,
}

impl TapeContent<'_> {
    /// Returns the kind on disk. A number is never reused for another kind.
    pub(super) fn kind(&self) -> u8 {
        match self {
            TapeContent::Out(_) => 1,
            TapeContent::Error(_) => 2,
            TapeContent::Said { .. } => 3,
            TapeContent::Gap(_) => 4,
            TapeContent::End => 5,
        }
    }
}

/// Reads the content of an entry from its whole bytes; `None` for a kind of a later version.
pub(super) fn what<'a>(head: &EntryHead, bytes: &'a [u8]) -> Option<TapeContent<'a>> {
    match head.kind {
        1 => Some(TapeContent::Out(bytes)),
        2 => Some(TapeContent::Error(bytes)),
        3 => {
            let end = bytes.iter().position(|byte| *byte == 0)?;
            let label = std::str::from_utf8(&bytes[..end]).ok()?;
            Some(TapeContent::Said { number: head.number, label, bytes: &bytes[end + 1..] })
        }
        4 => Some(TapeContent::Gap(word(bytes, 0)?)),
        5 => Some(TapeContent::End),
        _ => None,
    }
}

/// The head of an entry, without its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryHead {
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) at: Wall,
    pub(super) run: RunNumber,
    pub(super) number: SayNumber,
}

impl EntryHead {
    /// Returns the head's bytes for an entry with this content, given in pieces.
    pub(super) fn to_bytes(self, pieces: [&[u8]; 3]) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&self.length.to_le_bytes());
        head[4] = self.kind;
        head[8..16].copy_from_slice(&self.at.0.to_le_bytes());
        head[16..24].copy_from_slice(&self.run.0.to_le_bytes());
        head[24..32].copy_from_slice(&self.number.0.to_le_bytes());
        let sum = sum(&head, &pieces);
        head[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        head
    }

    /// Reads what a head claims, true or not; `None` if no head could say that.
    pub(super) fn claimed(bytes: &[u8; HEAD]) -> Option<Self> {
        let head = Self {
            length: u32::from_le_bytes(*bytes.first_chunk()?),
            kind: bytes[4],
            at: Wall(word(bytes, 8)?.cast_signed()),
            run: RunNumber(word(bytes, 16)?),
            number: SayNumber(word(bytes, 24)?),
        };
        (head.length as usize <= MOST).then_some(head)
    }

    /// Returns the head of the entry at the start of these bytes, if the entry is whole and its checksum is
    /// right.
    pub(super) fn checked(bytes: &[u8]) -> Option<Self> {
        let head = bytes.first_chunk()?;
        let claimed = Self::claimed(head)?;
        let content = bytes.get(HEAD..HEAD + claimed.length as usize)?;
        (word(head, SUM_AT)? == sum(head, &[content])).then_some(claimed)
    }

    /// Returns the length of the whole entry.
    pub(super) fn whole(&self) -> u64 {
        HEAD as u64 + u64::from(self.length)
    }
}

/// Returns the checksum of a head and of the content after it.
fn sum(head: &[u8; HEAD], pieces: &[&[u8]]) -> u64 {
    /// FNV-1a's prime, to continue what [`checksum`] began.
    const PRIME: u64 = 0x100_0000_01B3;
    let on = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(PRIME);
    pieces.iter().fold(checksum(&head[..SUM_AT]), |sum, piece| piece.iter().fold(sum, on))
}

/// Returns the head of a segment that begins at a position.
pub(super) fn segment_head(base: u64) -> [u8; SEGMENT_HEAD] {
    let mut bytes = [0; SEGMENT_HEAD];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&base.to_le_bytes());
    let sum = checksum(&bytes[..24]);
    bytes[24..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Returns whether this is the head of the segment that begins at `base`. Bytes that are zero today may get a
/// meaning later.
pub(super) fn is_head_of(base: u64, bytes: &[u8; SEGMENT_HEAD]) -> bool {
    &bytes[..8] == MAGIC && word(bytes, 8) == Some(base) && word(bytes, 24) == Some(checksum(&bytes[..24]))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_in_pieces_is_that_of_the_whole() {
        let head = EntryHead { length: 6, kind: 3, at: Wall(-1), run: RunNumber(7), number: SayNumber(9) };
        let bytes = head.to_bytes([b"ab", b"\0", b"cde"]);
        let all = [&bytes[..SUM_AT], b"ab\0cde"].concat();
        assert_eq!(word(&bytes, SUM_AT), Some(checksum(&all)));
        assert_eq!(EntryHead::checked(&[&bytes[..], b"ab\0cde"].concat()), Some(head));
        assert_eq!(EntryHead::checked(&[&bytes[..], b"ab\0cd"].concat()), None);
    }
}
