//! An agent's own file about one of its processes; the preset says what its keys mean.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Only this much of a file is read; the known ones have less than a kibibyte.
pub const LONGEST_ID_FILE: u64 = 64 << 10;
/// Longest reason for waiting that is kept, in bytes.
const LONGEST_WAIT: usize = 200;

/// The keys of an id file, at the top level of its JSON object, and the words in them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdFileKeys {
    /// Key of the vendor session that the process is in.
    pub session: Option<String>,
    /// Key of the process's start, in clock ticks since boot as in `/proc/PID/stat`.
    pub start_ticks: Option<String>,
    /// Key of the process's status.
    pub status: Option<String>,
    /// What each word of the status means.
    pub words: BTreeMap<String, Does>,
    /// Key of the time of that status, in milliseconds since 1970.
    pub since: Option<String>,
    /// Key of what the process waits for, in words.
    pub waits_for: Option<String>,
}

/// The meaning of a status word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// Working.
    Working,
    /// A dialog waits for a person.
    Waiting,
    /// Waiting for a message.
    Idle,
}

/// What an id file says about its process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdFile {
    /// The vendor session that the process is in.
    pub session: Option<String>,
    /// Start of the process, in clock ticks since boot.
    pub start_ticks: Option<u64>,
    /// What the process does; `None` if the file does not say, or uses an unknown word.
    pub does: Option<Does>,
    /// Time of that status, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// What the process waits for.
    pub waits_for: Option<String>,
}

impl IdFileKeys {
    /// Reads a file; `None` if it is not a complete JSON object, which it may not be while it is being
    /// written.
    #[must_use]
    pub fn read(&self, text: &[u8]) -> Option<IdFile> {
        let Ok(Value::Object(object)) = serde_json::from_slice(text) else { return None };
        let at = |key: &Option<String>| key.as_ref().and_then(|key| object.get(key));
        let word = |key| at(key).and_then(Value::as_str);
        let does = word(&self.status).and_then(|word| self.words.get(word)).copied();
        let session = word(&self.session).filter(|id| super::vendor_store::is_plain(id));
        let waits_for = word(&self.waits_for).filter(|_| does == Some(Does::Waiting));
        Some(IdFile {
            session: session.map(str::to_owned),
            start_ticks: at(&self.start_ticks).and_then(number),
            does,
            since_ms: at(&self.since).and_then(Value::as_i64),
            waits_for: waits_for.map(|text| text[..text.floor_char_boundary(LONGEST_WAIT)].to_owned()),
        })
    }
}

/// Reads a number, quoted or not.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::shipped::shipped;

    fn claude() -> IdFileKeys {
        shipped("claude").unwrap().preset().id_file_keys
    }

    #[test]
    fn a_file_of_claude_is_read_as_it_was_measured() {
        // Claude Code 2.1.325, with an open dialog.
        let text = br#"{"pid":22963,"sessionId":"2b21089d-9f27-44f4-a76a-ed7e1da7c691","cwd":"/w","startedAt":1794919015616,
            "procStart":"49610","version":"2.1.325","kind":"interactive","entrypoint":"cli","status":"waiting",
            "updatedAt":1794919024126,"statusUpdatedAt":1794919024126,"waitingFor":"permission prompt"}"#;
        let expected = IdFile {
            session: Some("2b21089d-9f27-44f4-a76a-ed7e1da7c691".to_owned()),
            start_ticks: Some(49610),
            does: Some(Does::Waiting),
            since_ms: Some(1_794_919_024_126),
            waits_for: Some("permission prompt".to_owned()),
        };
        assert_eq!(claude().read(text), Some(expected));
    }

    #[test]
    fn what_it_does_is_said_by_the_words_of_the_preset() {
        let rows = [
            (r#"{"status":"busy"}"#, Some(Does::Working)),
            (r#"{"status":"idle","waitingFor":"x"}"#, Some(Does::Idle)),
            (r#"{"status":"shell"}"#, None),
            (r#"{"status":7}"#, None),
            ("{}", None),
        ];
        for (text, does) in rows {
            let read = claude().read(text.as_bytes()).unwrap();
            assert_eq!((read.does, read.waits_for), (does, None), "{text}");
        }
        assert_eq!(IdFileKeys::default().read(br#"{"status":"busy"}"#), Some(IdFile::default()));
    }

    #[test]
    fn what_is_not_a_whole_object_is_not_read_and_an_odd_id_is_none() {
        for text in ["", "{", r#"{"sessionId":"a"#, "[]", "7", "\u{0}"] {
            assert_eq!(claude().read(text.as_bytes()), None, "{text:?}");
        }
        for id in ["../x", "", "a b"] {
            let text = serde_json::json!({ "sessionId": id }).to_string();
            assert_eq!(claude().read(text.as_bytes()).unwrap().session, None, "{id:?}");
        }
    }

    #[test]
    fn what_it_waits_for_is_bounded_and_cut_between_letters() {
        let text = serde_json::json!({ "status": "waiting", "waitingFor": "ä".repeat(1000) }).to_string();
        let waits_for = claude().read(text.as_bytes()).unwrap().waits_for.unwrap();
        assert_eq!(waits_for, "ä".repeat(LONGEST_WAIT / 2));
    }
}
