//! Keeps one agent: its tree, its locks, its output and its exit record, whatever becomes of the daemon.
//!
//! A daemon uses [`client`] to start a shim or to find a running one, [`Command`] and [`Report`] to talk with
//! it, and [`record`], [`log`] and [`tape`] to read what it wrote. The shim itself is [`process::main`].
//!
//! # Theory of operation
//!
//! **One process, one thread, one poll.** Each live session has a shim. It has no runtime and waits for the kernel
//! only (`process/shim.rs`): `wait` polls signals, the daemon's connection, newcomers, the agent's pipes or its
//! terminal, viewers, the notify socket; `heed` takes what came; `advance` does what is due. It decides nothing but
//! how to end a tree: the daemon decides when to start, stop and restart. Shims are forked by the nursery,
//! a process that has paid for exec once; it is also this program, and keeps nothing.
//!
//! **Birth.** A shim's standard input is one end of a socket pair. Through it come [`Command::Keep`] and copies of
//! the locks' descriptors. It adopts them, answers `Hello` with [`Welcome`], and from then on they are its own: the
//! daemon closes its copies, so the locks are never free in between. Until [`Command::Go`] the end of that
//! connection means that the parent died, and the shim leaves.
//!
//! **A run.** [`Command::Start`] counts once for each run number. The child is forked into a control group where
//! there may be one, asks for SIGKILL at the shim's death, and waits at its gate (`process/gate.rs`). The locks
//! get a new fence with its identity; then the gate opens and the child becomes the agent (`process/child.rs`).
//! "Started" is said when exec closed the pipe. What the agent prints goes to the log first, then to those who
//! watch; a line that ends a turn is written down (`process/turns.rs`), so that it counts while no daemon lives.
//!
//! **A run with a tape** ([`Start::tape`]). What the agent prints and what is said to it goes to one file, in order, and
//! the daemon reads it there: the connection only tells how far it has grown. [`Command::Say`] counts once for each
//! number, and is on the tape before its first byte is in the pipe (`process/taping.rs`,
//! `process/taped_input.rs`). Where too much was not heard, or the disk is full, the pipes are not read, and the
//! agent waits. Locks that become known meanwhile are taken by [`Command::Hold`] until the run ends
//! (`process/hold.rs`).
//!
//! **A guest** ([`Command::Guest`]) is a second process of a run, with a terminal of its own that viewers join
//! (`process/guests.rs`). Between it and the shim is its usher (`process/usher.rs`), the reaper of the guest's tree: what
//! a guest leaves behind ends with it, and nothing of the agent's does.
//!
//! **An end.** The shim is the reaper of all descendants. The run is over when none is left: what outlives the
//! agent is killed until the kernel says so. Then, in this order (`process/ending.rs`): output read to its end,
//! record written, `Exited` said, locks kept for two seconds at most. If the run is to be repeated, its successor
//! is forked meanwhile and waits at the gate for the order. A daemon that stored the end says [`Command::Ack`];
//! where that does not come within 20 ms, the shim syncs its record itself.
//!
//! **What survives which death.** The daemon's: everything; the shim listens at its socket for the next one, whose
//! generation must not be lower, and of which the kernel says that it has the flock of the home. When the run ends
//! first, the shim syncs, marks the locks as released and leaves; the record waits. The shim's own: the agent is
//! killed by its parent-death signal, the kernel frees the locks, and the next holder finds them not marked as
//! released and ends what is left of the tree first. A record that was written stays, and so do the log and the
//! latest turn. The agent's: that is an end. A power failure: records that were synced; the daemon starts nothing
//! before it has stored the end.
//!
//! **Two processes, one language.** `protocol/` is what is said: a frame is a length, a version, a kind and tagged
//! fields. Unknown tags are passed over and a missing one is an error, because a shim serves every later daemon; all
//! bytes that were ever written are in `tests/fixtures` and are read by a test forever. `files/` is what is written:
//! exit records in slots with checksums, a log that is read in both directions, the tape, the latest turn. `client/`
//! is what a daemon has of a shim, `process/` is the shim.
//!
//! **Gaps.** A process in uninterruptible sleep keeps its run, and so its locks. Without a control group, a process
//! that cleared its environment and outlives a killed shim is not found. A killed shim leaves an empty control
//! group behind.
//!
//! **Where to begin reading.** `process/shim.rs`, then `process/start.rs` and `process/ending.rs`;
//! `process/commands.rs` has what a daemon may ask for. `unsafe` is in `process/raw.rs`. `docs/design/004-shim.md`
//! has the reasons.
#![deny(unsafe_code)]

pub mod bridge;
pub mod caller;
pub mod client;
pub mod crash;
mod files;
pub mod groups;
pub mod process;
mod protocol;
mod socket;

pub use client::nursery;
pub use files::{log, record, tape, turn};
pub use pinfold_terminal::Size;
pub use protocol::attach;
pub use protocol::command::Command;
pub use protocol::exited::{Exited, StartFailure};
pub use protocol::frame::{Decoder, Fields, Frame, FrameError, LONGEST, VERSION};
pub use protocol::guest::{GuestReport, GuestStanding, GuestStart, Presence};
pub use protocol::keep::{Keep, LentLock, Listens, Streams, Tie};
pub use protocol::notice::Notice;
pub use protocol::report::{InputRefused, Output, Report};
pub use protocol::ring::BellRing;
pub use protocol::say::{Label, NotALabel, Say, SayNumber, SayRefused};
pub use protocol::start::{Contain, Directory, JoinRights, LogLimits, Rights, Start, Stdin, TapeLimits};
pub use protocol::tape::{Can, Flow, SaidUpTo, TapeEnd, TapeReport, TapeStanding};
pub use protocol::welcome::{Keeping, Welcome};

/// Where programs are looked for if the environment has no PATH.
pub const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The socket beside a session's exit records, where a shim listens if it cannot listen where it was told to.
pub const BESIDE_RECORDS: &str = "shim.sock";

/// The file in a home whose flock makes a process its daemon.
pub const DAEMON_LOCK: &str = "daemon.lock";

/// Whether this system offers what a shim needs to be told of its agent's end. For processes with one thread.
#[must_use]
pub fn ends_are_told() -> bool {
    process::ends_are_told()
}

/// Describes a process that was to be ended, if it still lives: which it is, and why it could not be ended.
#[must_use]
pub fn survivor(process: u32) -> Option<pinfold_core::unended::Survivor> {
    process::survivor(process)
}
