//! Says in words how a run ended.

use pinfold_api::object::LastExit;
use pinfold_core::{Exit, words};
use std::time::Duration;

/// For example `exited with 1 after 1.8 s: `RuntimeError: boom``.
pub(crate) fn told(exit: &LastExit) -> String {
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::ShimLost,
    };
    let after = words::duration(Duration::from_millis(exit.uptime_ms));
    let line = exit.last_line.as_ref().map(|line| format!(": `{line}`")).unwrap_or_default();
    format!("{how} after {after}{line}")
}
