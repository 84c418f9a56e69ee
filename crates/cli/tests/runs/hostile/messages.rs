//! Ends of turns that come early, late, without a newline, or for another message.
