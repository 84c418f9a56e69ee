//! The store on real files, with real second processes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod answers;
mod backup;
mod conformance;
mod damage;
mod driven;
mod files;
mod fixture;
mod flips;
mod full_disk;
mod home;
#[path = "../../../lock/tests/limit/mod.rs"]
mod limit;
mod processes;
mod reexec;
#[path = "../../../lock/tests/rights/mod.rs"]
mod rights;
mod shrink;
mod sums;
mod trouble;
mod witness;
