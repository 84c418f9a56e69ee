//! What an agent prints reaches a terminal only as text.
