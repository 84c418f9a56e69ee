//! The tape of a session: what its agents printed and what was said to them, in order, with the time and the run.
//!
//! A folder of segments, each named by its first position. A position counts all bytes of all segments, their heads
//! included, and never goes back. A shim is the only writer ([`Tape`]); all others read the files
//! ([`TapeReader`]), while the shim lives as well as afterwards: there is no other way to get the bytes.
//!
//! ```no_run
//! # fn show(folder: &std::path::Path, cursor: pinfold_shim::log::Position) -> Result<(), Box<dyn std::error::Error>> {
//! use pinfold_shim::tape::{TapeContent, TapeReader};
//!
//! let mut reader = TapeReader::from(folder, cursor);
//! while let Some(entry) = reader.entry()? {
//!     match entry.what {
//!         TapeContent::Out(bytes) => println!("{} bytes of run {}", bytes.len(), entry.run),
//!         TapeContent::Said { number, label, .. } => println!("{number:?} was said: {label}"),
//!         TapeContent::Error(_) | TapeContent::Gap(_) | TapeContent::End => {}
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
pub use format::{TapeContent, TapeEntry};
pub use old::forget;
pub use reader::TapeReader;
pub use writer::{MOST_OUTPUT, SegmentLimits, Tape};
