//! Judges from evidence, without asking the kernel: whether a holder is alive, and whether a lock may be
//! granted. [`crate::process`] and the code that takes locks gather the evidence.

pub mod grant;
pub mod holder;
pub mod identity;
