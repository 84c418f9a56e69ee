//! Mirrors a terminal: follows what a program prints, and paints the same screen again for whoever comes later.
//!
//! A [`Terminal`] keeps the two screens, the cursor, the pen and the modes; what has scrolled away is the log's. Its
//! memory is bounded by the size of the screen, whatever is printed. A [`Transcript`] gives what was shown as lines of
//! text, [`Terminal::pieces`] what is on the screen with its looks, [`plain`] takes the sequences out of a text, a [`Filter`] lets those through that may reach a terminal.
#![forbid(unsafe_code)]

mod attention;
mod cell;
mod control;
mod cursor;
mod filter;
mod grid;
mod lines;
mod looks;
mod modes;
mod paint;
mod pen;
mod pieces;
mod plain;
mod row;
mod screen;
mod size;
mod skim;
mod terminal;
mod transcript;

pub use attention::Attention;
pub use filter::{Allow, Filter};
pub use looks::{Colour, Looks};
pub use paint::LEAVE;
pub use pieces::Piece;
pub use plain::plain;
pub use size::Size;
pub use terminal::Terminal;
pub use transcript::{Settled, Transcript};
