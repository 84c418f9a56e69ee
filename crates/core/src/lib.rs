//! The decisions of pinfold, and nothing else: no clock, no I/O, no async, no randomness.
//!
//! Everything that happens is an event; everything that follows from it is data.

pub mod grant;
pub mod holder;
pub mod identity;
