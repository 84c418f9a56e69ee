//! Measures the memory of runs that have a limit, from outside. It decides nothing: readings go to the core.
//!
//! To use it, in a daemon or without: make one [`Watcher`] with a function that takes readings, tell it when each run
//! with a limit has started ([`Watcher::watch`]) and ended ([`Watcher::forget`]), pass its readings to the core as
//! `RunEvent::MemoryRead`, and carry out `Action::ConfirmMemory` with [`Watcher::confirm`]. Start such runs with
//! [`Without::contain`], so that they get a group of their own that counts memory, if the machine allows it:
//!
//! ```
//! use pinfold_daemon::memory::{RunWatch, Subject, Watcher, Without};
//! use std::time::Duration;
//!
//! let (sender, readings) = std::sync::mpsc::channel();
//! let watcher = Watcher::new(Without::default(), move |run: u64, read| _ = sender.send((run, read)));
//! let subject = Subject { agent: std::process::id(), shim: None };
//! watcher.watch(1, RunWatch { subject, limit: 1 << 30, sample: Duration::from_millis(100) });
//! let (run, read) = readings.recv().unwrap();
//! assert_eq!(run, 1);
//! assert!(matches!(read.reading, pinfold_core::rules::memory::Reading::Bytes(bytes) if bytes > 0));
//! ```

mod capabilities;
mod ceiling;
mod disabled;
mod membership;
mod meter;
mod pace;
mod watcher;

pub use capabilities::capabilities;
pub use ceiling::ceiling;
pub use disabled::Without;
pub use meter::{Meter, MeterBuffers, MeterReading, Subject};
pub use watcher::{RunWatch, Watcher};
