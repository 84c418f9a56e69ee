//! The daemon: the loop around the core, and nothing clever beside it.
//!
//! [`run`] takes the home's kernel lock, opens the store, looks at what is there, and serves the API socket
//! until it is told to go down. Everything that it knows it would know again after kill -9.
#![deny(unsafe_code)]

mod caller;
mod clock;
pub mod crash;
mod define;
mod engine;
mod error_chain;
mod foreground;
mod http;
mod life;
mod log;
pub mod memory;
mod metrics;
pub mod objects;
pub mod offline_audit;
mod output;
mod ports;
mod show;

pub use define::home::Home;
pub use define::variables::is_harmless;
pub use define::{config, preset, values};
pub use foreground::{Options as AloneOptions, RunError, run as run_alone};
pub use life::{Options, StartError, run};
pub use ports::locks::BY_DAEMON;
