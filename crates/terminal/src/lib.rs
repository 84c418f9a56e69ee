//! Mirrors a terminal: follows what a program prints, and repaints the same screen for clients that join
//! later.
//!
//! A [`Terminal`] keeps both screens, the cursor, the pen and the modes; lines that have scrolled away are
//! only in the log. Its memory is bounded by the size of the screen, whatever is printed. A [`Transcript`]
//! gives what was shown as lines of text, [`Terminal::pieces`] the screen with its looks; [`plain`] removes
//! sequences from a text, and a [`Filter`] passes only those that may reach a terminal.
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
pub use transcript::{SettledLines, Transcript};
