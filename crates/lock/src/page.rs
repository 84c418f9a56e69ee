//! The layout of a lock file: two fence slots, the released mark, a flag, and the record.
//!
//! Everything lies in the first 4096 bytes and each part has a checksum of its own, so a torn write damages
//! one part only. Nothing here does I/O.

use pinfold_core::identity::BootId;

pub(crate) const PAGE: usize = 4096;
/// Slots, mark and flag together: all that an orderly grant has to read.
pub(crate) const HEAD: usize = 256;
pub(crate) const SLOT_AT: [usize; 2] = [0, 64];
pub(crate) const MARK_AT: usize = 128;
pub(crate) const BELOW_AT: usize = 192;
pub(crate) const RECORD_AT: usize = HEAD;
const RECORD_HEAD: usize = 24;
/// The longest record text that fits.
pub(crate) const RECORD_MAX: usize = PAGE - RECORD_AT - RECORD_HEAD;

const SLOT_LENGTH: usize = 48;
const MARK_LENGTH: usize = 24;
const SLOT_MAGIC: &[u8; 8] = b"PFslot1\n";
const MARK_MAGIC: &[u8; 8] = b"PFfree1\n";
const RECORD_MAGIC: &[u8; 8] = b"PFheld1\n";

/// One fence slot as found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Never written.
    Blank,
    /// Something else than what was once written.
    Damaged,
    /// A fence, the boot it was given in, and the last fence known to be on the disk.
    Good(Counter),
}

/// What a good slot says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) fence: u64,
    pub(crate) synced: u64,
    pub(crate) boot: BootId,
}

/// The record part as found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Text {
    Blank,
    Damaged,
    Good(Vec<u8>),
}

/// Mixes bytes into 64 bits, a word at a time; each step is a bijection, so no single changed word goes unseen.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ bytes.len() as u64;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        state = mix(state ^ word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)));
    }
    let rest = words.remainder().iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    mix(state ^ rest)
}

fn mix(mut value: u64) -> u64 {
    value = value.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value ^ value >> 29
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

pub(crate) fn read_slot(head: &[u8; HEAD], which: usize) -> Slot {
    let bytes = &head[SLOT_AT[which]..SLOT_AT[which] + SLOT_LENGTH];
    if is_blank(bytes) {
        return Slot::Blank;
    }
    if &bytes[..8] != SLOT_MAGIC || word(bytes, 40) != checksum(&bytes[..40]) {
        return Slot::Damaged;
    }
    let boot = BootId(u128::from(word(bytes, 24)) | u128::from(word(bytes, 32)) << 64);
    Slot::Good(Counter { fence: word(bytes, 8), synced: word(bytes, 16), boot })
}

pub(crate) fn slot(counter: Counter) -> [u8; SLOT_LENGTH] {
    let mut bytes = [0; SLOT_LENGTH];
    bytes[..8].copy_from_slice(SLOT_MAGIC);
    bytes[8..16].copy_from_slice(&counter.fence.to_le_bytes());
    bytes[16..24].copy_from_slice(&counter.synced.to_le_bytes());
    bytes[24..40].copy_from_slice(&counter.boot.0.to_le_bytes());
    let sum = checksum(&bytes[..40]);
    bytes[40..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The fence whose grant was released in order, if the mark is whole.
pub(crate) fn read_mark(head: &[u8; HEAD]) -> Option<u64> {
    let bytes = &head[MARK_AT..MARK_AT + MARK_LENGTH];
    (&bytes[..8] == MARK_MAGIC && word(bytes, 16) == checksum(&bytes[..16])).then(|| word(bytes, 8))
}

pub(crate) fn mark(fence: u64) -> [u8; MARK_LENGTH] {
    let mut bytes = [0; MARK_LENGTH];
    bytes[..8].copy_from_slice(MARK_MAGIC);
    bytes[8..16].copy_from_slice(&fence.to_le_bytes());
    let sum = checksum(&bytes[..16]);
    bytes[16..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Whether a directory below this one was locked since this one was last granted.
pub(crate) fn read_below(head: &[u8; HEAD]) -> bool {
    head[BELOW_AT] != 0
}

pub(crate) fn read_record(page: &[u8]) -> Text {
    let Some(bytes) = page.get(RECORD_AT..).filter(|bytes| !is_blank(bytes)) else { return Text::Blank };
    if bytes.len() < RECORD_HEAD || &bytes[..8] != RECORD_MAGIC {
        return Text::Damaged;
    }
    let text = usize::try_from(word(bytes, 8))
        .ok()
        .and_then(|n| bytes.get(RECORD_HEAD..RECORD_HEAD.checked_add(n)?));
    match text {
        Some(text) if word(bytes, 16) == checksum(text) => Text::Good(text.to_vec()),
        _ => Text::Damaged,
    }
}

/// The record part for `text`, or nothing when it is too long.
pub(crate) fn record(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > RECORD_MAX {
        return None;
    }
    let mut bytes = Vec::with_capacity(RECORD_HEAD + text.len());
    bytes.extend_from_slice(RECORD_MAGIC);
    bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&checksum(text).to_le_bytes());
    bytes.extend_from_slice(text);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_with(at: usize, part: &[u8]) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[at..at + part.len()].copy_from_slice(part);
        head
    }

    fn counter() -> Counter {
        Counter { fence: 7, synced: 5, boot: BootId(1 << 100 | 3) }
    }

    #[test]
    fn a_slot_reads_back_what_was_written() {
        for which in [0, 1] {
            let head = head_with(SLOT_AT[which], &slot(counter()));
            assert_eq!(read_slot(&head, which), Slot::Good(counter()));
            assert_eq!(read_slot(&head, 1 - which), Slot::Blank);
        }
    }

    #[test]
    fn every_flipped_bit_of_a_slot_a_mark_and_a_record_is_noticed() {
        let parts = [
            (SLOT_AT[0], slot(counter()).to_vec()),
            (MARK_AT, mark(7).to_vec()),
            (RECORD_AT, record(b"{\"some\":\"text\"}").unwrap()),
        ];
        for (at, part) in parts {
            for bit in 0..part.len() * 8 {
                let mut page = vec![0; PAGE];
                page[at..at + part.len()].copy_from_slice(&part);
                page[at + bit / 8] ^= 1 << (bit % 8);
                let head: &[u8; HEAD] = page[..HEAD].try_into().unwrap();
                let noticed = read_slot(head, 0) != Slot::Good(counter())
                    && read_mark(head) != Some(7)
                    && read_record(&page) != Text::Good(b"{\"some\":\"text\"}".to_vec());
                assert!(noticed, "bit {bit} of the part at {at}");
            }
        }
    }

    #[test]
    fn a_torn_record_is_damaged_and_never_half_read() {
        let part = record(br#"{"fence":7,"run":"r"}"#).unwrap();
        for length in 1..part.len() {
            let mut page = vec![0; RECORD_AT];
            page.extend_from_slice(&part[..length]);
            assert_eq!(read_record(&page), Text::Damaged, "{length} bytes");
        }
        assert_eq!(read_record(&[0; RECORD_AT]), Text::Blank);
        assert_eq!(read_record(b""), Text::Blank);
    }

    #[test]
    fn a_record_longer_than_the_page_is_not_written() {
        assert!(record(&vec![b'x'; RECORD_MAX]).is_some());
        assert!(record(&vec![b'x'; RECORD_MAX + 1]).is_none());
    }
}
