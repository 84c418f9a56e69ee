//! Asks the kernel and knows nothing else: no policy, no sessions, no locks.
//!
//! Everything that pinfold wants to know from Linux by more than one plain call is asked here, once: `/proc`,
//! pidfds, control groups, clocks, sockets, signals, private folders. The caller decides what the answers
//! mean. Nothing here waits, unless it says so, and no program is started. This is also the one crate that a
//! port to another system would have to rewrite; `docs/design/011-kernel.md` says what it could keep.
#![deny(unsafe_code)]

pub mod allocator;
pub mod awake;
pub mod caller;
pub mod cgroup;
pub mod checksum;
pub mod clock;
#[doc(hidden)]
pub mod fault;
pub mod own;
pub mod peer;
pub mod pidfd;
pub mod priority;
pub mod private;
pub mod proc;
pub mod program;
pub mod random;
#[cfg(test)]
#[path = "../../lock/tests/rights/mod.rs"]
mod rights;
pub mod sender;
pub mod signals;
pub mod socket;
pub mod sys;
