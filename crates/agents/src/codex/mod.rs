//! `codex`: Codex's app server, as measured in `docs/design/017-codex.md`. JSON-RPC in lines, without the
//! `jsonrpc` member.
//!
//! To the agent:
//!
//! | line | when |
//! |---|---|
//! | `initialize` | the first step of the handshake |
//! | `initialized`, then `thread/start` or `thread/resume` | the second step, in one word; the answer names the thread, which is the vendor session, and means "ready" |
//! | `thread/start` | when the thread to be resumed is unknown: one without a turn is never saved |
//! | `thread/turns/list` | after a resume: how the last turn ended, without its content |
//! | `turn/start` | a message; during a turn it would join that turn, so none is sent then |
//! | an answer with a `decision` | to its requests for approval, and with `answers` to its questions; any other request is refused |
//! | `turn/interrupt` | end the turn, keep running; it has to name the turn |
//! | end of input | leave |
//!
//! From the agent:
//!
//! | line | means |
//! |---|---|
//! | the answer to `turn/start` | it has the message, as the turn with this id |
//! | `turn/started` with another id | another client's turn, which we treat as the agent's own work |
//! | `turn/completed` | the end of the turn with that id; its `error` says why it failed |
//! | `item/completed` of an `agentMessage` | the text of the answer; the last one counts |
//! | `item/*/requestApproval`, `item/tool/requestUserInput` | it asks a person; `serverRequest/resolved` says that no answer is needed any more |
//! | `thread/tokenUsage/updated` | what the thread has cost up to now |
//! | `account/rateLimits/updated` | how near a usage limit is, and when it resets |
//! | `error` with `willRetry` | nothing has ended |
//!
//! Lines about other threads (those of subagents) are ignored, except for their requests. A field of an
//! unexpected type counts as missing.

mod asks;
mod commands;
mod ends;
mod hears;
mod limits;
mod says;
mod spends;
mod state;
mod wire;

use crate::intent::{CannotSay, Intent};
use crate::translate::{RunView, Spoken, Translate, TranslatorInput};
use crate::word::{AgentWord, Want};
pub(crate) use state::Codex;

impl Translate for Codex {
    fn hear(&mut self, heard: TranslatorInput<'_>, see: &RunView<'_>) -> Vec<AgentWord> {
        let mut words = match heard {
            TranslatorInput::Begin => vec![AgentWord::Want(Want::Handshake(state::INITIALIZE))],
            TranslatorInput::Said { number, label } => {
                self.said(number, label);
                Vec::new()
            }
            TranslatorInput::Line { bytes, .. } => hears::line(self, bytes, see),
            TranslatorInput::TooLong => hears::too_long(see),
            TranslatorInput::ErrorLine(_) | TranslatorInput::Written { .. } | TranslatorInput::Exited(..) => {
                Vec::new()
            }
        };
        self.refusals.follow(&mut words, see);
        words
    }

    fn say(&self, number: u64, intent: &Intent, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
        says::say(self, number, intent, see)
    }
}
