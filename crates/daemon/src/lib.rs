//! The daemon: the loop around the core, and nothing clever beside it.
//!
//! [`run`] takes the home's kernel lock, opens the store, looks at what is there, and serves the API socket
//! until it is told to go down. Everything that it knows it would know again after kill -9.
#![deny(unsafe_code)]

mod alias;
mod alone;
pub mod audit;
mod caller;
mod clock;
pub mod config;
mod consumer;
mod contained;
pub mod crash;
mod definition;
mod disk;
mod doorway;
mod entry;
mod fleet;
mod follow;
mod home;
mod http;
mod input;
mod keep;
mod last_line;
mod lines;
mod list;
mod locks;
mod log;
pub mod memory;
mod metrics;
pub mod objects;
mod observe;
mod only;
mod outlet;
pub mod preset;
mod printed;
mod readable;
mod retention;
mod serve;
mod shims;
mod speech;
mod stops;
mod timer;
pub mod values;
mod variables;
mod view;

pub use alone::{Options as AloneOptions, RunError, run as run_alone};
pub use home::Home;
pub use locks::BY_DAEMON;
pub use serve::{Options, StartError, run};
pub use variables::is_harmless;
