//! Runs through the real binaries: whatever dies, nothing is doubled, lost or left behind.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod agents;
mod config;
mod contract;
mod daemons;
mod files;
mod kills;
mod processes;
mod random;
mod streams;
mod world;
