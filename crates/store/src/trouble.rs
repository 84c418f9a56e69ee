//! What keeps the store from being written for now, reported to its users.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// What keeps the store from being written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Trouble {
    /// Nothing is wrong.
    #[default]
    None,
    /// Another process has been writing it for a while; we wait for it.
    Busy,
    /// The disk is full, and the reserved space is in use now.
    Reserve,
    /// The disk is full, and so is the reserved space: batches wait until there is some.
    Full,
    /// The file at this path is missing, was replaced, or was cut.
    Gone {
        /// The file that is affected.
        path: PathBuf,
    },
    /// The disk does not accept writes: batches wait until it does.
    Failed {
        /// The disk's error.
        problem: String,
    },
    /// The file is damaged: batches wait until it is whole.
    Damaged {
        /// What is wrong with it.
        problem: String,
    },
    /// The writer has ended because of a bug; only another process can write again.
    Ended,
}

impl Trouble {
    /// Whether nothing can be made durable at the moment.
    #[must_use]
    pub fn holds_up(&self) -> bool {
        match self {
            Trouble::None | Trouble::Reserve => false,
            Trouble::Busy
            | Trouble::Full
            | Trouble::Gone { .. }
            | Trouble::Failed { .. }
            | Trouble::Damaged { .. }
            | Trouble::Ended => true,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::None => text.write_str("nothing is wrong with the database"),
            Trouble::Busy => text.write_str("another program keeps the database locked"),
            Trouble::Reserve => {
                text.write_str("the disk is full: the room that was kept for this is being used")
            }
            Trouble::Full => text.write_str("the disk is full: nothing can be recorded until there is room"),
            Trouble::Gone { path } => {
                write!(text, "`{}` was removed, moved, replaced or cut while it was in use", path.display())
            }
            Trouble::Failed { problem } => write!(text, "the database cannot be written: {problem}"),
            Trouble::Damaged { problem } => write!(text, "the database is damaged: {problem}"),
            Trouble::Ended => text.write_str("the thread that writes the database has ended"),
        }
    }
}

/// A callback that hears of troubles.
pub type Listener = Box<dyn Fn(&Trouble) + Send>;

/// The present trouble, shared by the writer and other threads.
#[derive(Clone, Default)]
pub(crate) struct SharedTrouble(Arc<Mutex<(Trouble, Option<Listener>)>>);

impl SharedTrouble {
    pub(crate) fn now(&self) -> Trouble {
        self.0.lock().map(|both| both.0.clone()).unwrap_or_default()
    }

    pub(crate) fn listen(&self, listener: Listener) {
        if let Ok(mut both) = self.0.lock() {
            both.1 = Some(listener);
        }
    }

    /// Sets the present trouble; the listener hears only of changes.
    pub(crate) fn set(&self, trouble: Trouble) {
        let Ok(mut both) = self.0.lock() else { return };
        if both.0 != trouble {
            both.0 = trouble;
            if let Some(listener) = &both.1 {
                listener(&both.0);
            }
        }
    }
}

impl fmt::Debug for SharedTrouble {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.debug_tuple("Health").field(&self.now()).finish()
    }
}
