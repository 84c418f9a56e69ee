//! `acp`: version 1 of the agent client protocol, JSON-RPC in lines, as `docs/design/016-acp.md` has measured it.
//!
//! To the agent; N is the number of the word in this run, and the id of the request:
//!
//! | line | when |
//! |---|---|
//! | `initialize` | step 1 of the handshake; neither files nor terminals are offered |
//! | `session/new`, `session/load`, `session/resume` | steps 2, 3 and 4: one of them, by what is known and what the agent can |
//! | `session/prompt` | a message; its answer is the end of the turn |
//! | the answer to `session/request_permission` | one of the options that it came with |
//! | `session/cancel`, and `cancelled` to all that it asks | end the turn, live on |
//! | an error to anything else that it asks | nobody offers that |
//! | end of input | leave |
//!
//! From the agent:
//!
//! | line | means |
//! |---|---|
//! | the answer to `session/new`, `load`, `resume` | it is ready; the id is told once it has worked in that session, because some do not know it before |
//! | `session/update`: `agent_message_chunk` | more of the answer, or another one where the message is another; nothing before the turn, when history is replayed |
//! | `session/update`: `tool_call`, `agent_thought_chunk`, `plan` | it works |
//! | `session/update`: `usage_update` | its context, and what the session cost |
//! | `session/request_permission`, `$/cancel_request` | it asks a person, and does not any more |
//! | the answer to `session/prompt` | the end: done is only `end_turn` with proof of work |
//! | an error to `session/prompt` | the turn failed: a limit, a login, or its text |
//!
//! Where an agent stands is said in the words of the protocol's next version: idle, running, requires action. All else is passed
//! over. Fields of a type that is not expected are as if they were missing.

mod asks;
mod ends;
mod fails;
mod hears;
mod opens;
mod says;
mod spends;
mod state;
mod wire;

use crate::intent::{CannotSay, Intent};
use crate::translate::{Heard, Spoken, Translate, View};
use crate::word::{Want, Word};
pub(crate) use state::Acp;

impl Translate for Acp {
    fn hear(&mut self, heard: Heard<'_>, see: &View<'_>) -> Vec<Word> {
        let mut words = match heard {
            Heard::Begin => vec![Word::Want(Want::Handshake(state::INITIALIZE))],
            Heard::Said { number, label } => self.said(number, label, see),
            // Nothing else proves that it has a message.
            Heard::Written { number } => see.written(number).map(Word::Began).collect(),
            Heard::Line { bytes, .. } => hears::line(self, bytes, see),
            Heard::TooLong => see.given_up(),
            Heard::ErrorLine(_) | Heard::Exited(..) => Vec::new(),
        };
        self.refusals.follow(&mut words, see);
        words
    }

    fn say(&self, number: u64, intent: &Intent, see: &View<'_>) -> Result<Spoken, CannotSay> {
        says::say(self, number, intent, see)
    }
}
