//! Translates between agents' protocols and pinfold's own words. Pure: it spawns nothing, reads no clock,
//! opens no file.
//!
//! The shim of a run writes a tape: what the agent printed and what was said to it, in order
//! (`docs/design/014-tape.md`). A [`Fold`] takes its entries and gives [`Observation`]s; it takes [`Intent`]s
//! and gives the bytes that say them. Its knowledge is its cursor, a text that is stored in the same
//! transaction as the observations:
//!
//! ```text
//!  tape ──Entry──▶ Fold ──Observation──▶ engine ──▶ store (with Fold::cursor)
//!  shim ◀─Utterance── Fold ◀──Intent── engine
//! ```
//!
//! A fold resumed from a cursor continues exactly as the one that wrote it would have: whichever process
//! dies, nothing is heard twice and nothing is missed. Three facts are not on the tape and are given to the
//! fold separately: [`Fold::written`], [`Fold::exited`] and [`Fold::let_go`]. They may be repeated; each
//! counts once.
//!
//! Inside, [`lines`] turns entries into lines, one translator per protocol ([`line`], [`exec`],
//! [`stream_json`], [`codex`], [`acp`], [`pi`], [`scripted`]) says what a line means, and the [`ledger`]
//! decides what of that counts. A translator that panics loses only the line on which it did.
//!
//! [`preset`] says what an agent's name stands for: most agents are data.
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
mod retried;
mod rpc;
pub mod scripted;
mod setup;
mod state;
mod stream_json;
mod translate;
mod turn;
mod word;

pub use cursor::LONGEST_CURSOR;
pub use entry::{EntryKind, FoldEntry};
pub use exec::prompt_text;
pub use fold::Fold;
pub use intent::{CannotSay, Consent, Intent, LONGEST_WORD, MessageSender, Prompt, RequestReply, Utterance};
pub use label::{LONGEST_LABEL, Label};
pub use lines::LONGEST_LINE;
pub use note::LogNote;
pub use observation::{Activity, GaveUp, LimitReach, LimitStatus, Observation, SessionRefused};
pub use preset::{Preset, PresetChanges, Protocol};
pub use request::{NotARequest, Request, RequestId, RequestKind};
pub use setup::Setup;
pub use turn::{
    Delivery, EndedBy, FailureKind, Spent, TurnAnswer, TurnFailure, TurnOutcome, TurnOwner, Usage,
};
