//! Takes locks: tries, waits, clears away what is left of the last run, writes the grant, and gives the lock
//! back or hands it on.

pub(crate) mod acquire;
mod clear;
mod grant;
pub(crate) mod guard;
pub(crate) mod handover;
mod held;
mod holdings;
pub(crate) mod wait;
pub(crate) mod watch;
