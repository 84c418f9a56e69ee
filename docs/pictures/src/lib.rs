//! Draws what a program shows on a terminal: it runs on a real one ([`Sitting`]), its screen is read by the mirror that `attach` uses,
//! and becomes an SVG ([`svg()`]) without fonts or hosts of others. [`scenes`] are the pictures of the documentation.
//!
//! Two runs differ in pids, times and sizes. So a picture that is kept is not compared byte for byte: [`differs`] compares the words.

mod compare;
pub mod scenes;
mod sitting;
mod svg;

pub use compare::differs;
pub use sitting::{Sitting, Unseen};
pub use svg::svg;
