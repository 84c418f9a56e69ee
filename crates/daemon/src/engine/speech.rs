//! How a message is written for an agent of kind `command`, and what its last line means.

use crate::define::definition::MessageFormat;
use pinfold_store::Message;
use serde_json::json;

/// One message as one line. `from` is the session that sent it, and `own` the one that reads it: text from
/// another session never looks like a person's.
pub(crate) fn line(how: MessageFormat, message: &Message, own: &str, attempt: u32) -> Vec<u8> {
    let Message { id, text, from, files, .. } = message;
    let text = &files.iter().fold(text.clone(), |text, file| format!("{text}\n@{file}"));
    let mut line = match (how, from.as_deref().filter(|from| *from != own)) {
        (MessageFormat::Line, None) => escaped(text),
        (MessageFormat::Line, Some(from)) => format!("[from session {from}] {}", escaped(text)),
        (MessageFormat::Json, _) => {
            let mut object = json!({ "id": id.to_string(), "text": text, "try": attempt });
            if let Some(from) = from {
                object["from"] = json!(from);
            }
            object.to_string()
        }
    };
    line.push('\n');
    line.into_bytes()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

/// The answer after the mark: a JSON string is decoded, anything else is taken as it is.
pub(crate) fn answer(rest: &[u8]) -> String {
    let text = String::from_utf8_lossy(rest);
    let text = text.trim();
    serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str, from: Option<&str>) -> Message {
        Message {
            id: pinfold_store::Ulid::new(1, 2),
            session: pinfold_store::SessionId(pinfold_store::Ulid::new(1, 3)),
            key: None,
            from: from.map(str::to_owned),
            text: text.to_owned(),
            state: pinfold_store::MessageState::Queued,
            tries: 0,
            enqueued_at: pinfold_core::Wall(0),
            done_at: None,
            answer: None,
            taken: None,
            files: Vec::new(),
            kept: pinfold_store::AnswerKept::default(),
            failure: None,
            place: None,
            damage: None,
        }
    }

    #[test]
    fn a_message_is_one_line_whatever_is_in_it() {
        let rows = [
            ("", "\n"),
            ("--help", "--help\n"),
            ("a\nb\\n c\\", "a\\nb\\\\n c\\\\\n"),
            ("ünï\r\t", "ünï\r\t\n"),
        ];
        for (text, wanted) in rows {
            assert_eq!(
                String::from_utf8_lossy(&line(MessageFormat::Line, &message(text, None), "x", 1)),
                wanted
            );
        }
        let said = message("two\nlines \u{1F411}", None);
        let json = line(MessageFormat::Json, &said, "x", 2);
        assert_eq!(json.iter().filter(|byte| **byte == b'\n').count(), 1);
        let back: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let id = said.id.to_string();
        assert_eq!(back, json!({ "id": id, "text": "two\nlines \u{1F411}", "try": 2 }));
    }

    #[test]
    fn what_another_session_says_is_marked_as_that() {
        let rows = [
            (Some("evil"), "[from session evil] a\\nb\n"),
            // Its own messages need no mark.
            (Some("own"), "a\\nb\n"),
            (None, "a\\nb\n"),
        ];
        for (from, wanted) in rows {
            let said = message("a\nb", from);
            assert_eq!(String::from_utf8_lossy(&line(MessageFormat::Line, &said, "own", 1)), wanted);
            let back: serde_json::Value =
                serde_json::from_slice(&line(MessageFormat::Json, &said, "own", 1)).unwrap();
            assert_eq!((&back["from"], &back["text"]), (&json!(from), &json!("a\nb")));
        }
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
