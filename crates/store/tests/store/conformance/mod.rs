//! What every back-end must do. Each test runs on each of them; a new back-end is one variant and one line below.
//!
//! What is about SQLite's files (damage, checksums, the witness, a full disk, other processes, old versions) is beside
//! this folder: there is nothing like it in memory.

mod commit;
mod contradictions;
mod history;
mod lookup;
mod owners;
mod parts;
mod property;
mod retention;
mod same;

use crate::home::Home;
use pinfold_store::{Backend, History, Options, Reader, Store};

/// Where a test has its store, which may be opened again and again.
pub(crate) enum Ground {
    Sqlite(Home),
    /// It ends with its last handle, so there is one that stays.
    Memory(Store),
}

impl Ground {
    pub(crate) fn sqlite() -> Ground {
        Ground::Sqlite(Home::new())
    }

    pub(crate) fn memory() -> Ground {
        Ground::Memory(pinfold_store::open(&Backend::Memory(History::All)).unwrap())
    }

    /// A fresh one of the same back-end.
    pub(crate) fn another(&self) -> Ground {
        match self {
            Ground::Sqlite(_) => Ground::sqlite(),
            Ground::Memory(_) => Ground::memory(),
        }
    }

    pub(crate) fn open(&self) -> Store {
        match self {
            Ground::Sqlite(home) => {
                let (path, options) = (home.path(), Options::default());
                pinfold_store::open(&Backend::Sqlite { path, options }).unwrap()
            }
            Ground::Memory(store) => store.clone(),
        }
    }

    pub(crate) fn reader(&self) -> Reader {
        match self {
            Ground::Sqlite(home) => home.reader(),
            Ground::Memory(store) => store.reader().unwrap(),
        }
    }
}

/// Makes a test of each function for each back-end. One that is not listed is never called, which the compiler says.
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
