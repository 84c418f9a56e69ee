//! Values of the environment: given, kept apart, and gone when they are removed.
