//! Nobody innocent is ended: by a stale record, by `unlock`, by whoever asks inside a lock.
