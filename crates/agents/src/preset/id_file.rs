//! What an agent's own file about one of its processes says: which keys mean what is data of the preset.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A file is not read beyond this: those that are known have less than a kibibyte.
pub const LONGEST_ID_FILE: u64 = 64 << 10;
/// So much of what it waits for is kept.
const LONGEST_WAIT: usize = 200;

/// The keys of an id file, at the top of a JSON object, and the words in them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdFileKeys {
    /// The key of the vendor session that the process is in.
    pub session: Option<String>,
    /// The key of the process's start, in clock ticks after boot as `/proc/PID/stat` has it.
    pub start_ticks: Option<String>,
    /// The key of what it does.
    pub status: Option<String>,
    /// The words of that, and what each means.
    pub words: BTreeMap<String, Does>,
    /// The key of the moment since when it does that, in milliseconds after 1970.
    pub since: Option<String>,
    /// The key of what it waits for, in words.
    pub waits_for: Option<String>,
}

/// What a word in an id file means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// It works.
    Working,
    /// A dialog waits for a person.
    Waiting,
    /// It waits for a message.
    Idle,
}

/// What an id file says of its process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdFile {
    /// The vendor session that it is in.
    pub session: Option<String>,
    /// When the process was started, in clock ticks after boot.
    pub start_ticks: Option<u64>,
    /// What it does; none where it does not say, or says it in a word that is not known.
    pub does: Option<Does>,
    /// Since when, in milliseconds after 1970.
    pub since_ms: Option<i64>,
    /// What it waits for.
    pub waits_for: Option<String>,
}

impl IdFileKeys {
    /// Reads a file; none where it is not a whole JSON object, as one that is being written is not.
    #[must_use]
    pub fn read(&self, text: &[u8]) -> Option<IdFile> {
        let Ok(Value::Object(object)) = serde_json::from_slice(text) else { return None };
        let at = |key: &Option<String>| key.as_ref().and_then(|key| object.get(key));
        let word = |key| at(key).and_then(Value::as_str);
        let does = word(&self.status).and_then(|word| self.words.get(word)).copied();
        let session = word(&self.session).filter(|id| super::place::is_plain(id));
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

/// A number, as such or in quotes.
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
