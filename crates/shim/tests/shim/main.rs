//! The real shim with real processes; the tests play the daemon.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a helper that fails fails its test, and a test looks for one report among all"
)]

#[cfg(debug_assertions)]
mod crashes;
#[cfg(debug_assertions)]
mod cut_tapes;
mod daemons;
mod ends;
mod foreground;
mod guests;
mod happy;
mod holds;
mod input;
mod isolation;
mod late;
#[path = "../../../lock/tests/limit/mod.rs"]
mod limit;
mod notices;
mod nurseries;
mod printing;
mod promises;
#[path = "../../../lock/tests/rights/mod.rs"]
mod rights;
mod spares;
mod starts;
mod stops;
mod strangers;
mod taped;
mod world;
