//! Ends what others hold or left behind: holders, the marks of lost runs, unused files.

pub(crate) mod holders;
mod lost;
mod members;
mod sweep;
