//! The daemon of a home: found, started, or run in this process.

mod client;
mod damage;
mod find;
mod foreground;
mod start;
mod system;

pub(crate) use client::{Daemon, NextDaemon, running};
pub(crate) use find::{FoundDaemon, at, find, mute};
pub(crate) use foreground::{SHIM, run, shim_program, start_failure};
