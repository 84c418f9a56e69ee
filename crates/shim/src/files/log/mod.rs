//! The log of a session: what its agents printed, with the time and the run, in a bounded set of files.
//!
//! Records are appended to the current file; when it reaches its limit it is renamed, and the oldest file is
//! removed. A position counts all bytes ever logged, so it stays valid across renames.

mod format;
mod old;
mod reader;
mod writer;

pub use crate::protocol::output::{Position, Stream};
pub use old::forget;
pub use reader::{LogEntry, LogReader, tail};
pub use writer::Log;
