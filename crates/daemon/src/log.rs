//! The daemon's own log: its standard error, which `up` sends to a file.

use crate::view::time;
use std::fmt;

/// Says something about the daemon itself; what happens to sessions is in the events.
pub(crate) fn log(what: fmt::Arguments<'_>) {
    eprintln!("{} {what}", time(crate::clock::wall()));
}
