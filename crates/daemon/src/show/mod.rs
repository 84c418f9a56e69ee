//! How things are shown: sessions, lists of them, and the disk usage of a home, as the objects of the API.

pub(crate) mod activity;
pub(crate) mod bad_definition;
pub(crate) mod contained;
pub(crate) mod disk;
pub(crate) mod event;
pub(crate) mod list;
pub(crate) mod message;
mod pending;
pub(crate) mod processes;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod usage;
pub(crate) mod wakes;
mod why_not;
pub(crate) mod word;
