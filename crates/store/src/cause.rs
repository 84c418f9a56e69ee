//! What lies behind an error, in the words of the back-end that met it.

/// An error of a back-end's own: to be shown, and never taken apart by callers.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
