//! Tests with programs that are not installed everywhere: editors, pagers, node and Python. `./test programs`
//! runs these, and installs what is missing; all other tests need only Rust and git.

mod examples;
mod people;
mod services;
mod shells;
mod terminals;
