//! What is on the disk: the folder of lock files and the contents of each.

pub(crate) mod facts;
pub(crate) mod fence;
pub(crate) mod file;
pub(crate) mod folder;
pub(crate) mod ledger;
pub(crate) mod name;
pub(crate) mod page;
pub(crate) mod record;
pub(crate) mod selftest;
pub(crate) mod told;
