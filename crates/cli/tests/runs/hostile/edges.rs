//! The edges of locks on directories: what moves, what is deep, what is many.
