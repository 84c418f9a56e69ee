//! `stream-json`: the JSON lines of Claude Code, both ways, as `docs/design/015-claude.md` has measured them.
//!
//! To the agent:
//!
//! | line | when |
//! |---|---|
//! | `control_request` `initialize`, `request_id` `pinfold-N` | the handshake; its answer is "ready" |
//! | `user` with `uuid` | a message; every delivery has a [`uuid`] of its own, because one that the transcript knows is swallowed |
//! | `control_response` | to its `control_request` `can_use_tool`; to any other: not offered |
//! | `control_request` `interrupt` | end the turn, live on |
//! | end of input | leave, after the turn under way and all background tasks |
//!
//! N is the number of the word in this run. From the agent:
//!
//! | line | means |
//! |---|---|
//! | `control_response` to our `initialize` | it is ready |
//! | `command_lifecycle` `queued`, `started` | it has the message; its turn began |
//! | `command_lifecycle` `completed`, `cancelled` without a result, then `idle` | it did not work on that message |
//! | `system/init` | a turn begins: `user_message_uuids` says whose, none is its own; `session_id` is the vendor session |
//! | `result` | the end of the turns that it names in `user_message_uuids`; without any it ends a turn of its own |
//! | `assistant` | text of the answer, or with `error` why the turn is about to fail |
//! | `control_request` `can_use_tool`, `control_cancel_request` | it asks a person, and does not any more |
//! | `system/background_tasks_changed`, results of its tools that plan ahead | whether work of its own is under way |
//! | `rate_limit_event` | how near a usage limit is, and when it resets |
//!
//! All else is passed over. Fields of a type that is not expected are as if they were missing.

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
use crate::translate::{Heard, Spoken, Translate, View};
use crate::word::{Want, Word};
pub(crate) use state::StreamJson;

impl Translate for StreamJson {
    fn hear(&mut self, heard: Heard<'_>, see: &View<'_>) -> Vec<Word> {
        let mut words = match heard {
            Heard::Begin => vec![Word::Want(Want::Handshake(state::INITIALIZE))],
            Heard::Said { number, label } => {
                self.said(number, label);
                Vec::new()
            }
            Heard::Line { bytes, .. } => hears::line(self, bytes, see),
            Heard::ErrorLine(bytes) => hears::complaint(self, bytes),
            Heard::TooLong => see.given_up(),
            Heard::Written { .. } | Heard::Exited(..) => Vec::new(),
        };
        words.extend(self.next_refusal(see).map(Word::Want));
        words
    }

    fn say(&self, number: u64, intent: &Intent, see: &View<'_>) -> Result<Spoken, CannotSay> {
        says::say(self, number, intent, see)
    }
}
