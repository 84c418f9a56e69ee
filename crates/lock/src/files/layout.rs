//! The layout of a lock file: two fence slots with a record each, the released mark, and a flag.
//!
//! ```text
//! page 0   record A, ending where its slot begins ........ | slot A |
//! page 1   mark | flag | slot B | record B ......................... |
//! ```
//! A slot touches its record, so a grant is one write inside one page, and a torn one spares the other page.
//! Everything an orderly grant has to read lies together in the middle. Each part has its own checksum.
//! Nothing here does I/O.

use crate::judge::identity::BootId;

const PAGE: usize = 4096;
/// The size of the whole file.
pub(crate) const SIZE: usize = 2 * PAGE;
const SLOT_LENGTH: usize = 48;
const MARK_LENGTH: usize = 24;
/// The start of the part that an orderly grant reads: slot A, mark, flag and slot B.
pub(crate) const HEAD_AT: usize = PAGE - SLOT_LENGTH;
pub(crate) const HEAD: usize = SLOT_LENGTH + 128;
pub(crate) const MARK_AT: usize = PAGE;
pub(crate) const BELOW_AT: usize = PAGE + 64;
const SLOT_B_AT: usize = HEAD_AT + HEAD - SLOT_LENGTH;
const SLOT_IN_HEAD: [usize; 2] = [0, SLOT_B_AT - HEAD_AT];
/// The longest record text that fits next to either slot.
pub(crate) const RECORD_MAX: usize = SIZE - SLOT_B_AT - SLOT_LENGTH - RECORD_FRAME;
/// The length of a record's magic, length and checksum, which touch the slot.
const RECORD_FRAME: usize = 24;

const SLOT_MAGIC: &[u8; 8] = b"PFslot1\n";
const LONE_MAGIC: &[u8; 8] = b"PFlone1\n";
const MARK_MAGIC: &[u8; 8] = b"PFfree1\n";
const RECORD_MAGIC: &[u8; 8] = b"PFheld1\n";

/// One fence slot, as found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Never written.
    Blank,
    /// It contains something that was never written.
    Damaged,
    /// A fence, the boot in which it was granted, and the last fence known to be on the disk.
    Good(Counter),
}

/// The contents of a good slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) fence: u64,
    pub(crate) synced: u64,
    pub(crate) boot: BootId,
    /// Nothing of this grant outlives its flock, so it needs no release mark.
    pub(crate) lone: bool,
}

/// The record part, as found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordText {
    Blank,
    Damaged,
    Good(Vec<u8>),
}

/// Mixes bytes into 64 bits, a word at a time; each step is a bijection, so a change of any single word is noticed.
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
    let bytes = &head[SLOT_IN_HEAD[which]..][..SLOT_LENGTH];
    if is_blank(bytes) {
        return Slot::Blank;
    }
    let lone = &bytes[..8] == LONE_MAGIC;
    if !lone && &bytes[..8] != SLOT_MAGIC || word(bytes, 40) != checksum(&bytes[..40]) {
        return Slot::Damaged;
    }
    let boot = BootId(u128::from(word(bytes, 24)) | u128::from(word(bytes, 32)) << 64);
    Slot::Good(Counter { fence: word(bytes, 8), synced: word(bytes, 16), boot, lone })
}

fn slot(counter: Counter) -> [u8; SLOT_LENGTH] {
    let mut bytes = [0; SLOT_LENGTH];
    bytes[..8].copy_from_slice(if counter.lone { LONE_MAGIC } else { SLOT_MAGIC });
    bytes[8..16].copy_from_slice(&counter.fence.to_le_bytes());
    bytes[16..24].copy_from_slice(&counter.synced.to_le_bytes());
    bytes[24..40].copy_from_slice(&counter.boot.0.to_le_bytes());
    let sum = checksum(&bytes[..40]);
    bytes[40..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Returns the fence whose grant was released in order, if the mark is intact.
pub(crate) fn read_mark(head: &[u8; HEAD]) -> Option<u64> {
    let bytes = &head[MARK_AT - HEAD_AT..][..MARK_LENGTH];
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
    head[BELOW_AT - HEAD_AT] != 0
}

/// Returns the bytes of one grant, slot and record together, and where they go; `None` if the text is too long.
pub(crate) fn grant(which: usize, counter: Counter, text: &[u8]) -> Option<(usize, Vec<u8>)> {
    if text.len() > RECORD_MAX {
        return None;
    }
    let mut bytes = Vec::with_capacity(SLOT_LENGTH + RECORD_FRAME + text.len());
    match which {
        0 => {
            bytes.extend_from_slice(text);
            bytes.extend_from_slice(&frame(text));
            bytes.extend_from_slice(&slot(counter));
            Some((PAGE - bytes.len(), bytes))
        }
        _ => {
            bytes.extend_from_slice(&slot(counter));
            bytes.extend_from_slice(&frame(text));
            bytes.extend_from_slice(text);
            Some((SLOT_B_AT, bytes))
        }
    }
}

fn frame(text: &[u8]) -> [u8; RECORD_FRAME] {
    let mut bytes = [0; RECORD_FRAME];
    bytes[..8].copy_from_slice(RECORD_MAGIC);
    bytes[8..16].copy_from_slice(&(text.len() as u64).to_le_bytes());
    bytes[16..].copy_from_slice(&checksum(text).to_le_bytes());
    bytes
}

/// Returns the record next to a slot, if it is intact.
pub(crate) fn read_record(file: &[u8; SIZE], which: usize) -> RecordText {
    let frame_at = [HEAD_AT - RECORD_FRAME, SLOT_B_AT + SLOT_LENGTH][which];
    let frame = &file[frame_at..][..RECORD_FRAME];
    if is_blank(frame) {
        return RecordText::Blank;
    }
    let Some(length) = usize::try_from(word(frame, 8)).ok().filter(|length| *length <= RECORD_MAX) else {
        return RecordText::Damaged;
    };
    let text = match which {
        0 => &file[frame_at - length..frame_at],
        _ => &file[frame_at + RECORD_FRAME..][..length],
    };
    if &frame[..8] == RECORD_MAGIC && word(frame, 16) == checksum(text) {
        RecordText::Good(text.to_vec())
    } else {
        RecordText::Damaged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = br#"{"some":"text"}"#;

    fn counter() -> Counter {
        Counter { fence: 7, synced: 5, boot: BootId(1 << 100 | 3), lone: false }
    }

    fn file_with(parts: &[(usize, Vec<u8>)]) -> Box<[u8; SIZE]> {
        let mut file = Box::new([0; SIZE]);
        for (at, part) in parts {
            file[*at..*at + part.len()].copy_from_slice(part);
        }
        file
    }

    fn head(file: &[u8; SIZE]) -> &[u8; HEAD] {
        file[HEAD_AT..][..HEAD].try_into().unwrap()
    }

    #[test]
    fn a_grant_reads_back_what_was_written_and_leaves_the_other_slot_alone() {
        for which in [0, 1] {
            let counter = Counter { lone: which == 0, ..counter() };
            let file = file_with(&[grant(which, counter, TEXT).unwrap()]);
            assert_eq!(read_slot(head(&file), which), Slot::Good(counter));
            assert_eq!(read_record(&file, which), RecordText::Good(TEXT.to_vec()));
            assert_eq!(read_slot(head(&file), 1 - which), Slot::Blank);
            assert_eq!(read_record(&file, 1 - which), RecordText::Blank);
        }
    }

    #[test]
    fn a_grant_lies_inside_one_page_however_long_its_record() {
        for length in [0, 1, RECORD_MAX] {
            for which in [0, 1] {
                let (at, bytes) = grant(which, counter(), &vec![b'x'; length]).unwrap();
                assert_eq!(at / PAGE, which, "{length}");
                assert_eq!((at + bytes.len() - 1) / PAGE, which, "{length}");
                let others = MARK_AT..MARK_AT + MARK_LENGTH;
                assert!(at + bytes.len() <= others.start || at >= others.end);
                assert!(at > BELOW_AT || at + bytes.len() <= BELOW_AT);
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_a_slot_a_mark_and_a_record_is_noticed() {
        for part in [
            grant(0, counter(), TEXT).unwrap(),
            grant(1, counter(), TEXT).unwrap(),
            (MARK_AT, mark(7).to_vec()),
        ] {
            let whole = facts(&file_with(std::slice::from_ref(&part)));
            for bit in 0..part.1.len() * 8 {
                let mut flipped = part.clone();
                flipped.1[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(facts(&file_with(&[flipped])), whole, "bit {bit} of the part at {}", part.0);
            }
        }
    }

    fn facts(file: &[u8; SIZE]) -> ([Slot; 2], [RecordText; 2], Option<u64>) {
        let head = head(file);
        (
            [0, 1].map(|which| read_slot(head, which)),
            [0, 1].map(|which| read_record(file, which)),
            read_mark(head),
        )
    }

    #[test]
    fn a_record_that_was_cut_is_damaged_and_never_half_read() {
        let (at, bytes) = grant(1, counter(), TEXT).unwrap();
        for length in SLOT_LENGTH + 1..bytes.len() {
            let file = file_with(&[(at, bytes[..length].to_vec())]);
            assert_eq!(read_record(&file, 1), RecordText::Damaged, "{length} bytes");
        }
    }

    #[test]
    fn a_record_longer_than_its_place_is_not_written() {
        assert!(grant(0, counter(), &vec![b'x'; RECORD_MAX]).is_some());
        assert!(grant(0, counter(), &vec![b'x'; RECORD_MAX + 1]).is_none());
    }
}
