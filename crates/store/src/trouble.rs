//! What keeps the store from being written for now, told to whoever uses it.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// What keeps the store from being written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Trouble {
    /// Nothing.
    #[default]
    None,
    /// Another process has been writing it for a while; it is waited for.
    Busy,
    /// The disk is full, and the room that was kept for this is in use now.
    Reserve,
    /// The disk is full, and so is the room that was kept: what comes waits until there is some.
    Full,
    /// The file of this name is not there any more, another one is in its place, or it was cut.
    Gone {
        /// Which file.
        path: PathBuf,
    },
    /// The disk does not take what is written: what comes waits until it does.
    Failed {
        /// What it said.
        problem: String,
    },
    /// The file is damaged: what comes waits until it is whole.
    Damaged {
        /// What is wrong with it.
        problem: String,
    },
    /// The writer has ended by a fault of its own; only another process can write again.
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

/// Who is told of troubles.
pub type Listener = Box<dyn Fn(&Trouble) + Send>;

/// What is wrong at the moment, shared by the writer and those who ask.
#[derive(Clone, Default)]
pub(crate) struct Health(Arc<Mutex<(Trouble, Option<Listener>)>>);

impl Health {
    pub(crate) fn now(&self) -> Trouble {
        self.0.lock().map(|both| both.0.clone()).unwrap_or_default()
    }

    pub(crate) fn listen(&self, listener: Listener) {
        if let Ok(mut both) = self.0.lock() {
            both.1 = Some(listener);
        }
    }

    /// Says how things stand; who listens hears of changes only.
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

impl fmt::Debug for Health {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.debug_tuple("Health").field(&self.now()).finish()
    }
}
