//! Starts that were refused and runs that ended, each with its reason.
