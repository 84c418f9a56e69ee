//! What the bytes of a transcript say: whether its lines are whole, what they contain, and how they differ
//! from the bytes that it had before.

use serde_json::Value;
use std::collections::HashSet;

/// How a file differs from the bytes that it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TranscriptDamage {
    /// It begins with them.
    None,
    /// Some of them are gone, and it has nothing that they have not.
    Lost,
    /// Its vendor wrote it anew: every line is whole, and none of the old ones is missing.
    Rewritten,
    /// It lacks some of them, and has others.
    Diverged,
}

/// The lines that were added, if all of them are whole.
pub(crate) fn added(bytes: &[u8]) -> Option<Vec<Value>> {
    if bytes.last().is_some_and(|last| *last != b'\n') {
        return None;
    }
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Whether each of these texts is in a string of some line; white space does not count.
pub(crate) fn contains(lines: &[Value], texts: &[String]) -> bool {
    texts.iter().all(|text| lines.iter().any(|line| has(line, text)))
}

fn has(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => squeezed(string).contains(text),
        Value::Array(values) => values.iter().any(|value| has(value, text)),
        Value::Object(fields) => fields.values().any(|value| has(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A text without white space.
pub(crate) fn squeezed(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}

/// Compares a file with the bytes that it had.
pub(crate) fn compare(file: &[u8], kept: &[u8]) -> TranscriptDamage {
    if file.starts_with(kept) {
        return TranscriptDamage::None;
    }
    if kept.starts_with(file) {
        return TranscriptDamage::Lost;
    }
    let (now, before) = (lines(file), lines(kept));
    let has_all = before.is_subset(&now);
    let has_more = now.iter().any(|line| !before.contains(*line) && is_whole(line));
    match (has_all, has_more) {
        (true, _) => TranscriptDamage::Rewritten,
        (false, false) => TranscriptDamage::Lost,
        (false, true) => TranscriptDamage::Diverged,
    }
}

fn lines(bytes: &[u8]) -> HashSet<&[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect()
}

fn is_whole(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_only_if_all_of_them_are_whole() {
        let rows = [("", Some(0)), ("{}\n", Some(1)), ("{}\n[1]\n", Some(2)), ("{}\n{", None), ("{}", None)];
        for (bytes, expected) in rows {
            assert_eq!(added(bytes.as_bytes()).map(|lines| lines.len()), expected, "{bytes:?}");
        }
        assert_eq!(added(b"{}\n\0\0\0\n"), None);
    }

    #[test]
    fn a_text_is_found_in_any_string_whatever_its_white_space() {
        let lines = added(b"{\"a\":[{\"b\":\"one\\n two\"}]}\n{\"c\":3}\n").unwrap();
        for (text, expected) in [("onetwo", true), ("two", true), ("three", false), ("3", false)] {
            assert_eq!(contains(&lines, &[text.to_owned()]), expected, "{text}");
        }
        assert!(contains(&lines, &[]));
        assert_eq!(squeezed(" a\tb\n"), "ab");
    }

    #[test]
    fn a_file_is_damaged_if_it_lacks_something_that_it_had() {
        let kept = "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n";
        let rows = [
            (kept, TranscriptDamage::None),
            ("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n", TranscriptDamage::None),
            ("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":", TranscriptDamage::None),
            ("", TranscriptDamage::Lost),
            ("{\"n\":1}\n{\"n\"", TranscriptDamage::Lost),
            ("{\"n\":2}\n{\"n\":3}\n", TranscriptDamage::Lost),
            ("{\"n\":1}\n\0\0\0\0\0\0\0\n{\"n\":3}\n", TranscriptDamage::Lost),
            ("{\"n\":1}\n{\"n\":\n{\"n\":3}\n", TranscriptDamage::Lost),
            ("garbage", TranscriptDamage::Lost),
            ("{\"n\":3}\n{\"n\":1}\n{\"n\":2}\n", TranscriptDamage::Rewritten),
            ("{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n", TranscriptDamage::Diverged),
        ];
        for (file, expected) in rows {
            assert_eq!(compare(file.as_bytes(), kept.as_bytes()), expected, "{file:?}");
        }
    }
}
