//! The tape of a session: what its agents printed and what was said to them, in order, with the time and the run.
//!
//! A folder of segments, each named by its first position. A position counts all bytes of all segments, their heads
//! included, and never goes back. A shim is the only writer ([`Tape`]); all others read the files
//! ([`Reader`]), while the shim lives as well as afterwards: there is no other way to get the bytes.
//!
//! ```no_run
//! # fn show(folder: &std::path::Path, cursor: pinfold_shim::log::Position) -> Result<(), Box<dyn std::error::Error>> {
//! use pinfold_shim::tape::{Reader, What};
//!
//! let mut reader = Reader::from(folder, cursor);
//! while let Some(entry) = reader.entry()? {
//!     match entry.what {
//!         What::Out(bytes) => println!("{} bytes of run {}", bytes.len(), entry.run),
//!         What::Said { number, label, .. } => println!("{number:?} was said: {label}"),
//!         What::Error(_) | What::Gap(_) | What::End => {}
//!     }
//! }
//! let _next_time_from = reader.position();
//! # Ok(())
//! # }
//! ```

mod buffer;
mod format;
mod old;
mod reader;
mod segments;
mod writer;

pub use crate::protocol::output::Position;
pub use format::{Entry, What};
pub use old::forget;
pub use reader::Reader;
pub use writer::{Limits, MOST_OUTPUT, Tape};
