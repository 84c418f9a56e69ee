//! The verbs, through the real binary.

mod command_line;
mod directories;
mod folders;
#[path = "../../../lock/tests/limit/mod.rs"]
mod limit;
mod lock;
mod looking;
mod namespaces;
#[path = "../../../lock/tests/rights/mod.rs"]
mod rights;
mod support;
