//! The output of agents, as lines.

pub(crate) mod last_line;
pub(crate) mod lines;
pub(crate) mod printed;
pub(crate) mod written;
