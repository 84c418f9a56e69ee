//! `acp`: version 1 of the agent client protocol, JSON-RPC in lines, as measured in `docs/design/016-acp.md`.
//!
//! To the agent. N, the number of the word in this run, is the id of the request:
//!
//! | line | when |
//! |---|---|
//! | `initialize` | step 1 of the handshake; neither files nor terminals are offered |
//! | `session/new`, `session/load`, `session/resume` | steps 2, 3 and 4: one of them, depending on what is known and what the agent can do |
//! | `session/prompt` | a message; its answer is the end of the turn |
//! | the answer to `session/request_permission` | one of the options that came with it |
//! | `session/cancel`, and `cancelled` to all its open requests | end the turn, keep running |
//! | an error to any other request of the agent | pinfold does not offer that |
//! | end of input | leave |
//!
//! From the agent:
//!
//! | line | means |
//! |---|---|
//! | the answer to `session/new`, `load`, `resume` | it is ready; the id is passed on once the agent has worked in that session, because some agents cannot find it before |
//! | `session/update`: `agent_message_chunk` | more of the answer, or a new answer if the message is a new one; ignored before the turn, when history is replayed |
//! | `session/update`: `tool_call`, `agent_thought_chunk`, `plan` | it works |
//! | `session/update`: `usage_update` | its context, and what the session cost |
//! | `session/request_permission`, `$/cancel_request` | it asks a person, or withdraws that |
//! | the answer to `session/prompt` | the end of the turn; done only with `end_turn` and evidence of work |
//! | an error to `session/prompt` | the turn failed: a limit, a login, or the error's text |
//!
//! The agent's status uses the words of the protocol's next version: idle, running, requires action. All
//! other lines are skipped. A field of an unexpected type counts as missing.

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
use crate::translate::{RunView, Spoken, Translate, TranslatorInput};
use crate::word::{AgentWord, Want};
pub(crate) use state::Acp;

impl Translate for Acp {
    fn hear(&mut self, heard: TranslatorInput<'_>, see: &RunView<'_>) -> Vec<AgentWord> {
        let mut words = match heard {
            TranslatorInput::Begin => vec![AgentWord::Want(Want::Handshake(state::INITIALIZE))],
            TranslatorInput::Said { number, label } => self.said(number, label, see),
            // Nothing else proves that the agent has a message.
            TranslatorInput::Written { number } => see.written(number).map(AgentWord::Began).collect(),
            TranslatorInput::Line { bytes, .. } => hears::line(self, bytes, see),
            TranslatorInput::TooLong => see.given_up(),
            TranslatorInput::ErrorLine(_) | TranslatorInput::Exited(..) => Vec::new(),
        };
        self.refusals.follow(&mut words, see);
        words
    }

    fn begun_again(&self) -> u32 {
        self.turn.again
    }

    fn say(&self, number: u64, intent: &Intent, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
        says::say(self, number, intent, see)
    }
}
