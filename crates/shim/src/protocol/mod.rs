//! What daemon, clients and shim say to each other. All of them know it, and it is kept forever, because old
//! shims live on.

pub mod attach;
pub(crate) mod command;
pub(crate) mod exited;
pub(crate) mod frame;
pub(crate) mod guest;
pub(crate) mod keep;
pub(crate) mod notice;
pub(crate) mod output;
pub(crate) mod report;
pub(crate) mod ring;
pub(crate) mod say;
pub(crate) mod start;
pub(crate) mod tape;
pub(crate) mod turn;
pub(crate) mod welcome;

/// The word that makes a shim's program a nursery.
pub(crate) const NURSERY: &str = "--nursery";
