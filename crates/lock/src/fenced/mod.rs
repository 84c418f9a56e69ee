//! Files to which only the newest holder of a lock can append anything that counts.

pub(crate) mod file;
mod text;
