//! Peers that do not run and processes that cannot be ended: every verb has an end, and says who it is.
