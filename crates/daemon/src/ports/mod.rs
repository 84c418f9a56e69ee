//! The world outside the loop: traits for locks, shims, tapes, store, clock, memory, files and what programs
//! say about themselves, and the real ones.
//!
//! A call that takes time gets a `then`, which is called with the outcome on whatever thread learns it; the
//! loop passes one that puts an input into its queue. A call that returns at once is bounded, and says why.
//! The simulation plugs virtual ports into the same loop. Nothing here knows the engine.

pub(crate) mod async_fd;
pub(crate) mod cancellable_wait;
pub(crate) mod clock;
pub(crate) mod file_watch;
pub(crate) mod files;
pub(crate) mod id_files;
pub(crate) mod journal;
pub(crate) mod locks;
pub(crate) mod memory;
pub(crate) mod outsiders;
pub(crate) mod shims;
pub(crate) mod stops;
pub(crate) mod tapes;
#[cfg(test)]
mod tests;

use clock::Clock;
use files::Files;
use id_files::IdFileWatch;
use journal::Journal;
use locks::Locks;
use memory::RunMemoryWatch;
use shims::Shims;
use std::sync::Arc;
use tapes::Tapes;

/// What is done with an outcome, on the thread that learns it: it wakes the loop and returns.
pub(crate) type Then<T> = Box<dyn FnOnce(T) + Send>;

/// Everything that a loop acts on.
pub(crate) struct Ports {
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) locks: Box<dyn Locks>,
    pub(crate) shims: Box<dyn Shims>,
    pub(crate) tapes: Box<dyn Tapes>,
    pub(crate) journal: Box<dyn Journal>,
    pub(crate) memory: Box<dyn RunMemoryWatch>,
    pub(crate) id_files: Box<dyn IdFileWatch>,
    /// Shared with what follows from an answer.
    pub(crate) files: Arc<dyn Files>,
}
