//! What every back-end must do. Each test runs on each back-end; a new one is a constructor of [`Ground`] and
//! a test in the macro.
//!
//! Tests of SQLite's files (damage, checksums, the witness, a full disk, other processes, old versions) are
//! beside this folder: there is nothing like that in memory.

pub(crate) mod answers;
mod commit;
mod contradictions;
mod cursors;
mod history;
mod lookup;
mod owners;
mod parts;
mod property;
mod retention;
mod same;
mod search;
mod usage;

use crate::home::Home;
use pinfold_store::{Backend, History, Store};

/// Where a test has its store, which may be opened again and again.
pub(crate) struct Ground {
    home: Home,
    backend: fn(&Home) -> Backend,
    /// One handle that stays, for a back-end that ends with its last handle.
    stays: Option<Store>,
}

impl Ground {
    pub(crate) fn sqlite() -> Ground {
        Ground::that_lasts(|home| Backend::Sqlite { path: home.path(), options: home.options() })
    }

    pub(crate) fn memory() -> Ground {
        Ground::that_ends(|_| Backend::Memory(History::All))
    }

    fn that_lasts(backend: fn(&Home) -> Backend) -> Ground {
        Ground { home: Home::new(), backend, stays: None }
    }

    fn that_ends(backend: fn(&Home) -> Backend) -> Ground {
        let mut ground = Ground::that_lasts(backend);
        ground.stays = Some(ground.open());
        ground
    }

    /// Another, empty one of the same back-end.
    pub(crate) fn another(&self) -> Ground {
        match self.stays {
            Some(_) => Ground::that_ends(self.backend),
            None => Ground::that_lasts(self.backend),
        }
    }

    /// A path beside the store.
    pub(crate) fn beside(&self, name: &str) -> std::path::PathBuf {
        self.home.folder().join(name)
    }

    pub(crate) fn open(&self) -> Store {
        match &self.stays {
            Some(store) => store.clone(),
            None => pinfold_store::open(&(self.backend)(&self.home)).unwrap(),
        }
    }
}

/// Makes a test of each function for each back-end. The compiler warns of one that is not listed, since it is
/// never called.
macro_rules! on_every_back_end {
    ($($rule:ident,)+) => {
        $(mod $rule {
            #[test]
            fn sqlite() {
                super::$rule(&$crate::conformance::Ground::sqlite());
            }

            #[test]
            fn memory() {
                super::$rule(&$crate::conformance::Ground::memory());
            }
        })+
    };
}
pub(crate) use on_every_back_end;
