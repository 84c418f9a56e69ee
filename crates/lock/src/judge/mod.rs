//! Judges from evidence, and asks nobody: whether a holder lives, and whether a lock may be granted. The evidence is
//! gathered by [`crate::process`] and by those who take locks.

pub mod grant;
pub mod holder;
pub mod identity;
