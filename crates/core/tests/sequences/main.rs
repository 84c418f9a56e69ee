//! Sequences of ends, messages and requests of people, in virtual time: what went wrong elsewhere, row by row.

#![expect(clippy::panic, reason = "a test ends by panicking")]
#![expect(clippy::needless_pass_by_value, reason = "events are made on the spot")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test looks only at what it is about")]

mod attaches;
mod chats;
mod details;
mod driver;
mod ends;
mod guests;
mod holders;
mod parting;
mod people;
mod per_message;
mod recovery;
mod restarts;
mod setups;
mod stale;
mod takeovers;
mod talk;
mod unended;
