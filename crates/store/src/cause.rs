//! The underlying cause of an error, in the words of the back-end.

/// A back-end's own error: to be shown, never inspected by callers.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
