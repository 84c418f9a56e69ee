//! What is on the disk: the folder of lock files and the contents of each.

pub(crate) mod ended_listener;
pub(crate) mod facts;
pub(crate) mod fence;
pub(crate) mod file;
pub(crate) mod folder;
pub(crate) mod layout;
pub(crate) mod ledger;
pub(crate) mod name;
pub(crate) mod record;
pub(crate) mod selftest;
