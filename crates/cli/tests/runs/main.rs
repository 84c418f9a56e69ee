//! Runs through the real binaries: whatever dies, nothing is doubled, lost or left behind.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod agents;
mod attach;
mod chats;
mod config;
mod contract;
mod crash_points;
#[cfg(feature = "crash-points")]
mod crashes;
mod crowds;
mod daemons;
mod demo;
mod eater;
mod feed;
mod files;
mod foreground;
mod holds;
mod hostile;
mod http;
mod inbox;
mod kills;
#[path = "../../../lock/tests/limit/mod.rs"]
mod limit;
mod limits;
mod lines;
mod lists;
mod memory;
mod metrics;
mod openapi;
mod people;
mod per_message;
mod presets;
mod processes;
mod program;
mod programs;
mod promises;
mod random;
mod real;
mod retention;
mod scarcity;
mod security;
mod sequences;
mod streams;
mod surface;
mod sweeper;
mod takeovers;
mod tapes;
mod teller;
mod tty;
mod turns;
mod world;
