//! What is wanted: a resource, the files that represent it, and what the holder says about itself.

pub(crate) mod directory;
pub(crate) mod request;
pub(crate) mod target;
