//! Says in words how a run ended.

use pinfold_api::object::LastExit;
use pinfold_core::{Exit, words};
use std::time::Duration;

/// For example `exited with 1 after 1.8 s: `RuntimeError: boom``.
pub(crate) fn told(exit: &LastExit) -> String {
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => without_status(exit.end.as_deref()),
    };
    let after = words::duration(Duration::from_millis(exit.uptime_ms));
    let line = exit.last_line.as_ref().map(|line| format!(": `{line}`")).unwrap_or_default();
    // How long it lived in an earlier life is not known.
    if how.is_another_life() { format!("{how}{line}") } else { format!("{how} after {after}{line}") }
}

/// The end that this word stands for; a daemon of an earlier version has none.
fn without_status(word: Option<&str>) -> Exit {
    let known = [Exit::MachineLost, Exit::AfterBackup, Exit::NeverStarted];
    known.into_iter().find(|exit| Some(exit.word()) == word).unwrap_or(Exit::ShimLost)
}
