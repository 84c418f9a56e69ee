//! A vendor's own daemon that keeps sessions; the preset says which files describe it, and what their keys
//! mean.

use super::vendor_store::is_plain;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Only this much of a roster is read; it has some kibibytes for each session.
pub const LONGEST_ROSTER: u64 = 4 << 20;

/// Where a vendor's daemon says which process it is and which sessions it keeps, below the store. Both files
/// are JSON objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VendorDaemon {
    /// The file that identifies the daemon's process.
    pub file: String,
    /// Key of its pid in that file.
    pub pid: String,
    /// Key of its start in that file, in clock ticks since boot as in `/proc/PID/stat`.
    pub start_ticks: String,
    /// The file that lists the sessions it keeps.
    pub roster: String,
    /// Key of that list: an array, or an object whose keys do not matter.
    pub kept: String,
    /// Key of the vendor session in each entry.
    pub session: String,
}

impl VendorDaemon {
    /// Returns the daemon's pid, and its start in clock ticks since boot.
    #[must_use]
    pub fn process(&self, text: &[u8]) -> Option<(u32, u64)> {
        let object = object(text)?;
        let pid = number(object.get(&self.pid)?)?;
        Some((u32::try_from(pid).ok()?, number(object.get(&self.start_ticks)?)?))
    }

    /// Returns whether the daemon keeps a session; `None` if the list is not a complete JSON object, which it
    /// may not be while it is being written.
    #[must_use]
    pub fn keeps(&self, roster: &[u8], session: &str) -> Option<bool> {
        let roster = object(roster)?;
        let kept: Vec<&Value> = match roster.get(&self.kept) {
            Some(Value::Object(kept)) => kept.values().collect(),
            Some(Value::Array(kept)) => kept.iter().collect(),
            Some(_) | None => Vec::new(),
        };
        let is_it = |entry: &Value| entry.get(&self.session).and_then(Value::as_str) == Some(session);
        Some(is_plain(session) && kept.into_iter().any(is_it))
    }
}

fn object(text: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(text).ok()
}

/// Reads a number, quoted or not.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::shipped::shipped;

    fn claude() -> VendorDaemon {
        shipped("claude").unwrap().preset().vendor_daemon.unwrap()
    }

    #[test]
    fn the_files_of_claudes_daemon_are_read_as_they_were_measured() {
        // Claude Code 2.1.325, `claude --resume ID --bg`.
        let lock = br#"{"pid":8652,"version":"2.1.325","startedAt":1794932545126,"origin":"transient",
            "spawnedBy":{"label":"claude --bg","cwd":"/w","pid":8638},"procStart":"195407","processWrapper":""}"#;
        assert_eq!(claude().process(lock), Some((8652, 195_407)));
        let roster = br#"{"proto":1,"supervisorPid":8652,"updatedAt":1794932548723,"workers":{"58324169":{"pid":8676,
            "procStart":"195490","sessionId":"58324169-fdc9-4904-a63e-1c8f4ec2e106","attempt":1,"replPid":8690}}}"#;
        assert_eq!(claude().keeps(roster, "58324169-fdc9-4904-a63e-1c8f4ec2e106"), Some(true));
        assert_eq!(claude().keeps(roster, "58324169"), Some(false));
    }

    #[test]
    fn a_list_may_be_an_array_and_what_is_not_understood_keeps_nothing() {
        let rows: [(&str, Option<bool>); 8] = [
            (r#"{"workers":[{"sessionId":"a"}]}"#, Some(true)),
            (r#"{"workers":[{"sessionId":7},3,null]}"#, Some(false)),
            (r#"{"workers":{}}"#, Some(false)),
            (r#"{"workers":7}"#, Some(false)),
            ("{}", Some(false)),
            (r#"{"workers":{"x":{"sessio"#, None),
            ("", None),
            ("[]", None),
        ];
        for (text, keeps) in rows {
            assert_eq!(claude().keeps(text.as_bytes(), "a"), keeps, "{text}");
        }
    }

    #[test]
    fn nobody_is_named_by_a_file_without_both_numbers() {
        for text in ["", "{", "{}", r#"{"pid":7}"#, r#"{"procStart":"7"}"#, r#"{"pid":-1,"procStart":"7"}"#] {
            assert_eq!(claude().process(text.as_bytes()), None, "{text:?}");
        }
    }
}
