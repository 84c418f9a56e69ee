//! Mirrors a terminal: follows what a program prints, and paints the same screen again for whoever comes later.
//!
//! It keeps the two screens, the cursor, the pen and the modes; what has scrolled away is the log's. Its memory
//! is bounded by the size of the screen, whatever is printed.
#![forbid(unsafe_code)]

mod cell;
mod control;
mod cursor;
mod grid;
mod modes;
mod paint;
mod pen;
mod row;
mod screen;
mod terminal;

pub use paint::LEAVE;
pub use terminal::{Size, Terminal};
