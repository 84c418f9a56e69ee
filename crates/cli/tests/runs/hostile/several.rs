//! Verbs on several sessions act on all of them at once and report each.
