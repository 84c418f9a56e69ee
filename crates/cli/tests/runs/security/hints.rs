//! A hint that is a command is the words that were meant.
