//! Private folders: owner, mode, no link.
