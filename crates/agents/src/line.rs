//! `line`: any program that reads one line per message. `docs/protocol.md` has the rules.
//!
//! That such an agent has a message is shown only by its having been written. The turn ends at once (`turns =
//! "line"`), or with a line on standard output that starts within the turn and begins with `PINFOLD_DONE`
//! (`turns = "done"`).

use crate::intent::{CannotSay, Intent, Prompt};
use crate::ledger::OpenDelivery;
use crate::message_word;
use crate::note::{self, LogNote};
use crate::preset::{MessageFormat, TurnEndRule};
use crate::setup::Setup;
use crate::translate::{RunView, Spoken, Translate, TranslatorInput};
use crate::word::{AgentWord, AnswerText, How, NamedTurn, ReportedEnd};
use pinfold_core::MessageId;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The beginning of the last line of a turn.
const MARK: &[u8] = b"PINFOLD_DONE";
/// Longest answer that is kept, in bytes.
const LONGEST_ANSWER: usize = 1 << 20;

/// The state of a line-reading program, which is all in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct LineProtocol {}

impl Translate for LineProtocol {
    fn hear(&mut self, heard: TranslatorInput<'_>, see: &RunView<'_>) -> Vec<AgentWord> {
        match (heard, see.setup.turns) {
            (TranslatorInput::Begin, _) => vec![AgentWord::Ready],
            (TranslatorInput::Written { number }, TurnEndRule::Line) => taken_and_done(number, see),
            (TranslatorInput::Written { number }, TurnEndRule::Done) => {
                see.written(number).map(AgentWord::Began).collect()
            }
            (TranslatorInput::Line { bytes, began }, TurnEndRule::Done) => printed(bytes, began, see),
            (TranslatorInput::TooLong, TurnEndRule::Done) => see.too_long(),
            (TranslatorInput::Line { .. } | TranslatorInput::TooLong, TurnEndRule::Line)
            | (
                TranslatorInput::Said { .. } | TranslatorInput::ErrorLine(_) | TranslatorInput::Exited(..),
                _,
            ) => Vec::new(),
        }
    }

    fn say(&self, _number: u64, intent: &Intent, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
        match intent {
            Intent::Prompt(prompt) => Ok(Spoken::line(&message(see.setup.input, prompt))),
            Intent::Close => Ok(Spoken::end()),
            Intent::Handshake { .. } | Intent::Answer(_) | Intent::Interrupt => Err(CannotSay::NotOffered),
        }
    }

    fn tells_activity(&self, setup: &Setup) -> bool {
        setup.turns == TurnEndRule::Done
    }
}

/// Ends the turns that are over as soon as they are written.
fn taken_and_done(number: u64, see: &RunView<'_>) -> Vec<AgentWord> {
    let ended = |turn| {
        let end = ReportedEnd { turn, how: How::Done, text: None, usage: None };
        [AgentWord::Began(turn), AgentWord::Ended(end)]
    };
    see.written(number).flat_map(ended).collect()
}

/// Returns what a line means: nothing, unless it has the mark.
fn printed(line: &[u8], began: u64, see: &RunView<'_>) -> Vec<AgentWord> {
    let Some(rest) = line.strip_prefix(MARK) else { return Vec::new() };
    let named = first_id(rest);
    // A line that began before the turn belongs to what came before.
    let Some(open) = see.ledger.open().first().filter(|open| open.since < began) else {
        return vec![AgentWord::Note(LogNote::StrayEnd { named: named.map(|(id, _)| id) })];
    };
    vec![match named {
        Some((id, end)) if id == open.delivery.message => ends(open, &rest[end..]),
        Some((id, _)) => AgentWord::InDoubt { number: open.number, named: id, text: answer(rest) },
        None => ends(open, rest),
    }]
}

fn ends(open: &OpenDelivery, rest: &[u8]) -> AgentWord {
    let turn = NamedTurn::Number(open.number);
    AgentWord::Ended(ReportedEnd { turn, how: How::Done, text: Some(answer(rest)), usage: None })
}

/// Returns the answer after the mark: a JSON string is decoded, anything else is taken as it is.
fn answer(rest: &[u8]) -> AnswerText {
    let whole = rest.len() <= LONGEST_ANSWER;
    let text = String::from_utf8_lossy(&rest[..rest.len().min(LONGEST_ANSWER)]);
    let text = text.trim();
    let text = serde_json::from_str(text).unwrap_or_else(|_| text.to_owned());
    // Text that is not UTF-8 grows when it is converted.
    AnswerText { whole: whole && text.len() <= LONGEST_ANSWER, text: note::short(&text, LONGEST_ANSWER) }
}

/// Returns the id that a text begins with, and where it ends.
fn first_id(text: &[u8]) -> Option<(MessageId, usize)> {
    let begin = text.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let length = text[begin..].iter().position(u8::is_ascii_whitespace).unwrap_or(text.len() - begin);
    Some((MessageId::in_word(&text[begin..begin + length])?, begin + length))
}

/// Formats one message as one line, without the newline. Another session's text never looks like a person's.
fn message(how: MessageFormat, prompt: &Prompt) -> String {
    match how {
        MessageFormat::Line => escaped(prompt),
        MessageFormat::Json => {
            let id = message_word::of(prompt.message);
            let mut object = json!({ "id": id, "text": prompt.text, "try": prompt.attempt });
            if let Some(from) = &prompt.from {
                object["from"] = json!(from.session);
            }
            if !prompt.files.is_empty() {
                object["files"] = json!(prompt.files);
            }
            object.to_string()
        }
    }
}

fn escaped(prompt: &Prompt) -> String {
    let files = prompt.files.iter().map(|file| format!("\n@{file}"));
    let text = prompt.text.clone() + &files.collect::<String>();
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    match prompt.from.as_ref().filter(|from| !from.own) {
        Some(from) => format!("[from session {}] {text}", from.session),
        None => text,
    }
}
