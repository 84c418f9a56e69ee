//! Tests with programs that are not everywhere: editors, pagers, node and Python. `./test programs` runs these, and
//! installs what is missing; every other test needs only Rust and git.

mod examples;
mod people;
mod services;
mod shells;
mod terminals;
