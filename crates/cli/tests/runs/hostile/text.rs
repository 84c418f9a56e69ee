//! No sequence of a name, a path, a key, a command or a screen reaches the terminal of whoever looks.
