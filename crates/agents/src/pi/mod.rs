//! `pi`: the JSON lines of pi's mode `rpc`, as measured in `docs/design/016-acp.md`.
//!
//! To the agent; N is the number of the word in this run, as a text:
//!
//! | line | when |
//! |---|---|
//! | `get_state`, id N | step 1 of the handshake: its answer has the session, and means "ready" |
//! | `prompt`, id N | a message |
//! | `abort`, id N | end the turn, keep running |
//! | `get_state`, id N | step 2: after a failed run of the model, to learn whether pi retries |
//! | `extension_ui_response`, cancelled | to an extension's question, because no person is there to answer |
//! | end of input | leave, at once |
//!
//! From the agent:
//!
//! | line | means |
//! |---|---|
//! | `response` to `prompt` | it has the message, or does not take it |
//! | `agent_start` | the turn began |
//! | `message_end` of the assistant | a message of the answer, what it cost, and whether it failed |
//! | `agent_end` | the end of the turn, unless that message failed and `auto_retry_start` follows |
//! | `auto_retry_end` without success | the end after all |
//!
//! `message_update`, which repeats the whole text three times for each piece of it, is skipped unread. pi
//! always exits with 0: the outcome is in its lines. It asks for no permission.

mod ends;
mod hears;
mod state;
mod wire;

use crate::exec::prompt_text;
use crate::intent::{CannotSay, Intent};
use crate::translate::{RunView, Spoken, Translate, TranslatorInput};
use crate::word::{AgentWord, Want};
use serde_json::{Value, json};
pub(crate) use state::Pi;
use state::{CHECK, GREET};

impl Translate for Pi {
    fn hear(&mut self, heard: TranslatorInput<'_>, see: &RunView<'_>) -> Vec<AgentWord> {
        let mut words = match heard {
            TranslatorInput::Begin => vec![AgentWord::Want(Want::Handshake(GREET))],
            TranslatorInput::Said { number, label } => {
                self.said(number, label);
                Vec::new()
            }
            TranslatorInput::Line { bytes, .. } => hears::line(self, bytes, see),
            TranslatorInput::ErrorLine(bytes) => hears::complaint(bytes).into_iter().collect(),
            TranslatorInput::TooLong => see.given_up(),
            TranslatorInput::Written { .. } | TranslatorInput::Exited(..) => Vec::new(),
        };
        self.refusals.follow(&mut words, see);
        words
    }

    fn say(&self, number: u64, intent: &Intent, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
        let command = |kind: &str| json!({ "id": number.to_string(), "type": kind });
        let line = match intent {
            Intent::Handshake { step: GREET | CHECK } => command("get_state"),
            Intent::Handshake { step } => refusal(self, *step).ok_or(CannotSay::NotWanted)?,
            Intent::Prompt(prompt) => {
                let mut line = command("prompt");
                line["message"] = Value::from(prompt_text(prompt, &see.setup.chat));
                line
            }
            Intent::Interrupt => command("abort"),
            Intent::Answer(_) => return Err(CannotSay::NotOffered),
            Intent::Close => return Ok(Spoken::end()),
        };
        Ok(Spoken::line(&line.to_string()))
    }
}

fn refusal(state: &Pi, step: u32) -> Option<Value> {
    let id = state.refusals.at(step)?;
    Some(json!({ "type": "extension_ui_response", "id": id, "cancelled": true }))
}
