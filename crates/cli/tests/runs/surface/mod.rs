//! What users see of every verb, byte for byte: help, happy paths, errors, JSON, and the description of the API.
//!
//! Each case is a file in `snapshots/`. `redact.rs` puts placeholders for what differs between runs (ids,
//! pids, times, paths); everything else is as it was printed. CONTRIBUTING.md says how a change is accepted.

mod chats;
mod coverage;
mod daemons;
mod declared;
mod errors;
mod examples;
mod help;
mod locks;
mod machine;
mod named;
mod others;
mod redact;
mod refusals;
mod sessions;
mod spread;
mod stage;
mod usage;
mod widths;
