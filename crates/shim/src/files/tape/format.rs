//! How a tape is laid out: segments with a head, then entries, each with a checksum over all of it.

use crate::protocol::output::Position;
use crate::protocol::say::SayNumber;
use pinfold_core::ids::RunNumber;
use pinfold_core::time::Wall;
use pinfold_kernel::checksum::checksum;

/// The length of the head of a segment.
pub(super) const SEGMENT_HEAD: usize = 32;
/// The length of the head of an entry.
pub(super) const HEAD: usize = 40;
/// No entry has more bytes, of whatever kind: what is said comes in one frame.
pub(super) const MOST: usize = crate::LONGEST;
const MAGIC: &[u8; 8] = b"PFTAPE\0\x01";
const SUM_AT: usize = HEAD - 8;

/// One entry of a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where it begins.
    pub position: Position,
    /// Where the next one can begin.
    pub next: Position,
    /// When it was written.
    pub at: Wall,
    /// Of which run.
    pub run: RunNumber,
    /// What it is.
    pub what: What<'a>,
    /// How many bytes of the tape are missing before it: dropped, damaged, or lost with the power.
    pub lost: u64,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'a> {
    /// Standard output.
    Out(&'a [u8]),
    /// Standard error.
    Error(&'a [u8]),
    /// Something was said to the agent; written before its first byte was.
    Said {
        /// Its number in the run.
        number: SayNumber,
        /// What it was for.
        label: &'a str,
        /// What was, or was to be, written to the agent.
        bytes: &'a [u8],
    },
    /// So many bytes were printed here that could not be written.
    Gap(u64),
    /// The output of the run has ended: nothing of it follows.
    End,
}

impl What<'_> {
    /// The kind on disk. A number is never used for anything else.
    pub(super) fn kind(&self) -> u8 {
        match self {
            What::Out(_) => 1,
            What::Error(_) => 2,
            What::Said { .. } => 3,
            What::Gap(_) => 4,
            What::End => 5,
        }
    }
}

/// Reads what an entry is of its whole bytes; nothing for a kind that a later version has.
pub(super) fn what<'a>(head: &Head, bytes: &'a [u8]) -> Option<What<'a>> {
    match head.kind {
        1 => Some(What::Out(bytes)),
        2 => Some(What::Error(bytes)),
        3 => {
            let end = bytes.iter().position(|byte| *byte == 0)?;
            let label = std::str::from_utf8(&bytes[..end]).ok()?;
            Some(What::Said { number: head.number, label, bytes: &bytes[end + 1..] })
        }
        4 => Some(What::Gap(word(bytes, 0)?)),
        5 => Some(What::End),
        _ => None,
    }
}

/// The head of an entry, without its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) at: Wall,
    pub(super) run: RunNumber,
    pub(super) number: SayNumber,
}

impl Head {
    /// The head of an entry whose bytes are these, one piece after the other.
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

    /// What a head says, right or wrong; nothing when it says what none does.
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

    /// The first of these bytes as an entry, if it is whole and as it was written.
    pub(super) fn checked(bytes: &[u8]) -> Option<Self> {
        let head = bytes.first_chunk()?;
        let claimed = Self::claimed(head)?;
        let content = bytes.get(HEAD..HEAD + claimed.length as usize)?;
        (word(head, SUM_AT)? == sum(head, &[content])).then_some(claimed)
    }

    /// The length of the whole entry.
    pub(super) fn whole(&self) -> u64 {
        HEAD as u64 + u64::from(self.length)
    }
}

/// The checksum of a head and of the bytes that follow it.
fn sum(head: &[u8; HEAD], pieces: &[&[u8]]) -> u64 {
    /// That of FNV-1a: what [`checksum`] begins is gone on with.
    const PRIME: u64 = 0x100_0000_01B3;
    let on = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(PRIME);
    pieces.iter().fold(checksum(&head[..SUM_AT]), |sum, piece| piece.iter().fold(sum, on))
}

/// The head of a segment that begins at a position.
pub(super) fn segment_head(base: u64) -> [u8; SEGMENT_HEAD] {
    let mut bytes = [0; SEGMENT_HEAD];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&base.to_le_bytes());
    let sum = checksum(&bytes[..24]);
    bytes[24..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Whether this is the head of the segment that begins at `base`. What is zero today may say something later.
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
        let head = Head { length: 6, kind: 3, at: Wall(-1), run: RunNumber(7), number: SayNumber(9) };
        let bytes = head.to_bytes([b"ab", b"\0", b"cde"]);
        let all = [&bytes[..SUM_AT], b"ab\0cde"].concat();
        assert_eq!(word(&bytes, SUM_AT), Some(checksum(&all)));
        assert_eq!(Head::checked(&[&bytes[..], b"ab\0cde"].concat()), Some(head));
        assert_eq!(Head::checked(&[&bytes[..], b"ab\0cd"].concat()), None);
    }
}
