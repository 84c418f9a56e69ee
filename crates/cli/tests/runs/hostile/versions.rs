//! A home, shims and verbs of the version before, beside those of this one.
