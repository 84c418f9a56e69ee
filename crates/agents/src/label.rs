//! What a word was for. The label is on the tape next to the bytes, and a fold reads nothing else of the
//! word: bytes that an older daemon wrote are never parsed.

use crate::message_word;
use crate::request::RequestId;
use pinfold_core::MessageId;
use std::fmt;

/// Longest label that fits on the tape, in bytes.
pub const LONGEST_LABEL: usize = 128;

/// What was said to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Label {
    /// A step of the handshake, counted from 1.
    Handshake(u32),
    /// A delivery of a message.
    Prompt {
        /// The message's id.
        message: MessageId,
        /// The delivery's number.
        delivery: u64,
    },
    /// The answer to a request.
    Answer(RequestId),
    /// A request to end the turn.
    Interrupt,
    /// The agent's input was closed.
    Close,
    /// A label of a newer version, as it is on the tape.
    Other(String),
}

impl Label {
    /// Reads a label; an unknown one is kept as it is, up to the longest length.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Label {
        let text = String::from_utf8_lossy(text);
        // A label is known only if it would be written the same way, so nothing of an unknown label is lost.
        let known = parse(&text).filter(|label| label.to_string() == text);
        known.unwrap_or_else(|| Label::Other(cut(&text)))
    }
}

fn parse(text: &str) -> Option<Label> {
    let words: Vec<&str> = text.splitn(4, ' ').collect();
    match words[..] {
        ["handshake", step] => step.parse().ok().map(Label::Handshake),
        ["prompt", message, delivery] => Some(Label::Prompt {
            message: MessageId::in_word(message.as_bytes())?,
            delivery: delivery.parse().ok()?,
        }),
        ["answer", request] => request.parse().ok().map(Label::Answer),
        ["interrupt"] => Some(Label::Interrupt),
        ["close"] => Some(Label::Close),
        _ => None,
    }
}

/// Cuts a text to what fits on the tape.
fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST_LABEL)].to_owned()
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Handshake(step) => write!(f, "handshake {step}"),
            Label::Prompt { message, delivery } => {
                write!(f, "prompt {} {delivery}", message_word::of(*message))
            }
            Label::Answer(request) => write!(f, "answer {request}"),
            Label::Interrupt => f.write_str("interrupt"),
            Label::Close => f.write_str("close"),
            Label::Other(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_label_has_a_text_within_the_bound_and_is_read_back_from_it() {
        let longest = Label::Prompt { message: MessageId(u128::MAX), delivery: u64::MAX };
        let rows = [
            (Label::Handshake(2), "handshake 2"),
            (Label::Prompt { message: MessageId(5), delivery: 7 }, "prompt 00000000000000000000000005 7"),
            (longest, "prompt 7ZZZZZZZZZZZZZZZZZZZZZZZZZ 18446744073709551615"),
            (Label::Answer(RequestId(3)), "answer r3"),
            (Label::Interrupt, "interrupt"),
            (Label::Close, "close"),
        ];
        for (label, text) in rows {
            assert_eq!(label.to_string(), text);
            assert_eq!(Label::from_text(text.as_bytes()), label);
            assert!(text.len() <= LONGEST_LABEL);
        }
    }

    #[test]
    fn a_label_that_is_not_known_is_kept_as_it_is() {
        for text in ["", "steer 3", "prompt 5 7", "handshake 01", "answer 3", "close now", "interrupt "] {
            assert_eq!(Label::from_text(text.as_bytes()), Label::Other(text.to_owned()), "{text}");
            assert_eq!(Label::from_text(text.as_bytes()).to_string(), text);
        }
        let lower = "prompt 7zzzzzzzzzzzzzzzzzzzzzzzzz 1";
        assert_eq!(Label::from_text(lower.as_bytes()), Label::Other(lower.to_owned()));
        let long = Label::from_text("ä".repeat(100).as_bytes());
        assert_eq!(long, Label::Other("ä".repeat(64)));
        assert_eq!(Label::from_text(b"\xff"), Label::Other("\u{FFFD}".into()));
    }
}
