//! What the daemon and its clients say to each other: objects, errors and their exit codes, units, a client.
//!
//! The objects are the documented ones, field by field; nothing here decides anything.
#![forbid(unsafe_code)]

pub mod client;
pub mod endpoint;
pub mod error;
pub mod feed;
mod http;
mod list;
pub mod name;
pub mod object;
pub mod place;
pub mod query;
pub mod request;
pub mod time;
pub mod units;
mod watched;
pub mod word;

pub use client::{Client, ClientError};
pub use error::{ErrorBody, ErrorKind};
pub use http::Rest;
pub use name::{Name, NotAName};
pub use place::DaemonPlace;
pub use watched::Mute;

/// The version of the API: the `v1` at the beginning of all addresses.
pub const VERSION: u32 = 1;
