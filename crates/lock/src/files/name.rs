//! The name of a lock file, kept off the heap because an acquire handles many of them.

use crate::resource::{FileId, ResourceKind, SessionName};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The longest name: that of a directory's gate, by device and inode.
const LONGEST: usize = "i-".len() + 16 + "-".len() + 16 + GATE.len();
const GATE: &str = ".gate";

/// The name of a lock file. It is made from a hash, so user text never becomes a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName {
    // Zero after its end, so that comparing the arrays compares the names.
    bytes: [u8; LONGEST],
    length: u8,
}

impl FileName {
    pub(crate) fn of_key(name: &str) -> Self {
        Self::hashed("k-", name.as_bytes())
    }

    pub(crate) fn of_session(name: &SessionName) -> Self {
        Self::hashed("s-", name.as_str().as_bytes())
    }

    pub(crate) fn of_vendor(name: &str) -> Self {
        Self::hashed("v-", name.as_bytes())
    }

    pub(crate) fn of_path(path: &Path) -> Self {
        Self::hashed("p-", path.as_os_str().as_bytes())
    }

    pub(crate) fn of_inode(id: FileId) -> Self {
        let mut name = Self::empty();
        name.push("i-");
        name.push_number(id.device);
        name.push("-");
        name.push_number(id.inode);
        name
    }

    /// Returns the gate of this file: an acquirer that waits for exclusive use holds it.
    pub(crate) fn gate(&self) -> Self {
        let mut name = *self;
        name.push(GATE);
        name
    }

    fn hashed(kind: &str, bytes: &[u8]) -> Self {
        let mut name = Self::empty();
        name.push(kind);
        name.push_digits(hash(bytes), 32);
        name
    }

    fn empty() -> Self {
        Self { bytes: [0; LONGEST], length: 0 }
    }

    fn push(&mut self, text: &str) {
        let at = usize::from(self.length);
        // A gate has no gate of its own: none is ever asked for, and its name would not fit.
        let taken = text.len().min(LONGEST - at);
        self.bytes[at..at + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken as u8;
    }

    fn push_number(&mut self, number: u64) {
        self.push_digits(number.into(), (u64::BITS - number.leading_zeros()).div_ceil(4).max(1));
    }

    fn push_digits(&mut self, number: u128, digits: u32) {
        for digit in (0..digits).rev() {
            let value = (number >> (4 * digit)) & 0xf;
            self.bytes[usize::from(self.length)] = b"0123456789abcdef"[value as usize];
            self.length += 1;
        }
    }

    /// Whether this is the name of a file that carries a record, and not of a gate.
    pub(crate) fn is_lock(&self) -> bool {
        !self.as_str().ends_with(GATE)
    }

    /// Parses a name read from the folder or from another process; refuses anything with a `/`.
    pub(crate) fn read(name: &str) -> Option<Self> {
        let mut chars = name.chars();
        let kind = chars.next().is_some_and(|c| "ksvpi".contains(c));
        let hyphen = chars.next() == Some('-');
        let digits = name.get(2..).unwrap_or_default();
        let digits = digits.strip_suffix(GATE).unwrap_or(digits);
        let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        let fits = name.len() <= LONGEST;
        (kind && hyphen && plain && fits && !digits.is_empty()).then(|| {
            let mut read = Self::empty();
            read.push(name);
            read
        })
    }

    pub(crate) fn kind(&self) -> ResourceKind {
        match self.bytes[0] {
            b'k' => ResourceKind::Key,
            b's' => ResourceKind::Session,
            b'v' => ResourceKind::Vendor,
            _ => ResourceKind::Directory,
        }
    }

    pub(crate) fn is_inode(&self) -> bool {
        self.bytes[0] == b'i'
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only ASCII is ever pushed.
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }

    pub(crate) fn as_path(&self) -> &Path {
        Path::new(self.as_str())
    }
}

impl fmt::Debug for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileName").field(&self.as_str()).finish()
    }
}

impl Serialize for FileName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FileName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::read(&name).ok_or_else(|| de::Error::custom("not the name of a lock file"))
    }
}

/// FNV-1a over 128 bits. Two names that collide would exclude each other, but never share a lock unnoticed.
pub(crate) fn hash(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |state, byte| {
        (state ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back_what_it_was_written_as() {
        let most = FileId { device: u64::MAX, inode: u64::MAX };
        let names = [
            FileName::of_key("x"),
            FileName::of_path(Path::new("/a/b")),
            FileName::of_inode(FileId { device: 0, inode: 0xabc }),
            FileName::of_inode(most),
            FileName::of_inode(most).gate(),
        ];
        for name in names {
            assert_eq!(FileName::read(name.as_str()), Some(name));
            let text = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<FileName>(&text).unwrap(), name);
        }
        assert_eq!(names[2].as_str(), "i-0-abc");
        assert_eq!(names[4].as_str(), "i-ffffffffffffffff-ffffffffffffffff.gate");
    }

    #[test]
    fn what_is_no_name_of_ours_is_not_read() {
        for text in ["", "k", "k-", "x-1", "k-1/2", "k-..", "k-é", &format!("k-{}", "0".repeat(LONGEST))] {
            assert_eq!(FileName::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_key_has_the_file_it_always_had() {
        // Other versions of this library lock the same name: it must never change.
        assert_eq!(FileName::of_key("deploy").as_str(), format!("k-{:032x}", hash(b"deploy")));
        assert_eq!(hash(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    }
}
