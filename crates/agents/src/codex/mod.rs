//! `codex`: the app server of Codex, as `docs/design/017-codex.md` has measured it. JSON-RPC in lines, without its name.
//!
//! To the agent:
//!
//! | line | when |
//! |---|---|
//! | `initialize` | the first step of the handshake |
//! | `initialized`, then `thread/start` or `thread/resume` | the second, in one word; the answer names the thread, which is the vendor session, and is "ready" |
//! | `thread/start` | where the thread to be resumed is not known: one without a turn is never written down |
//! | `thread/turns/list` | after a resume: how the last turn ended, without what was said in it |
//! | `turn/start` | a message; in a turn under way it would join that, so none is said then |
//! | an answer with a `decision` | to its requests for approval, and with `answers` to its questions; to any other: not offered |
//! | `turn/interrupt` | end the turn, live on; it has to name the turn |
//! | end of input | leave |
//!
//! From the agent:
//!
//! | line | means |
//! |---|---|
//! | the answer to `turn/start` | it has the message: its turn has this id |
//! | `turn/started` of another id | a turn of another client: the agent's own, as far as we are concerned |
//! | `turn/completed` | the end of the turn of that id; its `error` says why it failed |
//! | `item/completed` of an `agentMessage` | the text of the answer; the last one counts |
//! | `item/*/requestApproval`, `item/tool/requestUserInput` | it asks a person; `serverRequest/resolved` says that nobody has to answer any more |
//! | `thread/tokenUsage/updated` | what the thread has cost up to now |
//! | `account/rateLimits/updated` | how near a usage limit is, and when it resets |
//! | `error` with `willRetry` | nothing has ended |
//!
//! Lines about other threads (those of agents below it) mean nothing, except what they ask. Fields of a type that is not expected are as if
//! they were missing.

mod asks;
mod ends;
mod hears;
mod limits;
mod says;
mod spends;
mod state;
mod wire;

use crate::intent::{CannotSay, Intent};
use crate::translate::{Heard, Spoken, Translate, View};
use crate::word::{Want, Word};
pub(crate) use state::Codex;

impl Translate for Codex {
    fn hear(&mut self, heard: Heard<'_>, see: &View<'_>) -> Vec<Word> {
        let mut words = match heard {
            Heard::Begin => vec![Word::Want(Want::Handshake(state::INITIALIZE))],
            Heard::Said { number, label } => {
                self.said(number, label);
                Vec::new()
            }
            Heard::Line { bytes, .. } => hears::line(self, bytes, see),
            Heard::TooLong => hears::too_long(see),
            Heard::ErrorLine(_) | Heard::Written { .. } | Heard::Exited(..) => Vec::new(),
        };
        self.refusals.follow(&mut words, see);
        words
    }

    fn say(&self, number: u64, intent: &Intent, see: &View<'_>) -> Result<Spoken, CannotSay> {
        says::say(self, number, intent, see)
    }
}
