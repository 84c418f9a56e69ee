//! How fast a full check goes: it runs beside the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How fast a check may go: work and rest in turn.
#[derive(Debug, Clone)]
pub struct CheckPace {
    /// How many times as long as the work to rest.
    pub(crate) rest: u32,
    stop: Arc<AtomicBool>,
}

impl CheckPace {
    /// Creates a pace of less than a twentieth of one core. The check ends early when `stop` is set.
    #[must_use]
    pub fn beside(stop: Arc<AtomicBool>) -> CheckPace {
        CheckPace { rest: 24, stop }
    }

    /// Creates a pace without rest.
    #[must_use]
    pub fn at_once() -> CheckPace {
        CheckPace { rest: 0, stop: Arc::default() }
    }

    /// Whether the check must end now.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}
