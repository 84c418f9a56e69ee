//! Identifies a process so that no other process, in this boot or another, can be mistaken for it.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// The kernel's random id of one boot (`/proc/sys/kernel/random/boot_id`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId(pub u128);

/// A text that is not a boot id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a boot id is 32 hexadecimal digits, with or without dashes")]
pub struct NotABootId;

impl FromStr for BootId {
    type Err = NotABootId;

    fn from_str(text: &str) -> Result<Self, NotABootId> {
        let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
        // `from_str_radix` also takes a sign, which no boot id has.
        if digits.len() != 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(NotABootId);
        }
        u128::from_str_radix(&digits, 16).map(BootId).map_err(|_| NotABootId)
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(&mut [0; Self::LENGTH]))
    }
}

impl BootId {
    const LENGTH: usize = 36;

    /// Writes it as the kernel does, with dashes. Locks write it at every grant, so `format!` would be too slow.
    fn text(self, space: &mut [u8; Self::LENGTH]) -> &str {
        let mut digits =
            (0..32).rev().map(|digit| b"0123456789abcdef"[(self.0 >> (4 * digit)) as usize & 0xf]);
        for (at, byte) in space.iter_mut().enumerate() {
            *byte = match at {
                8 | 13 | 18 | 23 => b'-',
                _ => digits.next().unwrap_or(b'0'),
            };
        }
        std::str::from_utf8(space).unwrap_or_default()
    }
}

impl Serialize for BootId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text(&mut [0; BootId::LENGTH]))
    }
}

impl<'de> Deserialize<'de> for BootId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Identifies a process by boot, pid namespace, pid and start time, and by the pidfs inode if the kernel has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The boot it was started in.
    #[serde(rename = "boot_id")]
    pub boot: BootId,
    /// The inode of its pid namespace.
    #[serde(rename = "pid_ns")]
    pub pid_namespace: u64,
    /// Its pid in that namespace.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`.
    pub start_ticks: u64,
    /// The inode of its pidfd, unique within a boot on kernels with pidfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pidfs: Option<u64>,
}

/// Where an observer looks from: what it sees of a pid means something only from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vantage {
    /// The boot the observer runs in.
    #[serde(rename = "boot_id")]
    pub boot: BootId,
    /// The inode of the observer's pid namespace.
    #[serde(rename = "pid_ns")]
    pub pid_namespace: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_id_reads_back_what_it_prints() {
        let text = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
        let boot: BootId = text.parse().unwrap();
        assert_eq!(boot.to_string(), text);
        assert_eq!(format!("{text}\n").parse(), Ok(boot));
        assert_eq!(text.replace('-', "").parse(), Ok(boot));
    }

    #[test]
    fn anything_but_32_hexadecimal_digits_is_no_boot_id() {
        for text in ["", "0f1e", "+f1e2d3c4b5a69788796a5b4c3d2e1f0", "zz1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"] {
            assert_eq!(text.parse::<BootId>(), Err(NotABootId), "{text:?}");
        }
    }
}
