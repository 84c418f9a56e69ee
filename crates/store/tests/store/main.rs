//! The store on real files, with real second processes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod backup;
mod commit;
mod damage;
mod driven;
mod files;
mod fixture;
mod flips;
mod full_disk;
mod history;
mod home;
mod lookup;
mod parts;
mod processes;
mod property;
mod reexec;
mod retention;
mod sums;
mod trouble;
mod witness;
