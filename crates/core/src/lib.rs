//! The decisions of pinfold and nothing else: no clock, no I/O, no async, no randomness.
//!
//! Everything that happens to a session is an [`Event`]; what follows is a [`Decision`]: changes to make
//! durable, actions to perform, and the rule that decided. The daemon and the foreground `run` are two shells
//! around the same [`Session`]; the simulation runs the daemon's in a virtual world.
//!
//! - [`session`] is the one way in; [`machine`] says what each event means in each state;
//! - [`rules`] are the restart, memory and verdict rules, one per file;
//! - [`caller`] judges which process is asking, from evidence.
#![forbid(unsafe_code)]

pub mod account;
pub mod attach;
pub mod budgets;
pub mod caller;
pub mod decision;
mod durable;
pub mod event;
pub mod exit;
mod explain;
pub mod guest;
pub mod hold;
pub mod ids;
pub mod inbox;
pub mod kind;
pub mod last_exit;
pub mod life;
pub mod lost;
pub mod machine;
pub mod policy;
pub mod quoted;
pub mod regard;
pub mod rules;
pub mod running;
pub mod session;
pub mod talk;
pub mod time;
pub mod unended;
pub mod usage;
pub mod visible;
pub mod why;
pub mod words;

pub use decision::{Action, Answer, Change, Decision, Record, Refusal};
pub use event::{Ask, Event, MessageEvent, RunEvent, World};
pub use exit::{Ended, Exit, Verdict};
pub use ids::{ConsumerId, MessageId, RunNumber};
pub use kind::EventKind;
pub use last_exit::LastExit;
pub use life::{Life, State};
pub use policy::{Mode, Policy, ShimSetup, Spec};
pub use session::Session;
pub use time::{Boot, Jitter, Now, Wall};
pub use why::Why;
