//! Nobody gets more through the API than is theirs.
