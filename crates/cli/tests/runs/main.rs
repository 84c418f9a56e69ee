//! Runs through the real binaries: whatever dies, nothing is doubled, lost or left behind.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod accounts;
mod again;
mod agents;
mod answers;
mod attach;
mod chats;
mod config;
mod contract;
mod crash_points;
#[cfg(debug_assertions)]
mod crashes;
mod crowds;
mod daemons;
mod demo;
mod eater;
mod feed;
mod files;
mod foreground;
mod guests;
mod handshakes;
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
mod mistakes;
mod openapi;
mod outsiders;
mod people;
mod per_message;
mod pictures;
mod presets;
mod processes;
mod program;
mod programs;
mod promises;
mod random;
mod real;
mod retention;
#[path = "../../../lock/tests/rights/mod.rs"]
mod rights;
mod scarcity;
mod searches;
mod security;
mod seen;
mod sequences;
mod services;
mod streams;
mod surface;
mod sweeper;
mod takeovers;
mod tapes;
mod teller;
mod terminal;
mod tty;
mod turns;
mod worktrees;
mod world;
