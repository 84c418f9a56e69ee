//! What a shim writes for whoever comes later: exit records, the log, the tape, the latest turn.

mod age;
pub mod log;
pub mod record;
pub mod tape;
pub mod turn;
