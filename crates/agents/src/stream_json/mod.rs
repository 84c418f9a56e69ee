//! `stream-json`: Claude Code's JSON lines, both ways, as measured in `docs/design/015-claude.md`.
//!
//! To the agent:
//!
//! | line | when |
//! |---|---|
//! | `control_request` `initialize`, `request_id` `pinfold-N` | the handshake; its answer means "ready" |
//! | `user` with `uuid` | a message; every delivery has a [`uuid`] of its own, because one that the transcript knows is swallowed |
//! | `control_response` | to its `control_request` `can_use_tool`; any other is refused |
//! | `control_request` `interrupt` | end the turn, keep running |
//! | end of input | leave, after the current turn and all background tasks |
//!
//! N is the number of the word in this run. From the agent:
//!
//! | line | means |
//! |---|---|
//! | `control_response` to our `initialize` | it is ready |
//! | `command_lifecycle` `queued`, `started` | it has the message; its turn began |
//! | `command_lifecycle` `completed`, `cancelled` without a result, then `idle` | it did not work on that message |
//! | `system/init` | a turn begins: `user_message_uuids` says whose, none is its own; `session_id` is the vendor session |
//! | `result` | the end of the turns named in `user_message_uuids`; if it names none, the end of a turn of its own |
//! | `assistant` | text of the answer, or with `error` why the turn is about to fail |
//! | `control_request` `can_use_tool`, `control_cancel_request` | it asks a person, or withdraws that |
//! | `system/background_tasks_changed`, results of its tools that plan ahead | whether work of its own is under way |
//! | `rate_limit_event` | how near a usage limit is, and when it resets |
//!
//! All other lines are skipped. A field of an unexpected type counts as missing.

mod asks;
mod ends;
mod hears;
mod limits;
mod plans;
mod says;
mod spends;
mod state;
mod uuid;
mod wire;

use crate::intent::{CannotSay, Intent};
use crate::translate::{RunView, Spoken, Translate, TranslatorInput};
use crate::word::{AgentWord, Want};
pub(crate) use state::StreamJson;

impl Translate for StreamJson {
    fn hear(&mut self, heard: TranslatorInput<'_>, see: &RunView<'_>) -> Vec<AgentWord> {
        let mut words = match heard {
            TranslatorInput::Begin => vec![AgentWord::Want(Want::Handshake(state::INITIALIZE))],
            TranslatorInput::Said { number, label } => {
                self.said(number, label);
                Vec::new()
            }
            TranslatorInput::Line { bytes, .. } => hears::line(self, bytes, see),
            TranslatorInput::ErrorLine(bytes) => hears::complaint(self, bytes),
            TranslatorInput::TooLong => see.given_up(),
            TranslatorInput::Written { .. } | TranslatorInput::Exited(..) => Vec::new(),
        };
        words.extend(self.next_refusal(see).map(AgentWord::Want));
        words
    }

    fn say(&self, number: u64, intent: &Intent, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
        says::say(self, number, intent, see)
    }
}
