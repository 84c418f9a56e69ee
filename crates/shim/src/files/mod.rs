//! The files that a shim writes for later readers: exit records, the log, the tape, the latest turn.

mod age;
pub mod log;
pub mod record;
pub mod tape;
pub mod turn;
