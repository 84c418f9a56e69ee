//! Looks without locking: who holds what, what is left of a run, which processes work where. What files say
//! is checked against the kernel.

pub(crate) mod describe;
mod glance;
pub(crate) mod lookup;
mod open;
pub(crate) mod ours;
pub(crate) mod removed;
pub(crate) mod runs;
pub(crate) mod scan;
pub(crate) mod survivors;
pub(crate) mod users;
