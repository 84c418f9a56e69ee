//! The verbs, through the real binary.

mod command_line;
mod directories;
mod folders;
mod lock;
mod looking;
mod namespaces;
mod support;
