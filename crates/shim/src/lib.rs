//! Keeps one agent: its tree, its locks, its output and its exit record, whatever becomes of the daemon.
//!
//! A daemon uses [`client`] to start a shim or to find a running one, [`Command`] and [`Report`] to talk with
//! it, [`record`] and [`log`] to read what it wrote. The shim itself is [`process::main`].
#![deny(unsafe_code)]

pub mod caller;
pub mod client;
pub mod crash;
mod files;
pub mod groups;
pub mod process;
mod protocol;
mod socket;

pub use client::nursery;
pub use files::{log, record, turn};
pub use pinfold_terminal::Size;
pub use protocol::attach;
pub use protocol::command::{
    Command, Contain, Directory, Joins, Keep, Listens, Lock, LogLimits, Start, Stdin, Streams, Tie,
};
pub use protocol::exited::{Exited, StartFailure};
pub use protocol::frame::{Decoder, Fields, Frame, FrameError, LONGEST, VERSION};
pub use protocol::report::{InputRefused, Keeping, Notice, Output, Report, Welcome};

/// Where programs are looked for when the environment does not say.
pub const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The socket beside a session's exit records: there a shim listens where it cannot where it was told to.
pub const BESIDE_RECORDS: &str = "shim.sock";

/// The file in a home whose flock makes a process its daemon.
pub const DAEMON_LOCK: &str = "daemon.lock";

/// A process that was to be ended, if it still lives: who it is, and why it could not be.
#[must_use]
pub fn survivor(process: u32) -> Option<pinfold_core::unended::Survivor> {
    process::survivor(process)
}
