//! The daemon's side of a shim: how one is started or found, and the connection to it.

pub mod nursery;
mod spawn;

pub use spawn::*;
