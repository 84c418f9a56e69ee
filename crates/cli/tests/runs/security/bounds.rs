//! What one agent may use up.
