//! How a message is written for an agent of kind `command`, and what its last line says.

use crate::definition::Input;
use serde_json::json;

/// One message as one line.
pub(crate) fn line(how: Input, id: &str, text: &str, attempt: u32) -> Vec<u8> {
    let mut line = match how {
        Input::Line => text.replace('\\', "\\\\").replace('\n', "\\n"),
        Input::Json => json!({ "id": id, "text": text, "try": attempt }).to_string(),
    };
    line.push('\n');
    line.into_bytes()
}

/// The answer in what stands behind the mark: a JSON string is decoded, anything else is taken as it is.
pub(crate) fn answer(rest: &[u8]) -> String {
    let text = String::from_utf8_lossy(rest);
    let text = text.trim();
    serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_whatever_is_in_it() {
        let rows = [
            ("", "\n"),
            ("--help", "--help\n"),
            ("a\nb\\n c\\", "a\\nb\\\\n c\\\\\n"),
            ("ünï\r\t", "ünï\r\t\n"),
        ];
        for (text, wanted) in rows {
            assert_eq!(String::from_utf8_lossy(&line(Input::Line, "x", text, 1)), wanted);
        }
        let json = line(Input::Json, "01J", "two\nlines \u{1F411}", 2);
        assert_eq!(json.iter().filter(|byte| **byte == b'\n').count(), 1);
        let back: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(back, json!({ "id": "01J", "text": "two\nlines \u{1F411}", "try": 2 }));
    }

    #[test]
    fn an_answer_is_the_rest_of_the_line_and_a_json_string_is_decoded() {
        let rows: [(&[u8], &str); 8] = [
            (b"", ""),
            (b" 42", "42"),
            (b" it works\r", "it works"),
            (b" \"two\\nlines\"", "two\nlines"),
            (b" \"not closed", "\"not closed"),
            (b" {\"a\": 1}", "{\"a\": 1}"),
            (b" \"a\" and \"b\"", "\"a\" and \"b\""),
            (b" \xff!", "\u{FFFD}!"),
        ];
        for (rest, wanted) in rows {
            assert_eq!(answer(rest), wanted);
        }
    }
}
