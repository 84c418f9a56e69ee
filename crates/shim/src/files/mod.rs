//! What a shim writes for whoever comes later: exit records, the log, the latest turn.

pub mod log;
pub mod record;
pub mod turn;
