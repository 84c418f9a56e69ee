//! Ends what others hold or left: holders, the marks of lost runs, files that nobody needs.

pub(crate) mod holders;
mod lost;
mod members;
mod sweep;
