//! The layout of a log file: a head, then records that can be walked in both directions.

use super::Stream;
use pinfold_core::ids::RunNumber;
use pinfold_core::time::Wall;
use pinfold_kernel::checksum::checksum;
use pinfold_terminal::Size;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Length of a file's head.
pub(super) const FILE_HEAD: u64 = 32;
/// Length of a record's head.
pub(super) const HEAD: usize = 32;
/// Most bytes in a record: one read of a pipe.
pub(super) const MOST: usize = 64 << 10;
const MAGIC: &[u8; 8] = b"PFLOG\0\0\x01";

/// What the head of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHead {
    /// Position of its first byte.
    pub(super) base: u64,
    /// Its length if its writer left in order; then it ends with a whole record.
    pub(super) clean: u64,
    /// The whole length of its last record in that case.
    pub(super) last: u32,
}

impl FileHead {
    pub(super) fn to_bytes(self) -> [u8; FILE_HEAD as usize] {
        let mut bytes = [0; FILE_HEAD as usize];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.base.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.clean.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.last.to_le_bytes());
        let sum = checksum(&bytes[..28]) as u32;
        bytes[28..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; FILE_HEAD as usize]) -> Option<Self> {
        let sum = checksum(&bytes[..28]) as u32;
        if &bytes[..8] != MAGIC || bytes[28..] != sum.to_le_bytes() {
            return None;
        }
        Some(Self { base: word(bytes, 8)?, clean: word(bytes, 16)?, last: half(bytes, 24)? })
    }
}

/// The head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub(super) length: u32,
    /// The whole length of the record before it in this file; 0 for the first.
    pub(super) before: u32,
    pub(super) stream: Stream,
    pub(super) at: Wall,
    pub(super) run: RunNumber,
    /// The size of the terminal it was printed on, if any. Earlier versions left these bytes zero, and ignore
    /// them when reading.
    pub(super) terminal: Option<Size>,
}

impl RecordHead {
    pub(super) fn to_bytes(self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.before.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.at.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.run.0.to_le_bytes());
        bytes[24] = self.stream.code();
        bytes[25..28].copy_from_slice(&size_bytes(self.terminal));
        let sum = checksum(&bytes[..28]) as u32;
        bytes[28..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; HEAD]) -> Option<Self> {
        let sum = checksum(&bytes[..28]) as u32;
        let head = Self {
            length: half(bytes, 0)?,
            before: half(bytes, 4)?,
            at: Wall(word(bytes, 8)?.cast_signed()),
            run: RunNumber(word(bytes, 16)?),
            stream: Stream::from_code(bytes[24])?,
            terminal: size(bytes[25..28].first_chunk()?),
        };
        (bytes[28..] == sum.to_le_bytes() && head.length as usize <= MOST).then_some(head)
    }

    /// Returns the length of the whole record.
    pub(super) fn whole(&self) -> u64 {
        HEAD as u64 + u64::from(self.length)
    }
}

/// Packs two numbers of twelve bits: no terminal has more lines or columns than [`Size::MOST`].
fn size_bytes(size: Option<Size>) -> [u8; 3] {
    let (rows, columns) = size.map_or((0, 0), |size| (u32::from(size.rows()), u32::from(size.columns())));
    let [low, middle, high, _] = (rows | columns << 12).to_le_bytes();
    [low, middle, high]
}

fn size(&[low, middle, high]: &[u8; 3]) -> Option<Size> {
    let both = u32::from_le_bytes([low, middle, high, 0]);
    (both != 0).then(|| Size::new((both & 0xfff) as u16, (both >> 12) as u16))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}

/// Returns the path of the file that was current `age` renames ago.
pub(super) fn aged(path: &Path, age: u32) -> PathBuf {
    if age == 0 {
        return path.to_owned();
    }
    let mut name = OsString::from(path.as_os_str());
    name.push(format!(".{age}"));
    PathBuf::from(name)
}
