//! The world outside the loop, as it reaches it: locks, shims, and what is found of a session when the daemon starts.

pub(crate) mod async_fd;
pub(crate) mod locks;
pub(crate) mod observe;
pub(crate) mod shims;
