//! Translates between the protocols of agents and the words of pinfold. Pure: it spawns nothing, reads no clock, opens no file.
//!
//! The shim of a run writes a tape: what the agent printed and what was said to it, in order (`docs/design/014-tape.md`). A
//! [`Fold`] takes its entries and gives [`Observation`]s; it takes [`Intent`]s and gives the bytes that say them. What it knows is its
//! cursor, a text that is stored in the transaction of what was observed:
//!
//! ```text
//!  tape ──Entry──▶ Fold ──Observation──▶ engine ──▶ store (with Fold::cursor)
//!  shim ◀─Utterance── Fold ◀──Intent── engine
//! ```
//!
//! A fold that is resumed from a cursor goes on as the one that wrote it would have: whoever dies, nothing is heard twice and nothing
//! is missed. Three facts are not on the tape and are told to the fold beside it: [`Fold::written`], [`Fold::exited`] and
//! [`Fold::let_go`]. They may be told again; each counts once.
//!
//! Inside, [`lines`] makes lines of entries, one translator for each protocol ([`line`], [`exec`], [`stream_json`], [`codex`], [`acp`], [`pi`], [`scripted`]) says what a line
//! means, and the [`ledger`] what of that counts. A translator that panics costs the line at which it did.
//!
//! [`preset`] has what the name of an agent stands for: most agents are data.
#![forbid(unsafe_code)]
#![expect(rustdoc::private_intra_doc_links, reason = "the inside is explained to who reads the source")]

mod acp;
mod blames;
mod codex;
mod cursor;
mod entry;
mod exec;
mod fold;
mod intent;
mod json;
mod label;
mod ledger;
mod line;
mod lines;
mod message_word;
mod mind;
mod note;
mod observation;
mod pi;
pub mod preset;
mod request;
mod rpc;
pub mod scripted;
mod setup;
mod state;
mod stream_json;
mod translate;
mod turn;
mod word;

pub use cursor::LONGEST_CURSOR;
pub use entry::{Entry, What};
pub use exec::prompt_text;
pub use fold::Fold;
pub use intent::{CannotSay, Intent, LONGEST_WORD, Prompt, Reply, Sender, Utterance, Verdict};
pub use label::{LONGEST_LABEL, Label};
pub use lines::LONGEST_LINE;
pub use note::Note;
pub use observation::{Activity, GaveUp, Limit, Observation, Reach, SessionRefused};
pub use preset::{Preset, PresetChanges, Protocol};
pub use request::{NotARequest, Request, RequestId, RequestKind};
pub use setup::Setup;
pub use turn::{Answer, Delivery, EndedBy, Failure, FailureKind, Outcome, Spent, Turn, Usage};
