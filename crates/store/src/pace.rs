//! How fast a look at everything goes: it runs beside the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How fast a look may go: work and rest in turn.
#[derive(Debug, Clone)]
pub struct Pace {
    /// Rest for so many times the work.
    pub(crate) rest: u32,
    stop: Arc<AtomicBool>,
}

impl Pace {
    /// Under a twentieth of one core. It ends early when `stop` is set.
    #[must_use]
    pub fn beside(stop: Arc<AtomicBool>) -> Pace {
        Pace { rest: 24, stop }
    }

    /// As fast as can be.
    #[must_use]
    pub fn at_once() -> Pace {
        Pace { rest: 0, stop: Arc::default() }
    }

    /// Whether the look is to end now.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}
