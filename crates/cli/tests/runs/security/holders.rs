//! A forged lock ends nobody.
