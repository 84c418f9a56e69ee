//! Watching the memory of runs, as the loop asks for it.

use crate::memory::{MeterReading, RunWatch, Watcher, Without};
use pinfold_core::RunNumber;
use pinfold_store::SessionId;
use std::sync::Arc;

/// A run, as the watcher knows it.
pub(crate) type Watched = (SessionId, RunNumber);

/// Reads the memory of runs until told otherwise; the readings come back to the loop by themselves.
pub(crate) trait RunMemoryWatch {
    fn watch(&mut self, run: Watched, watch: RunWatch);

    fn forget(&mut self, run: Watched);

    /// Reads the exact memory of a run, at once.
    fn confirm(&mut self, run: Watched);
}

/// A thread that reads. It is started for the first run with a limit: a daemon without any has no such
/// thread.
pub(crate) struct MemoryThread {
    without: Without,
    tell: Arc<dyn Fn(Watched, MeterReading) + Send + Sync>,
    watcher: Option<Watcher<Watched>>,
}

impl MemoryThread {
    pub(crate) fn new(
        without: Without,
        tell: impl Fn(Watched, MeterReading) + Send + Sync + 'static,
    ) -> MemoryThread {
        MemoryThread { without, tell: Arc::new(tell), watcher: None }
    }
}

impl RunMemoryWatch for MemoryThread {
    fn watch(&mut self, run: Watched, watch: RunWatch) {
        let (without, tell) = (self.without, &self.tell);
        let made = self.watcher.get_or_insert_with(|| {
            let tell = Arc::clone(tell);
            Watcher::new(without, move |run, read| tell(run, read))
        });
        made.watch(run, watch);
    }

    fn forget(&mut self, run: Watched) {
        if let Some(watcher) = &self.watcher {
            watcher.forget(run);
        }
    }

    fn confirm(&mut self, run: Watched) {
        if let Some(watcher) = &self.watcher {
            watcher.confirm(run);
        }
    }
}
